"""A worker that was stopped for longer than its lease: what it writes when it wakes up spoils nothing of what another
one has made of its job."""

import asyncio
import math
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import Problem
from servers.lifecycle import job_runner
from servers.server import Server
from servers.settings import load
from servers.storage import key_files
from servers.storage.entries import id_of, set_checksum, split
from servers.storage.jobs import READY, Job
from servers.storage.key_files import Folder
from servers.storage.schema import UPLOADS
from servers.storage.waves import StateChanged, UploadSet, Wave
from tests.harness.postgres import Postgres
from tests.harness.server_pair import LivePair, envelopes
from tests.servers.conftest import fixed, new_campaign


@asynccontextmanager
async def one_of_several(folder: Path, postgres: Postgres) -> AsyncIterator[Server]:
    """A process of a server on PostgreSQL, without its network; its background work is not started."""
    config = LivePair(folder).folder / "server0" / "server.toml"
    config.write_text(f'database = "{postgres.database()}"\n' + config.read_text())
    server = Server(load(config), lambda: datetime.now(UTC))
    try:
        yield server
    finally:
        await server.stop()


def stopped_after_writing(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Whoever writes keys stops when they are written, until the second event; the first says that it has."""
    stopped, go, real = threading.Event(), threading.Event(), key_files.write_keys

    def write_keys(*args: Any, **options: Any) -> bytes:
        digest = real(*args, **options)
        stopped.set()
        assert go.wait(30)
        return digest

    monkeypatch.setattr(key_files, "write_keys", write_keys)
    return stopped, go


def _checksum(server: Server, campaign: Campaign, ids: list[bytes]) -> bytes:
    """Of some of the uploads that are stored."""
    stored = split(b"".join(server.storage.uploads.entries(campaign.id)))
    return set_checksum(b"".join(entry for entry in stored if id_of(entry) in set(ids)))


def seal_as_another_one(
    server: Server, campaign: Campaign, wave: Wave, rejected: list[bytes], ids: list[bytes]
) -> Wave:
    """What a process does that took the job over and has come to the end of the check."""
    assert wave.set is not None
    folder, kept = server.folder(campaign.id), sorted(set(ids) - set(rejected))
    final = UploadSet(len(kept), _checksum(server, campaign, kept), 0, wave.set.checksum, b"k" * 32)
    for checksum in (wave.set.checksum, final.checksum):
        folder.save_messages(checksum, b"what the other server is told")
    settled = server.storage.waves.finish_check(campaign.id, wave.set.checksum, rejected, final)
    folder.drop_candidates()
    return settled


def left(folder: Folder) -> set[str]:
    return {path.name.split("-")[0].split(".")[0] for path in folder.path.iterdir()}


@pytest.mark.parametrize("bad", [0, 1])
def test_a_checker_that_wakes_up_leaves_the_sealed_set_alone(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    async def play() -> None:
        async with one_of_several(tmp_path, postgres) as server:
            campaign, wave, ids = await server.writer.run(lambda: fixed(server.storage, check_keys=True))
            assert wave.set is not None
            server.folder(campaign.id).make()
            stopped, go = stopped_after_writing(monkeypatch)
            sleeper = asyncio.create_task(server.checker._files(campaign, wave, wave.set, lambda *_: None))
            await asyncio.to_thread(stopped.wait, 30)
            settled = await server.writer.run(lambda: seal_as_another_one(server, campaign, wave, ids[:bad], ids))
            go.set()
            with pytest.raises(StateChanged):
                await sleeper
            assert server.storage.waves.get(campaign.id) == settled
            folder = server.folder(campaign.id)
            assert folder.load_messages(settled.sealed.checksum) is not None
            assert folder.load_messages(wave.set.checksum) is not None
            assert left(folder) == {"messages"}  # no copy of keys that nobody would erase

    asyncio.run(play())


def test_keys_that_were_erased_meanwhile_are_not_left_in_a_file(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with one_of_several(tmp_path, postgres) as server:
            campaign, wave, _ = await server.writer.run(lambda: fixed(server.storage))
            stopped, go = stopped_after_writing(monkeypatch)
            entry, held = (
                server.storage.campaigns.get(campaign.id),
                job_runner._Held(Job(campaign.id, 0), job_runner.LEASE_S),
            )
            sleeper = asyncio.create_task(server.workman._keys(entry, wave, held))
            await asyncio.to_thread(stopped.wait, 30)
            await server.writer.run(lambda: server.storage.waves.note_erased(campaign.id, 0))
            server.folder(campaign.id).drop_keys()
            go.set()
            with pytest.raises(StateChanged):
                await sleeper
            assert left(server.folder(campaign.id)) == set()

    asyncio.run(play())


def test_rows_that_were_erased_meanwhile_are_no_damage(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads them sees that some are not the sealed ones; nobody is told to restore anything."""

    async def play() -> None:
        async with one_of_several(tmp_path, postgres) as server:
            campaign, wave, _ = await server.writer.run(lambda: fixed(server.storage))

            def write_keys(*_: Any, **__: Any) -> bytes:
                server.storage.waves.note_erased(campaign.id, 0)
                raise key_files.NotTheSealedSet

            monkeypatch.setattr(key_files, "write_keys", write_keys)
            entry, held = (
                server.storage.campaigns.get(campaign.id),
                job_runner._Held(Job(campaign.id, 0), job_runner.LEASE_S),
            )
            with pytest.raises(StateChanged):
                await server.workman._keys(entry, wave, held)

    asyncio.run(play())


def test_who_cannot_finish_a_key_file_leaves_nothing_of_it(tmp_path: Path) -> None:
    campaign = new_campaign(check_keys=True)
    rows = sorted(upload_rows(envelopes(campaign, np.arange(5))[0], campaign, 0)[1])
    expected = key_files.Expected(campaign.key_type(0), 5, bytes(32))
    with pytest.raises(key_files.NotTheSealedSet):
        key_files.write_keys(tmp_path / "candidates", [rows], expected, lambda _: None, proofs=tmp_path / "proofs")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.faults
def test_a_lease_is_renewed_while_the_writer_is_busy(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Erasing the keys of a large wave keeps the one thread that writes for minutes."""
    monkeypatch.setattr(job_runner, "LEASE_S", 7.0)
    monkeypatch.setattr(job_runner, "RENEW_S", 0.2)
    go = threading.Event()

    async def play() -> None:
        async with one_of_several(tmp_path, postgres) as server:
            campaign, _, _ = await server.writer.run(lambda: fixed(server.storage))
            monkeypatch.setattr(server.workman, "_steps", lambda _: asyncio.to_thread(go.wait, 30))
            job = await server.workman._take()
            assert job is not None
            server.workman._begin(job)
            busy = asyncio.create_task(server.writer.run(lambda: go.wait(30)))
            for _ in range(42):
                await asyncio.sleep(0.2)
                now = await asyncio.to_thread(server.storage.now)
                assert await asyncio.to_thread(server.storage.jobs.take, "another one", now, now + 15) is None
            go.set()
            await busy
            await asyncio.gather(*server.workman._hands.values())
            assert server.storage.jobs.get(campaign.id).phase == READY

    asyncio.run(play())


def test_who_wakes_up_after_its_lease_takes_no_further_step(tmp_path: Path, postgres: Postgres) -> None:
    """Before it has asked anybody: its sums and files are another one's now."""

    async def play() -> None:
        async with one_of_several(tmp_path, postgres) as server:
            campaign, wave, _ = await server.writer.run(lambda: fixed(server.storage))
            entry, held = server.storage.campaigns.get(campaign.id), job_runner._Held(Job(campaign.id, 0), 0.5)
            held.note("writing keys", 0.0)
            held.renewed -= 1.0
            with pytest.raises(StateChanged):
                await server.workman._keys(entry, wave, held)
            assert left(server.folder(campaign.id)) == set()
            with pytest.raises(StateChanged):
                await server.workman._steps(held)
            assert job_runner._Held(Job(campaign.id, 0), math.inf).is_lost is False  # alone nobody takes anything

    asyncio.run(play())


def test_two_who_erase_the_same_folder_do_not_hinder_each_other(tmp_path: Path) -> None:
    """A deletion that is asked again elsewhere, and a worker that starts meanwhile."""
    with ThreadPoolExecutor(3) as several:
        for number in range(30):
            folder = Folder(tmp_path, bytes([number]) * 32)
            folder.make()
            for file in range(60):
                (folder.path / f"evidence-{file}").touch()
            list(several.map(lambda _, folder=folder: folder.erase(), range(3)))
            assert list(tmp_path.iterdir()) == []


def test_other_keys_under_the_sealed_ids_are_not_evaluated(tmp_path: Path, postgres: Postgres) -> None:
    """As after a restore by hand: the noise is that of the keys which were sealed."""

    async def play() -> None:
        async with one_of_several(tmp_path, postgres) as server:
            campaign, wave, ids = await server.writer.run(lambda: fixed(server.storage))
            entry, held = server.storage.campaigns.get(campaign.id), job_runner._Held(Job(campaign.id, 0), math.inf)
            sealed = await server.workman._keys(entry, wave, held)
            ((_, _, other),) = upload_rows(envelopes(campaign, np.arange(1))[0], campaign, 0)[1]
            with server.storage.engine.begin() as db:
                db.execute(UPLOADS.update().where(UPLOADS.c.id == ids[0]).values(key=other))
            server.folder(campaign.id).drop_keys()
            with pytest.raises(Problem, match="keys are not the sealed"):
                await server.workman._keys(entry, server.storage.waves.get(campaign.id), held)
            assert server.storage.waves.get(campaign.id).sealed == sealed

    asyncio.run(play())
