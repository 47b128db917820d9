"""Sealing: both servers agree, once, on the uploads that reached both.

    this server                              the other one
    1. ask it to freeze                   -> freeze; say how many uploads there are (or that the set is fixed already)
    2. freeze: take no more uploads
    3. compare entries by digests         -> answer with digests, and with entries where they differ (`id_tree.py`)
    4. name what it has alone             -> note it
    5. name the set by its checksum       -> see that it is what is here without those; fix it
    6. fix it here

Where the campaign checks keys, steps 5 and 6 fix the set that is checked on both sides (`check.py`), and what passed
is sealed at the end of that.

Every step is small, durable before the next and harmless when repeated. A crash anywhere leaves both sides frozen or
one of them sealed; running it again, from either side, ends with the same set: frozen sides cannot change, and a sealed
side hands out the set it sealed. Where too few uploads reached both, both thaw instead. Freezes are numbered, so that a
seal that was overtaken by another one's thaw cannot act on what it saw before.

No server seals another: a side freezes only when its own operator has agreed or, where the campaign says so, at its
closing time by its own clock, and keeps what the agreed set leaves out until its operator confirms it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES
from fss_ecdf.campaign.campaign import Campaign, check_digest, to_base64url
from fss_ecdf.campaign.errors import (
    CampaignSealed,
    DigestMismatch,
    InvalidPeerResponse,
    InvalidQuery,
    NotReady,
    PeerUnavailable,
    TooFewUploads,
)
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.status import Status
from servers import log
from servers.lifecycle.frozen_ids import PATIENCE_S, FrozenIds
from servers.lifecycle.id_tree import (
    ENTRIES_AT_ONCE,
    FAN_OUT,
    NODE,
    NODES_AT_ONCE,
    Difference,
    depth_for,
    difference,
)
from servers.lifecycle.seal_messages import EXCLUDED_AT_ONCE, NO_SET, Agreed, Frozen, IdsQuery, Step
from servers.lifecycle.wave_schedule import is_due, is_manual
from servers.peer import PeerClient
from servers.storage import abandoned_waves
from servers.storage.admission import seals_at_closing
from servers.storage.entries import ENTRY_BYTES, id_of, id_of_last, split
from servers.storage.key_files import split_ids
from servers.storage.storage import Storage, Writer
from servers.storage.waves import CHECKING, FROZEN, SEALED, Wave, least_uploads

ASK_AGAIN_S = 0.5
TURN_S = 5.0  # that another process of this server is waited for
TRIES = 1200  # a look at 10^8 ids takes minutes


def freeze(storage: Storage, campaign: Campaign, now: datetime, number: int = 0) -> Frozen:
    """Steps 1 and 2: take no more uploads, and say what is here."""
    closed = seals_at_closing(campaign, now) or is_due(storage, campaign, number, now)
    wave = storage.waves.freeze(campaign.id, number, closed=closed)
    count = storage.uploads.contributions_in_wave(campaign.id, number)
    fixed = NO_SET if wave.set is None else wave.set.checksum
    return Frozen(wave.state, wave.freeze_number, campaign.digest, count, fixed)


async def accept(
    storage: Storage, writer: Writer, ids: FrozenIds, campaign: Campaign, step: Step, number: int = 0
) -> Wave:
    """Step 5 on the other side: the set is what is here without what was named, and has this checksum."""
    wave, leave = await asyncio.to_thread(_proposed, storage, campaign.id, number, step.set)
    if wave.set is None:
        if (
            wave.state != FROZEN or wave.freeze_number != step.freeze
        ):  # it may freeze right now, and nobody has compared
            raise CampaignSealed("this is not the freeze that the campaign is in; seal it again")
        here = await ids.checksum(campaign.id, wave, leave, patience_s=PATIENCE_S)
        if here != step.set:
            raise InvalidPeerResponse("the set to agree on is not what is here without the uploads that were named")
    elif step.set not in (wave.set.checksum, wave.set.checked):
        raise CampaignSealed("the campaign is sealed with another set of uploads")
    else:
        return wave
    wave = await writer.run(lambda: storage.waves.commit_set(campaign.id, step.freeze, step.set, leave, number))
    _log(campaign, wave)
    return wave


def _log(campaign: Campaign, wave: Wave) -> None:
    """That a set is fixed here, and how many uploads are excluded because only this server has them."""
    assert wave.set is not None
    name, fixed = to_base64url(campaign.id), wave.set
    log.event(
        "set-fixed", campaign=name, wave=wave.number, count=fixed.count, unmatched=fixed.unmatched, state=wave.state
    )


def _proposed(storage: Storage, campaign_id: bytes, number: int, checksum: bytes) -> tuple[Wave, list[bytes]]:
    return storage.waves.get(campaign_id, number), storage.waves.proposed_exclusion(campaign_id, checksum)


async def peer_status(peer: PeerClient, campaign: Campaign) -> Status:
    """Where the campaign stands on the other server, by its own account; also while one of the two is on hold."""
    try:
        status = read(Status, await peer.status(campaign.id))
    except InvalidQuery as problem:
        raise InvalidPeerResponse(f"the other server's status is not well-formed: {problem.detail}") from None
    if status.digest != campaign.digest:
        raise DigestMismatch("the other server has another campaign under this id")
    return status


class Sealer:
    """Runs the protocol at the wish of this side's operator, one campaign at a time."""

    def __init__(
        self,
        storage: Storage,
        writer: Writer,
        peer: PeerClient,
        ids: FrozenIds,
        clock: Callable[[], datetime],
        crash: Callable[[str], None],
    ) -> None:
        self._storage, self._writer, self._peer, self._ids = storage, writer, peer, ids
        self._clock, self._crash = clock, crash
        self._locks: dict[bytes, asyncio.Lock] = {}

    def forget(self, campaign_id: bytes) -> None:
        self._locks.pop(campaign_id, None)
        self._ids.forget(campaign_id)

    async def seal(self, campaign: Campaign, number: int = 0, *, by_operator: bool = True) -> tuple[Wave, int]:
        """Returns the wave, sealed or being checked, and how many uploads the other side had alone."""
        async with self._alone(campaign.id):
            if by_operator and is_manual(campaign):
                await self._writer.run(lambda: self._storage.waves.agree(campaign.id, number))
            return await self._seal(campaign, number)

    async def unfreeze(self, campaign: Campaign) -> None:
        """Undo a freeze on both sides: this one first, so that no set can be fixed here by what was listed before."""
        if campaign.waves is not None:
            raise CampaignSealed("a wave that is closed is not opened again; uploads go on in the next one")
        async with self._alone(campaign.id):
            mine = await asyncio.to_thread(self._storage.waves.get, campaign.id)
            await self._peer.require_compared()
            theirs = await peer_status(self._peer, campaign)
            if {CHECKING, SEALED} & {mine.state, theirs.state}:
                raise CampaignSealed(
                    f"the set of uploads is fixed: {mine.state} here, {theirs.state} at the other server. Nothing can "
                    "be opened again; fss-server campaign seal completes it"
                )
            if mine.state == FROZEN:
                await self._writer.run(lambda: self._storage.waves.unfreeze(campaign.id, mine.freeze_number))
            self._crash("reopen-here")
            if theirs.state == FROZEN:
                step = Step(theirs.freeze_number, campaign.digest).encode()
                await self._peer.call("POST", campaign.id, "/unfreeze", content=step)

    async def abandon(self, campaign: Campaign, number: int) -> Wave:
        """Abandon a wave on both servers, once both operators have agreed: the other server first, then this one."""
        async with self._alone(campaign.id):
            engine, step = self._storage.engine, Step(0, campaign.digest).encode()
            await self._writer.run(lambda: abandoned_waves.agree(engine, campaign.id, number))
            await self._peer.call("POST", campaign.id, f"/abandon?wave={number}", content=step)
            self._crash("abandoned-there")
            wave = await self._writer.run(lambda: abandoned_waves.abandon(engine, campaign.id, number))
        log.event("wave-abandoned", campaign=to_base64url(campaign.id), wave=number)
        return wave

    @asynccontextmanager
    async def _alone(self, campaign_id: bytes) -> AsyncIterator[None]:
        """One sealing or opening of a campaign at a time, by all processes of this server.

        A sealing fixes the set there before it does here; opened here in between, the two would never fit again.
        """
        async with self._locks.setdefault(campaign_id, asyncio.Lock()):
            with self._storage.leading(f"sealing {to_base64url(campaign_id)}") as one:
                until = time.monotonic() + TURN_S
                while not await asyncio.to_thread(one.leads):
                    if time.monotonic() > until:
                        raise NotReady("another process of this server is sealing or opening it", retry_after=5)
                    await asyncio.sleep(ASK_AGAIN_S)
                yield

    async def _seal(self, campaign: Campaign, number: int) -> tuple[Wave, int]:
        run, storage, of = self._writer.run, self._storage, f"?wave={number}"
        theirs = Frozen.decode(await self._peer.call("POST", campaign.id, "/freeze" + of))
        self._crash("seal-frozen-there")
        mine = await run(lambda: freeze(storage, campaign, self._clock(), number))
        self._crash("seal-frozen-both")
        check_digest(campaign.digest, theirs.digest)
        wave = await asyncio.to_thread(storage.waves.get, campaign.id, number)
        apart = await self._compare(campaign, wave, mine, theirs)
        _require_possible(mine, theirs, apart)
        leave = split_ids(apart.here)
        count = await asyncio.to_thread(storage.waves.people, campaign.id, number, leave)
        if count < least_uploads(campaign) and (mine.is_fixed or theirs.is_fixed):
            raise TooFewUploads(
                "too few uploads passed the check; nothing is published of them, and nothing can be added"
            )
        if count < least_uploads(campaign):
            await self._unfreeze(campaign, mine, theirs)
            raise TooFewUploads(
                f"{count} uploads reached both servers, the campaign promised at least "
                f"{campaign.min_uploads}; it is open again"
            )
        checksum = mine.set if mine.is_fixed else await self._ids.checksum(campaign.id, wave, leave)
        await self._name(campaign, number, theirs, checksum, apart.there)
        self._crash("seal-named-there")
        step = Step(theirs.freeze, campaign.digest, checksum).encode()
        reply = Agreed.decode(await self._ask(campaign, "/agree" + of, step))
        if (reply.count, reply.checksum) != (count, to_base64url(checksum)):
            raise InvalidPeerResponse("the other server sealed another set of uploads")
        self._crash("seal-sealed-there")
        wave = await run(lambda: storage.waves.commit_set(campaign.id, mine.freeze, checksum, leave, number))
        self._crash("seal-sealed-both")
        _log(campaign, wave)
        return wave, reply.unmatched

    async def _compare(self, campaign: Campaign, wave: Wave, mine: Frozen, theirs: Frozen) -> Difference:
        """Step 3: what only one side has."""
        depth = depth_for(max(mine.count, theirs.count))
        if theirs.count > campaign.max_uploads:
            raise InvalidPeerResponse(
                f"the other server claims {theirs.count} uploads; {campaign.max_uploads} are possible"
            )
        questions = _Questions(self, campaign, wave.number, theirs.freeze, depth, theirs.count)

        async def ours(leaves: Sequence[int]) -> bytes:
            def part(after: bytes | None) -> Awaitable[bytes]:
                return asyncio.to_thread(self._ids.of_leaves, campaign.id, wave.number, leaves, depth, after)

            return await _all_entries(part)

        # The other side looks through its ids at the same time.
        asked = questions.children(0, [0]) if depth else asyncio.sleep(0, b"")
        tree, _ = await asyncio.gather(self._ids.tree(campaign.id, wave, depth), asked)
        return await difference(tree, questions.children, ours, questions.ids)

    async def _name(self, campaign: Campaign, number: int, theirs: Frozen, checksum: bytes, ids: bytes) -> None:
        """Step 4, a part at a time."""
        for start in range(0, len(ids), size := UPLOAD_ID_BYTES * EXCLUDED_AT_ONCE):
            step = Step(theirs.freeze, campaign.digest, checksum, ids[start : start + size])
            await self._peer.call("POST", campaign.id, f"/exclude?wave={number}", content=step.encode())

    async def _ask(self, campaign: Campaign, what: str, content: bytes) -> bytes:
        """A question that the other side may need a long look for."""
        most = max(ENTRY_BYTES * ENTRIES_AT_ONCE, NODE.itemsize * FAN_OUT * NODES_AT_ONCE)
        for _ in range(TRIES):
            try:
                return await self._peer.call("POST", campaign.id, what, content=content, most=most)
            except PeerUnavailable as problem:
                if not isinstance(problem.__cause__, NotReady):
                    raise
                await asyncio.sleep(ASK_AGAIN_S)
        raise NotReady("the other server is still looking through its uploads; seal again later", retry_after=60)

    async def _unfreeze(self, campaign: Campaign, mine: Frozen, theirs: Frozen) -> None:
        step = Step(theirs.freeze, campaign.digest).encode()
        await self._peer.call("POST", campaign.id, "/unfreeze", content=step)
        await self._writer.run(lambda: self._storage.waves.unfreeze(campaign.id, mine.freeze))


