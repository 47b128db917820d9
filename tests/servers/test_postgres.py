"""PostgreSQL beside SQLite: the same storage, several processes, partitions that are dropped, errors by their names."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import BudgetExceeded, Problem, StorageBusy, StorageFull, UploadWithdrawn
from servers.storage import dialects, uploads
from servers.storage.action_log import LoggedAction
from servers.storage.admission import NewUploads, Site
from servers.storage.database import Damaged, Transaction, as_problem, persistently
from servers.storage.jobs import Job
from servers.storage.storage import Storage
from tests.harness.postgres import Postgres
from tests.servers.conftest import new_campaign
from tests.servers.rows import checksum_of, row

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
        assert storage.uploads.add([NewUploads(campaign.id, [row(bytes(16), b"key")])]) == [[]]
    assert len(tables(storage)) == 2
    storage.campaigns.delete(campaigns[0].id)
    storage.campaigns.delete(campaigns[0].id)
    assert len(tables(storage)) == 1
    assert storage.uploads.counts() == {campaigns[1].id: 1}
    problem = storage.uploads.add([NewUploads(campaigns[0].id, [row(bytes(16), b"key")])])[0]
    assert isinstance(problem, Problem)
    assert problem.code == "campaign-deleted"


def test_it_keeps_what_the_other_database_keeps(storage: Storage) -> None:
    """From uploads to a sealed set with its job, and back out: withdrawn, left out, taken back."""
    campaign = new_campaign(min_uploads=1)
    ids = [bytes([i]) * 16 for i in range(5)]
    storage.campaigns.add(campaign, "0" * 64, [])
    some = [NewUploads(campaign.id, [row(i, b"key" + i)]) for i in ids]
    assert storage.uploads.add(some) == [[]] * 5
    assert storage.uploads.add([*some[:2], NewUploads(campaign.id, [row(b"n" * 16, b"new")])]) == [[]] * 3
    assert storage.uploads.withdraw(campaign.id, [b"n" * 16], None) == (1, [])
    again = storage.uploads.add([NewUploads(campaign.id, [row(b"n" * 16, b"new")])])[0]
    assert isinstance(again, list)
    assert isinstance(again[0][1], UploadWithdrawn)
    assert [each for part in storage.uploads.rows(campaign.id, 2) for each in part] == [row(i, b"key" + i) for i in ids]
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freeze_number
    wave = storage.waves.commit_set(campaign.id, freeze, checksum_of(ids[:4]), ids[4:])
    assert (wave.sealed.count, wave.sealed.unmatched) == (4, 1)
    assert storage.jobs.take("me", now=100.0, until=110.0) == Job(campaign.id, 0)
    assert storage.jobs.take("you", now=100.0, until=110.0) is None
    assert storage.waves.discard_excluded(campaign.id) == 1
    storage.actions.add(LoggedAction("2026-01-01T00:00:00Z", "seal", "c", "done"))
    assert [whole for *_, whole in storage.actions.all()] == [True]
    storage.ledger.spend(campaign.id, "curve", 1.0, {0: 1.5}, NOW)
    assert storage.ledger.spent(campaign.id) == {0: 1.0}
    with pytest.raises(BudgetExceeded):
        storage.ledger.spend(campaign.id, "more", 1.0, {0: 1.5}, NOW)


@pytest.mark.parametrize("what", ["entries", "rows"])
def test_uploads_come_in_order_by_the_index_before_anybody_has_analysed_them(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Part by part, each row once: to sort all that is left for each part would be a square."""
    campaign, count = new_campaign(max_uploads=5000), 5000
    storage.campaigns.add(campaign, "0" * 64, [])
    with storage.engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE uploads_1 SET (autovacuum_enabled = off)")
    rows = [row(i.to_bytes(16, "big"), bytes(400)) for i in range(count)]
    assert storage.uploads.add([NewUploads(campaign.id, rows)]) == [[]]
    monkeypatch.setattr(uploads, "ENTRIES", 100)
    before = _read(storage)
    parts = list(storage.uploads.entries(campaign.id) if what == "entries" else storage.uploads.rows(campaign.id, 100))
    assert len(parts) == count // 100
    assert count <= _read(storage) - before < 2 * count


def _read(storage: Storage) -> int:
    """Entries of the uploads' indices that were read so far."""
    with storage.engine.connect() as db:
        db.exec_driver_sql("SELECT pg_stat_force_next_flush()")
        db.commit()
        read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'uploads_1'"
        return int(db.exec_driver_sql(read).scalar_one())


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


def each_with_one(campaign: Campaign, sender: str | None) -> list[NewUploads]:
    return [NewUploads(campaign.id, [row(bytes([i]) * 16, b"key")], sender) for i in range(3)]


def test_what_waits_together_does_not_exceed_a_limit_together(storage: Storage) -> None:
    """Three requests in one transaction, each of which would fit alone."""
    site = Site("s", "Site", "5" * 64, quota=2)
    for changes, sender in (
        ({"max_uploads": 2, "min_uploads": 2}, None),
        ({"admission": "invited", "max_values_per_person": 2}, "1" * 64),
        ({"admission": "sites"}, site.id),
    ):
        campaign = new_campaign(**changes)
        storage.campaigns.add(campaign, None if sender else "0" * 64, ["1" * 64] if sender == "1" * 64 else [])
        if sender == site.id:
            storage.sites.add(campaign.id, [site])
        failures = [
            len(outcome)
            for outcome in storage.uploads.add(each_with_one(campaign, sender))
            if isinstance(outcome, list)
        ]
        assert failures == [0, 0, 1], changes
        assert storage.uploads.counts()[campaign.id] == storage.campaigns.get(campaign.id).stored == 2


