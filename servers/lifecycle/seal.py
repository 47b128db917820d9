"""Sealing: both servers agree, once, on the uploads that reached both.

    this server                              the other one
    1. ask it to freeze and list its ids  -> freeze; answer with all ids (or, sealed already, with the sealed set)
    2. freeze: take no more uploads
    3. the set is the ids on both sides
    4. send the set                       -> check that every id is here; seal
    5. seal

Every step is durable before the next and harmless when repeated. A crash anywhere leaves both sides frozen or one of
them sealed; running it again, from either side, ends with the same set: frozen sides cannot change, and a sealed side
hands out the set it sealed. Where too few uploads reached both, both thaw instead. Freezes are numbered, so that a
seal that was overtaken by another one's thaw cannot act on the list it saw before.

No server seals another: a side freezes only at the campaign's closing time, by its own clock, or when its own operator
has agreed, and keeps what the agreed set leaves out until its operator confirms it.
"""

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Protocol, TypeVar

from campaign.errors import InvalidQuery, InvalidUpload, PeerMismatch, TooFewUploads
from campaign.spec import Campaign, check_digest, to_base64url
from campaign.wire import Message, read
from servers.peer import PeerClient
from servers.storage.keyset import set_checksum, split_ids
from servers.storage.store import SEALED, Entry, Store

T = TypeVar("T")


class Agreed(Message):
    """Answer to step 4."""

    count: int
    checksum: str
    orphans: int


@dataclass(frozen=True)
class Listed:
    """What a side holds: whether it is sealed, the number of its freeze, its campaign, and its ids, sorted."""

    sealed: bool
    freeze: int
    digest: bytes
    ids: bytes

    def encode(self) -> bytes:
        return _HEAD.pack(self.sealed, self.freeze, self.digest) + self.ids

    @staticmethod
    def decode(data: bytes) -> "Listed":
        if len(data) < _HEAD.size or (len(data) - _HEAD.size) % 16 or data[0] > 1:
            raise PeerMismatch("the other server's list of uploads is not well-formed")
        sealed, freeze, digest = _HEAD.unpack_from(data)
        return Listed(sealed, freeze, digest, data[_HEAD.size :])


_HEAD = struct.Struct("<?Q32s")


def list_ids(store: Store, campaign: Campaign, now: datetime) -> Listed:
    """Steps 1 and 2: freeze, and say what is here."""
    entry = store.freeze(campaign.id, closed=campaign.closes is not None and now >= campaign.closes)
    return Listed(entry.state == SEALED, entry.freezes, campaign.digest, store.ids(campaign.id))


def encode_set(campaign: Campaign, freeze: int, ids: bytes) -> bytes:
    return _HEAD.pack(False, freeze, campaign.digest) + ids


def accept(store: Store, campaign: Campaign, freeze: int, ids: bytes) -> Entry:
    """Step 4 on the other side, and step 5 here: seal exactly these ids, all of which must be here."""
    order = split_ids(ids)
    if len(ids) % 16 or any(a >= b for a, b in pairwise(order)):
        raise InvalidUpload("a set of uploads is a sorted list of different ids")
    return store.seal(campaign.id, freeze, order, set_checksum(ids))


class Run(Protocol):
    """Runs a write in the store's own thread."""

    def __call__(self, what: Callable[[], T], /) -> Awaitable[T]: ...


async def seal(
    store: Store, run: Run, peer: PeerClient, campaign: Campaign, now: datetime, crash: Callable[[str], None]
) -> tuple[Entry, int]:
    """Run the protocol at the wish of this side's operator.

    Returns what was sealed, and how many uploads the other side had alone.
    """
    await run(lambda: store.agree(campaign.id))
    theirs = Listed.decode(await peer.call("POST", campaign.id, "/freeze", most=_HEAD.size + 16 * campaign.max_uploads))
    crash("seal-frozen-there")
    mine = await run(lambda: list_ids(store, campaign, now))
    crash("seal-frozen-both")
    check_digest(campaign.digest, theirs.digest)
    ids = _agreed(mine, theirs)
    if len(ids) // 16 < campaign.min_uploads:
        await peer.call("POST", campaign.id, "/thaw", content=encode_set(campaign, theirs.freeze, b""))
        await run(lambda: store.thaw(campaign.id, mine.freeze))
        raise TooFewUploads(
            f"{len(ids) // 16} uploads reached both servers, the campaign promised at least {campaign.min_uploads}; "
            "it is open again"
        )
    body = encode_set(campaign, theirs.freeze, ids)
    reply = _read_reply(await peer.call("POST", campaign.id, "/agree", content=body))
    if (reply.count, reply.checksum) != (len(ids) // 16, to_base64url(set_checksum(ids))):
        raise PeerMismatch("the other server sealed another set of uploads")
    crash("seal-sealed-there")
    sealed = await run(lambda: accept(store, campaign, mine.freeze, ids))
    crash("seal-sealed-both")
    return sealed, reply.orphans


def _read_reply(data: bytes) -> Agreed:
    try:
        return read(Agreed, data)
    except InvalidQuery:
        raise PeerMismatch("the other server's answer to sealing is not well-formed") from None


def _agreed(mine: Listed, theirs: Listed) -> bytes:
    """The set: what is on both sides, or what a side has sealed already."""
    ours, others = set(split_ids(mine.ids)), set(split_ids(theirs.ids))
    if theirs.sealed and not others <= ours:
        raise PeerMismatch("the other server sealed uploads that are not here")
    if mine.sealed and not ours <= others:
        raise PeerMismatch("uploads that are sealed here are missing on the other server")
    return b"".join(sorted(ours & others))


def as_reply(entry: Entry) -> Agreed:
    checksum = to_base64url(entry.sealed_set or b"")
    return Agreed(count=entry.sealed_count or 0, checksum=checksum, orphans=entry.orphans or 0)
