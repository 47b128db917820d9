"""The database of one server: how it is opened, who may use its folder, and transactions."""

import fcntl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError

from fss_ecdf.campaign.errors import Problem, StorageBusy
from servers.storage import dialects

# SQLite takes at most 32766 variables in a statement.
BATCH = 10_000


T = TypeVar("T")


class Damaged(Exception):
    """The database cannot be used; the message is one line for the operator."""


def lock(data: Path, *, shared: bool = False) -> TextIO:
    """The folder belongs to this process until the file is closed, or to all that share it: `fss-server api` and
    `work` go together, but nothing else beside them."""
    path = data / "lock"
    path.touch(mode=0o600)
    file = path.open("w")
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise Damaged(f"another server runs on {data}; end it first, or give this one a folder of its own") from None
    return file


def open_engine(url: str) -> Engine:
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        raise Damaged("database: not a URL like sqlite:////folder/server.db or postgresql://host/name") from None
    dialect = dialects.known(parsed.get_backend_name())
    if dialect is None:
        raise Damaged(f"database: {parsed.get_backend_name()} is not supported, only sqlite and postgresql")
    try:
        return dialect.connect(parsed)
    except ModuleNotFoundError:
        raise Damaged("database: postgresql needs psycopg: pip install 'fss-ecdf[server,postgres]'") from None


def needs_to_be_alone(url: str) -> bool:
    """Is this a database for one process at a time?"""
    return url.startswith("sqlite")


def damaged(engine: Engine, what: str) -> Damaged:
    where = engine.url.render_as_string(hide_password=True)
    return Damaged(f"the database {where} is damaged ({what}); restore this server from its newest backup")


def unusable(engine: Engine, what: str) -> Damaged:
    """Why it cannot be opened. A file that cannot be read is damaged; a database server may just be away."""
    if dialects.of(engine).ALONE:
        return damaged(engine, what)
    where = engine.url.render_as_string(hide_password=True)
    return Damaged(
        f"the database {where} cannot be used now ({' '.join(what.split())}); see that it runs and lets this server in"
    )


def check_file(engine: Engine) -> None:
    """Damage is found at the start, not by the first request that meets it."""
    what = dialects.of(engine).damage(engine)
    if what is not None:
        raise damaged(engine, what)


def keep_private(engine: Engine) -> None:
    dialects.of(engine).keep_private(engine)


def purge_write_ahead_log(engine: Engine) -> None:
    dialects.of(engine).forget(engine)


class Transaction:
    """A write transaction that takes its locks at the start; what goes wrong in it is a problem, not a crash.

    Without a subject it has the whole database alone. With one, a campaign's id as a rule, it leaves the others in
    peace where the database can; `shared`, it only keeps those out who want the subject alone.
    """

    def __init__(self, engine: Engine, of: bytes | None = None, *, shared: bool = False) -> None:
        self._engine, self._of, self._shared = engine, of, shared
        self._dialect = dialects.of(engine)

    def __enter__(self) -> Connection:
        try:
            try:
                self._db = self._begun()
            except DBAPIError as failure:
                # Nothing was written on a connection that had ended, by a failover say; the pool has dropped its like.
                # Only uploads share a subject. All others must look first whether the new database was rolled back.
                if not (self._shared and failure.connection_invalidated):
                    raise
                self._db = self._begun()
        except self._dialect.ERRORS as failure:
            raise self._dialect.as_problem(failure) from None
        return self._db

    def _begun(self) -> Connection:
        db = self._engine.connect()
        try:
            self._dialect.begin(db, self._of, self._shared)
        except BaseException:
            db.close()
            raise
        return db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                try:
                    self._db.commit()
                except self._dialect.ERRORS as failure:
                    self._undo()
                    raise self._dialect.as_problem(failure) from None
            else:
                self._undo()
                if isinstance(error, self._dialect.ERRORS):
                    raise self._dialect.as_problem(error) from None
        finally:
            self._db.close()

    def _undo(self) -> None:
        """Where the connection is lost the database has done it."""
        with suppress(DBAPIError):
            self._db.rollback()


def persistently(what: Callable[[], T], tries: int = 10) -> T:
    """Once more where transactions came between each other and nothing was stored."""
    for left in reversed(range(tries)):
        try:
            return what()
        except StorageBusy as problem:
            if problem.retry_after != 0 or not left:
                raise
    raise AssertionError


def as_problem(engine: Engine, error: Exception) -> Problem:
    return dialects.of(engine).as_problem(error)
