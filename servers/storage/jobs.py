"""Jobs: durable background work on waves. Whoever holds a job's lease does it; after its end anybody may."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from servers.storage.database import Transaction
from servers.storage.schema import JOBS

WAITING, READY, FAILED = "waiting", "ready", "failed"

_LOCK = b"jobs"
_ANEW = {"phase": WAITING, "progress": 0.0, "problem": None, "owner": None, "until": 0.0}


@dataclass(frozen=True)
class Job:
    """Where the work on a wave stands, for everybody to see. Progress says how far, never what."""

    campaign: bytes
    wave: int
    phase: str = WAITING
    progress: float = 0.0
    problem: str | None = None


class Jobs:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, campaign_id: bytes, wave: int = 0) -> Job:
        with self._engine.connect() as db:
            row = db.execute(sa.select(JOBS).where(_is(campaign_id, wave))).one_or_none()
        return Job(campaign_id, wave) if row is None else _as_job(row)

    def take(self, owner: str, now: float, until: float) -> Job | None:
        """The next job that is neither done nor in somebody's hands, leased to this owner; None if there is none."""
        with Transaction(self._engine, _LOCK) as db:
            due = sa.select(JOBS).where(JOBS.c.phase != READY, JOBS.c.until <= now).order_by(JOBS.c.until)
            row = db.execute(due.limit(1)).one_or_none()
            if row is None:
                return None
            mine = _is(row.campaign, row.wave)
            db.execute(JOBS.update().where(mine).values(owner=owner, until=until, phase=WAITING, problem=None))
            return Job(row.campaign, row.wave)

    def note(self, job: Job, owner: str, until: float) -> bool:
        """Show where it stands and renew the lease, or say when it is due again; False if it is not this owner's."""
        values = {"phase": job.phase, "progress": job.progress, "problem": storable(job.problem), "until": until}
        with Transaction(self._engine, _LOCK) as db:
            mine = _is(job.campaign, job.wave) & (JOBS.c.owner == owner)
            return db.execute(JOBS.update().where(mine).values(**values)).rowcount == 1

    def renew_all(self) -> None:
        """At the start of a process that knows that it is the only one: no lease holds, and all that was made is looked
        at again, for files may be missing or damaged."""
        with Transaction(self._engine, _LOCK) as db:
            db.execute(JOBS.update().values(_ANEW))

    def again(self, campaign_id: bytes, wave: int = 0) -> None:
        """Do it once more, from the start: what it made is missing or damaged."""
        with Transaction(self._engine, _LOCK) as db:
            db.execute(JOBS.update().where(_is(campaign_id, wave), JOBS.c.phase == READY).values(_ANEW))


def add(db: Connection, campaign_id: bytes, wave: int) -> None:
    """In the transaction that seals the wave."""
    db.execute(JOBS.insert().values(campaign=campaign_id, wave=wave, phase=WAITING, progress=0.0, until=0.0))


def begin_again(db: Connection, campaign_id: bytes, wave: int) -> None:
    """In the transaction that changes a wave's set: whoever is at work on the old one has lost its lease."""
    db.execute(JOBS.delete().where(_is(campaign_id, wave)))
    add(db, campaign_id, wave)


def storable(text: str | None) -> str | None:
    """What the other server said may hold what no database takes as text: NUL, and halves of surrogate pairs."""
    return None if text is None else text.replace("\0", "").encode(errors="replace").decode()


def _is(campaign_id: bytes, wave: int) -> sa.ColumnElement[bool]:
    return (JOBS.c.campaign == campaign_id) & (JOBS.c.wave == wave)


def _as_job(row: sa.Row[tuple[object, ...]]) -> Job:
    return Job(row.campaign, row.wave, row.phase, row.progress, row.problem)
