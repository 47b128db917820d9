"""Tables of sites: how many people each is of, and its share, in parts that are read one after the other.

A table is a row of `uploads` (or of `excluded`) like a key, so that sets, leaves and withdrawals know no difference.
The rest of it is here. Uploads are counted in people: a key is one, and a table counts for those beyond its own row.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from servers.storage.campaigns import number_of, uploads_of
from servers.storage.database import BATCH
from servers.storage.schema import CAMPAIGNS, EXCLUDED, SITE_TABLES, TABLE_PARTS, UPLOADS

# People that tables count for beyond their rows.
_BEYOND = sa.func.coalesce(sa.func.sum(SITE_TABLES.c.people - 1), 0)


@dataclass(frozen=True)
class StoredTable:
    """A table of a wave: its id and leaf, of how many people it is, and the hash of the other server's share."""

    id: bytes
    leaf: bytes
    other: bytes
    people: int


class Tables:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def in_wave(self, campaign_id: bytes, wave: int) -> list[StoredTable]:
        """Of a wave's set, in the order of their ids."""
        return self._listed(campaign_id, wave, UPLOADS, UPLOADS.c.campaign == SITE_TABLES.c.campaign)

    def rejected_in_wave(self, campaign_id: bytes, wave: int) -> list[StoredTable]:
        """What failed the check of a wave and is still kept."""
        mine = (EXCLUDED.c.campaign == campaign_id) & EXCLUDED.c.rejected
        return self._listed(campaign_id, wave, EXCLUDED, mine)

    def _listed(
        self, campaign_id: bytes, wave: int, rows: sa.Table, belongs: sa.ColumnElement[bool]
    ) -> list[StoredTable]:
        columns = rows.c.id, rows.c.leaf, rows.c.key, SITE_TABLES.c.people
        joined = SITE_TABLES.join(rows, (rows.c.id == SITE_TABLES.c.id) & belongs)
        mine = (SITE_TABLES.c.campaign == number_of(campaign_id)) & (SITE_TABLES.c.wave == wave)
        with self._engine.connect() as db:
            found = db.execute(sa.select(*columns).select_from(joined).where(mine).order_by(rows.c.id))
            return [StoredTable(*row) for row in found]

    def parts(self, campaign_id: bytes, upload_id: bytes) -> Iterator[bytes]:
        """The share of a table, part by part. Each is a question of its own, as for keys."""
        mine = (TABLE_PARTS.c.campaign == number_of(campaign_id)) & (TABLE_PARTS.c.id == upload_id)
        number = 0
        while True:
            one = sa.select(TABLE_PARTS.c.share).where(mine & (TABLE_PARTS.c.number == number))
            with self._engine.connect() as db:
                part = db.execute(one).scalar_one_or_none()
            if part is None:
                return
            yield bytes(part)
            number += 1

    def site_of(self, campaign_id: bytes, upload_id: bytes) -> str | None:
        """The id of the site that sent a table."""
        mine = (SITE_TABLES.c.campaign == number_of(campaign_id)) & (SITE_TABLES.c.id == upload_id)
        with self._engine.connect() as db:
            return db.execute(sa.select(SITE_TABLES.c.sender).where(mine)).scalar_one_or_none()

    def rejected(self, campaign_id: bytes) -> dict[str, int]:
        """Of each site, how many people its tables are of that failed a check and are still kept."""
        aside = (EXCLUDED.c.id == SITE_TABLES.c.id) & (EXCLUDED.c.campaign == campaign_id) & EXCLUDED.c.rejected
        people = sa.select(SITE_TABLES.c.sender, sa.func.sum(SITE_TABLES.c.people))
        mine = people.select_from(SITE_TABLES.join(EXCLUDED, aside)).where(_aside(campaign_id))
        with self._engine.connect() as db:
            return {row[0] or "": int(row[1]) for row in db.execute(mine.group_by(SITE_TABLES.c.sender))}


def people_of(campaign_id: bytes, wave: int = 0) -> sa.Select[int]:
    """How many people a campaign has values of, or one of its waves where it has several.

    Of a whole campaign it is known: counting 10^8 rows takes minutes.
    """
    if not wave:
        return sa.select(CAMPAIGNS.c.stored).where(CAMPAIGNS.c.id == campaign_id)
    rows = sa.select(sa.func.count()).select_from(UPLOADS).where(uploads_of(campaign_id, wave)).scalar_subquery()
    return sa.select(rows + beyond_rows(campaign_id, SITE_TABLES.c.wave == wave))


