"""Background work on several waves: none waits for another's curve, and a passing fault does not end it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fss_ecdf.campaign.contribution import Contribution
from servers.compute.executor import LocalExecutor
from servers.compute.worker import Part, Slice, slice_sum
from servers.lifecycle import erase, job_runner
from servers.server import Server, no_crash
from servers.settings import load
from servers.storage.admission import NewUploads
from servers.storage.jobs import READY
from tests.harness.server_pair import LivePair
from tests.servers.conftest import fixed
from tests.servers.rows import row
from tests.servers.waves import wave_campaign


class Held(LocalExecutor):
    """Sums slices when it is let."""

    workers = 1

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def run(self, task: Slice) -> Part:
        await self.go.wait()
        return await asyncio.to_thread(slice_sum, task)

    def close(self) -> None:
        self.go.set()


@asynccontextmanager
async def working(folder: Path) -> AsyncIterator[tuple[Server, Held]]:
    """One server without its network, whose curves wait."""
    settings = load(LivePair(folder).folder / "server0" / "server.toml")
    server, held = Server(settings, lambda: datetime.now(UTC)), Held()
    server.workman = job_runner.JobRunner(
        settings, server.storage, server.writer, held, server.checker, lambda: 0.0, no_crash
    )
    await server.start()
    try:
        yield server, held
    finally:
        await server.stop()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not reached():
            await asyncio.sleep(0.02)


def test_keys_do_not_wait_for_the_curve_of_another_wave(tmp_path: Path) -> None:
    async def play() -> None:
        async with working(tmp_path) as (server, held):
            campaigns = [await server.writer.run(lambda: fixed(server.storage)[0]) for _ in range(job_runner.AT_ONCE)]
            waves, jobs = server.storage.waves, server.storage.jobs
            await until(lambda: all(waves.get(c.id).sealed.key_file is not None for c in campaigns))
            assert not any(jobs.get(c.id).phase == READY for c in campaigns)
            held.go.set()
            await until(lambda: all(jobs.get(c.id).phase == READY for c in campaigns))

    asyncio.run(play())


def test_uploads_come_in_between_while_keys_are_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Erasing is many short writes: an upload waits for one of them, not for all."""
    monkeypatch.setattr(erase, "ROWS", 500)
    campaign, parts = wave_campaign(count=2, pooled=[]), 20

    async def play() -> None:
        async with working(tmp_path) as (server, _):
            uploads, add = server.storage.uploads, server.writer.add
            server.storage.campaigns.add(campaign, "0" * 64, [])
            many = [row(number.to_bytes(16, "big"), b"key" * 100) for number in range(500 * parts)]
            assert await add(NewUploads(campaign.id, many, contribution=Contribution(wave=1))) == []
            before = sum(len(part) for part in uploads.rows(campaign.id, 1 << 20, 1))
            erasing = asyncio.create_task(server.eraser._erase(campaign.id, 1))
            between = 0
            while not erasing.done():
                one = row((1 << 64 | between).to_bytes(16, "big"))
                assert await add(NewUploads(campaign.id, [one], contribution=Contribution(wave=1))) == []
                between += not erasing.done()
            assert before == 500 * parts
            assert between >= parts // 2
            left = [key for part in uploads.rows(campaign.id, 1 << 20, 1) for *_, key in part]
            assert sum(map(len, left[: 500 * parts])) == 0

    asyncio.run(play())


def test_a_passing_fault_does_not_end_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of the database about jobs fails once, with what is no problem of ours."""

    async def play() -> None:
        async with working(tmp_path) as (server, held):
            held.go.set()
            jobs, failed = server.storage.jobs, set()
            real: dict[str, Callable[..., object]] = {"take": jobs.take, "note": jobs.note}

            def failing(what: str) -> Callable[..., object]:
                def call(*about: object) -> object:
                    if what not in failed:
                        failed.add(what)
                        raise OSError("too many open files")
                    return real[what](*about)

                return call

            for what in real:
                monkeypatch.setattr(jobs, what, failing(what))
            server.workman._clock = iter(range(0, 1000, 20)).__next__  # every look is after the last lease
            campaign = await server.writer.run(lambda: fixed(server.storage)[0])
            await until(lambda: jobs.get(campaign.id).phase == READY)
            assert failed == {"take", "note"}

    asyncio.run(play())
