"""Sealing: both servers agree, once, on the uploads that reached both.

    this server                              the other one
    1. ask it to freeze and list its ids  -> freeze; answer with all ids (or, sealed already, with the sealed set)
    2. freeze: take no more uploads
    3. the set is the ids on both sides
    4. send the set                       -> check that every id is here; seal
    5. seal

Where the campaign checks keys, step 5 fixes the set that is checked on both sides (`check.py`), and what passed is
sealed at the end of that.

Every step is durable before the next and harmless when repeated. A crash anywhere leaves both sides frozen or one of
them sealed; running it again, from either side, ends with the same set: frozen sides cannot change, and a sealed side
hands out the set it sealed. Where too few uploads reached both, both thaw instead. Freezes are numbered, so that a
seal that was overtaken by another one's thaw cannot act on the list it saw before.

No server seals another: a side freezes only when its own operator has agreed or, where the campaign says so, at its
closing time by its own clock, and keeps what the agreed set leaves out until its operator confirms it.
"""

import asyncio
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from campaign.errors import (
    CampaignSealed,
    InvalidQuery,
    InvalidUpload,
    PeerMismatch,
    TooFewUploads,
    Unavailable,
)
from campaign.spec import Campaign, check_digest, to_base64url
from campaign.wire import UPLOAD_ID_BYTES, Message, read
from servers.lifecycle.admission import seals_itself
from servers.lifecycle.waves import is_by_hand, is_due
from servers.peer import PeerClient
from servers.storage.objects import set_checksum, split_ids
from servers.storage.storage import Storage, Writer
from servers.storage.waves import CHECKING, FROZEN, OPEN, SEALED, Wave, least_uploads


class Agreed(Message):
    """Answer to step 4."""

    count: int
    checksum: str
    orphans: int


@dataclass(frozen=True)
class Listed:
    """What a side holds: its state, the number of its freeze, its campaign, and its ids, sorted."""

    state: str
    freeze: int
    digest: bytes
    ids: bytes

    def encode(self) -> bytes:
        return _HEAD.pack(_STATES.index(self.state), self.freeze, self.digest) + self.ids

    @staticmethod
    def decode(data: bytes) -> "Listed":
        if len(data) < _HEAD.size or (len(data) - _HEAD.size) % UPLOAD_ID_BYTES or data[0] >= len(_STATES):
            raise PeerMismatch("the other server's list of uploads is not well-formed")
        state, freeze, digest = _HEAD.unpack_from(data)
        return Listed(_STATES[state], freeze, digest, data[_HEAD.size :])

    @property
    def is_fixed(self) -> bool:
        return self.state != FROZEN


_HEAD = struct.Struct("<BQ32s")
_STATES = (FROZEN, CHECKING, SEALED)


def list_bytes(campaign: Campaign) -> int:
    """How long a list of a campaign's ids can be."""
    return _HEAD.size + UPLOAD_ID_BYTES * campaign.max_uploads


def list_ids(storage: Storage, campaign: Campaign, now: datetime, number: int = 0) -> Listed:
    """Steps 1 and 2: freeze, and say what is here."""
    closed = seals_itself(campaign, now) or is_due(storage, campaign, number, now)
    wave = storage.waves.freeze(campaign.id, number, closed=closed)
    return Listed(wave.state, wave.freezes, campaign.digest, storage.uploads.ids(campaign.id, number))


def encode_set(campaign: Campaign, freeze: int, ids: bytes) -> bytes:
    return Listed(FROZEN, freeze, campaign.digest, ids).encode()


def accept(storage: Storage, campaign: Campaign, freeze: int, ids: bytes, number: int = 0) -> Wave:
    """Step 4 on the other side, and step 5 here: the set is exactly these ids, all of which must be here."""
    order = split_ids(ids)
    if len(ids) % UPLOAD_ID_BYTES or any(a >= b for a, b in pairwise(order)):
        raise InvalidUpload("a set of uploads is a sorted list of different ids")
    return storage.waves.fix(campaign.id, freeze, order, set_checksum(ids), number)


