"""Background work on waves whose set is fixed: the check of the keys, where the campaign has one; keys into one file,
the curve's share from them, noise on it, both kept.

Jobs are rows of the database with a lease. Whichever process holds the lease works and renews it; if it dies, another
one, or the same after a restart, takes the job over and goes on with what is on disk.
"""

import asyncio
import math
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import Problem
from servers import log, metrics
from servers.compute.executor import Executor
from servers.compute.raw_share import RawShare
from servers.compute.shares import saved_share, whole_share
from servers.lifecycle.key_check import KeyChecker, NotReadyYet, wave_tables
from servers.release import add_noise
from servers.release.sealed_releases import SealedRelease, key_file, key_files, releases, source
from servers.settings import Settings
from servers.storage import key_files as objects
from servers.storage.campaigns import StoredCampaign
from servers.storage.database import persistently
from servers.storage.jobs import FAILED, READY, Job
from servers.storage.key_files import Folder
from servers.storage.storage import Storage, Writer
from servers.storage.waves import CHECKING, SEALED, StateChanged, UploadSet, Wave, is_too_few

LEASE_S = 15.0
RENEW_S = 1.0
LOOK_S = 0.5
RETRY_FAILED_S = 10.0
RETRY_LATER_S = 0.5
AT_ONCE = 4  # so that the keys of one wave need not wait for the curve of another

Crash = Callable[[str], None]


