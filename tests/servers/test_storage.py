"""The database: migrations, versions, what errors mean, and jobs that pass from hand to hand."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import CampaignSealed, Problem, StorageBusy, StorageFull
from servers.storage.admission import NewUploads
from servers.storage.database import Damaged, Transaction, as_problem, lock
from servers.storage.jobs import FAILED, READY, Job
from servers.storage.schema import META
from servers.storage.storage import Storage
from servers.storage.waves import UploadSet
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign
from tests.servers.rows import checksum_of, row


def sealed(storage: Storage) -> Campaign:
    campaign = new_campaign(min_uploads=1)
    ids = [bytes([i]) * 16 for i in range(3)]
    storage.campaigns.add(campaign, "0" * 64, [])
    assert storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])]) == [[]]
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freeze_number
    storage.waves.commit_set(campaign.id, freeze, checksum_of(ids), [])
    return campaign


def test_migrations_make_the_schema(storage: Storage) -> None:
    with storage.engine.connect() as db:
        assert compare_metadata(MigrationContext.configure(db, opts={"compare_type": True}), META) == []


@pytest.mark.parametrize("last", ["alembic_version", "campaigns", "uploads", "jobs"])
def test_a_migration_that_was_cut_off_leaves_nothing(tmp_path: Path, last: str) -> None:
    """The process ends after one of its statements, as if by a power cut; the next start finds a database to begin."""

    def cut(*about: object) -> None:
        if f"CREATE TABLE {last} " in str(about[2]):
            os._exit(9)

    pid = os.fork()
    if not pid:
        sa.event.listen(sa.engine.Engine, "after_cursor_execute", cut)
        Storage(f"sqlite:///{tmp_path / 'db'}")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    Storage(f"sqlite:///{tmp_path / 'db'}").close()


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    Storage(f"sqlite:///{tmp_path / 'db'}").close()
    with closing(sqlite3.connect(tmp_path / "db")) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
        db.commit()
    with pytest.raises(Damaged, match="schema 9999, which this version does not know; run the version"):
        Storage(f"sqlite:///{tmp_path / 'db'}")


def test_a_database_that_becomes_newer_is_noticed(pair: LivePair) -> None:
    """By whoever asks whether this process can be used."""
    ready = [httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.OK]
    with closing(sqlite3.connect(pair.folder / "server0" / "data" / "server.db")) as db, pair.client(0) as client:
        (current,) = db.execute("SELECT version_num FROM alembic_version").fetchone()
        for schema, expected in zip((current, "9999", current), ready, strict=True):
            db.execute("UPDATE alembic_version SET version_num = ?", [schema])
            db.commit()
            assert client.get("/readyz").status_code == expected
            assert client.get("/healthz").status_code == httpx.codes.OK


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://x/y", "mysql is not supported, only sqlite and postgresql"),
        ("server.db", "not a URL like sqlite"),
    ],
)
def test_another_database_is_refused(url: str, why: str) -> None:
    with pytest.raises(Damaged, match=why):
        Storage(url)


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    with lock(tmp_path), pytest.raises(Damaged, match="another server runs on"):
        lock(tmp_path)
    lock(tmp_path).close()


def test_errors_are_what_they_are(storage: Storage) -> None:
    def problem_of(statement: str) -> Problem:
        try:
            with storage.engine.connect() as db:
                db.exec_driver_sql(statement)
        except sa.exc.DBAPIError as error:
            return as_problem(storage.engine, error)
        raise AssertionError

    with Transaction(storage.engine) as db:
        db.exec_driver_sql("INSERT INTO invitations VALUES (x'00', 'a')")
    twice = problem_of("INSERT INTO invitations VALUES (x'00', 'a')")
    assert (type(twice), "contradicted" in twice.detail) == (Problem, True)

    full = sa.exc.OperationalError("", {}, _failure(sqlite3.SQLITE_FULL))
    busy = sa.exc.OperationalError("", {}, _failure(sqlite3.SQLITE_BUSY))
    assert isinstance(as_problem(storage.engine, full), StorageFull)
    assert isinstance(as_problem(storage.engine, busy), StorageBusy)


def _failure(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorcode = code
    return error


def test_a_job_is_there_when_a_wave_is_sealed_and_has_one_owner(storage: Storage) -> None:
    campaign = sealed(storage)
    job = storage.jobs.take("a", now=100.0, until=110.0)
    assert job == Job(campaign.id, 0)
    assert storage.jobs.take("b", now=105.0, until=115.0) is None
    # While it renews the lease nobody takes it; after that anybody may, and the first one notices.
    assert storage.jobs.note(Job(campaign.id, 0, "evaluating", 0.5), "a", until=120.0)
    assert storage.jobs.take("b", now=115.0, until=125.0) is None
    assert storage.jobs.take("b", now=121.0, until=131.0) == Job(campaign.id, 0)
    assert not storage.jobs.note(Job(campaign.id, 0, READY, 1.0), "a", until=0.0)
    assert storage.jobs.get(campaign.id).phase == "waiting"
    # What failed is due again later; what is ready is not.
    assert storage.jobs.note(Job(campaign.id, 0, FAILED, 0.5, "why"), "b", until=140.0)
    assert storage.jobs.get(campaign.id).problem == "why"
    assert storage.jobs.take("c", now=139.0, until=150.0) is None
    assert storage.jobs.take("c", now=140.0, until=150.0) is not None
    assert storage.jobs.note(Job(campaign.id, 0, READY, 1.0), "c", until=0.0)
    assert storage.jobs.take("d", now=1000.0, until=1010.0) is None
    storage.jobs.again(campaign.id)
    assert storage.jobs.take("d", now=1000.0, until=1010.0) is not None


def test_the_only_process_takes_over_at_once(storage: Storage) -> None:
    sealed(storage)
    assert storage.jobs.take("dead", now=100.0, until=110.0) is not None
    storage.jobs.renew_all()
    assert storage.jobs.take("new", now=101.0, until=111.0) is not None


def _log_has(folder: Path, content: bytes) -> bool:
    return any(content in path.read_bytes() for path in folder.glob("db*"))


def test_what_was_erased_leaves_the_log_when_it_is_asked_again(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody reads meanwhile, so the log cannot be emptied; the answer says so, and asking again does it."""
    monkeypatch.setattr("servers.storage.dialects.sqlite.time.sleep", lambda _: None)  # its patience is five seconds
    secret, upload = b"one key's bytes, nowhere any more", bytes(16)
    campaigns = [new_campaign(min_uploads=1) for _ in range(3)]
    for campaign in campaigns:
        storage.campaigns.add(campaign, "0" * 64, [])
        assert storage.uploads.add([NewUploads(campaign.id, [row(upload, secret), row(b"1" * 16, b"other")])]) == [[]]
    storage.waves.agree(campaigns[1].id)
    freeze = storage.waves.freeze(campaigns[1].id, closed=False).freeze_number
    storage.waves.commit_set(campaigns[1].id, freeze, checksum_of([b"1" * 16], b"other"), [upload])

    def delete() -> None:
        storage.campaigns.delete(campaigns[2].id)
        storage.campaigns.forget_deleted()

    erasures: list[Callable[[], object]] = [
        lambda: storage.uploads.withdraw(campaigns[0].id, [upload], None),
        lambda: storage.waves.discard_excluded(campaigns[1].id),
        delete,
    ]
    for erase in erasures:
        with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM uploads").fetchone()
            with pytest.raises(StorageBusy, match="still in its log; try again"):
                erase()
            assert (tmp_path / "db-wal").stat().st_size > 0
        erase()
        assert (tmp_path / "db-wal").stat().st_size == 0
    assert not _log_has(tmp_path, secret)


