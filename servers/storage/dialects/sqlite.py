"""SQLite in WAL mode with full synchronisation: when a transaction has ended, it survives a crash of the process and of
the machine. Whoever writes has the whole database alone, whatever it writes about."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from fss_ecdf.campaign.errors import Problem, StorageBusy, StorageFull

ALONE = True
ERRORS: tuple[type[Exception], ...] = (DBAPIError, sqlite3.Error)

_PATIENCE = "busy_timeout=20000"
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", _PATIENCE, "secure_delete=ON")


def connect(url: sa.URL) -> Engine:
    engine = sa.create_engine(url, hide_parameters=True)
    sa.event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: sqlite3.Connection, _: object) -> None:
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def begin(db: Connection, of: bytes | None, shared: bool) -> None:  # noqa: ARG001
    db.exec_driver_sql("BEGIN IMMEDIATE")


def lock_senders(db: Connection, campaign_id: bytes, senders: Sequence[str]) -> None:
    """The whole database is this transaction's."""


def lock_history(db: Connection) -> None:
    """Whoever writes has the whole database alone."""


def read_in_order(db: Connection) -> None:
    """It has no statistics that could be old, and takes the index."""


def as_problem(error: Exception) -> Problem:
    if isinstance(error, IntegrityError | sqlite3.IntegrityError):
        return Problem("two writes contradicted each other; nothing was stored")
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StorageFull("the disk is full; nothing was stored", retry_after=60)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy("the database is busy; nothing was stored", retry_after=5)
    return StorageFull("the database does not accept writes now; nothing was stored", retry_after=5)


def damage(engine: Engine) -> str | None:
    with engine.connect() as db:
        verdict = str(db.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
    return None if verdict == "ok" else " ".join(verdict.split())


def keep_private(engine: Engine) -> None:
    for suffix in ("", "-wal", "-shm"):
        file = Path((engine.url.database or "") + suffix)
        if file.is_file():
            file.chmod(0o600)


def forget(engine: Engine) -> None:
    """Erased rows live on in SQLite's write-ahead log until it is emptied: empty it. Harmless when repeated."""
    for _ in range(50):
        if _empty_log(engine):
            return
        time.sleep(0.1)
    raise StorageBusy("the database is busy, so what was erased is still in its log; try again", retry_after=5)


def _empty_log(engine: Engine) -> bool:
    """False where somebody reads. It does not wait for them: it would keep all other writes waiting as long.

    Most of the log is written into the file before, while others write.
    """
    with engine.connect() as db:
        db.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
        db.exec_driver_sql("PRAGMA busy_timeout=0")
        try:
            busy = db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except DBAPIError:
            return False
        finally:
            db.exec_driver_sql(f"PRAGMA {_PATIENCE}")
    return busy is not None and busy[0] == 0


def add_campaign(db: Connection, number: int) -> None:
    """All uploads are rows of one table."""


def drop_uploads(db: Connection, number: int) -> None:
    db.exec_driver_sql("DELETE FROM uploads WHERE campaign = ?", (number,))


def now(engine: Engine) -> float:  # noqa: ARG001
    return time.time()


class _Only:
    def leads(self) -> bool:
        return True


@contextmanager
def leading(engine: Engine, what: str) -> Iterator[_Only]:  # noqa: ARG001
    """The folder of the database belongs to one process."""
    yield _Only()
