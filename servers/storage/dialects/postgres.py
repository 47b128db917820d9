"""PostgreSQL, for several processes at once. Which of them may write what is decided by advisory locks.

A transaction at READ COMMITTED takes its locks in a statement of its own, so that all it reads afterwards is what the
holders before it left. It has the whole database alone, like one of SQLite, unless it names a subject: then it shares
the whole and has the subject, a campaign as a rule, alone; uploads share their campaign, too. Everybody takes the whole
first, then one subject, then senders in their order, then the history, so nobody waits in a circle.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from zlib import crc32

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fss_ecdf.campaign.errors import Problem, StorageBusy, StorageFull

try:
    import psycopg
except ImportError:  # an extra; whoever names such a database without it is told so
    _Error: type[Exception] = DBAPIError
else:
    _Error = psycopg.Error

ALONE = False
ERRORS: tuple[type[Exception], ...] = (DBAPIError, _Error, PoolTimeout)

# A lock is waited for as long as SQLite's; a process that was stopped in a transaction, or whose machine went away,
# does not hold others up for longer than half a minute.
LOCK_S = 20
_OPTIONS = {
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_POOL = {"pool_size": 8, "max_overflow": 24, "pool_timeout": 20}
_DISK_FULL, _READ_ONLY, _BROKEN_RULE = "53100", "25006", "23"
_TIMEOUT = "55P03"
# Who is stopped while it copies is not idle for PostgreSQL, whose own timeouts do not end it: those who wait do.
_END_STOPPED = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND state = 'active' AND wait_event = 'ClientRead'
AND query LIKE 'COPY uploads\\_%%' AND query_start < clock_timestamp() - make_interval(secs => %s)
"""
_SENDERS = 512  # locks for the senders of a campaign
_AGAIN = ("40001", "40P01")  # serialization failure, deadlock: nothing was done, and doing it again may well succeed


def connect(url: sa.URL) -> Engine:
    options = " ".join(f"-c {name}={value}" for name, value in {"lock_timeout": f"{LOCK_S}s", **_OPTIONS}.items())
    arguments = {"options": options, "connect_timeout": 10, "application_name": "fss-server"}
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"), hide_parameters=True, connect_args=arguments, **_POOL
    )


def begin(db: Connection, of: bytes | None, shared: bool) -> None:
    try:
        _take_locks(db, of, shared)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _TIMEOUT:
            raise
        db.rollback()
        if not db.exec_driver_sql(_END_STOPPED, (LOCK_S * 0.9,)).all():
            raise
        db.rollback()
        _take_locks(db, of, shared)


def _take_locks(db: Connection, of: bytes | None, shared: bool) -> None:
    if of is None:
        db.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_lock(b"whole"),))
        return
    mine = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    names = _lock(b"whole"), _lock(b"subject", of)
    db.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared(%s), {mine}(%s)", names)


def lock_senders(db: Connection, campaign_id: bytes, senders: Sequence[str]) -> None:
    """Row by row, so in their order. Many senders share a lock: PostgreSQL has room for some thousands in all."""
    locks = sorted(
        {_lock(b"sender", campaign_id, str(crc32(sender.encode()) % _SENDERS).encode()) for sender in senders}
    )
    if locks:
        db.exec_driver_sql("SELECT pg_advisory_xact_lock(one) FROM unnest(%s::bigint[]) AS one", (locks,))


def lock_history(db: Connection) -> None:
    """A number is given out before its transaction ends; a smaller one must not be added behind one that was shown."""
    db.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_lock(b"history"),))


def _lock(*names: bytes) -> int:
    digest = hashlib.sha256(b"fss-ecdf lock\n" + b"\n".join(names)).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def read_in_order(db: Connection) -> None:
    """Before a table is analysed it is taken for small, and every part of it would come of sorting all that is left."""
    db.exec_driver_sql("SET LOCAL enable_sort = off")


def as_problem(error: Exception) -> Problem:
    if isinstance(error, PoolTimeout):
        return StorageBusy("all connections to the database are in use; nothing was stored", retry_after=5)
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    if state is not None and state.startswith(_BROKEN_RULE):
        return Problem("two writes contradicted each other; nothing was stored")
    if state == _DISK_FULL:
        return StorageFull("the disk of the database is full; nothing was stored", retry_after=60)
    if state in _AGAIN:
        return StorageBusy("other writes came between; nothing was stored", retry_after=0)
    if state == _READ_ONLY:
        return StorageBusy("the database is a standby and takes no writes; nothing was stored", retry_after=5)
    if state is None or state[:2] in ("08", "57"):
        return StorageBusy("the database cannot be reached now; whether it was stored is not known", retry_after=2)
    return StorageBusy(f"the database is busy (SQLSTATE {state}); nothing was stored", retry_after=5)


def damage(engine: Engine) -> str | None:
    """PostgreSQL looks after its files itself (data checksums, amcheck); it must only be one that does not lie."""
    with engine.connect() as db:
        for setting in ("fsync", "full_page_writes"):
            if db.exec_driver_sql(f"SHOW {setting}").scalar_one() != "on" and not _may_lose(db):
                return f"{setting} is off, so a power cut would damage it"
    return None


def _may_lose(db: Connection) -> bool:
    """A database for tests says that it may be lost."""
    with suppress(DBAPIError):
        return bool(db.exec_driver_sql("SELECT current_setting('fss.may_lose', true) = 'on'").scalar_one())
    return False


def keep_private(engine: Engine) -> None:
    """Its files are the database administrator's."""


def forget(engine: Engine) -> None:
    """Out of a client's reach: docs/scale.md says what PostgreSQL keeps of erased rows, and how long."""


def add_campaign(db: Connection, number: int) -> None:
    """A partition, attached: to create it in its place would keep everybody waiting who uses another one."""
    name = partition(number)
    db.exec_driver_sql(f"CREATE TABLE {name} (LIKE uploads INCLUDING CONSTRAINTS INCLUDING STORAGE)")
    db.exec_driver_sql(f"ALTER TABLE uploads ATTACH PARTITION {name} FOR VALUES IN ({int(number)})")


def drop_uploads(db: Connection, number: int) -> None:
    """Its files are unlinked at commit, whatever their size."""
    db.exec_driver_sql(f"DROP TABLE IF EXISTS {partition(number)}")


def partition(number: int) -> str:
    return f"uploads_{int(number)}"


def now(engine: Engine) -> float:
    with engine.connect() as db:
        return float(db.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one())


class _Candidate:
    """Holds a lock of its session: it ends with the connection, so with the process, and others lead at once."""

    def __init__(self, engine: Engine, what: str) -> None:
        self._engine, self._number = engine, _lock(b"leader", what.encode())
        self._db: Connection | None = None

    def leads(self) -> bool:
        try:
            if self._db is None:
                db = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                if not db.exec_driver_sql("SELECT pg_try_advisory_lock(%s)", (self._number,)).scalar_one():
                    db.close()
                    return False
                self._db = db
            self._db.exec_driver_sql("SELECT 1")
        except (DBAPIError, PoolTimeout):
            self.close()
            return False
        return True

    def close(self) -> None:
        if self._db is not None:
            with suppress(DBAPIError):
                self._db.invalidate()  # its session ends, and the lock with it
                self._db.close()
            self._db = None


@contextmanager
def leading(engine: Engine, what: str) -> Iterator[_Candidate]:
    candidate = _Candidate(engine, what)
    try:
        yield candidate
    finally:
        candidate.close()
