"""The entries of a frozen or fixed wave, as a sealing looks at them: their tree, some of them, the set's checksum.

A look at all of them takes a while where there are millions. It goes on in a thread; whoever asks is told to come back.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import CampaignSealed, InvalidPeerResponse, NotReady
from servers.lifecycle.id_tree import ENTRIES_AT_ONCE, IdTree, leaf_range
from servers.lifecycle.seal_messages import IdsQuery
from servers.storage.entries import ENTRY_BYTES, id_of, set_hash
from servers.storage.history import OWN
from servers.storage.storage import Storage
from servers.storage.waves import OPEN, Wave

PATIENCE_S = 5.0  # that a question waits for a look
LOOKS = 8  # that are kept; a tree has at most 22 MB
AT_ONCE = 2  # in threads of their own: the other server chooses what is looked for, and others are to be answered

T = TypeVar("T")


class FrozenIds:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._looks: dict[tuple[Hashable, ...], asyncio.Future[Any]] = {}
        self._threads = ThreadPoolExecutor(AT_ONCE, "looks")

    async def answer(self, campaign: Campaign, number: int, asked: IdsQuery) -> bytes:
        """The other server's question."""
        wave = await asyncio.to_thread(self._storage.waves.get, campaign.id, number)
        if wave.state == OPEN or wave.freeze_number != asked.freeze:
            raise CampaignSealed("the campaign has been opened or sealed by somebody else meanwhile; seal it again")
        if asked.level == asked.depth:
            return await asyncio.to_thread(self.of_leaves, campaign.id, number, asked.nodes, asked.depth, asked.after)
        tree = await self.tree(campaign.id, wave, asked.depth, patience_s=PATIENCE_S)
        return tree.children(asked.level, asked.nodes).tobytes()

    def of_leaves(
        self, campaign_id: bytes, number: int, leaves: Collection[int], depth: int, after: bytes | None
    ) -> bytes:
        """The entries of some leaves, behind the id `after`; at most ENTRIES_AT_ONCE: whoever gets so many asks on."""
        parts, room = [], ENTRIES_AT_ONCE
        for leaf in leaves:
            first, behind = leaf_range(leaf, depth)
            if after is not None and behind is not None and behind <= after:
                continue
            start = first if after is None or after < first else after + b"\0"
            part = self._storage.uploads.entries_between(campaign_id, start, behind, room, number)
            parts.append(part)
            room -= len(part) // ENTRY_BYTES
            if not room:
                break
        return b"".join(parts)

    async def tree(self, campaign_id: bytes, wave: Wave, depth: int, *, patience_s: float | None = None) -> IdTree:
        key = *await self._place(campaign_id, wave), depth
        entries = self._storage.uploads.entries
        return await self._look(key, lambda: IdTree.of(entries(campaign_id, wave.number), depth), patience_s)

    async def checksum(
        self, campaign_id: bytes, wave: Wave, leave: Collection[bytes], *, patience_s: float | None = None
    ) -> bytes:
        """Of the set without some ids, all of which must be here."""
        out, here = frozenset(leave), await self._place(campaign_id, wave)
        known = None if out else self._known(here)
        if known is not None:
            return known
        return await self._look((*here, out), lambda: self._checksum(campaign_id, wave.number, out), patience_s)

    async def _place(self, campaign_id: bytes, wave: Wave) -> tuple[Hashable, ...]:
        """What a look is of. An older database has freezes with the same numbers, of other uploads: it is of another
        generation of the history."""
        own = await asyncio.to_thread(self._storage.history.standing, OWN)
        return campaign_id, own.generation, wave.number, wave.freeze_number, wave.set

    def _known(self, here: tuple[Hashable, ...]) -> bytes | None:
        """The checksum of all that is here, if a tree of it was made."""
        ended = (look for key, look in self._looks.items() if key[: len(here)] == here and look.done())
        trees = (look.result() for look in ended if not look.cancelled() and look.exception() is None)
        return next((tree.checksum for tree in trees if isinstance(tree, IdTree)), None)

    def _checksum(self, campaign_id: bytes, number: int, leave: frozenset[bytes]) -> bytes:
        hashed, left, leaving = set_hash(), 0, sorted(leave)
        for part in self._storage.uploads.entries(campaign_id, number):
            kept = _without(part, leaving)
            left += (len(part) - len(kept)) // ENTRY_BYTES
            hashed.update(kept)
        if left != len(leave):
            raise InvalidPeerResponse(f"{len(leave) - left} uploads that are to be left out are not here")
        return hashed.digest()

    async def _look(self, key: tuple[Hashable, ...], make: Callable[[], T], patience_s: float | None) -> T:
        look: asyncio.Future[T] | None = self._looks.get(key)
        if look is None:
            if sum(not task.done() for task in self._looks.values()) >= LOOKS:
                raise NotReady("too much is being looked through; ask again", retry_after=1)
            look = self._looks[key] = asyncio.get_running_loop().run_in_executor(self._threads, make)
            for old in [k for k, task in self._looks.items() if task.done()][:-LOOKS]:
                del self._looks[old]
        done, _ = await asyncio.wait({look}, timeout=patience_s)
        if not done:
            raise NotReady("the uploads are being looked through; ask again", retry_after=1)
        if look.exception() is not None:
            self._looks.pop(key, None)
        return look.result()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def forget(self, campaign_id: bytes) -> None:
        self._looks = {key: look for key, look in self._looks.items() if key[0] != campaign_id}


def _without(part: bytes, leave: Sequence[bytes]) -> bytes:
    """Entries in order without those of some ids in order, which are looked up one by one: they are few."""

    def id_at(place: int) -> bytes:
        return id_of(part[ENTRY_BYTES * place : ENTRY_BYTES * (place + 1)])

    count, kept, start = len(part) // ENTRY_BYTES, [], 0
    for upload_id in leave[bisect_left(leave, id_at(0)) : bisect_right(leave, id_at(count - 1))]:
        place = bisect_left(range(count), upload_id, key=id_at)
        if id_at(place) == upload_id:
            kept.append(part[ENTRY_BYTES * start : ENTRY_BYTES * place])
            start = place + 1
    return b"".join([*kept, part[ENTRY_BYTES * start :]])
