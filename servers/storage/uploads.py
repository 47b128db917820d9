"""Uploads: stored many at a time, withdrawn by whoever sent them, listed and read in the order of their ids."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from campaign.errors import CampaignSealed, Problem
from servers.lifecycle.admission import TRACE_BYTES, Facts, Failures, NewUploads, decide, early_withdrawals, trace
from servers.storage import aside, campaigns, sites, waves
from servers.storage.database import BATCH, Transaction, forget
from servers.storage.schema import CAMPAIGNS, UPLOADS, WITHDRAWN

T = TypeVar("T")


class Uploads:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        """Store many requests in one transaction. For each: its failures, or the problem that refused it whole."""
        with Transaction(self._engine) as db:
            return [_add(db, request) for request in requests]

    def withdraw(self, campaign_id: bytes, ids: Sequence[bytes], sender: str | None) -> tuple[int, list[bytes]]:
        """Erase uploads at their party's wish, while the campaign is open.

        They are not taken again from the same sender: a copy may still be on its way. So ids that are not stored are
        remembered too, but no more of them than the sender may upload. Uploads of another one are left alone.
        Returns how many were erased, and the ids that could not be remembered.
        """
        wanted = sorted(set(ids))
        with Transaction(self._engine) as db:
            entry, current = campaigns.entry(db, campaign_id), waves.wave(db, campaign_id)
            if current.state != waves.OPEN:
                raise CampaignSealed("the campaign is being sealed or is sealed; nothing can be withdrawn")
            owners = _column(db, campaign_id, wanted, UPLOADS.c.sender)
            mine = [i for i in wanted if i in owners and owners[i] == sender]
            if any(number != current.number for number in _column(db, campaign_id, mine, UPLOADS.c.wave).values()):
                raise CampaignSealed("these uploads are in a wave that is closed; nothing of it can be withdrawn")
            before = _withdrawn(db, campaign_id, sender, wanted)
            absent = set(wanted) - owners.keys() - before
            room = early_withdrawals(entry.campaign, sender, sites.of(db, campaign_id, sender))
            room -= _remembered(db, campaign_id, sender, was_stored=False)
            early = sorted(absent)[: max(0, room)]
            _remember(db, campaign_id, sender, [(i, False) for i in early])
            _erase(db, campaign_id, sender, mine)
            before |= aside.forget(db, campaign_id, wanted, sender)
        if mine or before:  # or this is asked again because the log could not be emptied
            forget(self._engine)
        return len(mine), sorted(absent - set(early))

    def withdraw_all(self, campaign_id: bytes, sender: str) -> int:
        """Erase all that one site sent, at the operator's wish, while the campaign is open. Returns how many."""
        with Transaction(self._engine) as db:
            current = waves.wave(db, campaign_id)
            if current.state != waves.OPEN:
                raise CampaignSealed("the campaign is being sealed or is sealed; nothing can be withdrawn")
            mine = (UPLOADS.c.campaign == campaign_id) & (UPLOADS.c.sender == sender)
            mine &= UPLOADS.c.wave == current.number  # what is in a closed wave stays
            ids = sorted(db.execute(sa.select(UPLOADS.c.id).where(mine)).scalars())
            _erase(db, campaign_id, sender, ids)
        forget(self._engine)  # also where nothing is left: this may be asked again because the log was not emptied
        return len(ids)

    def by_sender(self, campaign_id: bytes) -> dict[str, int]:
        """How many uploads came from each site or with each invitation."""
        mine = (UPLOADS.c.campaign == campaign_id) & UPLOADS.c.sender.is_not(None)
        with self._engine.connect() as db:
            counted = sa.select(UPLOADS.c.sender, sa.func.count()).where(mine).group_by(UPLOADS.c.sender)
            return {row[0]: row[1] for row in db.execute(counted)}

    def ids(self, campaign_id: bytes, wave: int = 0) -> bytes:
        """The ids of a wave's uploads, sorted, one after the other."""
        mine = (UPLOADS.c.campaign == campaign_id) & (UPLOADS.c.wave == wave)
        with self._engine.connect() as db:
            return b"".join(db.execute(sa.select(UPLOADS.c.id).where(mine).order_by(UPLOADS.c.id)).scalars())

    def in_wave(self, campaign_id: bytes, wave: int) -> int:
        """How many uploads a wave has."""
        mine = (UPLOADS.c.campaign == campaign_id) & (UPLOADS.c.wave == wave)
        with self._engine.connect() as db:
            return int(db.execute(sa.select(sa.func.count()).select_from(UPLOADS).where(mine)).scalar_one())

    def rows(self, campaign_id: bytes, count: int, wave: int = 0) -> Iterator[list[tuple[bytes, bytes]]]:
        """A wave's uploads in the order of their ids, so many at a time.

        Each part is a question of its own: while somebody reads, nothing that was erased can leave the database's log.
        """
        columns = sa.select(UPLOADS.c.id, UPLOADS.c.key).order_by(UPLOADS.c.id).limit(count)
        last = b""
        while True:
            some = (UPLOADS.c.campaign == campaign_id) & (UPLOADS.c.wave == wave) & (UPLOADS.c.id > last)
            with self._engine.connect() as db:
                part = [(row.id, row.key) for row in db.execute(columns.where(some))]
            if not part:
                return
            yield part
            last = part[-1][0]

    def erase_keys(self, campaign_id: bytes, wave: int) -> int:
        """Keys of a wave go; what stays of each is a hash, by which a retry is known. Can be repeated."""
        mine = (UPLOADS.c.campaign == campaign_id) & (UPLOADS.c.wave == wave)
        left = sa.select(UPLOADS.c.number, UPLOADS.c.key).where(mine, sa.func.length(UPLOADS.c.key) > TRACE_BYTES)
        update = UPLOADS.update().where(UPLOADS.c.number == sa.bindparam("row")).values(key=sa.bindparam("trace"))
        erased = 0
        while True:
            with Transaction(self._engine) as db:
                rows = db.execute(left.limit(BATCH)).all()
                if rows:
                    db.execute(update, [{"row": row.number, "trace": trace(row.key)} for row in rows])
            erased += len(rows)
            if not rows:
                break
        forget(self._engine)  # also where nothing is left: this may be asked again because the log was not emptied
        return erased

    def counts(self) -> dict[bytes, int]:
        """How many uploads each campaign has, counted."""
        with self._engine.connect() as db:
            counted = sa.select(UPLOADS.c.campaign, sa.func.count()).group_by(UPLOADS.c.campaign)
            return {row[0]: row[1] for row in db.execute(counted)}


