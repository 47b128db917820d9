"""The database of one server: its tables, how it is opened and checked, and transactions.

SQLAlchemy Core, so that a database URL is all that changes for another database. SQLite runs in WAL mode with full
synchronisation: when a transaction has ended, it survives a crash of the process and of the machine.
"""

import time
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from campaign.errors import Problem, StorageFull

META = sa.MetaData()

CAMPAIGNS = sa.Table(
    "campaigns",
    META,
    sa.Column("id", sa.LargeBinary(32), primary_key=True),
    sa.Column("spec", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("stored", sa.Integer, nullable=False),
    sa.Column("freezes", sa.Integer, nullable=False),
    sa.Column("agreed", sa.Boolean, nullable=False),  # this server's operator wants it sealed
    sa.Column("erased", sa.Integer, nullable=False),  # uploads that were stored and withdrawn
    sa.Column("upload_token", sa.String(64)),
    sa.Column("noise_seed", sa.LargeBinary(32)),
    sa.Column("sealed_count", sa.Integer),
    sa.Column("sealed_set", sa.LargeBinary(32)),
    sa.Column("orphans", sa.Integer),
    sa.Column("file_digest", sa.LargeBinary(32)),
)
UPLOADS = sa.Table(
    "uploads",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("campaign", sa.LargeBinary(32), nullable=False),
    sa.Column("id", sa.LargeBinary(16), nullable=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("invitation", sa.String(64)),
    sa.Index("uploads_by_id", "campaign", "id", unique=True),
    sa.Index("uploads_by_invitation", "campaign", "invitation", sqlite_where=sa.text("invitation IS NOT NULL")),
)
INVITATIONS = sa.Table(
    "invitations",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("token", sa.String(64), primary_key=True),
)
# While a campaign is open: a copy of an upload that is still on its way must not undo its withdrawal. Ids belong to the
# token that withdrew them (the invitation; empty for an open campaign), so that nobody withdraws for somebody else.
WITHDRAWN = sa.Table(
    "withdrawn",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("was_stored", sa.Boolean, nullable=False),
)
# What a sealing left out, kept until this server's operator confirms it.
LEFT_OUT = sa.Table(
    "left_out",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("key", sa.LargeBinary, nullable=False),
)
LEDGER = sa.Table(
    "ledger",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("purpose", sa.String(80), primary_key=True),
    sa.Column("epsilon", sa.Float, nullable=False),
    sa.Column("at", sa.String(20), nullable=False),
)


def _sqlite_settings(connection: object, _: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=20000", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def open_engine(url: str) -> Engine:
    engine = sa.create_engine(url, hide_parameters=True)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _sqlite_settings)
    return engine


class Damaged(Exception):
    """The database cannot be used; the message is one line for the operator."""


def damaged(engine: Engine, what: str) -> Damaged:
    where = engine.url.render_as_string(hide_password=True)
    return Damaged(f"the database {where} is damaged ({what}); restore this server from its newest backup")


def check_file(engine: Engine) -> None:
    """Damage is found at the start, not by the first request that meets it."""
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as db:
        found = str(db.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
    if found != "ok":
        raise damaged(engine, " ".join(found.split()))


def keep_private(engine: Engine) -> None:
    """Only its owner may read the database's files."""
    if engine.dialect.name == "sqlite" and engine.url.database:
        for suffix in ("", "-wal", "-shm"):
            file = Path(engine.url.database + suffix)
            if file.exists():
                file.chmod(0o600)


def forget(engine: Engine) -> None:
    """Erased rows live on in SQLite's write-ahead log until it is emptied: empty it."""
    if engine.dialect.name != "sqlite":
        return
    for _ in range(50):
        with engine.connect() as db:
            busy = db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy is not None and busy[0] == 0:
            return
        time.sleep(0.1)
    raise StorageFull("the database is busy, so what was erased is still in its log; try again", retry_after=5)


class Transaction:
    """A write transaction that takes its lock at the start; a full disk becomes a problem, not a crash."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Connection:
        self._db = self._engine.connect()
        try:
            if self._engine.dialect.name == "sqlite":
                self._db.exec_driver_sql("BEGIN IMMEDIATE")
        except DBAPIError as failure:
            self._db.close()
            raise _as_problem(failure) from None
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                try:
                    self._db.commit()
                except DBAPIError as failure:
                    self._db.rollback()
                    raise _as_problem(failure) from None
            else:
                self._db.rollback()
                if isinstance(error, DBAPIError):
                    raise _as_problem(error) from None
        finally:
            self._db.close()


def _as_problem(error: DBAPIError) -> Problem:
    text = str(error.orig)
    if "full" in text or "disk I/O" in text:
        return StorageFull("the disk is full; nothing was stored", retry_after=60)
    return StorageFull("the database does not accept writes now; nothing was stored", retry_after=5)