@dataclass(frozen=True)
class _Questions:
    """About the other side's ids, in one freeze of a wave."""

    of: Sealer
    campaign: Campaign
    wave: int
    freeze: int
    depth: int
    count: int  # of ids that it claims to have
    told: list[int] = field(default_factory=list)  # how many it has listed, part by part

    async def children(self, level: int, nodes: Sequence[int]) -> bytes:
        return await self._ask(level, nodes, None)

    async def ids(self, leaves: Sequence[int]) -> bytes:
        async def part(after: bytes | None) -> bytes:
            some = await self._ask(self.depth, leaves, after)
            self._require_ids(leaves, some, after)
            self.told.append(len(some) // ENTRY_BYTES)
            if sum(self.told) > self.count:
                raise InvalidPeerResponse("the other server lists more uploads than it says it has")
            return some

        return await _all_entries(part)

    async def _ask(self, level: int, nodes: Sequence[int], after: bytes | None) -> bytes:
        query = IdsQuery(
            digest=self.campaign.digest,
            freeze=self.freeze,
            depth=self.depth,
            level=level,
            nodes=list(nodes),
            after=after,
        )
        return await self.of._ask(self.campaign, f"/ids?wave={self.wave}", query.to_json().encode())

    def _require_ids(self, leaves: Sequence[int], part: bytes, after: bytes | None) -> None:
        ids, asked = [id_of(entry) for entry in split(part)], set(leaves)
        shift = 8 * UPLOAD_ID_BYTES - 4 * self.depth
        good = len(part) % ENTRY_BYTES == 0 and len(ids) <= ENTRIES_AT_ONCE
        good = good and all(a < b for a, b in pairwise([*([] if after is None else [after]), *ids]))
        if not good or any(int.from_bytes(i, "big") >> shift not in asked for i in ids):
            raise InvalidPeerResponse("the other server's list of uploads is not what it was asked for")


async def _all_entries(part: Callable[[bytes | None], Awaitable[bytes]]) -> bytes:
    """Part by part, each behind the last id of the one before it."""
    parts = [await part(None)]
    while len(parts[-1]) == ENTRY_BYTES * ENTRIES_AT_ONCE:
        parts.append(await part(id_of_last(parts[-1])))
    return b"".join(parts)


def _require_possible(mine: Frozen, theirs: Frozen, apart: Difference) -> None:
    """A side that has fixed its set does not change it any more.

    Where both have, and one has come further with the check, the other one will come to the same end.
    """
    if {mine.state, theirs.state} == {CHECKING, SEALED}:
        raise NotReady("one server has checked the uploads, the other one has not; ask again", retry_after=2)
    if theirs.is_fixed and apart.there:
        if theirs.state == CHECKING:
            raise NotReady("the other server is still checking the uploads of an earlier sealing", retry_after=2)
        raise InvalidPeerResponse("the other server sealed uploads that are not here")
    if mine.is_fixed and apart.here:
        raise InvalidPeerResponse("uploads that are sealed here are missing on the other server")
