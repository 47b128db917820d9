"""Sealing: both servers agree, once, on the uploads that reached both.

    this server                              the other one
    1. freeze: take no more uploads
    2. ask it to freeze and list its ids  -> freeze; answer with all ids (or, sealed already, with the sealed set)
    3. the set is the ids on both sides
    4. send the set                       -> check that every id is here; seal
    5. seal

Every step is durable before the next and harmless when repeated. A crash anywhere leaves both sides frozen or one of
them sealed; running it again, from either side, ends with the same set: frozen sides cannot change, and a sealed side
hands out the set it sealed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from campaign.errors import CampaignSealed, InvalidUpload, PeerMismatch, TooFewUploads
from campaign.spec import Campaign, check_digest, from_base64url, to_base64url
from servers.keyset import set_checksum, split_ids
from servers.peer import PeerClient
from servers.store import FROZEN, OPEN, SEALED, Store

HEAD_BYTES = 1 + 32

T = TypeVar("T")


@dataclass(frozen=True)
class Sealed:
    count: int
    checksum: bytes
    orphans_here: int


def list_ids(store: Store, campaign: Campaign) -> bytes:
    """Answer to step 2: whether this side is sealed, its digest, and its ids, sorted."""
    entry = store.entry(campaign.id)
    if entry.state == OPEN:
        store.set_state(campaign.id, OPEN, FROZEN)
    sealed = store.entry(campaign.id).state == SEALED
    return bytes([sealed]) + campaign.digest + store.ids(campaign.id)


def accept(store: Store, campaign: Campaign, ids: bytes) -> Sealed:
    """Step 4 on the other side, and step 5 here: seal exactly these ids, all of which must be here."""
    if len(ids) % 16 or ids != b"".join(sorted(split_ids(ids))) or len(set(split_ids(ids))) * 16 != len(ids):
        raise InvalidUpload("a set of uploads is a sorted list of different ids")
    entry = store.entry(campaign.id)
    checksum, agreed = set_checksum(ids), set(split_ids(ids))
    if entry.state == SEALED:
        if entry.sealed_set != checksum:
            raise CampaignSealed("the campaign is sealed with another set of uploads")
        return Sealed(len(agreed), checksum, entry.orphans or 0)
    if entry.state != FROZEN:
        raise CampaignSealed("the campaign is not frozen, so it cannot be sealed")
    here = set(split_ids(store.ids(campaign.id)))
    if not agreed <= here:
        raise PeerMismatch(f"{len(agreed - here)} uploads of the agreed set are not here")
    store.seal(campaign.id, len(agreed), checksum, sorted(here - agreed))
    return Sealed(len(agreed), checksum, len(here - agreed))


class Run(Protocol):
    """Runs a write in the store's own thread."""

    def __call__(self, what: Callable[[], T], /) -> Awaitable[T]: ...


async def seal(
    store: Store, run: Run, peer: PeerClient, campaign: Campaign, crash: Callable[[str], None]
) -> tuple[Sealed, int]:
    """Run the protocol from this side. Returns what was sealed, and how many uploads the other side had alone."""
    mine = await run(lambda: list_ids(store, campaign))
    crash("seal-frozen-here")
    answer = (await peer.call("POST", campaign.id, "/freeze")).content
    crash("seal-frozen-both")
    if len(answer) < HEAD_BYTES or (len(answer) - HEAD_BYTES) % 16:
        raise PeerMismatch("the other server's list of uploads is not well-formed")
    check_digest(campaign.digest, answer[1:HEAD_BYTES])
    theirs, ours = split_ids(answer[HEAD_BYTES:]), split_ids(mine[HEAD_BYTES:])
    ids = _agreed(bool(mine[0]), ours, bool(answer[0]), theirs)
    if len(ids) // 16 < campaign.min_uploads:
        await peer.call("POST", campaign.id, "/thaw")
        await run(lambda: store.set_state(campaign.id, FROZEN, OPEN))
        raise TooFewUploads(
            f"{len(ids) // 16} uploads reached both servers, the campaign promised at least {campaign.min_uploads}; "
            "it is open again"
        )
    body = campaign.digest + ids
    reply = (await peer.call("POST", campaign.id, "/agree", content=body)).json()
    crash("seal-sealed-there")
    sealed = await run(lambda: accept(store, campaign, ids))
    if reply.get("count") != sealed.count or _bytes(reply.get("checksum")) != sealed.checksum:
        raise PeerMismatch("the other server sealed another set of uploads")
    crash("seal-sealed-both")
    return sealed, int(reply.get("orphans", 0))


def _agreed(sealed_here: bool, ours: list[bytes], sealed_there: bool, theirs: list[bytes]) -> bytes:
    """The set: what is on both sides, or what a side has sealed already."""
    if sealed_there and not set(theirs) <= set(ours):
        raise PeerMismatch("the other server sealed uploads that are not here")
    if sealed_here and not set(ours) <= set(theirs):
        raise PeerMismatch("uploads that are sealed here are missing on the other server")
    return b"".join(sorted(set(ours) & set(theirs)))


def _bytes(value: object) -> bytes:
    return from_base64url(value, 32, "a checksum")


def as_json(sealed: Sealed) -> dict[str, object]:
    return {"count": sealed.count, "checksum": to_base64url(sealed.checksum), "orphans": sealed.orphans_here}
