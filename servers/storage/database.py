"""The database of one server: how it is opened, brought up to date and checked, and transactions.

SQLite in WAL mode with full synchronisation: when a transaction has ended, it survives a crash of the process and of
the machine. Another database is refused at the start until one is supported.
"""

import fcntl
import sqlite3
import time
from pathlib import Path
from typing import TextIO

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from campaign.errors import Problem, StorageBusy, StorageFull

_PATIENCE = "busy_timeout=20000"
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", _PATIENCE, "secure_delete=ON")
# SQLite takes at most 32766 variables in a statement.
BATCH = 10_000


class Damaged(Exception):
    """The database cannot be used; the message is one line for the operator."""


def lock(data: Path) -> TextIO:
    """The folder belongs to this process until the file is closed: two would write over each other's files."""
    path = data / "lock"
    path.touch(mode=0o600)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise Damaged(f"another server runs on {data}; end it first, or give this one a folder of its own") from None
    return file


def open_engine(url: str) -> Engine:
    engine = sa.create_engine(url, hide_parameters=True)
    if engine.dialect.name != "sqlite":
        raise Damaged(f"database: {engine.dialect.name} is not supported, only sqlite")
    sa.event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: sqlite3.Connection, _: object) -> None:
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def damaged(engine: Engine, what: str) -> Damaged:
    where = engine.url.render_as_string(hide_password=True)
    return Damaged(f"the database {where} is damaged ({what}); restore this server from its newest backup")


def check_file(engine: Engine) -> None:
    """Damage is found at the start, not by the first request that meets it."""
    with engine.connect() as db:
        verdict = str(db.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
    if verdict != "ok":
        raise damaged(engine, " ".join(verdict.split()))


def keep_private(engine: Engine) -> None:
    """Only its owner may read the database's files."""
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
    """False where somebody reads. It does not wait for them: it would keep all other writes waiting as long."""
    with engine.connect() as db:
        db.exec_driver_sql("PRAGMA busy_timeout=0")
        try:
            busy = db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except DBAPIError:
            return False
        finally:
            db.exec_driver_sql(f"PRAGMA {_PATIENCE}")
    return busy is not None and busy[0] == 0


class Transaction:
    """A write transaction that takes its lock at the start; what goes wrong in it is a problem, not a crash."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Connection:
        self._db = self._engine.connect()
        try:
            self._db.exec_driver_sql("BEGIN IMMEDIATE")
        except DBAPIError as failure:
            self._db.close()
            raise as_problem(failure) from None
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                try:
                    self._db.commit()
                except DBAPIError as failure:
                    self._db.rollback()
                    raise as_problem(failure) from None
            else:
                self._db.rollback()
                if isinstance(error, DBAPIError | sqlite3.Error):
                    raise as_problem(error) from None
        finally:
            self._db.close()


def as_problem(error: DBAPIError | sqlite3.Error) -> Problem:
    """By SQLite's own code: a full disk, a busy database and a broken rule are different things."""
    if isinstance(error, IntegrityError | sqlite3.IntegrityError):
        return Problem("two writes contradicted each other; nothing was stored")
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StorageFull("the disk is full; nothing was stored", retry_after=60)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy("the database is busy; nothing was stored", retry_after=5)
    return StorageFull("the database does not accept writes now; nothing was stored", retry_after=5)
