"""What does not go on, and since when: waves that stay frozen, jobs that wait for the other server or failed."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from servers.storage.database import Transaction
from servers.storage.jobs import FAILED, READY, storable
from servers.storage.schema import EXCLUDED, JOBS, TROUBLES, WAVES

FROZEN, WAITS, FAILS, NOT_SEALED = "frozen", "waiting for the other server", "failed", "not sealed"
KINDS = (FROZEN, WAITS, FAILS, NOT_SEALED)
_LOCK = b"troubles"

Place = tuple[bytes, int, str]  # campaign, wave, kind


@dataclass(frozen=True)
class Trouble:
    campaign: bytes
    wave: int
    kind: str
    since: float  # seconds since 1970
    detail: str


@dataclass(frozen=True)
class Counts:
    """What there is of each kind, for those who watch."""

    waves: Mapping[str, int]
    jobs: Mapping[str, int]
    excluded: int


class Troubles:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self, campaign_id: bytes | None = None) -> list[Trouble]:
        select = sa.select(TROUBLES).order_by(TROUBLES.c.campaign, TROUBLES.c.wave, TROUBLES.c.since)
        if campaign_id is not None:
            select = select.where(TROUBLES.c.campaign == campaign_id)
        with self._engine.connect() as db:
            return [Trouble(row.campaign, row.wave, row.kind, row.since, row.detail) for row in db.execute(select)]

    def counts(self) -> Counts:
        with self._engine.connect() as db:
            waves = db.execute(sa.select(WAVES.c.state, sa.func.count()).group_by(WAVES.c.state)).all()
            jobs = db.execute(sa.select(JOBS.c.phase, sa.func.count()).group_by(JOBS.c.phase)).all()
            excluded = db.execute(sa.select(sa.func.count()).select_from(EXCLUDED)).scalar_one()
        return Counts({row[0]: row[1] for row in waves}, {row[0]: row[1] for row in jobs}, int(excluded))

    def look(self, now: float) -> list[Trouble]:
        """Bring the table up to date; returns what is new in it. One process does."""
        with Transaction(self._engine, _LOCK) as db:
            known = {(row.campaign, row.wave, row.kind) for row in db.execute(sa.select(TROUBLES))}
            found, over = _found(db)
            for place in known - set(found):
                if place in over or place[2] == FROZEN:
                    _drop(db, place)
            new = [Trouble(*place, now, detail) for place, detail in found.items() if place not in known]
            for place, detail in found.items():
                if place in known:
                    db.execute(TROUBLES.update().where(_is(place)).values(detail=detail))
            for trouble in new:
                db.execute(TROUBLES.insert().values(**vars(trouble)))
        return new

    def note(self, campaign_id: bytes, wave: int, detail: str, now: float) -> None:
        """A wave that was due was not sealed, for this reason."""
        place, text = (campaign_id, wave, NOT_SEALED), storable(detail) or ""
        with Transaction(self._engine, _LOCK) as db:
            if not db.execute(TROUBLES.update().where(_is(place)).values(detail=text)).rowcount:
                db.execute(TROUBLES.insert().values(**vars(Trouble(*place, now, text))))


def _found(db: Connection) -> tuple[dict[Place, str], set[Place]]:
    """What is wrong now; and what is over: of a job that failed or waits, which is tried again, when it is done."""
    found: dict[Place, str] = {}
    over: set[Place] = set()
    states = {(row.campaign, row.number): row.state for row in db.execute(sa.select(WAVES))}
    jobs = {(row.campaign, row.wave): row for row in db.execute(sa.select(JOBS))}
    for (campaign, wave), state in states.items():
        if state == "frozen":
            found[campaign, wave, FROZEN] = "uploads are frozen, and the set is not fixed yet"
        if state in ("checking", "sealed"):
            over.add((campaign, wave, NOT_SEALED))
    for (campaign, wave), job in jobs.items():
        if job.phase == FAILED:
            found[campaign, wave, FAILS] = job.problem or "for no known reason"
        elif job.phase == WAITS:
            found[campaign, wave, WAITS] = "its part of the check is not there yet"
        elif job.phase == READY:
            over |= {(campaign, wave, FAILS), (campaign, wave, WAITS)}
    for row in db.execute(sa.select(TROUBLES)):
        place = row.campaign, row.wave
        if place not in states or (row.kind in (FAILS, WAITS) and place not in jobs):
            over.add((*place, row.kind))
    return found, over


def _drop(db: Connection, place: Place) -> None:
    db.execute(TROUBLES.delete().where(_is(place)))


def _is(place: Place) -> sa.ColumnElement[bool]:
    campaign, wave, kind = place
    return (TROUBLES.c.campaign == campaign) & (TROUBLES.c.wave == wave) & (TROUBLES.c.kind == kind)