def contributions_of(campaign_id: bytes, wave: int = 0) -> sa.Select[int]:
    """How many uploads, keys and tables, those people's values came in."""
    if wave:
        return sa.select(sa.func.count()).select_from(UPLOADS).where(uploads_of(campaign_id, wave))
    return sa.select(CAMPAIGNS.c.stored - beyond_rows(campaign_id)).where(CAMPAIGNS.c.id == campaign_id)


def beyond_rows(campaign_id: bytes, *which: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """How many people tables count for beyond their rows among the uploads, of those that are `which`."""
    mine = sa.and_(SITE_TABLES.c.campaign == number_of(campaign_id), SITE_TABLES.c.excluded.is_(False), *which)
    return sa.select(_BEYOND).where(mine).scalar_subquery()


def beyond_rows_by_sender(db: Connection, campaign_id: bytes) -> Counter[str]:
    """The same of each site."""
    mine = (SITE_TABLES.c.campaign == number_of(campaign_id)) & SITE_TABLES.c.excluded.is_(False)
    counted = sa.select(SITE_TABLES.c.sender, _BEYOND).where(mine).group_by(SITE_TABLES.c.sender)
    return Counter({row[0] or "": int(row[1]) for row in db.execute(counted)})


def beyond_rows_by_campaign(db: Connection) -> Counter[bytes]:
    """The same of each campaign; of none that is known, of the empty id."""
    joined = SITE_TABLES.outerjoin(CAMPAIGNS, CAMPAIGNS.c.number == SITE_TABLES.c.campaign)
    counted = sa.select(CAMPAIGNS.c.id, _BEYOND).select_from(joined).where(SITE_TABLES.c.excluded.is_(False))
    return Counter({row[0] or b"": int(row[1]) for row in db.execute(counted.group_by(CAMPAIGNS.c.id))})


def of_set(db: Connection, campaign_id: bytes, wave: int) -> tuple[int, int]:
    """How many tables a wave's set has, and how many people they are of."""
    mine = (SITE_TABLES.c.campaign == number_of(campaign_id)) & SITE_TABLES.c.excluded.is_(False)
    people = sa.func.coalesce(sa.func.sum(SITE_TABLES.c.people), 0)
    row = db.execute(sa.select(sa.func.count(), people).where(mine & (SITE_TABLES.c.wave == wave))).one()
    return int(row[0]), int(row[1])


def people_among(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> int:
    """How many people these uploads are of, keys and tables."""
    beyond = [int(db.execute(sa.select(_BEYOND).where(some)).scalar_one()) for some in _among(campaign_id, ids)]
    return len(ids) + sum(beyond)


def exclude(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> None:
    """These uploads are aside now."""
    for some in _among(campaign_id, ids):
        db.execute(SITE_TABLES.update().where(some).values(excluded=True))


def exclude_wave(db: Connection, campaign_id: bytes, wave: int) -> None:
    """All of a wave are aside now."""
    mine = (SITE_TABLES.c.campaign == number_of(campaign_id)) & (SITE_TABLES.c.wave == wave)
    db.execute(SITE_TABLES.update().where(mine).values(excluded=True))


def erase(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> None:
    """Those of these uploads that are tables go, and what was stored of them."""
    for some in _among(campaign_id, ids):
        db.execute(SITE_TABLES.delete().where(some))
    erase_shares(db, campaign_id, ids)


def erase_shares(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> None:
    """The shares of those of these uploads that are tables go; of how many people each was stays."""
    for start in range(0, len(ids), BATCH):
        these = TABLE_PARTS.c.id.in_(ids[start : start + BATCH])
        db.execute(TABLE_PARTS.delete().where((TABLE_PARTS.c.campaign == number_of(campaign_id)) & these))


def beyond_excluded(db: Connection, campaign_id: bytes) -> int:
    """How many people the tables that are aside count for beyond their rows."""
    return int(db.execute(sa.select(_BEYOND).where(_aside(campaign_id))).scalar_one())


def erase_excluded(db: Connection, campaign_id: bytes) -> int:
    """All that are aside go; returns how many people they count for beyond their rows."""
    people, mine = beyond_excluded(db, campaign_id), _aside(campaign_id)
    erase_shares(db, campaign_id, list(db.execute(sa.select(SITE_TABLES.c.id).where(mine)).scalars()))
    db.execute(SITE_TABLES.delete().where(mine))
    return people


def _aside(campaign_id: bytes) -> sa.ColumnElement[bool]:
    return (SITE_TABLES.c.campaign == number_of(campaign_id)) & SITE_TABLES.c.excluded


def _among(campaign_id: bytes, ids: Sequence[bytes]) -> Iterator[sa.ColumnElement[bool]]:
    for start in range(0, len(ids), BATCH):
        these = SITE_TABLES.c.id.in_(ids[start : start + BATCH])
        yield (SITE_TABLES.c.campaign == number_of(campaign_id)) & these
