"""A peer that proposes a set before the freeze that it could have seen: nothing is fixed that was not compared."""

import asyncio

import pytest

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import CampaignSealed
from servers.lifecycle import seal
from servers.lifecycle.frozen_ids import FrozenIds
from servers.lifecycle.seal_messages import Step
from servers.storage.entries import set_checksum, split
from servers.storage.schema import UPLOADS
from servers.storage.storage import Storage, Writer
from servers.storage.waves import FROZEN, Wave
from tests.servers.test_wave_sets import made, send


@pytest.mark.parametrize("waves", [None, {"every": "manual", "count": 3, "pooled": []}])
def test_a_set_that_is_proposed_while_the_wave_freezes_is_not_fixed_unseen(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, waves: object
) -> None:
    """The proposal names the next freeze and any checksum, and comes just before that freeze."""
    spec, number = made(storage, waves=waves), 0 if waves is None else 1
    send(storage, spec, b"a", b"b", b"c", wave=number)
    storage.waves.agree(spec.id, number)
    read = seal._proposed

    def read_then_freeze(*about: object) -> tuple[Wave, list[bytes]]:
        found = read(*about)  # type: ignore[arg-type]
        storage.waves.freeze(spec.id, number, closed=False)
        return found

    monkeypatch.setattr(seal, "_proposed", read_then_freeze)

    async def agree() -> None:
        writer, ids = Writer(storage.uploads), FrozenIds(storage)
        try:
            await seal.accept(storage, writer, ids, spec, Step(1, spec.digest, b"s" * 32), number)
        finally:
            ids.close()
            await writer.close()

    with pytest.raises(CampaignSealed):
        asyncio.run(agree())
    wave = storage.waves.get(spec.id, number)
    assert (wave.state, wave.freeze_number, wave.set) == (FROZEN, 1, None)


def test_what_was_looked_at_before_a_rollback_is_not_taken_for_what_is_here(storage: Storage) -> None:
    """A failover to an older replica, under a running process: the same freeze again, of other uploads."""
    spec = made(storage, waves=None)
    send(storage, spec, b"a", b"b", b"c", wave=0)
    storage.waves.agree(spec.id)
    wave = storage.waves.freeze(spec.id, closed=False)

    async def looked() -> tuple[bytes, bytes, bytes]:
        ids = FrozenIds(storage)
        try:
            tree, checksum = await ids.tree(spec.id, wave, 0), await ids.checksum(spec.id, wave, [])
            with storage.engine.begin() as db:  # what the replica never had
                db.execute(UPLOADS.delete().where(UPLOADS.c.id == sorted(split(entries(storage, spec)))[0][:16]))
            storage.history.accept(1)
            return tree.checksum, checksum, await ids.checksum(spec.id, wave, [])
        finally:
            ids.close()

    before = set_checksum(entries(storage, spec))
    assert asyncio.run(looked()) == (before, before, set_checksum(entries(storage, spec)))
    assert set_checksum(entries(storage, spec)) != before


def entries(storage: Storage, spec: Campaign) -> bytes:
    return b"".join(storage.uploads.entries(spec.id))
