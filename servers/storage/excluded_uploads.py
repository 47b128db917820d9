"""Uploads that are excluded from a set, inside a sealing's transactions: unmatched ones, and those that failed.

An excluded upload is never moved into another wave: it would meet a second challenge there (docs/security.md). Nor does
it come back into its own: its party may have been told that it does not count.
"""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fss_ecdf.campaign.errors import InvalidPeerResponse
from servers.storage import tables
from servers.storage.campaigns import uploads_of
from servers.storage.database import BATCH
from servers.storage.schema import EXCLUDED, UPLOADS, WITHDRAWN

_COLUMNS = ["id", "leaf", "key", "sender", "wave"]


def require_here(db: Connection, campaign_id: bytes, wave: int, ids: Sequence[bytes]) -> None:
    count = sa.select(sa.func.count()).select_from(UPLOADS).where(UPLOADS.c.wave == wave)
    here = sum(db.execute(count.where(some)).scalar_one() for some in uploads_in(campaign_id, ids))
    if here != len(ids):
        raise InvalidPeerResponse(f"{len(ids) - here} uploads that are to be left out are not here")


def exclude_unmatched(db: Connection, campaign_id: bytes, wave: int, ids: Sequence[bytes]) -> None:
    """What only this server has of a wave is excluded from it."""
    require_here(db, campaign_id, wave, ids)
    _move(db, campaign_id, ids, rejected=False)


def exclude_wave(db: Connection, campaign_id: bytes, wave: int) -> int:
    """All uploads of a wave that is abandoned. Returns of how many people they are."""
    people = int(db.execute(tables.people_of(campaign_id, wave)).scalar_one())
    tables.exclude_wave(db, campaign_id, wave)
    _move_some(db, campaign_id, uploads_of(campaign_id, wave), rejected=False)
    return people


def reject(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> None:
    """Move what did not pass the check aside. It is not taken again: its id counts as withdrawn."""
    for some in uploads_in(campaign_id, ids):
        sender = sa.func.coalesce(UPLOADS.c.sender, "")
        gone = sa.select(sa.literal(campaign_id), sender, UPLOADS.c.id, sa.true()).where(some)
        db.execute(WITHDRAWN.insert().from_select(["campaign", "sender", "id", "was_stored"], gone))
    _move(db, campaign_id, ids, rejected=True)


def excluded_among(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> set[bytes]:
    """Those of these ids that are aside: nobody may use them again, with whatever token."""
    found: set[bytes] = set()
    for start in range(0, len(ids), BATCH):
        some = (EXCLUDED.c.campaign == campaign_id) & EXCLUDED.c.id.in_(ids[start : start + BATCH])
        found.update(db.execute(sa.select(EXCLUDED.c.id).where(some)).scalars())
    return found


def erase_withdrawn(db: Connection, campaign_id: bytes, ids: Sequence[bytes], sender: str | None) -> set[bytes]:
    """Their party withdraws uploads that were excluded: they are erased. Returns which ones."""
    mine = (EXCLUDED.c.campaign == campaign_id) & (sa.func.coalesce(EXCLUDED.c.sender, "") == (sender or ""))
    gone: set[bytes] = set()
    for start in range(0, len(ids), BATCH):
        some = mine & EXCLUDED.c.id.in_(ids[start : start + BATCH])
        gone.update(db.execute(sa.select(EXCLUDED.c.id).where(some)).scalars())
        db.execute(EXCLUDED.delete().where(some))
    tables.erase(db, campaign_id, sorted(gone))
    return gone


def uploads_in(campaign_id: bytes, ids: Sequence[bytes]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions that together name these uploads."""
    for start in range(0, len(ids), BATCH):
        yield uploads_of(campaign_id) & UPLOADS.c.id.in_(ids[start : start + BATCH])


def _move(db: Connection, campaign_id: bytes, ids: Sequence[bytes], *, rejected: bool) -> None:
    tables.exclude(db, campaign_id, ids)
    for some in uploads_in(campaign_id, ids):
        _move_some(db, campaign_id, some, rejected=rejected)


def _move_some(db: Connection, campaign_id: bytes, some: sa.ColumnElement[bool], *, rejected: bool) -> None:
    row = (sa.literal(campaign_id), *(UPLOADS.c[name] for name in _COLUMNS), sa.literal(rejected))
    columns = ["campaign", *_COLUMNS, "rejected"]
    db.execute(EXCLUDED.insert().from_select(columns, sa.select(*row).where(some)))
    db.execute(UPLOADS.delete().where(some))
