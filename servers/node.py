"""One running server: its store, its writer, its background work and its view of the other server."""

import asyncio
import hashlib
import io
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from campaign.errors import (
    BudgetExceeded,
    InvalidQuery,
    NotSealed,
    PeerUnavailable,
    Problem,
    TooManyRequests,
    Unavailable,
)
from campaign.files import write_durably
from campaign.spec import Campaign, to_base64url
from campaign.wire import Shares
from fss import KeyBatch, field
from fss.field import Words
from servers import log, metrics
from servers.api.rate import Rate
from servers.compute import evaluate
from servers.compute.evaluate import Gone
from servers.peer import PeerClient
from servers.release.answer import curve_errors
from servers.release.noise import NoiseTree, Prf, covers
from servers.settings import Settings
from servers.storage import keyset
from servers.storage.store import SEALED, Entry, NewUploads, Store

Counts = NDArray[np.int64]
Failures = list[tuple[bytes, Problem]]

RETRY_FAILED_S = 10.0
MIN_POINTS = 16  # that can be asked for in one question, however many keys there are
T = TypeVar("T")


@dataclass
class Work:
    """What this server is doing, or has ready, for one sealed campaign."""

    phase: str = "waiting"
    failed_at: float = 0.0
    progress: float = 0.0
    problem: str | None = None
    keys: KeyBatch | None = None
    covers: bytes = b""  # what the noise is bound to; known once the key file is
    share: Words | None = None  # this server's share of the curve: uniform numbers, never sent without noise
    noised: Words | None = None
    release: Counts | None = None  # the published curve: both servers' noised shares, added
    entry: Entry | None = None  # a sealed campaign does not change any more
    errors: dict[str, NDArray[np.float64]] = dataclass_field(default_factory=dict)  # standard errors of the curve
    lock: asyncio.Lock = dataclass_field(default_factory=asyncio.Lock)

    def not_ready(self, whose: str = "the") -> Unavailable:
        return Unavailable(f"{whose} curve is not ready yet ({self.phase}, {self.progress:.0%})", retry_after=2)


class Writer:
    """Stores uploads: whatever waits while one transaction runs goes into the next one together."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "writer")
        self._waiting: list[tuple[NewUploads, asyncio.Future[Failures | Problem]]] = []
        self._running: asyncio.Task[None] | None = None

    async def add(self, uploads: NewUploads) -> Failures:
        """Durable when this returns."""
        done: asyncio.Future[Failures | Problem] = asyncio.get_running_loop().create_future()
        self._waiting.append((uploads, done))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        outcome = await done
        if isinstance(outcome, Problem):
            raise outcome
        return outcome

    async def run(self, what: Callable[[], T]) -> T:
        """Any other write, in the same thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, what)

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                outcomes = await self.run(partial(self._store.add_uploads, [uploads for uploads, _ in batch]))
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for (_, done), outcome in zip(batch, outcomes, strict=True):
                if not done.done():
                    done.set_result(outcome)

    async def close(self) -> None:
        if self._running is not None:
            await self._running
        self._thread.shutdown()