def test_uploads_are_read_in_parts_and_nobody_is_kept_waiting(storage: Storage, tmp_path: Path) -> None:
    campaign, other = new_campaign(), new_campaign()
    ids = [bytes([i]) * 16 for i in (9, 3, 200, 0, 77, 128, 5)]
    for one in (campaign, other):
        storage.campaigns.add(one, "0" * 64, [])
        storage.uploads.add([NewUploads(one.id, [row(i, b"key" + i) for i in ids])])
    parts = storage.uploads.rows(campaign.id, 3)
    read_parts = [next(parts)]
    assert storage.uploads.withdraw(other.id, ids[:1], None) == (1, [])  # empties the log, so nobody reads
    read_parts += list(parts)
    assert [len(part) for part in read_parts] == [3, 3, 1]
    assert [each for part in read_parts for each in part] == [row(i, b"key" + i) for i in sorted(ids)]


def test_nothing_is_done_by_the_number_of_an_older_freeze(storage: Storage) -> None:
    """A sealing that was overtaken by another one's thaw has seen uploads of before."""
    campaign, ids = new_campaign(min_uploads=1), [bytes([i]) * 16 for i in range(3)]
    storage.campaigns.add(campaign, "0" * 64, [])
    assert storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])]) == [[]]
    for _ in range(2):
        storage.waves.agree(campaign.id)
        frozen = storage.waves.freeze(campaign.id, closed=False)
        if frozen.freeze_number == 1:
            storage.waves.unfreeze(campaign.id, 1)
    checksum = checksum_of(ids)
    for act in (
        lambda: storage.waves.commit_set(campaign.id, 1, checksum, []),
        lambda: storage.waves.unfreeze(campaign.id, 1),
        lambda: storage.waves.propose_exclusion(campaign.id, 1, checksum, ids[:1]),
    ):
        with pytest.raises(CampaignSealed):
            act()
    assert storage.waves.get(campaign.id) == frozen
    assert storage.waves.commit_set(campaign.id, 2, checksum, []).sealed.count == 3


def test_the_end_of_a_check_of_another_set_settles_nothing(storage: Storage) -> None:
    """By a worker that was stopped while the wave was opened, filled and fixed again."""
    campaign, ids = new_campaign(min_uploads=1, check_keys=True), [bytes([i]) * 16 for i in range(3)]
    storage.campaigns.add(campaign, "0" * 64, [])
    assert storage.uploads.add([NewUploads(campaign.id, [row(i, b"key") for i in ids])]) == [[]]
    storage.waves.agree(campaign.id)
    storage.waves.freeze(campaign.id, closed=False)
    fixed = storage.waves.commit_set(campaign.id, 1, checksum_of(ids), [])
    older = UploadSet(1, checksum_of(ids[:1]), 0, checksum_of(ids[:2]), b"k" * 32)
    assert storage.waves.finish_check(campaign.id, checksum_of(ids[:2]), ids[1:2], older) == fixed
    assert storage.waves.get(campaign.id) == fixed
    assert storage.uploads.counts() == {campaign.id: 3}