def _add(db: Connection, request: NewUploads) -> Failures | Problem:
    try:
        facts = _facts(db, request)
    except Problem as problem:
        return problem
    verdict = decide(request, facts)
    if verdict.refusal is not None:
        return verdict.refusal
    if verdict.fresh:
        common = {"campaign": request.campaign, "sender": request.sender, "wave": facts.wave}
        db.execute(UPLOADS.insert(), [{**common, "id": i, "key": key} for i, key in verdict.fresh])
        mine = CAMPAIGNS.c.id == request.campaign
        db.execute(CAMPAIGNS.update().where(mine).values(stored=CAMPAIGNS.c.stored + len(verdict.fresh)))
    return list(verdict.failures)


def _erase(db: Connection, campaign_id: bytes, sender: str | None, ids: Sequence[bytes]) -> None:
    """Stored uploads of one sender go, and their ids do not come back."""
    _remember(db, campaign_id, sender, [(i, True) for i in ids])
    for some in aside.uploads_in(campaign_id, ids):
        db.execute(UPLOADS.delete().where(some))
    counts = {"stored": CAMPAIGNS.c.stored - len(ids), "erased": CAMPAIGNS.c.erased + len(ids)}
    db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(**counts))


def _facts(db: Connection, request: NewUploads) -> Facts:
    entry = campaigns.entry(db, request.campaign)
    ids = [upload_id for upload_id, _ in request.rows]
    current = waves.wave(db, request.campaign)
    used = reused = 0
    if request.sender is not None:
        mine = (UPLOADS.c.campaign == request.campaign) & (UPLOADS.c.sender == request.sender)
        used = int(db.execute(sa.select(sa.func.count()).select_from(UPLOADS).where(mine)).scalar_one())
        reused = _remembered(db, request.campaign, request.sender, was_stored=True)
    return Facts(
        campaign=entry.campaign,
        is_open=current.state == waves.OPEN,
        wave=current.number,
        stored=entry.stored,
        erased=entry.erased,
        used=used,
        reused=reused,
        site=sites.of(db, request.campaign, request.sender) if entry.campaign.admission == "sites" else None,
        known=_column(db, request.campaign, ids, UPLOADS.c.key),
        gone=_withdrawn(db, request.campaign, request.sender, ids) | aside.put_aside(db, request.campaign, ids),
    )


def _column(db: Connection, campaign_id: bytes, ids: Sequence[bytes], column: sa.Column[T]) -> dict[bytes, T]:
    """One column of those of these uploads that are stored."""
    values: dict[bytes, T] = {}
    for some in aside.uploads_in(campaign_id, ids):
        values.update((row[0], row[1]) for row in db.execute(sa.select(UPLOADS.c.id, column).where(some)))
    return values


def _by_sender(campaign_id: bytes, sender: str | None) -> sa.ColumnElement[bool]:
    return (WITHDRAWN.c.campaign == campaign_id) & (WITHDRAWN.c.sender == (sender or ""))


def _withdrawn(db: Connection, campaign_id: bytes, sender: str | None, ids: Sequence[bytes]) -> set[bytes]:
    """Those of these ids that the same sender withdrew."""
    gone: set[bytes] = set()
    for start in range(0, len(ids), BATCH):
        some = _by_sender(campaign_id, sender) & WITHDRAWN.c.id.in_(ids[start : start + BATCH])
        gone.update(db.execute(sa.select(WITHDRAWN.c.id).where(some)).scalars())
    return gone


def _remembered(db: Connection, campaign_id: bytes, sender: str | None, *, was_stored: bool) -> int:
    mine = _by_sender(campaign_id, sender) & (WITHDRAWN.c.was_stored == was_stored)
    return int(db.execute(sa.select(sa.func.count()).select_from(WITHDRAWN).where(mine)).scalar_one())


def _remember(db: Connection, campaign_id: bytes, sender: str | None, ids: Sequence[tuple[bytes, bool]]) -> None:
    common = {"campaign": campaign_id, "sender": sender or ""}
    if ids:
        db.execute(WITHDRAWN.insert(), [{**common, "id": i, "was_stored": stored} for i, stored in ids])
