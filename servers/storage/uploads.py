"""Uploads: stored many at a time, withdrawn by whoever sent them, listed and read in the order of their ids."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.binary_messages import Row
from fss_ecdf.campaign.errors import CampaignSealed, NotSealed, Problem, UploadUndecided
from servers.storage import campaigns, dialects, excluded_uploads, history, ingest, sites, tables, waves
from servers.storage.admission import Failures, NewUploads, UploadContext, early_withdrawals, refused_unread
from servers.storage.campaigns import uploads_of
from servers.storage.database import BATCH, Transaction, purge_write_ahead_log
from servers.storage.entries import id_of_last
from servers.storage.schema import CAMPAIGNS, EXCLUDED, SITE_TABLES, UPLOADS, WITHDRAWN

ENTRIES = 1 << 16  # read at a time
if TYPE_CHECKING:
    from servers.storage import ingest_postgres

T = TypeVar("T")


class Uploads:
    def __init__(self, engine: Engine) -> None:
        self._engine, self._ingest = engine, _ingest(engine)

    def add(self, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        """Store many requests together. For each: its failures, or the problem that refused it whole."""
        return self._ingest.add(requests)

    def refused_unread(self, request: NewUploads, first: bytes, count: int) -> Problem | None:
        """Why nothing of a request of `count` people's values would be stored now, if that is so.

        If the id of its first upload is known, it may be a retry, and has to be read. Only `add` decides for good.
        """
        with self._engine.connect() as db:
            problem = refused_unread(request, _facts(db, request), count)
            if problem is None or _column(db, request.campaign, [first], UPLOADS.c.leaf):
                return None
            gone = _withdrawn(db, WITHDRAWN.c.campaign == request.campaign, [first])
            return None if gone or excluded_uploads.excluded_among(db, request.campaign, [first]) else problem

    def close(self) -> None:
        self._ingest.close()

    def withdraw(self, campaign_id: bytes, ids: Sequence[bytes], sender: str | None) -> tuple[int, list[bytes]]:
        """See to it that none of these uploads counts, at their party's wish, or raise where one does.

        Those in a wave that takes uploads are erased, those that were excluded too. Those of a frozen wave are not
        decided yet; those of a fixed set count, so nothing is done. They are not taken again, with whatever token: a
        copy may still be on its way. So ids that are not stored are remembered too, until nothing is taken any more,
        but no more of them than the sender may upload. Uploads of another one are left alone. Returns how many were
        erased, and the ids of which it cannot be said that they do not count: they came from another sender, or could
        not be remembered.
        """
        wanted = sorted(set(ids))
        with Transaction(self._engine, campaign_id) as db:
            entry, current = campaigns.entry(db, campaign_id), waves.wave(db, campaign_id)
            owners = _column(db, campaign_id, wanted, UPLOADS.c.sender)
            mine = [i for i in wanted if i in owners and owners[i] == sender]
            _require_open(db, campaign_id, _column(db, campaign_id, mine, UPLOADS.c.wave).values())
            excluded = excluded_uploads.erase_withdrawn(db, campaign_id, wanted, sender)
            before = _withdrawn(db, _by_sender(campaign_id, sender), wanted)
            absent, early = set(wanted) - owners.keys() - before - excluded, list[bytes]()
            if current.state != waves.SEALED:  # else nothing is taken any more; a check may end with an open wave
                room = early_withdrawals(entry.campaign, sender, sites.of(db, campaign_id, sender))
                room -= _remembered(db, campaign_id, sender, was_stored=False)
                early = sorted(absent)[: max(0, room)]
            else:
                absent = set()
            _remember(db, campaign_id, sender, [(i, False) for i in early])
            _remember(db, campaign_id, sender, [(i, True) for i in sorted(excluded - before)])
            people = tables.people_among(db, campaign_id, mine)
            if mine or early or excluded:  # else nothing is done, and the history does not grow
                _erase(db, campaign_id, sender, mine)
            before |= excluded
        if mine or before:  # or this is asked again because the log could not be emptied
            purge_write_ahead_log(self._engine)
        return people, sorted((absent | owners.keys()) - set(early) - set(mine))

    def withdraw_all(self, campaign_id: bytes, sender: str) -> int:
        """Erase all that one site sent to waves that take uploads, at the operator's wish. Returns how many."""
        with Transaction(self._engine, campaign_id) as db:
            current = waves.wave(db, campaign_id)
            if current.state != waves.OPEN:
                raise CampaignSealed("the campaign is being sealed or is sealed; nothing can be withdrawn")
            mine = uploads_of(campaign_id) & (UPLOADS.c.sender == sender)
            mine &= UPLOADS.c.wave >= current.number  # a closed wave stays
            ids = sorted(db.execute(sa.select(UPLOADS.c.id).where(mine)).scalars())
            people = tables.people_among(db, campaign_id, ids)
            _erase(db, campaign_id, sender, ids)
        purge_write_ahead_log(
            self._engine
        )  # also where nothing is left: this may be asked again because the log was not emptied
        return people

    def by_sender(self, campaign_id: bytes) -> dict[str, int]:
        """Of how many people values came from each site or with each invitation."""
        mine = uploads_of(campaign_id) & UPLOADS.c.sender.is_not(None)
        with self._engine.connect() as db:
            counted = sa.select(UPLOADS.c.sender, sa.func.count()).where(mine).group_by(UPLOADS.c.sender)
            rows = Counter({row[0]: row[1] for row in db.execute(counted)})
            return rows + tables.beyond_rows_by_sender(db, campaign_id)

    def entries(self, campaign_id: bytes, wave: int = 0) -> Iterator[bytes]:
        """The ids of a wave's uploads, each with its leaf, in the order of the ids, part by part."""
        last = b""
        while part := self.entries_between(campaign_id, last, None, ENTRIES, wave):
            yield part
            last = id_of_last(part) + b"\0"

    def entries_between(
        self, campaign_id: bytes, first: bytes, behind: bytes | None, most: int, wave: int = 0
    ) -> bytes:
        """The same from one id to before another, if one is given, at most so many."""
        some = uploads_of(campaign_id, wave) & (UPLOADS.c.id >= first)
        if behind is not None:
            some &= UPLOADS.c.id < behind
        select = sa.select(UPLOADS.c.id, UPLOADS.c.leaf).where(some).order_by(UPLOADS.c.id).limit(most)
        with self._engine.connect() as db:
            return b"".join(chain.from_iterable(self._read(db, select)))

    def in_wave(self, campaign_id: bytes, wave: int) -> int:
        """Of how many people a wave has values."""
        with self._engine.connect() as db:
            return int(db.execute(tables.people_of(campaign_id, wave)).scalar_one())

    def contributions_in_wave(self, campaign_id: bytes, wave: int) -> int:
        """How many uploads, keys and tables, a wave has."""
        with self._engine.connect() as db:
            return int(db.execute(tables.contributions_of(campaign_id, wave)).scalar_one())

    def since_wave(self, campaign_id: bytes, wave: int) -> int:
        """Of how many people a wave and later ones have values: the next one takes some while it is open."""
        mine = uploads_of(campaign_id) & (UPLOADS.c.wave >= wave) & (UPLOADS.c.wave > 0)
        rows = sa.select(sa.func.count()).select_from(UPLOADS).where(mine).scalar_subquery()
        with self._engine.connect() as db:
            people = rows + tables.beyond_rows(campaign_id, SITE_TABLES.c.wave >= wave)
            return int(db.execute(sa.select(people)).scalar_one())

    def rows(self, campaign_id: bytes, count: int, wave: int = 0) -> Iterator[list[Row]]:
        """A wave's uploads in the order of their ids, so many at a time.

        Each part is a question of its own: while somebody reads, nothing that was erased can leave the database's log.
        """
        columns = sa.select(UPLOADS.c.id, UPLOADS.c.leaf, UPLOADS.c.key).order_by(UPLOADS.c.id).limit(count)
        last = b""
        with self._engine.connect() as db:
            while part := self._read(db, columns.where(uploads_of(campaign_id, wave) & (UPLOADS.c.id > last))):
                yield part
                last = part[-1][0]

    def rejected(self, campaign_id: bytes, wave: int) -> list[tuple[bytes, bytes]]:
        """What failed the check of a wave and is still kept: ids and what was sent, in the order of the ids."""
        failed = (EXCLUDED.c.campaign == campaign_id) & (EXCLUDED.c.wave == wave) & EXCLUDED.c.rejected
        with self._engine.connect() as db:
            rows = db.execute(sa.select(EXCLUDED.c.id, EXCLUDED.c.key).where(failed).order_by(EXCLUDED.c.id))
            return [(row[0], row[1]) for row in rows]

    def erase_keys(self, campaign_id: bytes, wave: int, after: bytes, most: int) -> list[bytes]:
        """Some keys of a wave go, in the order of their ids behind one; returns whose, none if none are left.

        What stays of each is its leaf, by which a retry is known. Who asks goes on behind the last: from the start
        again, what is erased already would be read every time.
        """
        kept = uploads_of(campaign_id, wave) & (sa.func.length(UPLOADS.c.key) > 0) & (UPLOADS.c.id > after)
        left = sa.select(UPLOADS.c.campaign, UPLOADS.c.id).where(kept).order_by(UPLOADS.c.id).limit(most)
        one = (UPLOADS.c.campaign == sa.bindparam("of")) & (UPLOADS.c.id == sa.bindparam("row"))
        with Transaction(self._engine, campaign_id) as db:
            dialects.of(self._engine).read_in_order(db)
            rows = db.execute(left).all()
            if rows:
                update = UPLOADS.update().where(one).values(key=b"")
                db.execute(update, [{"of": row.campaign, "row": row.id} for row in rows])
                tables.erase_shares(db, campaign_id, [row.id for row in rows])
        return [row.id for row in rows]

    def forget_erased(self) -> None:
        """Nothing of what was erased is left in the database's log, or a problem: then ask again."""
        purge_write_ahead_log(self._engine)

    def _read(self, db: Connection, select: sa.Select[Any]) -> list[Any]:
        """In the order of an index, and as the driver has them: rows of SQLAlchemy would cost half as much again."""
        with db.begin():
            dialects.of(self._engine).read_in_order(db)
            cursor = db.execute(select).cursor
            assert cursor is not None
            return list(cursor.fetchall())

    def counts(self) -> dict[bytes, int]:
        """Of how many people each campaign has values, counted; those of none are those of the empty id."""
        with self._engine.connect() as db:
            counted = sa.select(UPLOADS.c.campaign, sa.func.count()).group_by(UPLOADS.c.campaign).subquery()
            named = sa.select(CAMPAIGNS.c.id, counted.c[1]).select_from(counted)
            rows = db.execute(named.outerjoin(CAMPAIGNS, CAMPAIGNS.c.number == counted.c.campaign))
            found = Counter({row[0] or b"": row[1] for row in rows})
            return found + tables.beyond_rows_by_campaign(db)


