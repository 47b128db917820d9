"""A peer that proposes a set before the freeze that it could have seen: nothing is fixed that was not compared."""

import asyncio

import pytest

from campaign.errors import CampaignSealed
from servers.lifecycle import seal
from servers.lifecycle.frozen_ids import FrozenIds
from servers.lifecycle.seal_wire import Step
from servers.storage.storage import Storage, Writer
from servers.storage.waves import FROZEN, Wave
from tests.servers.test_wave_sets import made, send


@pytest.mark.parametrize("waves", [None, {"every": "by hand", "count": 3, "pooled": []}])
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
    assert (wave.state, wave.freezes, wave.set) == (FROZEN, 1, None)
