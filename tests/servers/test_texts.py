"""Every text that a server writes fits its column on both databases, and no background work hides an error."""

import ast
import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

import servers
from servers.storage.jobs import Job
from servers.storage.schema import META
from servers.storage.storage import Storage
from tests.harness.postgres import Postgres
from tests.servers.conftest import fixed
from tests.servers.test_work import working

LONG = "ä" * 1000  # longer than any phase, label or reason that is cut off before it is stored


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    url = f"sqlite:///{tmp_path / 'db'}"
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        url = server.database()
    with closing(Storage(url)) as storage:
        yield storage


def test_no_column_of_text_has_a_limit(either: Storage) -> None:
    """SQLite takes no notice of a limit, so what it stores without a word PostgreSQL would refuse."""
    inspector = sa.inspect(either.engine)
    for table in META.sorted_tables:
        texts = [column.name for column in table.columns if isinstance(column.type, sa.String)]
        limits = {c["name"]: getattr(c["type"], "length", None) for c in inspector.get_columns(table.name)}
        assert {name: limits[name] for name in texts} == dict.fromkeys(texts), table.name
        if table.name == "uploads" or not texts:  # a partition would have to be there first
            continue
        filled = {
            column.name: LONG if column.name in texts else _any(column)
            for column in table.columns
            if not (column.primary_key and isinstance(column.type, sa.Integer) and len(table.primary_key) == 1)
        }
        with either.engine.begin() as db:
            db.execute(table.insert().values(**filled))
            (row,) = db.execute(sa.select(*(table.c[name] for name in texts)))
            assert set(row) == {LONG}


def _any(column: "sa.Column[object]") -> object:
    kinds = {sa.Integer: 7, sa.LargeBinary: b"7", sa.Boolean: True, sa.Float: 7.0}
    return next(value for kind, value in kinds.items() if isinstance(column.type, kind))


@pytest.mark.parametrize("problem", ["a\0b", "half a pair: \ud800", "x" * 500])
def test_a_lease_is_renewed_with_every_phase_and_whatever_the_other_server_said(either: Storage, problem: str) -> None:
    campaign, _, _ = fixed(either)
    assert either.jobs.take("me", now=1.0, until=2.0) is not None
    for phase in _phases():
        assert either.jobs.note(Job(campaign.id, 0, phase, 1.0, problem), "me", 9.0), phase
        assert either.jobs.get(campaign.id).phase == phase
    kept = either.jobs.get(campaign.id).problem
    assert kept is not None
    assert kept.replace("?", "") in problem.replace("\0", "")


def _phases() -> list[str]:
    """All that is ever noted, as the program's text has it."""
    found: set[str] = set()
    for path in Path(servers.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "note":
                found |= {
                    one.value for one in node.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
    assert {"waiting for the other server", "writing keys", "checking", "evaluating"} <= found
    return sorted(found)


def test_a_lease_that_cannot_be_renewed_is_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def play() -> None:
        async with working(tmp_path) as (server, _):
            campaign, _, _ = await server.writer.run(lambda: fixed(server.storage))

            def broken(*_: object) -> bool:
                raise DBAPIError("statement", {}, Exception("secret"))

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(server.storage.jobs, "note", broken)
                assert await server.workman._write(Job(campaign.id, 0, "waiting"), 1.0) is None

    asyncio.run(play())
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    (event,) = [one for one in said if one["event"] == "lease-not-renewed"]
    assert event["error"] == "DBAPIError"
    assert event["where"]
    assert "secret" not in json.dumps(said)


def test_no_error_is_suppressed_without_a_word() -> None:
    """Kinds so wide that nobody knows what they hide are logged (`log.failures`), handled or raised."""
    wide = {"Exception", "BaseException", "OSError", "DBAPIError"}
    for path in Path(servers.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "suppress":
                hidden = wide & {getattr(kind, "id", "") for kind in node.args}
                assert not hidden - {"DBAPIError"}, (path, node.lineno)
                assert not hidden or path.name in ("database.py", "postgres.py"), (path, node.lineno)
            if isinstance(node, ast.ExceptHandler) and getattr(node.type, "id", "") in ("Exception", "BaseException"):
                assert not all(isinstance(step, ast.Pass) for step in node.body), (path, node.lineno)
