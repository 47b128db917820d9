"""Digests of ids by their first digits: what only one side has is found, with few bytes, whatever the ids are."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import CampaignSealed, InvalidPeerResponse, InvalidQuery, InvalidUpload, NotReady
from servers.lifecycle import frozen_ids, seal
from servers.lifecycle.frozen_ids import FrozenIds
from servers.lifecycle.id_tree import MAX_DEPTH, Difference, IdTree, depth_for, difference, leaf_range
from servers.lifecycle.seal import accept
from servers.lifecycle.seal_messages import IdsQuery, Step
from servers.storage import uploads
from servers.storage.admission import NewUploads
from servers.storage.entries import id_of, split
from servers.storage.storage import Storage, Writer
from servers.storage.uploads import Uploads
from tests.servers.conftest import new_campaign
from tests.servers.rows import checksum_of, entry, row


def ids_of(count: int, seed: int, prefix: bytes = b"") -> list[bytes]:
    rng = np.random.default_rng(seed)
    return sorted({prefix + rng.bytes(16 - len(prefix)) for _ in range(count)})


def parts(ids: Sequence[bytes], size: int = 7) -> Iterator[bytes]:
    """Entries, all with the same bytes under their ids."""
    yield from joined([entry(upload_id) for upload_id in ids], size)


def joined(entries: Sequence[bytes], size: int) -> Iterator[bytes]:
    for start in range(0, len(entries), size):
        yield b"".join(entries[start : start + size])


def compared(here: Sequence[bytes], there: Sequence[bytes], depth: int) -> tuple[Difference, int]:
    """By two trees of this depth, and how many bytes the other side sent."""
    return compared_entries(list(map(entry, here)), list(map(entry, there)), depth)


def compared_entries(here: Sequence[bytes], there: Sequence[bytes], depth: int) -> tuple[Difference, int]:
    mine, theirs, sent = IdTree.of(joined(here, 7), depth), IdTree.of(joined(there, 5), depth), 0

    def of(entries: Sequence[bytes], leaves: Sequence[int]) -> bytes:
        ranges = [leaf_range(leaf, depth) for leaf in leaves]
        return b"".join(e for first, behind in ranges for e in entries if first <= e and (behind is None or e < behind))

    def counted(data: bytes) -> bytes:
        nonlocal sent
        sent += len(data)
        return data

    async def children(level: int, nodes: Sequence[int]) -> bytes:
        return counted(theirs.children(level, nodes).tobytes())

    async def ours(leaves: Sequence[int]) -> bytes:
        return of(here, leaves)

    async def other(leaves: Sequence[int]) -> bytes:
        return counted(of(there, leaves))

    return asyncio.run(difference(mine, children, ours, other)), sent


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("common", "only_here", "only_there"),
    [(0, 0, 0), (0, 3, 0), (0, 0, 3), (1, 0, 0), (300, 0, 0), (300, 1, 0), (300, 0, 1), (300, 20, 30), (0, 40, 50)],
)
def test_what_only_one_side_has_is_found(depth: int, common: int, only_here: int, only_there: int) -> None:
    both, here, there = ids_of(common, 1), ids_of(only_here, 2), ids_of(only_there, 3)
    apart, _ = compared(sorted(both + here), sorted(both + there), depth)
    assert apart == Difference(b"".join(here), b"".join(there))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_id_under_which_the_sides_have_something_else_is_found_on_both(depth: int) -> None:
    """Another wave, another number of people or other shares: another leaf, so the upload is unmatched."""
    ids = ids_of(300, 1)
    here = list(map(entry, ids))
    there = [entry(i, b"other") if number in (0, 17) else entry(i) for number, i in enumerate(ids)]
    apart, _ = compared_entries(here, there, depth)
    assert apart == Difference(ids[0] + ids[17], ids[0] + ids[17])


@pytest.mark.parametrize("prefix", [b"", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x12\x34\x50"])
def test_ids_that_somebody_chose_are_found_too(prefix: bytes) -> None:
    """All below one leaf: then its list is sent, and nothing is missed."""
    both = ids_of(200, 1, prefix)
    alone = [bytes(16), b"\xff" * 16]
    apart, _ = compared(both, sorted(set(both[1:]) | set(alone)), 3)
    assert apart == Difference(both[0], b"".join(alone))


def test_few_differences_need_few_bytes() -> None:
    """A list of these entries has 960 000 bytes."""
    both = ids_of(20_000, 1)
    assert compared(both, both, depth_for(20_000))[1] == 16 * 20
    apart, sent = compared(both, sorted([*both, b"\x77" * 16]), depth_for(20_000))
    assert apart == Difference(b"", b"\x77" * 16)
    assert sent < 10_000


def test_a_leaf_holds_few_ids_up_to_the_largest_campaign() -> None:
    assert [depth_for(n) for n in (0, 256, 257, 4096, 4097, 10**6, 10**7, 10**8)] == [0, 0, 1, 1, 2, 3, 4, 5]
    assert leaf_range(0, 0) == (bytes(16), None)
    assert leaf_range(15, 1) == (b"\xf0" + bytes(15), None)
    assert leaf_range(1, 2) == (b"\x01" + bytes(15), b"\x02" + bytes(15))


def test_a_tree_depends_on_every_id_and_not_on_how_it_was_read() -> None:
    ids = ids_of(500, 1)
    trees = [IdTree.of(parts(ids, size), 2) for size in (1, 3, 500)]
    assert len({tree.levels[0].tobytes() for tree in trees}) == 1
    assert IdTree.of(parts(ids[1:]), 2).levels[0].tobytes() != trees[0].levels[0].tobytes()
    assert int(trees[0].levels[0]["count"][0]) == 500


@pytest.mark.parametrize("answer", [b"", bytes(19), bytes(20 * 16 + 1)])
def test_digests_of_another_length_are_refused(answer: bytes) -> None:
    async def children(level: int, nodes: Sequence[int]) -> bytes:
        return answer

    async def ids(leaves: Sequence[int]) -> bytes:
        return b""

    with pytest.raises(InvalidPeerResponse, match="digests"):
        asyncio.run(difference(IdTree.of(parts(ids_of(9, 1)), 1), children, ids, ids))


@pytest.mark.parametrize(
    "changes",
    [
        {"level": 3},
        {"nodes": [0, 0]},
        {"nodes": [1, 0]},
        {"nodes": [16]},
        {"nodes": [-1]},
        {"nodes": []},
        {"depth": 6},
        {"level": 2, "nodes": list(range(256)) * 3},
        {"after": "AAAA"},
    ],
)
def test_questions_about_ids_are_read_strictly(changes: dict[str, object]) -> None:
    query = {"digest": to_base64url(bytes(32)), "freeze": 1, "depth": 2, "level": 1, "nodes": [0, 15], "after": None}
    text = IdsQuery.decode(_json(query)).to_json()
    assert IdsQuery.decode(text.encode()).nodes == [0, 15]
    with pytest.raises(InvalidQuery):
        IdsQuery.decode(_json({**query, **changes}))


def _json(fields: dict[str, object]) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("data", [b"", bytes(71), bytes(73), bytes(72 + 32), bytes(72) + b"\2" * 16 + b"\1" * 16])
def test_steps_are_read_strictly(data: bytes) -> None:
    assert Step.decode(bytes(72)) == Step(0, bytes(32))
    with pytest.raises(InvalidUpload):
        Step.decode(data)


def test_a_frozen_wave_answers_in_parts(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_ids, "ENTRIES_AT_ONCE", 10)
    campaign, ids = new_campaign(min_uploads=1), ids_of(45, 4)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])])
    frozen = FrozenIds(storage)

    async def ask(freeze: int, after: bytes | None) -> bytes:
        nodes = list(range(16))
        query = IdsQuery(digest=campaign.digest, freeze=freeze, depth=1, level=1, nodes=nodes, after=after)
        return await frozen.answer(campaign, 0, query)

    with pytest.raises(CampaignSealed):
        asyncio.run(ask(0, None))
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freeze_number
    with pytest.raises(CampaignSealed):
        asyncio.run(ask(freeze + 1, None))
    seen: list[bytes] = []
    while part := split(asyncio.run(ask(freeze, id_of(seen[-1]) if seen else None))):
        assert len(part) <= 10
        seen += part
    assert seen == list(map(entry, ids))


def test_a_long_look_is_met_again(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks meanwhile is told to come back, and does not begin it anew."""
    campaign, ids = new_campaign(min_uploads=1), ids_of(20, 5)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])])
    wave, frozen, begun = storage.waves.get(campaign.id), FrozenIds(storage), []

    async def main() -> None:
        loop, release = asyncio.get_running_loop(), asyncio.Event()

        def slow(*about: object) -> bytes:
            begun.append(about)
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
            return checksum_of(ids)

        monkeypatch.setattr(frozen, "_checksum", slow)
        for _ in range(2):
            with pytest.raises(NotReady):
                await frozen.checksum(campaign.id, wave, [], patience_s=0.05)
        release.set()
        assert await frozen.checksum(campaign.id, wave, [], patience_s=30) == checksum_of(ids)
        assert len(begun) == 1

    asyncio.run(main())


