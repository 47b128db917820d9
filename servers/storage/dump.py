"""One moment of a server's database in a folder, and back: SQLite's own copy, or PostgreSQL's tables by COPY.

PostgreSQL's tables are read in one transaction that sees one moment, as pg_dump does, but without a program of the
database's version on this machine; every table of the schema is read, so that none is forgotten.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from fss_ecdf.campaign.errors import Problem
from fss_ecdf.campaign.files import copy_privately
from fss_ecdf.cli.common import UsageError
from servers.storage import dialects
from servers.storage.database import Damaged, needs_to_be_alone, open_engine
from servers.storage.migrate import SCHEMA, is_expanded, run
from servers.storage.schema import CAMPAIGNS, META

FILE = "server.db"
BEFORE = "before_restore"  # the schema of PostgreSQL that keeps what was there
States = dict[tuple[bytes, int], str]  # of each campaign's waves

_WAVES = "SELECT campaign, number, state FROM waves"
_NEWEST = "SELECT generation, number FROM history ORDER BY number DESC LIMIT 1"
_DELETED = "SELECT id FROM campaigns WHERE deleted"


@dataclass(frozen=True)
class Dumped:
    """What was written, and what the database said at that moment."""

    kind: str
    schema: str
    newest: str
    waves: States
    tables: dict[str, int]


@dataclass(frozen=True)
class Present:
    """What a database says that a backup is to replace."""

    waves: States
    deleted: list[bytes]


def dump(url: str, folder: Path) -> Dumped:
    """One moment of the database, while others use it. Raises Damaged or a problem."""
    if needs_to_be_alone(url):
        return _dump_sqlite(sqlite_file(url), folder / FILE)
    engine = open_engine(url)
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as db:
            db.exec_driver_sql("SET TRANSACTION READ ONLY")
            _require_known(str(db.exec_driver_sql(SCHEMA).scalar_one()))
            tables = {table.name: _copy_out(db, table.name, folder) for table in META.sorted_tables}
            return Dumped("postgresql", *_said(db), tables)
    except DBAPIError as error:
        raise Damaged(f"the database cannot be read now ({type(error.orig).__name__})") from None
    finally:
        engine.dispose()


def _require_known(schema: str) -> None:
    """A newer schema may have tables that this program does not know: they would be missing in the backup."""
    if is_expanded(schema):
        raise UsageError(f"the database has schema {schema}, of a newer program: make backups with that one")


def sqlite_file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _dump_sqlite(source: Path, target: Path) -> Dumped:
    if not source.is_file():
        raise UsageError(f"{source} does not exist; this server has not been started yet")
    target.touch(mode=0o600)
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, also when it is looked at
        verdict = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise Problem(f"the database is damaged ({verdict}); this backup is worth nothing, keep the one before it")
        waves = {(row[0], row[1]): row[2] for row in copy.execute(_WAVES)}
        newest = copy.execute(_NEWEST).fetchone()
        return Dumped("sqlite", copy.execute(SCHEMA).fetchone()[0], _place(newest), waves, {})


def _said(db: Connection) -> tuple[str, str, States]:
    waves = {(bytes(row[0]), row[1]): row[2] for row in db.exec_driver_sql(_WAVES)}
    newest = db.exec_driver_sql(_NEWEST).one_or_none()
    return str(db.exec_driver_sql(SCHEMA).scalar_one()), _place(newest), waves


def _place(newest: object) -> str:
    return "0.0" if newest is None else ".".join(map(str, tuple(newest)))  # type: ignore[arg-type]


def present(url: str) -> Present:
    """What is there now; nothing of one that is missing, empty or damaged: the other server knows."""
    nothing = Present({}, [])
    if needs_to_be_alone(url):
        try:
            with closing(sqlite3.connect(f"file:{sqlite_file(url)}?mode=ro", uri=True)) as file:
                waves = {(row[0], row[1]): row[2] for row in file.execute(_WAVES)}
                return Present(waves, [row[0] for row in file.execute(_DELETED)])
        except sqlite3.DatabaseError:
            return nothing
    engine = open_engine(url)
    try:
        with engine.connect() as db:
            if not sa.inspect(db).has_table(CAMPAIGNS.name):
                return nothing
            waves = {(bytes(row[0]), row[1]): row[2] for row in db.exec_driver_sql(_WAVES)}
            return Present(waves, [bytes(row[0]) for row in db.exec_driver_sql(_DELETED)])
    except DBAPIError as error:
        raise Damaged(f"the database cannot be reached ({type(error.orig).__name__}); restore when it can") from None
    finally:
        engine.dispose()


def load(url: str, folder: Path, schema: str, tables: dict[str, int]) -> str:
    """Put a dump in place of what is there; returns where that is kept. All of it, or nothing."""
    if needs_to_be_alone(url):
        return _load_sqlite(sqlite_file(url), folder / FILE)
    engine = open_engine(url)
    try:
        with engine.connect() as db:
            dialects.of(engine).begin(db, None, shared=False)
            kept = _move_away(db)
            run(db, schema)
            for table in META.sorted_tables:
                if table.name in tables:  # one that a later version added has nothing yet
                    if table.name == "uploads":
                        _add_partitions(db)
                    _copy_in(db, table.name, folder, tables[table.name])
            db.commit()
    except DBAPIError as error:
        raise Damaged(f"the backup could not be put in place ({type(error.orig).__name__}); nothing changed") from None
    finally:
        engine.dispose()
    return kept


def _load_sqlite(target: Path, source: Path) -> str:
    """The old database stays beside the new one, under another name, until the operator erases it."""
    fresh, old = target.with_name(target.name + ".restored"), target.with_name(target.name + ".before-restore")
    copy_privately(source, fresh)
    if target.is_file():
        _empty_log(target)
        target.rename(old)
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    fresh.rename(target)
    return f"beside it as {old.name}"


def _empty_log(path: Path) -> None:
    """What is only in the log of the old database belongs to it; of a damaged one there is nothing to save."""
    try:
        with closing(sqlite3.connect(path)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError:
        return


def _columns(db: Connection, table: str) -> str:
    return ", ".join(f'"{column["name"]}"' for column in sa.inspect(db).get_columns(table))


def _copy_out(db: Connection, table: str, folder: Path) -> int:
    path = folder / f"{table}.copy"
    path.touch(mode=0o600)
    cursor = db.connection.cursor()
    with path.open("wb") as file:
        query = f'COPY (SELECT {_columns(db, table)} FROM "{table}") TO STDOUT (FORMAT binary)'  # noqa: S608
        with cursor.copy(query) as rows:
            for part in rows:
                file.write(part)
    return int(cursor.rowcount)


def _copy_in(db: Connection, table: str, folder: Path, rows: int) -> None:
    cursor = db.connection.cursor()
    query = f'COPY "{table}" ({_columns(db, table)}) FROM STDIN (FORMAT binary)'
    with (folder / f"{table}.copy").open("rb") as file, cursor.copy(query) as target:
        while part := file.read(1 << 20):
            target.write(part)
    if cursor.rowcount != rows:
        raise Damaged(f"{table}: {cursor.rowcount} rows came in place of {rows}; nothing changed")
    key = META.tables[table].primary_key.columns.keys()
    if key == ["number"] and table != "uploads":  # what comes next has a number of its own
        name = f"pg_get_serial_sequence('{table}', 'number')"
        db.exec_driver_sql(f"SELECT setval({name}, max(number)) FROM {table} HAVING max(number) > 0")  # noqa: S608


def _add_partitions(db: Connection) -> None:
    kept = sa.select(CAMPAIGNS.c.number).where(CAMPAIGNS.c.deleted.is_(False))
    for number in list(db.execute(kept).scalars()):
        dialects.of(db.engine).add_campaign(db, number)


def _move_away(db: Connection) -> str:
    """The tables that are there go into a schema of their own, until the operator drops it."""
    there = sa.inspect(db)
    names = [name for name in there.get_table_names() if name in META.tables or name.startswith("uploads_")]
    names += ["alembic_version"] if there.has_table("alembic_version") else []
    if not names:
        return "nowhere: there was none"
    if BEFORE in there.get_schema_names():
        raise UsageError(
            f"the database still has the schema {BEFORE} of an earlier restore; when all is well, DROP SCHEMA {BEFORE} "
            "CASCADE, and restore again"
        )
    db.exec_driver_sql(f"CREATE SCHEMA {BEFORE}")
    for name in names:
        db.exec_driver_sql(f'ALTER TABLE "{name}" SET SCHEMA {BEFORE}')
    return f"in the schema {BEFORE}"