WHOLE: dict[str, Any] = {}
CAMPAIGN, SHARED, OTHER = {"of": b"c"}, {"of": b"c", "shared": True}, {"of": b"d"}


@pytest.mark.parametrize(
    ("held", "wanted", "waits"),
    [
        (WHOLE, WHOLE, True),
        (WHOLE, CAMPAIGN, True),
        (WHOLE, SHARED, True),
        (CAMPAIGN, WHOLE, True),
        (SHARED, WHOLE, True),
        (CAMPAIGN, SHARED, True),
        (SHARED, CAMPAIGN, True),
        (SHARED, SHARED, False),
        (CAMPAIGN, OTHER, False),
    ],
)
def test_who_waits_for_whom(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, held: dict[str, Any], wanted: dict[str, Any], waits: bool
) -> None:
    monkeypatch.setattr(dialects.postgres, "LOCK_S", 1)
    ends = pytest.raises(StorageBusy) if waits else nullcontext()
    with (
        closing(Storage(postgres.database())) as storage,
        Transaction(storage.engine, **held),
        ends,
        Transaction(storage.engine, **wanted),
    ):
        pass


def test_too_few_connections_are_said(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects.postgres, "_POOL", {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.1})
    with closing(Storage(postgres.database())) as storage:
        campaign = new_campaign()
        storage.campaigns.add(campaign, "0" * 64, [])
        with storage.engine.connect():
            outcome = storage.uploads.add([NewUploads(campaign.id, [row(bytes(16), b"key")])])[0]
            with pytest.raises(StorageBusy, match="all connections"):
                storage.waves.agree(campaign.id)
            with storage.leading("this") as one:
                assert not one.leads()
        assert isinstance(outcome, StorageBusy)


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


def test_a_process_that_is_stopped_while_it_copies_holds_nobody_up(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL waits for the rest of the rows for ever, and is not idle."""
    monkeypatch.setattr(dialects.postgres, "LOCK_S", 1)
    url, campaign = postgres.database(), new_campaign()
    storage = Storage(url)
    storage.campaigns.add(campaign, "0" * 64, [])
    storage.close()  # not to be shared with a fork
    pid = os.fork()
    if not pid:
        _stop_while_copying(url, campaign)
    try:
        os.waitpid(pid, os.WUNTRACED)
        started = time.monotonic()
        assert storage.uploads.withdraw(campaign.id, [bytes(16)], None) == (0, [])
        assert time.monotonic() - started < 60
    finally:
        os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0  # it was told that nothing was stored
    assert storage.uploads.counts() == {}
    storage.close()


def _stop_while_copying(url: str, campaign: Campaign) -> None:
    write = psycopg.Copy.write

    def stop(copy: "psycopg.Copy", data: bytes) -> None:
        write(copy, data[:100])
        os.kill(os.getpid(), signal.SIGSTOP)
        write(copy, data[100:])

    psycopg.Copy.write = stop  # type: ignore[method-assign, assignment]
    try:
        outcome = Storage(url).uploads.add([NewUploads(campaign.id, [row(bytes(16), b"key" * 100)])])[0]
        os._exit(0 if isinstance(outcome, StorageBusy) else 1)
    finally:
        os._exit(2)


def test_a_database_that_goes_away_is_said_and_comes_back(postgres: Postgres, storage: Storage) -> None:
    campaign = new_campaign()
    storage.campaigns.add(campaign, "0" * 64, [])
    postgres.stop(kill=True)
    outcome = storage.uploads.add([NewUploads(campaign.id, [row(bytes(16), b"key")])])[0]
    assert isinstance(outcome, StorageBusy)
    assert "cannot be reached" in outcome.detail
    with pytest.raises(StorageBusy):
        storage.waves.agree(campaign.id)
    postgres.start()
    assert storage.uploads.add([NewUploads(campaign.id, [row(bytes(16), b"key")])]) == [[]]


@pytest.mark.parametrize("why", ["away", "locked"])
def test_a_database_that_is_away_at_the_start_is_not_called_damaged(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Who restores an older one for that publishes a second time about the same people."""
    monkeypatch.setattr(dialects.postgres, "LOCK_S", 1)
    url = postgres.database()
    with closing(Storage(url)) as other, Transaction(other.engine), pytest.raises(Damaged) as caught:
        Storage(url if why == "locked" else "postgresql://fss@127.0.0.1:9/fss")
    assert "cannot be used now" in str(caught.value)
    assert "restore" not in str(caught.value)
    assert "\n" not in str(caught.value)


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


def test_however_many_senders_there_are_few_locks_are_held(storage: Storage) -> None:
    """All locks of all transactions share a table of some thousands; the same sender always meets the same lock."""
    campaign, held = new_campaign(), []
    locks = "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    for senders in ([f"{i:064x}" for i in range(5000)], ["0" * 64]):
        with Transaction(storage.engine, campaign.id, shared=True) as db:
            dialects.of(storage.engine).lock_senders(db, campaign.id, senders)
            held.append(set(db.exec_driver_sql(locks).scalars()))
    many, one = held
    assert one < many
    assert len(one) == 3  # the whole, the campaign, the sender
    assert len(many) <= 2 + 512