def test_a_checksum_without_ids_that_are_not_here_is_refused(storage: Storage) -> None:
    campaign, ids = new_campaign(min_uploads=1), ids_of(20, 6)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])])
    wave = storage.waves.get(campaign.id)

    async def checksum(leave: Sequence[bytes]) -> bytes:
        return await FrozenIds(storage).checksum(campaign.id, wave, leave)

    assert asyncio.run(checksum(ids[:3])) == checksum_of(ids[3:])
    with pytest.raises(InvalidPeerResponse, match="1 uploads"):
        asyncio.run(checksum([*ids[:3], bytes(16)]))


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "leave", [slice(0, 0), slice(0, 1), slice(-1, None), slice(5, 23), slice(0, None, 3), slice(None)]
)
def test_a_checksum_does_not_depend_on_how_ids_are_read(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, size: int, leave: slice
) -> None:
    monkeypatch.setattr(uploads, "ENTRIES", size)
    campaign, ids = new_campaign(min_uploads=1), ids_of(50, 8)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])])
    wave, out = storage.waves.get(campaign.id), ids[leave]
    found = asyncio.run(FrozenIds(storage).checksum(campaign.id, wave, out[::-1]))
    assert found == checksum_of(i for i in ids if i not in out)


def test_uploads_of_a_plain_campaign_are_not_counted_again(storage: Storage) -> None:
    """How many there are is known; 10^8 rows take minutes, and the other server waits for seconds."""
    campaign, ids = new_campaign(min_uploads=1), ids_of(20, 9)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])])
    assert storage.uploads.withdraw(campaign.id, ids[:1], None) == (1, [])
    storage.waves.agree(campaign.id)
    asked: list[str] = []
    sa.event.listen(storage.engine, "before_cursor_execute", lambda *about: asked.append(about[2]))
    frozen = seal.freeze(storage, campaign, datetime(2026, 1, 1, tzinfo=UTC))
    assert frozen.count == 19
    fixed = storage.waves.commit_set(campaign.id, frozen.freeze, checksum_of(ids[1:]), [])
    assert fixed.set is not None
    assert fixed.set.count == 19
    assert asked
    assert not any("count(" in statement and "FROM uploads" in statement for statement in asked)