class JobRunner:
    """Takes jobs, a few at a time, until it is stopped."""

    def __init__(
        self,
        settings: Settings,
        storage: Storage,
        writer: Writer,
        executor: Executor,
        checker: KeyChecker,
        clock: Callable[[], float],
        crash: Crash,
    ) -> None:
        self._settings, self._storage, self._writer, self._executor = settings, storage, writer, executor
        self._checker = checker
        self._clock, self._crash, self._owner = clock, crash, secrets.token_hex(8)
        self._notes = ThreadPoolExecutor(1, "notes")  # a lease is renewed also while a long write goes on
        self._task: asyncio.Task[None] | None = None
        self._called = asyncio.Event()
        self._patience: dict[tuple[bytes, int], float] = {}  # seconds until the other server is asked again
        self._hands: dict[tuple[bytes, int], asyncio.Task[None]] = {}

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def call(self) -> None:
        """There may be work; do not wait for the next look."""
        self._called.set()

    async def stop(self) -> None:
        tasks = [*self._hands.values(), *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._executor.close)
        self._notes.shutdown()

    async def _run(self) -> None:
        while True:
            job = await self._take() if len(self._hands) < AT_ONCE else None
            if job is not None:
                self._begin(job)
                continue
            self._called.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._called.wait(), LOOK_S)

    async def _take(self) -> Job | None:
        def take() -> Job | None:
            now = self._clock()
            return self._storage.jobs.take(self._owner, now, now + LEASE_S)

        try:
            return await self._writer.run(take)
        except Exception as error:  # a busy database, no more open files: the job is there later, too
            log.event("work-not-taken", level="warning", error=type(error).__name__)
            return None

    def _begin(self, job: Job) -> None:
        place = job.campaign, job.wave
        if place in self._hands:  # the lease ran out while the database was busy; now it is renewed
            return

        def ended(_: asyncio.Task[None]) -> None:
            del self._hands[place]
            self.call()

        self._hands[place] = asyncio.create_task(self._do(job))
        self._hands[place].add_done_callback(ended)

    async def _do(self, job: Job) -> None:
        held, me = _Held(job, math.inf if self._storage.alone else LEASE_S), asyncio.current_task()
        assert me is not None
        keeping = asyncio.create_task(self._keep(held, me))
        try:
            await self._steps(held)
            end, due = Job(job.campaign, job.wave, READY, 1.0), 0.0
            self._patience.pop((job.campaign, job.wave), None)
        except asyncio.CancelledError:
            # Whoever comes next need not wait for the lease's end.
            await self._write(replace(held.job, phase="waiting"), 0.0)
            raise
        except (NotReadyYet, StateChanged):
            wait = self._patience.get((job.campaign, job.wave), RETRY_LATER_S)
            self._patience[job.campaign, job.wave] = min(2 * wait, RETRY_FAILED_S)
            end, due = held.job, wait
        except Exception as error:
            problem = str(error) if isinstance(error, Problem) else type(error).__name__
            end, due = replace(held.job, phase=FAILED, problem=problem[:500]), RETRY_FAILED_S
            where = {"error": type(error).__name__, "problem": problem, "where": log.where(error)}
            log.event("prepare-failed", level="warning", campaign=to_base64url(job.campaign), wave=job.wave, **where)
        finally:
            keeping.cancel()
        await self._write(end, due)
        for curve in held.curves:  # only now are they answered from
            log.event("curve-ready", campaign=to_base64url(job.campaign), **curve)

    async def _keep(self, held: "_Held", work: "asyncio.Task[None]") -> None:
        """Renew the lease and show how far the work is, while it goes on. What is somebody else's now is let go."""
        while True:
            await asyncio.sleep(RENEW_S)
            began, mine = time.monotonic(), await self._write(held.job, LEASE_S)
            held.renewed = began if mine else held.renewed
            if mine is False or held.is_lost:
                log.event("lease-lost", level="warning", campaign=to_base64url(held.job.campaign))
                work.cancel()
                return

    async def _write(self, job: Job, seconds: float) -> bool | None:
        """Due in so many seconds, or at once; False if the job is not this one's any more, None if nobody knows."""

        def note() -> bool:
            return self._storage.jobs.note(job, self._owner, self._clock() + seconds if seconds else 0.0)

        name = to_base64url(job.campaign)
        # A full disk: the lease runs out, and the job is done again.
        with log.failures("lease-not-renewed", Exception, campaign=name, wave=job.wave, phase=job.phase):
            if self._storage.alone:
                return await self._writer.run(note)
            return await asyncio.get_running_loop().run_in_executor(self._notes, persistently, note)
        return None

    async def _steps(self, held: "_Held") -> None:
        entry = await asyncio.to_thread(self._storage.campaigns.get, held.job.campaign)
        wave = await asyncio.to_thread(self._storage.waves.get, held.job.campaign, held.job.wave)
        if wave.erased:
            await asyncio.to_thread(self._require_curves, entry, wave.number)
            return
        if wave.state == CHECKING:
            try:
                wave = await self._checker.run(entry, wave, held.note)
            except objects.NotTheSealedSet:
                raise _not_sealed("uploads are not the agreed") from None
        await asyncio.to_thread(Folder(self._settings.data, entry.campaign.id, wave.number).drop_candidates)
        if is_too_few(entry.campaign, wave.sealed):
            return
        held.note("writing keys", 0.0)
        sealed = await self._keys(entry, wave, held)
        await self._table_sums(entry, wave, held)
        self._crash("keys-written")
        if entry.campaign.bits <= self._settings.curve_bits:
            held.note("evaluating", 0.0)
            await self._evaluate(entry, wave.number, sealed, held)

    def _require_curves(self, entry: StoredCampaign, number: int) -> None:
        """What was made of keys that are erased cannot be made again."""
        campaign, waves = entry.campaign, self._storage.waves.all(entry.campaign.id)
        folder = Folder(self._settings.data, campaign.id, number)
        for release in releases(entry, waves).values():
            noise = source(self._settings.server, release)
            if release.last == number and folder.load_curve("noised", noise.covers, campaign.bits, np.uint64) is None:
                raise Problem(f"{release.name} is missing and its keys are erased; restore this server from its backup")

    async def _keys(self, entry: StoredCampaign, wave: Wave, held: "_Held") -> UploadSet:
        """The key file, written anew where it is missing or damaged."""
        campaign, folder = entry.campaign, Folder(self._settings.data, entry.campaign.id, wave.number)
        sealed = wave.sealed
        folder.make()
        if sealed.key_file is not None and await asyncio.to_thread(objects.is_whole, folder.keys, sealed.key_file):
            return sealed
        if sealed.key_file is not None:
            log.event("key-file-damaged", campaign=to_base64url(campaign.id))

        def write() -> bytes:
            rows = self._storage.uploads.rows(campaign.id, objects.CHUNK, wave.number)
            type = campaign.key_type(self._settings.server)
            expected = objects.Expected(type, sealed.keys, sealed.checksum, sealed.tables)
            return objects.write_keys(folder.keys, rows, expected, held.report(sealed.keys))

        try:
            digest = await asyncio.to_thread(write)
        except objects.NotTheSealedSet:
            if (await asyncio.to_thread(self._storage.waves.get, campaign.id, wave.number)).erased:
                raise StateChanged from None
            raise _not_sealed("uploads are not the sealed") from None
        if sealed.key_file not in (None, digest):
            raise _not_sealed("keys are not the sealed")

        def keep() -> None:
            try:
                self._storage.waves.keep_key_file(campaign.id, wave, digest)
            except StateChanged:
                if self._storage.waves.get(campaign.id, wave.number).erased:
                    folder.drop_keys()
                raise

        await self._writer.run(keep)
        return replace(sealed, key_file=digest)

    async def _table_sums(self, entry: StoredCampaign, wave: Wave, held: "_Held") -> None:
        """The sum of the set's tables, made anew where it is missing or damaged: nothing is checked again for that."""
        campaign, sealed = entry.campaign, wave.sealed
        tables = key_file(self._settings, campaign, wave.number, sealed).tables
        if tables is None or await asyncio.to_thread(tables.load, campaign) is not None:
            return
        held.note("adding tables", 0.0)

        def make() -> None:
            of = wave_tables(self._storage, campaign, self._settings.server, wave.number)
            sums = of.no_sums()
            if len(of.tables) != sealed.tables:
                raise objects.NotTheSealedSet
            of.add(sums, of.tables)
            tables.save(sums)

        try:
            await asyncio.to_thread(make)
        except objects.NotTheSealedSet:
            if (await asyncio.to_thread(self._storage.waves.get, campaign.id, wave.number)).erased:
                raise StateChanged from None
            raise _not_sealed("tables are not the sealed") from None

    async def _evaluate(self, entry: StoredCampaign, number: int, sealed: UploadSet, held: "_Held") -> None:
        """The share of this wave's keys, kept here; then every release that ends with this wave, with its noise."""
        campaign, started = entry.campaign, time.monotonic()

        async def report(done: float) -> None:
            held.note("evaluating", done)

        share = await whole_share(campaign, key_file(self._settings, campaign, number, sealed), self._executor, report)
        waves = await asyncio.to_thread(self._storage.waves.all, campaign.id)
        if any(wave.number < number and wave.state != SEALED for wave in waves):
            raise NotReadyYet("earlier waves are not sealed yet")
        for release in releases(entry, [wave for wave in waves if wave.number <= number]).values():
            if release.last == number and campaign.waves is None:
                await self._curve(release, share, started, held)
            elif release.last == number:
                await self._curve(release, await self._pooled(release), started, held)

    async def _pooled(self, release: SealedRelease) -> RawShare:
        """The share of several waves' keys, from what was kept of each."""
        share = await asyncio.to_thread(saved_share, release.campaign, key_files(self._settings, release))
        if share is None:
            for number, _ in release.parts:
                await self._writer.run(partial(self._storage.jobs.again, release.campaign.id, number))
            raise NotReadyYet("earlier waves are not evaluated yet")
        return share

    async def _curve(self, release: SealedRelease, share: RawShare, started: float, held: "_Held") -> None:
        """This server's share of the whole curve, with its noise, on disk."""
        campaign, noise = release.campaign, source(self._settings.server, release)
        folder = Folder(self._settings.data, campaign.id, release.last)
        if await asyncio.to_thread(folder.load_curve, "noised", noise.covers, campaign.bits, np.uint64) is not None:
            return
        curve = await asyncio.to_thread(add_noise.noisy_curve, share, noise)
        await asyncio.to_thread(folder.save_curve, "noised", noise.covers, curve)
        seconds = time.monotonic() - started
        metrics.CURVE_SECONDS.observe(seconds)
        held.curves.append({"release": str(release.name), "seconds": round(seconds, 2)})


def _not_sealed(what: str) -> Problem:
    return Problem(f"the stored {what} ones; restore this server from its newest backup")


class _Held:
    """A job in hand, as it is shown, and until when it is."""

    def __init__(self, job: Job, lease_s: float) -> None:
        self.job, self._lease_s = job, lease_s
        self.renewed = time.monotonic()
        self.curves: list[dict[str, Any]] = []  # made since, for the log

    @property
    def is_lost(self) -> bool:
        return time.monotonic() - self.renewed > self._lease_s

    def note(self, phase: str, progress: float) -> None:
        """Before every step: a process that was stopped does not go on with what another one has taken since."""
        if self.is_lost:
            raise StateChanged
        self.job = replace(self.job, phase=phase, progress=progress)

    def report(self, count: int) -> Callable[[int], None]:
        def done(number: int) -> None:
            self.note(self.job.phase, number / max(1, count))

        return done
