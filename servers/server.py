"""One running server: its parts, put together, started and stopped."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import NotReady, StorageBusy
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.server_identity import Identity
from servers import log, metrics
from servers.api.limits import Limits
from servers.compute.executor import Executor, LocalPool
from servers.exposition import Exposition
from servers.hpke_keys import HpkeKeys
from servers.lifecycle import overseer
from servers.lifecycle.auto_close import AutoCloser
from servers.lifecycle.compare_histories import HistoryComparer
from servers.lifecycle.erase import Eraser
from servers.lifecycle.forget import Forgetter
from servers.lifecycle.frozen_ids import FrozenIds
from servers.lifecycle.job_runner import Crash, JobRunner
from servers.lifecycle.key_check import KeyChecker
from servers.lifecycle.overseer import Overseer
from servers.lifecycle.seal import Sealer
from servers.peer import PeerClient
from servers.release.budget import Budget
from servers.release.release_service import ReleaseService
from servers.rollback import RollbackGuard
from servers.settings import Settings
from servers.storage.database import lock, needs_to_be_alone
from servers.storage.key_files import Folder
from servers.storage.storage import Storage, Writer

Clock = Callable[[], datetime]
API, WORK = "api", "work"
Parts = frozenset[str]
ALL: Parts = frozenset((API, WORK))
TURN_S = 3.0  # an event loop that takes longer for one round hangs


def no_crash(_: str) -> None:
    """Where a test would end the process."""


def executor_for(settings: Settings) -> Executor:
    """Where keys are evaluated: on this machine, or by the cluster that the settings name."""
    if settings.cluster is None:
        return LocalPool(settings.workers)
    try:
        from servers.compute.cluster import DaskCluster
    except ModuleNotFoundError:
        raise UsageError("[cluster] needs Dask: pip install 'fss-ecdf[server,cluster]'") from None
    _require_storage(settings.cluster.chunks)
    return DaskCluster(settings.cluster)


def _require_storage(chunks: str | None) -> None:
    """What reads and writes such URLs is installed."""
    from servers.compute.chunks import files_of

    try:
        if chunks is not None:
            files_of(chunks)
    except ValueError as error:
        raise UsageError(f"cluster.chunks: {error}") from None
    except ImportError as error:
        what = "obstore: pip install 'fss-ecdf[server,cluster,s3]'" if chunks and chunks.startswith("s3:") else error
        raise UsageError(f"cluster.chunks needs {what}") from None


class Server:
    """What the routes work with. Each part is one subject; nothing is done here but joining them."""

    def __init__(self, settings: Settings, clock: Clock, crash: Crash = no_crash, parts: Parts = ALL) -> None:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_alone = needs_to_be_alone(settings.database_url)
        self._lock, self._parts = lock(settings.data, shared=not is_alone), parts
        self.settings, self.number, self.clock, self.crash = settings, settings.server, clock, crash
        self.identity = Identity.load(settings.identity_file, settings.server)
        self.storage = Storage(settings.database_url)
        self.writer = Writer(self.storage.uploads)
        peer_key = settings.tokens.peer_signing_key
        self.guard = RollbackGuard(self.storage.history, self.identity, peer_key, settings.data, clock)
        self.storage.on_connect(self.guard.expire)
        self.peer = PeerClient(settings.peer, settings.peer_token(), role=settings.server, guard=self.guard)
        self.limits = Limits(settings.limits)
        self.hpke_keys = HpkeKeys(self.identity, self.storage, self.writer, self.peer, settings.peer_signing_key)
        budget = Budget(self.storage, self.writer, self.peer, clock)
        self.publisher = ReleaseService(settings, self.storage, self.peer, self.identity, budget, self.guard)
        self.frozen_ids = FrozenIds(self.storage)
        self.sealer = Sealer(self.storage, self.writer, self.peer, self.frozen_ids, clock, crash)
        self._executor = pool = executor_for(settings)
        about = self.storage, self.writer, self.peer, self.identity, pool, crash
        self.checker = KeyChecker(settings.server, self.folder, *about)
        self.workman = JobRunner(settings, self.storage, self.writer, pool, self.checker, self.storage.now, crash)
        self.closer = AutoCloser(settings.server, self.storage, self.sealer, self.workman.call, clock, self.guard)
        self.comparer, self.overseer = HistoryComparer(self.storage, self.peer), Overseer(self.storage)
        self.eraser = Eraser(self.storage, self.writer, self.publisher, self.folder, crash)
        self.forgetter = Forgetter(self.storage, self._in_memory, self._forget)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.exposition = self._exposition()
        log.set_level(settings.log_level)
        self.stopping = False

    def measure(self) -> None:
        """Set all gauges, for somebody who watches."""
        self.guard.look()
        overseer.measure(self.storage)
        metrics.look(self.settings)

    def reload(self, settings: Settings) -> None:
        """Take over what can change while the server runs: tokens, certificates and the way to the other server."""
        settings = self.settings.model_copy(
            update={name: getattr(settings, name) for name in ("tls", "peer", "tokens", "metrics", "log_level")}
        )
        log.set_level(settings.log_level)
        if self.exposition is not None:
            self.exposition.reload(settings.tls, settings.metrics.token)
        self.peer.reload(settings.peer, settings.peer_token())
        self.settings = settings

    def folder(self, campaign_id: bytes, wave: int = 0) -> Folder:
        return Folder(self.settings.data, campaign_id, wave)

    def _exposition(self) -> Exposition | None:
        about = self.settings.metrics
        if about.listen is None:
            return None
        host, _, port = about.listen.rpartition(":")
        checks = {"/healthz": self.turns, "/readyz": self.readiness}
        return Exposition(host, int(port), self.settings.tls, about.token, self.measure, checks)

    def turns(self) -> str:
        """From another thread: `ok` while this process's event loop goes round; an exception where it hangs."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result(TURN_S)
        return "ok"

    def readiness(self) -> str:
        """`ready` or `on hold`; a problem where this process cannot do its work."""
        if self.stopping:
            raise NotReady("the server is stopping", retry_after=5)
        self.storage.ping()
        return "on hold" if "on_hold" in self.guard.shown() else "ready"

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self.exposition is not None:
            self.exposition.start()
        if not self.storage.alone:
            self.forgetter.start()
        if WORK not in self._parts:
            return
        await self.writer.run(self._erase_deleted)
        if self.storage.alone:
            await self.writer.run(self.storage.jobs.renew_all)
        self.comparer.start()
        self.overseer.start()
        self.workman.start()
        self.closer.start()
        self.eraser.start()

    async def stop(self) -> None:
        self.stopping = True
        if self.exposition is not None:
            await asyncio.to_thread(self.exposition.close)
        await self.forgetter.stop()
        await self.comparer.stop()
        await self.overseer.stop()
        await self.closer.stop()
        await self.eraser.stop()
        await self.workman.stop()
        self.frozen_ids.close()
        await self.writer.close()
        await self.peer.close()
        self.storage.close()
        self._lock.close()

    async def delete(self, campaign_id: bytes) -> None:
        """Erase everything but a tombstone. Asked again it erases what an interruption left, as does the next start."""
        await self.writer.run(lambda: self.storage.campaigns.delete(campaign_id))
        self.crash("delete-noted")
        self._forget(campaign_id)
        await asyncio.to_thread(self._erase_files, campaign_id)
        await self.writer.run(self.storage.campaigns.forget_deleted)

    def _in_memory(self) -> set[bytes]:
        """The campaigns whose secrets this process has in memory."""
        return self.storage.campaigns.in_memory() | self.hpke_keys.in_memory() | self.publisher.in_memory()

    def _forget(self, campaign_id: bytes) -> None:
        for part in (self.storage.campaigns, self.publisher, self.sealer, self.hpke_keys):
            part.forget(campaign_id)

    def _erase_files(self, campaign_id: bytes) -> None:
        """Keys first: where there are none, nobody at work on them makes copies any more."""
        self.folder(campaign_id).erase()
        self._executor.erase(to_base64url(campaign_id))

    def _erase_deleted(self) -> None:
        for campaign_id in self.storage.campaigns.deleted():
            self._erase_files(campaign_id)
        for entry in self.storage.campaigns.all():
            for one in self.storage.waves.all(entry.campaign.id):
                candidates = self.folder(entry.campaign.id, one.number)  # may have been erased since
                self.storage.waves.unless_checking(entry.campaign.id, one.number, candidates.drop_candidates)
        with suppress(StorageBusy):
            self.storage.campaigns.forget_deleted()
