"""Schemas: what was released stays as it was and is brought to the newest; old and new programs side by side."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

from fss_ecdf.campaign.errors import NotReady
from fss_ecdf.cli.common import BAD_DATA, OK, REFUSED, TRY_LATER, UsageError
from fss_ecdf.cli.server import main
from servers.storage import dump, migrate
from servers.storage.database import Damaged, open_engine
from servers.storage.migrate import Schema, schema_of, upgrade
from servers.storage.storage import Storage
from tests.commands import call
from tests.harness.ports import free_ports
from tests.harness.postgres import Postgres
from tests.harness.server_pair import ROOT, LivePair
from tests.servers.conftest import filled
from tests.servers.rollbacks import config
from tests.servers.schemas import rows
from tests.servers.schemas.__main__ import HERE, digests

DUMPS = sorted(HERE.glob("*.sql"))


@contextmanager
def program(number: str, folder: Path) -> Iterator[None]:
    """This process, but no server that was started, is a program of a later schema."""
    scripts = folder / f"program-{number}"
    shutil.copytree(migrate.SCRIPTS, scripts)
    for path in (HERE / "later").glob("0*.py"):
        if path.name[:4] <= number:
            shutil.copy(path, scripts / "versions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "SCRIPTS", scripts)
        migrate.newest.cache_clear()
        yield
    migrate.newest.cache_clear()


def upgraded(url: str, number: str, folder: Path) -> None:
    """By a program of that schema."""
    engine = open_engine(url)
    with program(number, folder):
        upgrade(engine)
    engine.dispose()


@pytest.fixture(params=DUMPS, ids=lambda path: str(path.stem))
def released(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database as a released program left it."""
    text = request.param.read_text()
    if "sqlite" in request.param.name:
        engine = sa.create_engine(f"sqlite:///{tmp_path / 'db'}")
        with closing(engine.raw_connection()) as db:
            db.driver_connection.executescript(text)  # type: ignore[union-attr]
        engine.dispose()
        return str(engine.url)
    postgres: Postgres = request.getfixturevalue("postgres")
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(text.encode())
    return url


def test_migrations_that_were_released_are_never_changed() -> None:
    """Databases have been made by them. To change the schema, add a migration (docs/compatibility.md)."""
    assert digests() == json.loads((HERE / "frozen.json").read_text())
    names = {f"{path.name[:4]}.{kind}.sql" for path in (HERE.glob("0*.sql")) for kind in ("sqlite", "postgresql")}
    assert names == {path.name for path in DUMPS}