def test_only_what_is_here_can_be_proposed_to_leave(storage: Storage) -> None:
    campaign, ids = new_campaign(min_uploads=1), ids_of(20, 7)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])])
    storage.waves.agree(campaign.id)
    freeze, propose = storage.waves.freeze(campaign.id, closed=False).freeze_number, storage.waves.propose_exclusion
    with pytest.raises(InvalidPeerResponse):
        propose(campaign.id, freeze, b"a" * 32, [bytes(16)])
    for _ in range(2):
        propose(campaign.id, freeze, b"a" * 32, ids[:2])
    propose(campaign.id, freeze, b"a" * 32, ids[1:3])
    assert storage.waves.proposed_exclusion(campaign.id, b"a" * 32) == ids[:3]
    propose(campaign.id, freeze, b"b" * 32, ids[:1])  # another set: what was said of the first is forgotten
    assert storage.waves.proposed_exclusion(campaign.id, b"a" * 32) == []
    storage.waves.unfreeze(campaign.id, freeze)
    assert storage.waves.proposed_exclusion(campaign.id, b"b" * 32) == []


def test_looks_of_the_other_server_keep_nobody_waiting(tmp_path: Path) -> None:
    """It may ask for trees of every depth at once; each takes minutes where there are many uploads."""
    go = threading.Event()

    class Slow(Uploads):
        def entries(self, campaign_id: bytes, wave: int = 0) -> Iterator[bytes]:
            assert go.wait(30)
            return super().entries(campaign_id, wave)

    async def play() -> None:
        with closing(Storage(f"sqlite:///{tmp_path}/server.db")) as storage:
            storage.uploads = Slow(storage.engine)
            campaign, looks = new_campaign(), FrozenIds(storage)
            storage.campaigns.add(campaign, "0" * 64, [])
            storage.waves.agree(campaign.id)
            wave = storage.waves.freeze(campaign.id, closed=False)
            trees = [asyncio.create_task(looks.tree(campaign.id, wave, depth)) for depth in range(MAX_DEPTH + 1)]
            checksum = asyncio.create_task(looks.checksum(campaign.id, wave, []))
            await asyncio.sleep(0.05)
            threads = min(32, (os.cpu_count() or 1) + 4)  # as many as serve everybody else
            async with asyncio.timeout(25):
                await asyncio.gather(*(asyncio.to_thread(storage.ping) for _ in range(threads)))
            go.set()
            await asyncio.gather(*trees, checksum)
            looks.close()

    asyncio.run(play())


def test_a_set_is_agreed_on_only_if_it_is_what_is_here(tmp_path: Path) -> None:
    """Whatever checksum the other server names, and whatever it has named before to be left out."""
    ids = ids_of(20, seed=3)

    async def play() -> None:
        with closing(Storage(f"sqlite:///{tmp_path}/server.db")) as storage:
            campaign, looks, writer = new_campaign(), FrozenIds(storage), Writer(storage.uploads)
            storage.campaigns.add(campaign, "0" * 64, [])
            assert storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])]) == [[]]
            storage.waves.agree(campaign.id)
            frozen = storage.waves.freeze(campaign.id, closed=False)
            agreed, named = checksum_of(ids[2:]), ids[:2]
            storage.waves.propose_exclusion(campaign.id, 1, agreed, named)
            for claimed in (checksum_of(ids[1:]), bytes(32)):
                with pytest.raises(InvalidPeerResponse):
                    await accept(storage, writer, looks, campaign, Step(1, campaign.digest, claimed))
                assert storage.waves.get(campaign.id) == frozen
            wave = await accept(storage, writer, looks, campaign, Step(1, campaign.digest, agreed))
            assert (wave.sealed.checksum, wave.sealed.count, wave.sealed.unmatched) == (agreed, 18, 2)
            looks.close()
            await writer.close()

    asyncio.run(play())