def _ingest(engine: Engine) -> "ingest.Ingest | ingest_postgres.Ingest":
    if engine.dialect.name == "sqlite":
        return ingest.Ingest(engine)
    from servers.storage import ingest_postgres  # its driver is an extra

    return ingest_postgres.Ingest(engine)


def _require_open(db: Connection, campaign_id: bytes, numbers: Iterable[int]) -> None:
    """Raise unless all these waves take uploads; also one that is not there yet."""
    for number in sorted(set(numbers)):
        try:
            state = waves.wave(db, campaign_id, number).state
        except NotSealed:
            continue
        if state == waves.FROZEN:
            raise UploadUndecided(
                "uploads are frozen; whether these count is known when they are sealed", retry_after=2
            )
        if state != waves.OPEN:
            raise CampaignSealed("these uploads are in a set that is fixed; they count, and nothing can be withdrawn")


def _facts(db: Connection, request: NewUploads) -> UploadContext:
    """What is known before anything is looked up by its id."""
    entry, current = campaigns.entry(db, request.campaign), waves.wave(db, request.campaign)
    used, reused, site = 0, 0, None
    if request.sender is not None:
        mine = uploads_of(request.campaign) & (UPLOADS.c.sender == request.sender)
        rows = sa.select(sa.func.count()).select_from(UPLOADS).where(mine).scalar_subquery()
        people = rows + tables.beyond_rows(request.campaign, SITE_TABLES.c.sender == request.sender)
        used = db.execute(sa.select(people)).scalar_one()
        reused = _remembered(db, request.campaign, request.sender, was_stored=True)
        site = sites.of(db, request.campaign, request.sender) if entry.campaign.admission == "sites" else None
    is_open, counts = current.state == waves.OPEN, (entry.stored, entry.erased, used, reused)
    return UploadContext(entry.campaign, is_open, current.number, *counts, site, {}, frozenset())