def test_a_released_database_is_brought_to_this_programs_schema(
    released: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What comes out is what a new database of the same kind has."""
    elsewhere = released.startswith("postgresql")
    url = request.getfixturevalue("postgres").database() if elsewhere else f"sqlite:///{tmp_path / 'fresh'}"
    with closing(Storage(url)) as fresh, closing(Storage(released)) as storage:
        rows.fill(fresh)
        assert rows.seen(storage) == rows.seen(fresh)
        assert schema_of(storage.engine) == migrate.newest()
        assert shape(storage.engine) == shape(fresh.engine)


def shape(engine: sa.Engine) -> dict[str, object]:
    """Tables with their columns, keys and indices."""
    found = sa.inspect(engine)
    return {
        table: (
            [(one["name"], str(one["type"]), one["nullable"], one["default"]) for one in found.get_columns(table)],
            found.get_pk_constraint(table)["constrained_columns"],
            sorted((str(one["name"]), one["unique"], one["column_names"]) for one in found.get_indexes(table)),
        )
        for table in found.get_table_names()
    }


def test_a_released_database_is_brought_to_later_schemas(released: str, tmp_path: Path) -> None:
    with closing(Storage(released)) as storage:
        before = rows.seen(storage)
    for number, name in (("0002", "0002_from_0001"), ("0003", "0003_from_0002")):
        upgraded(released, number, tmp_path)
        engine = open_engine(released)
        assert schema_of(engine) == name
        with engine.connect() as db:
            assert set(db.execute(sa.text("SELECT contact FROM campaigns WHERE NOT deleted")).scalars()) == {"unknown"}
            assert set(db.execute(sa.text("SELECT weight FROM uploads")).scalars()) == {1}
        engine.dispose()
        if number == "0002":
            with closing(Storage(released)) as storage:
                assert rows.seen(storage) == before


@pytest.mark.parametrize(
    ("name", "schema"), [("0001", Schema(1, 1)), ("0002_from_0001", Schema(2, 1)), ("0013_from_0011", Schema(13, 11))]
)
def test_the_name_of_a_schema_says_who_may_use_it(name: str, schema: Schema) -> None:
    assert Schema.parse(name) == schema
    assert migrate.is_usable(name) == (schema.oldest <= 1)


@pytest.mark.parametrize("wrong", ["", "main", "2", "0002_from_", "0002_from_1", "0002_from_0001_from_0001"])
def test_a_schema_with_another_kind_of_name_is_not_used(wrong: str) -> None:
    assert Schema.parse(wrong) is None
    assert not migrate.is_usable(wrong)


def test_an_old_program_takes_a_schema_that_only_adds(released: str, tmp_path: Path) -> None:
    """Also one that is started after it was changed; it leaves what was added alone."""
    with closing(Storage(released)) as old:
        upgraded(released, "0002", tmp_path)
        old.ping()
        rows.send(old, old.campaigns.get(rows.OPEN).campaign, 7)
        with closing(Storage(released)) as another:
            assert schema_of(another.engine) == "0002_from_0001"
            assert another.campaigns.get(rows.OPEN).stored == 12
        upgraded(released, "0003", tmp_path)
        with pytest.raises(NotReady, match="must be replaced"):
            old.ping()
        with pytest.raises(Damaged, match="0003_from_0002, which this version does not know"):
            Storage(released)


@pytest.fixture
def mixed(tmp_path: Path, postgres: Postgres) -> Iterator[tuple[LivePair, list[str]]]:
    """Two running servers, one on PostgreSQL and one on SQLite, and their databases."""
    pair = LivePair(tmp_path)
    urls = [postgres.database(), f"sqlite:///{pair.folder / 'server1' / 'data' / 'server.db'}"]
    pair.configure(0, database=f'"{urls[0]}"')
    with pair:
        yield pair, urls


@pytest.mark.faults
def test_running_servers_go_on_while_a_newer_program_adds_to_their_tables(
    mixed: tuple[LivePair, list[str]], tmp_path: Path
) -> None:
    """Uploads, sealing and evaluation, and a restart of the old program, at both databases; then what is too much."""
    pair, urls = mixed
    campaign, _ = filled(pair)
    for role in (0, 1):
        upgraded(urls[role], "0002", tmp_path / f"program-of-{role}")
        with pair.client(role) as client:
            assert client.get("/readyz").json() == {"status": "ready"}
    pair.upload_values(campaign, campaign.to_positions(np.linspace(0, 1, 30)).positions)
    assert pair.seal(campaign)["count"] == 90
    pair.wait_ready(campaign)
    said = pair.ask(0, campaign, "curve")
    pair.stop(0)
    pair.start(0)
    assert pair.ask(0, campaign, "curve") == said
    for role in (0, 1):
        upgraded(urls[role], "0003", tmp_path / f"another-of-{role}")
        with pair.client(role) as client:
            assert client.get("/readyz").status_code == httpx.codes.SERVICE_UNAVAILABLE
    pair.stop(0)
    pair.start(0, wait=False)
    assert pair.exited(0) == BAD_DATA
    assert "0003_from_0002, which this version does not know" in pair.log(0)


@pytest.mark.faults
def test_a_worker_tells_that_it_works_and_ends_when_it_must_be_replaced(
    mixed: tuple[LivePair, list[str]], tmp_path: Path
) -> None:
    """It listens nowhere but where metrics are told, and no load balancer passes it by."""
    pair, urls = mixed
    pair.stop(0)
    address = f"127.0.0.1:{free_ports()[0]}"
    asked = ("health", "--config", str(config(pair)), "--metrics", address)
    assert call(main, *asked).returncode == TRY_LATER
    command = [
        sys.executable,
        "-m",
        "fss_ecdf.cli.server",
        "worker",
        "--config",
        str(config(pair)),
        "--metrics",
        address,
    ]
    with (tmp_path / "work.log").open("wb") as log:
        work = subprocess.Popen(command, cwd=ROOT, stderr=log)
    try:
        _until(lambda: call(main, *asked).stdout == "ready\n")
        with pair.client(0) as client:
            assert client.get(f"https://{address}/healthz").json() == {"status": "ok"}
            assert client.get(f"https://{address}/metrics").status_code == httpx.codes.UNAUTHORIZED
        upgraded(urls[0], "0002", tmp_path)
        assert call(main, *asked).stdout == "ready\n"
        upgraded(urls[0], "0003", tmp_path)
        assert call(main, *asked).returncode == TRY_LATER
        assert work.wait(60) == BAD_DATA
    finally:
        work.kill()
        work.wait()
    assert "this process must be replaced" in (tmp_path / "work.log").read_text()


def _until(holds: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_migrate_says_what_it_did(mixed: tuple[LivePair, list[str]], tmp_path: Path) -> None:
    pair, urls = mixed
    pair.stop(1)
    for role in (0, 1):  # beside a running server on PostgreSQL, and on SQLite's file alone
        command = ("migrate", "--config", str(config(pair, role)))
        assert call(main, *command).stdout == "the database has schema 0001; this program's is 0001\n"
        with program("0002", tmp_path / f"program-of-{role}"):
            assert (
                call(main, *command, "--check").stdout
                == "the database has schema 0001; this program's is 0002_from_0001\n"
            )
            assert call(main, *command).stdout == "the database had schema 0001 and has 0002_from_0001 now\n"
        done = call(main, *command)
        assert (done.returncode, "of a newer program; this one's is 0001, and may use it" in done.stdout) == (OK, True)
        assert "which may use it" in call(main, "doctor", "--offline", *command[1:]).stdout
        upgraded(urls[role], "0003", tmp_path / f"another-of-{role}")
        assert call(main, *command).returncode == BAD_DATA
        done = call(main, "doctor", "--before-start", *command[1:])
        assert (done.returncode, "too old for it; run the newer version" in done.stdout) == (REFUSED, True)
    (pair.folder / "server1" / "data" / "server.db").unlink()
    assert "has schema none" in call(main, "migrate", "--check", "--config", str(config(pair, 1))).stdout
    assert not (pair.folder / "server1" / "data" / "server.db").exists()


def test_an_old_program_makes_no_backup_of_tables_that_it_does_not_know(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.database()
    Storage(url).close()
    upgraded(url, "0002", tmp_path)
    with pytest.raises(UsageError, match="schema 0002_from_0001, of a newer program: make backups with that one"):
        dump.dump(url, tmp_path)
