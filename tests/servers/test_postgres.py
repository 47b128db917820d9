"""PostgreSQL beside SQLite: the same storage, several processes, partitions that are dropped, errors by their names."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest
import sqlalchemy as sa

from campaign.errors import BudgetExceeded, Problem, StorageBusy, StorageFull, UploadWithdrawn
from harness.postgres import Postgres
from servers.lifecycle.admission import NewUploads
from servers.storage import dialects
from servers.storage.actions import Action
from servers.storage.database import Damaged, Transaction, as_problem, persistently
from servers.storage.jobs import Job
from servers.storage.objects import set_checksum
from servers.storage.storage import Storage
from tests.servers.conftest import new_campaign

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def storage(postgres: Postgres) -> Iterator[Storage]:
    opened = Storage(postgres.database())
    yield opened
    opened.close()


def tables(storage: Storage) -> set[str]:
    return {name for name in sa.inspect(storage.engine).get_table_names() if name.startswith("uploads_")}


def test_a_campaign_has_a_partition_and_deleting_drops_it(storage: Storage) -> None:
    campaigns = [new_campaign(), new_campaign()]
    for campaign in campaigns:
        storage.campaigns.add(campaign, "0" * 64, [])
        assert not storage.campaigns.add(campaign, "0" * 64, [])
        assert storage.uploads.add([NewUploads(campaign.id, [(bytes(16), b"key")])]) == [[]]
    assert len(tables(storage)) == 2
    storage.campaigns.delete(campaigns[0].id)
    storage.campaigns.delete(campaigns[0].id)
    assert len(tables(storage)) == 1
    assert storage.uploads.counts() == {campaigns[1].id: 1}
    problem = storage.uploads.add([NewUploads(campaigns[0].id, [(bytes(16), b"key")])])[0]
    assert isinstance(problem, Problem)
    assert problem.code == "campaign-deleted"


def test_it_keeps_what_the_other_database_keeps(storage: Storage) -> None:
    """From uploads to a sealed set with its job, and back out: withdrawn, left out, taken back."""
    campaign = new_campaign(min_uploads=1)
    ids = [bytes([i]) * 16 for i in range(5)]
    storage.campaigns.add(campaign, "0" * 64, [])
    some = [NewUploads(campaign.id, [(i, b"key" + i)]) for i in ids]
    assert storage.uploads.add(some) == [[]] * 5
    assert storage.uploads.add([*some[:2], NewUploads(campaign.id, [(b"n" * 16, b"new")])]) == [[]] * 3
    assert storage.uploads.withdraw(campaign.id, [b"n" * 16], None) == (1, [])
    again = storage.uploads.add([NewUploads(campaign.id, [(b"n" * 16, b"new")])])[0]
    assert isinstance(again, list)
    assert isinstance(again[0][1], UploadWithdrawn)
    assert [row for part in storage.uploads.rows(campaign.id, 2) for row in part] == [(i, b"key" + i) for i in ids]
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freezes
    wave = storage.waves.fix(campaign.id, freeze, set_checksum(b"".join(ids[:4])), ids[4:])
    assert (wave.sealed.count, wave.sealed.orphans) == (4, 1)
    assert storage.jobs.take("me", now=100.0, until=110.0) == Job(campaign.id, 0)
    assert storage.jobs.take("you", now=100.0, until=110.0) is None
    assert storage.waves.erase_left_out(campaign.id) == 1
    storage.actions.add(Action("2026-01-01T00:00:00Z", "seal", "c", "done"))
    assert [whole for *_, whole in storage.actions.all()] == [True]
    storage.ledger.spend(campaign.id, "curve", 1.0, {0: 1.5}, NOW)
    assert storage.ledger.spent(campaign.id) == {0: 1.0}
    with pytest.raises(BudgetExceeded):
        storage.ledger.spend(campaign.id, "more", 1.0, {0: 1.5}, NOW)


def test_two_who_start_at_once_make_the_tables_once(postgres: Postgres) -> None:
    url, children = postgres.database(), []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            Storage(url)
            os._exit(0)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]


def test_errors_are_what_they_are(storage: Storage) -> None:
    def problem_of(statement: str) -> Problem:
        with pytest.raises(sa.exc.DBAPIError) as caught, storage.engine.connect() as db:
            db.exec_driver_sql(statement)
        return as_problem(storage.engine, caught.value)

    twice = "INSERT INTO invitations VALUES ('a', 'a'), ('a', 'a')"
    assert type(problem_of(twice)) is Problem
    for name, kind in (
        ("disk_full", StorageFull),
        ("serialization_failure", StorageBusy),
        ("deadlock_detected", StorageBusy),
        ("read_only_sql_transaction", StorageBusy),
        ("admin_shutdown", StorageBusy),
        ("lock_not_available", StorageBusy),
    ):
        raised = problem_of(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{name}'; END $$")
        assert type(raised) is kind, name
        assert (raised.retry_after == 0) == (name in ("serialization_failure", "deadlock_detected")), name


def test_what_came_between_is_tried_again(storage: Storage) -> None:
    """Two transactions that wait for each other: PostgreSQL ends one of them, and it is done again."""
    tries = 0

    def write() -> int:
        nonlocal tries
        tries += 1
        with Transaction(storage.engine, b"subject"):
            if tries < 3:
                raise psycopg.errors.SerializationFailure
            return tries

    assert persistently(write) == 3
    tries = -100
    with pytest.raises(StorageBusy, match="came between"):
        persistently(write)


def test_one_process_leads_and_another_takes_over(storage: Storage) -> None:
    of = dialects.of(storage.engine)
    with of.leading(storage.engine, "this") as mine, of.leading(storage.engine, "that") as other:
        assert mine.leads()
        assert mine.leads()
        assert other.leads()
        with of.leading(storage.engine, "this") as second:
            assert not second.leads()
            with storage.engine.connect() as db:
                db.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    "WHERE pid != pg_backend_pid() AND backend_type = 'client backend'"
                )
            assert second.leads()
            assert not mine.leads()


def test_a_database_that_goes_away_is_said_and_comes_back(postgres: Postgres, storage: Storage) -> None:
    campaign = new_campaign()
    storage.campaigns.add(campaign, "0" * 64, [])
    postgres.stop(kill=True)
    outcome = storage.uploads.add([NewUploads(campaign.id, [(bytes(16), b"key")])])[0]
    assert isinstance(outcome, StorageBusy)
    assert "cannot be reached" in outcome.detail
    with pytest.raises(StorageBusy):
        storage.waves.agree(campaign.id)
    postgres.start()
    assert storage.uploads.add([NewUploads(campaign.id, [(bytes(16), b"key")])]) == [[]]


def test_a_database_that_may_lose_what_it_acknowledged_is_refused(postgres: Postgres) -> None:
    url = postgres.database()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as db:
        db.exec_driver_sql(f"ALTER DATABASE {engine.url.database} SET fss.may_lose = off")
    engine.dispose()
    with pytest.raises(Damaged, match="fsync is off, so a power cut would damage it"):
        Storage(url)


def test_where_the_driver_is_missing_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("psycopg")

    monkeypatch.setattr(sa, "create_engine", missing)
    with pytest.raises(Damaged, match=r"pip install 'fss-ecdf\[server,postgres\]'"):
        Storage("postgresql://x/y")