def _erase(db: Connection, campaign_id: bytes, sender: str | None, ids: Sequence[bytes]) -> None:
    """Stored uploads of one sender go, and their ids do not come back."""
    history.advance(db)
    _remember(db, campaign_id, sender, [(i, True) for i in ids])
    people = tables.people_among(db, campaign_id, ids)
    for some in excluded_uploads.uploads_in(campaign_id, ids):
        db.execute(UPLOADS.delete().where(some))
    tables.erase(db, campaign_id, ids)
    counts = {"stored": CAMPAIGNS.c.stored - people, "erased": CAMPAIGNS.c.erased + len(ids)}
    db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(**counts))


def _column(db: Connection, campaign_id: bytes, ids: Sequence[bytes], column: sa.Column[T]) -> dict[bytes, T]:
    """One column of those of these uploads that are stored."""
    values: dict[bytes, T] = {}
    for some in excluded_uploads.uploads_in(campaign_id, ids):
        values.update((row[0], row[1]) for row in db.execute(sa.select(UPLOADS.c.id, column).where(some)))
    return values


def _by_sender(campaign_id: bytes, sender: str | None) -> sa.ColumnElement[bool]:
    return (WITHDRAWN.c.campaign == campaign_id) & (WITHDRAWN.c.sender == (sender or ""))


def _withdrawn(db: Connection, of: sa.ColumnElement[bool], ids: Sequence[bytes]) -> set[bytes]:
    """Those of these ids that were withdrawn, by one sender or by anybody."""
    gone: set[bytes] = set()
    for start in range(0, len(ids), BATCH):
        some = of & WITHDRAWN.c.id.in_(ids[start : start + BATCH])
        gone.update(db.execute(sa.select(WITHDRAWN.c.id).where(some)).scalars())
    return gone


def _remembered(db: Connection, campaign_id: bytes, sender: str | None, *, was_stored: bool) -> int:
    mine = _by_sender(campaign_id, sender) & (WITHDRAWN.c.was_stored == was_stored)
    return int(db.execute(sa.select(sa.func.count()).select_from(WITHDRAWN).where(mine)).scalar_one())


def _remember(db: Connection, campaign_id: bytes, sender: str | None, ids: Sequence[tuple[bytes, bool]]) -> None:
    common = {"campaign": campaign_id, "sender": sender or ""}
    if ids:
        db.execute(WITHDRAWN.insert(), [{**common, "id": i, "was_stored": stored} for i, stored in ids])