class Node:
    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self.settings, self.clock, self.role = settings, clock, settings.role
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.store = Store(settings.database_url)
        self.writer = Writer(self.store)
        self.peer = PeerClient(settings.peer, settings.peer_token(), role=settings.role)
        self.work: dict[bytes, Work] = {}
        self._admission: dict[bytes, Entry] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._pool: evaluate.Pool | None = None
        self._evaluating = asyncio.Semaphore(settings.limits.evaluations)
        self._waiting = 0
        self.seal_locks: dict[bytes, asyncio.Lock] = {}
        self.bytes_in_flight = 0
        self.upload_rate = Rate(settings.limits.uploads_per_s)
        self.stopping = False

    # Life

    async def start(self) -> None:
        for entry in self.store.entries():
            if entry.state == SEALED:
                self.begin(entry.campaign.id)

    async def stop(self) -> None:
        self.stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.writer.close()
        await self.peer.close()
        if self._pool is not None:
            self._pool.close()
        self.store.close()

    def crash(self, point: str) -> None:
        """Fault injection for tests: end like a power cut where the settings say so."""
        if self.settings.crash_at == point:
            os._exit(137)

    def folder(self, campaign: bytes) -> Path:
        return self.settings.data / to_base64url(campaign)

    # Background work on sealed campaigns

    def begin(self, campaign: bytes) -> Work:
        """The work on a sealed campaign, started if it is not under way; what failed is tried again after a while."""
        known = self.work.get(campaign)
        if known is not None and (known.phase != "failed" or time.monotonic() < known.failed_at + RETRY_FAILED_S):
            return known
        work = self.work[campaign] = Work()
        if self.stopping:
            return work
        task = asyncio.create_task(self._prepare(campaign, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return work

    async def _prepare(self, campaign_id: bytes, work: Work) -> None:
        try:
            await self._prepare_steps(campaign_id, work)
            work.phase, work.progress = "ready", 1.0
        except asyncio.CancelledError:
            raise
        except Exception as error:
            work.phase, work.failed_at = "failed", time.monotonic()
            if isinstance(error, BrokenProcessPool):
                self._pool = None
            work.problem = str(error) if isinstance(error, Problem) else type(error).__name__
            log.event(
                "prepare-failed", campaign=to_base64url(campaign_id), error=type(error).__name__, where=log.where(error)
            )

    async def _prepare_steps(self, campaign_id: bytes, work: Work) -> None:
        entry = self.store.entry(campaign_id)
        work.phase = "writing keys"
        keys, digest = await self._key_file(entry, work)
        work.covers, work.keys = covers(campaign_id, self.agreed_set(entry)[0], digest), keys
        self.crash("keys-written")
        campaign = entry.campaign
        if campaign.bits > self.settings.curve_bits:
            return
        work.phase, work.progress = "evaluating", 0.0
        if self._pool is None:
            self._pool = evaluate.Pool(self.settings.workers)
        started = time.monotonic()

        def report(done: float) -> None:
            work.progress = done

        path = self.folder(campaign_id) / "keys"
        share = await evaluate.whole_curve(campaign, self.role, path, digest, len(work.keys), self._pool, report)
        noise = await asyncio.to_thread(self.noise(entry, work).curve)
        work.share, work.noised = share, field.add(share, field.encode(noise))
        metrics.CURVE_SECONDS.observe(time.monotonic() - started)
        log.event("curve-ready", campaign=to_base64url(campaign_id), seconds=round(time.monotonic() - started, 2))
        work.errors = await asyncio.to_thread(curve_errors, campaign)
        await self._load_release(entry, work)

    async def _key_file(self, entry: Entry, work: Work) -> tuple[KeyBatch, bytes]:
        """The mapped keys and the digest of their file, which is written anew where it is missing or damaged."""
        campaign, folder = entry.campaign, self.folder(entry.campaign.id)
        folder.mkdir(exist_ok=True, mode=0o700)
        path, type = folder / "keys", campaign.key_type(self.role)

        ids = await asyncio.to_thread(self.store.ids, campaign.id)
        if keyset.set_checksum(ids) != entry.sealed_set:
            raise Problem("the stored uploads are not the sealed ones; restore this server from its newest backup")

        def whole() -> bool:
            return path.exists() and keyset.file_digest(path) == entry.file_digest

        digest = entry.file_digest
        if digest is None or not await asyncio.to_thread(whole):
            if entry.file_digest is not None:
                log.event("key-file-damaged", campaign=to_base64url(campaign.id))
            count = max(1, entry.sealed_count or 0)

            def report(done: int) -> None:
                work.progress = done / count

            def write() -> bytes:
                return keyset.write(path, self.store, type, campaign.id, ids, report)

            digest = await asyncio.to_thread(write)
            if entry.file_digest not in (None, digest):
                raise Problem("the stored keys are not the sealed ones; restore this server from its newest backup")
            await self.writer.run(lambda: self.store.set_file_digest(campaign.id, digest))
        return KeyBatch.open(path, campaign.id, expected=type), digest

    # Shares and counts

    def noise(self, entry: Entry, work: Work) -> NoiseTree:
        campaign = entry.campaign
        return NoiseTree(entry.noise_seed, server=self.role, covers=work.covers, mechanism=campaign.noise)

    def groups_prf(self, entry: Entry, work: Work, purpose: str) -> Prf:
        return Prf(entry.noise_seed, self.role, work.covers, purpose.encode())

    def sealed(self, campaign_id: bytes) -> tuple[Entry, Work]:
        known = self.work.get(campaign_id)
        if known is not None and known.entry is not None and known.phase != "failed":
            return known.entry, known
        entry = self.store.entry(campaign_id)
        if entry.state != SEALED:
            raise NotSealed("the campaign takes uploads until it is sealed; only then can it be asked")
        work = self.begin(campaign_id)
        work.entry = entry
        return entry, work

    async def spend_curve(self, campaign: Campaign) -> None:
        """The curve is paid for once, before the first share of it leaves."""
        await self.spend(campaign, "curve", campaign.epsilon)

    async def spend(self, campaign: Campaign, purpose: str, epsilon: float) -> None:
        limit, now = campaign.total_epsilon, self.clock()
        spent = await self.writer.run(lambda: self.store.spend(campaign.id, purpose, epsilon, limit, now))
        if spent is None:
            raise BudgetExceeded(f"{epsilon:g} more would exceed the campaign's epsilon of {limit:g}")

    async def noised_shares(self, entry: Entry, work: Work, positions: NDArray[np.int64] | None, gone: Gone) -> Words:
        """This server's noised shares: all that ever leaves it."""
        if work.noised is None:
            keys, positions = self._few_points(entry, work, positions)
        await self.spend_curve(entry.campaign)
        if work.noised is not None:
            return work.noised if positions is None else work.noised[positions]
        assert positions is not None
        async with self.evaluation():
            started = time.monotonic()
            share = await evaluate.share_at(keys, positions, gone)
            noise = await asyncio.to_thread(self.noise(entry, work).at, positions)
            metrics.EVALUATION_SECONDS.observe(time.monotonic() - started)
        return field.add(share, field.encode(noise))

    def _few_points(
        self, entry: Entry, work: Work, positions: NDArray[np.int64] | None
    ) -> tuple[KeyBatch, NDArray[np.int64]]:
        """The keys, if these points can be answered from them without keeping others waiting."""
        if positions is None or entry.campaign.scheme == "dpf" or work.keys is None:
            raise work.not_ready()
        most = max(MIN_POINTS, self.settings.limits.points_times_keys // max(1, len(work.keys)))
        if positions.size <= most:
            return work.keys, positions
        if entry.campaign.bits > self.settings.curve_bits:
            raise InvalidQuery(f"at most {most} points in one question about {len(work.keys)} uploads")
        raise Unavailable(f"at most {most} points in one question until the curve is ready", retry_after=5)

    def evaluation(self) -> "_Slot":
        return _Slot(self)

    async def counts(self, entry: Entry, work: Work, positions: NDArray[np.int64], gone: Gone) -> Counts:
        """Published counts at positions: the other server's noised shares and ours, added."""
        release = await self.release(entry, work)
        if release is not None:
            return release[positions]
        distinct, back = np.unique(positions, return_inverse=True)
        shares = self.noised_shares(entry, work, distinct, gone), self._peer_shares(entry, distinct)
        ours, theirs = await _both(*map(asyncio.ensure_future, shares))
        return field.decode(field.add(ours, theirs))[back]

    async def release(self, entry: Entry, work: Work) -> Counts | None:
        """The published curve, if both servers have evaluated theirs."""
        if work.release is None and work.noised is not None:
            await self._make_release(entry, work)
        return work.release

    @staticmethod
    def agreed_set(entry: Entry) -> tuple[bytes, int]:
        """The checksum and number of a sealed campaign's uploads."""
        assert entry.sealed_set is not None
        assert entry.sealed_count is not None
        return entry.sealed_set, entry.sealed_count

    async def _peer_shares(self, entry: Entry, positions: NDArray[np.int64] | None) -> Words:
        asked = None if positions is None else positions.tolist()
        try:
            shares: Shares = await self.peer.shares(entry.campaign, asked, *self.agreed_set(entry))
        except Problem:
            metrics.PEER_FAILURES.inc()
            raise
        return shares.elements

    async def _make_release(self, entry: Entry, work: Work) -> None:
        """Fetch the other server's whole noised curve, once; if it is not ready there, points are asked one by one."""
        async with work.lock:
            if work.release is not None or work.noised is None:
                return
            try:
                theirs = await self._peer_shares(entry, None)
            except PeerUnavailable:
                return
            await self.spend_curve(entry.campaign)
            work.release = field.decode(field.add(work.noised, theirs))
            body = io.BytesIO()
            np.save(body, work.release)
            with suppress(OSError):  # a full disk costs a fetch after the next start
                await asyncio.to_thread(write_durably, self._release_path(entry, work), body.getvalue())

    def _release_path(self, entry: Entry, work: Work) -> Path:
        """Named after the ids and keys it was computed from, so that nothing else is answered with it."""
        name = to_base64url(hashlib.sha256(work.covers).digest())
        return self.folder(entry.campaign.id) / f"release-{name}.npy"

    async def _load_release(self, entry: Entry, work: Work) -> None:
        try:
            release = np.load(self._release_path(entry, work), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return
        if release.shape == (1 << entry.campaign.bits,) and release.dtype == np.int64:
            work.release = release

    def admission(self, campaign_id: bytes) -> Entry:
        """What decides whether an upload may be tried; none of it changes while a campaign exists."""
        if campaign_id not in self._admission:
            self._admission[campaign_id] = self.store.entry(campaign_id)
        return self._admission[campaign_id]

    async def delete(self, campaign_id: bytes) -> None:
        """Erase everything but a tombstone."""
        self._admission.pop(campaign_id, None)
        await self.writer.run(lambda: self.store.delete_campaign(campaign_id))
        self._admission.pop(campaign_id, None)
        self.work.pop(campaign_id, None)
        self.seal_locks.pop(campaign_id, None)
        await asyncio.to_thread(shutil.rmtree, self.folder(campaign_id), True)


async def _both(one: asyncio.Future[Words], other: asyncio.Future[Words]) -> tuple[Words, Words]:
    """Both results; where one fails, the other is given up, and whoever works on it notices."""
    try:
        return await asyncio.gather(one, other)
    finally:
        one.cancel()
        other.cancel()
        await asyncio.gather(one, other, return_exceptions=True)


class _Slot:
    """One of the evaluations that may run at a time; too many in the queue are refused."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def __aenter__(self) -> None:
        if self._node._waiting >= self._node.settings.limits.evaluations_waiting:
            raise TooManyRequests("too many evaluations are waiting", retry_after=2)
        self._node._waiting += 1
        try:
            await self._node._evaluating.acquire()
        finally:
            self._node._waiting -= 1

    async def __aexit__(self, *_: object) -> None:
        self._node._evaluating.release()