class Sealer:
    """Runs the protocol at the wish of this side's operator, one campaign at a time."""

    def __init__(
        self,
        storage: Storage,
        writer: Writer,
        peer: PeerClient,
        clock: Callable[[], datetime],
        crash: Callable[[str], None],
    ) -> None:
        self._storage, self._writer, self._peer = storage, writer, peer
        self._clock, self._crash = clock, crash
        self._locks: dict[bytes, asyncio.Lock] = {}

    def forget(self, campaign_id: bytes) -> None:
        self._locks.pop(campaign_id, None)

    async def seal(self, campaign: Campaign, number: int = 0, *, by_operator: bool = True) -> tuple[Wave, int]:
        """Returns the wave, sealed or being checked, and how many uploads the other side had alone."""
        async with self._locks.setdefault(campaign.id, asyncio.Lock()):
            if by_operator and is_by_hand(campaign):
                await self._writer.run(lambda: self._storage.waves.agree(campaign.id, number))
            return await self._seal(campaign, number)

    async def reopen(self, campaign: Campaign) -> None:
        """Undo a freeze on both sides: this one first, so that no set can be fixed here by what was listed before."""
        if campaign.waves is not None:
            raise CampaignSealed("a wave that is closed is not opened again; uploads go on in the next one")
        async with self._locks.setdefault(campaign.id, asyncio.Lock()):
            mine = await asyncio.to_thread(self._storage.waves.get, campaign.id)
            state, freeze = await self._theirs(campaign)
            if CHECKING in (mine.state, state) or SEALED in (mine.state, state):
                raise CampaignSealed(
                    f"the set of uploads is fixed: {mine.state} here, {state} at the other server. Nothing can be "
                    "opened again; fss-server campaign seal completes it"
                )
            if mine.state == FROZEN:
                await self._writer.run(lambda: self._storage.waves.thaw(campaign.id, mine.freezes))
            self._crash("reopen-here")
            if state == FROZEN:
                await self._peer.call("POST", campaign.id, "/thaw", content=encode_set(campaign, freeze, b""))

    async def _theirs(self, campaign: Campaign) -> tuple[str, int]:
        """The other side's state, and the number of its last freeze."""
        try:
            status = json.loads(await self._peer.call("GET", campaign.id, ""))
            state, freeze, digest = str(status["state"]), int(status["freezes"]), str(status["digest"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PeerMismatch("the other server's status is not well-formed") from None
        if digest != to_base64url(campaign.digest) or state not in (OPEN, *_STATES) or not 0 <= freeze < 1 << 63:
            raise PeerMismatch("the other server's status is of another campaign")
        return state, freeze

    async def _seal(self, campaign: Campaign, number: int) -> tuple[Wave, int]:
        run, storage, most, of = self._writer.run, self._storage, list_bytes(campaign), f"?wave={number}"
        theirs = Listed.decode(await self._peer.call("POST", campaign.id, "/freeze" + of, most=most))
        self._crash("seal-frozen-there")
        mine = await run(lambda: list_ids(storage, campaign, self._clock(), number))
        self._crash("seal-frozen-both")
        check_digest(campaign.digest, theirs.digest)
        ids = await asyncio.to_thread(_agreed, mine, theirs)
        count = len(ids) // UPLOAD_ID_BYTES
        if count < least_uploads(campaign):
            await self._thaw(campaign, mine, theirs)
            raise TooFewUploads(
                f"{count} uploads reached both servers, the campaign promised at least "
                f"{campaign.min_uploads}; it is open again"
            )
        body = encode_set(campaign, theirs.freeze, ids)
        reply = _read_reply(await self._peer.call("POST", campaign.id, "/agree" + of, content=body))
        if (reply.count, reply.checksum) != (count, to_base64url(set_checksum(ids))):
            raise PeerMismatch("the other server sealed another set of uploads")
        self._crash("seal-sealed-there")
        wave = await run(lambda: accept(storage, campaign, mine.freeze, ids, number))
        self._crash("seal-sealed-both")
        return wave, reply.orphans

    async def _thaw(self, campaign: Campaign, mine: Listed, theirs: Listed) -> None:
        await self._peer.call("POST", campaign.id, "/thaw", content=encode_set(campaign, theirs.freeze, b""))
        await self._writer.run(lambda: self._storage.waves.thaw(campaign.id, mine.freeze))


def _read_reply(data: bytes) -> Agreed:
    try:
        return read(Agreed, data)
    except InvalidQuery:
        raise PeerMismatch("the other server's answer to sealing is not well-formed") from None


def _agreed(mine: Listed, theirs: Listed) -> bytes:
    """The set: what is on both sides, or what a side has fixed already.

    Where both have, and one has come further with the check, the other one will come to the same end.
    """
    ours, others = set(split_ids(mine.ids)), set(split_ids(theirs.ids))
    if {mine.state, theirs.state} == {CHECKING, SEALED}:
        raise Unavailable("one server has checked the uploads, the other one has not; ask again", retry_after=2)
    if theirs.is_fixed and not others <= ours:
        if theirs.state == CHECKING:
            raise Unavailable("the other server is still checking the uploads of an earlier sealing", retry_after=2)
        raise PeerMismatch("the other server sealed uploads that are not here")
    if mine.is_fixed and not ours <= others:
        raise PeerMismatch("uploads that are sealed here are missing on the other server")
    return b"".join(sorted(ours & others))


def as_reply(wave: Wave) -> Agreed:
    assert wave.set is not None
    return Agreed(count=wave.set.count, checksum=to_base64url(wave.set.checksum), orphans=wave.set.orphans)
