"""One running server: its parts, put together, started and stopped."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from campaign.errors import StorageBusy
from client.identity import Identity
from servers.api.limits import Limits
from servers.compute.executor import LocalPool
from servers.lifecycle.budget import Budget
from servers.lifecycle.check import Checker
from servers.lifecycle.closing import Closer
from servers.lifecycle.erase import Eraser
from servers.lifecycle.seal import Sealer
from servers.lifecycle.work import Crash, Workman
from servers.peer import PeerClient
from servers.release.publish import Publisher
from servers.settings import Settings
from servers.storage.database import lock
from servers.storage.objects import Folder
from servers.storage.storage import Storage, Writer
from servers.storage.waves import CHECKING

Clock = Callable[[], datetime]


def no_crash(_: str) -> None:
    """Where a test would end the process."""


class Server:
    """What the routes work with. Each part is one subject; nothing is done here but joining them."""

    def __init__(self, settings: Settings, clock: Clock, crash: Crash = no_crash) -> None:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = lock(settings.data)
        self.settings, self.role, self.clock, self.crash = settings, settings.role, clock, crash
        self.identity = Identity.load(settings.identity_file, settings.role)
        self.storage = Storage(settings.database_url)
        self.writer = Writer(self.storage.uploads)
        self.peer = PeerClient(settings.peer, settings.peer_token(), role=settings.role)
        self.limits = Limits(settings.limits)
        budget = Budget(self.storage.ledger, self.writer, clock)
        self.publisher = Publisher(settings, self.storage, self.peer, self.identity, budget)
        self.sealer = Sealer(self.storage, self.writer, self.peer, clock, crash)
        pool = LocalPool(settings.workers)
        about = self.storage, self.writer, self.peer, self.identity, pool, crash
        self.checker = Checker(settings.role, self.folder, *about)
        self.workman = Workman(settings, self.storage, self.writer, pool, self.checker, time.time, crash)
        self.closer = Closer(settings.role, self.storage, self.sealer, self.workman.call, clock)
        self.eraser = Eraser(self.storage, self.writer, self.publisher, self.folder, crash)
        self.stopping = False

    def folder(self, campaign_id: bytes, wave: int = 0) -> Folder:
        return Folder(self.settings.data, campaign_id, wave)

    async def start(self) -> None:
        await self.writer.run(self._erase_deleted)
        await self.writer.run(self.storage.jobs.renew_all)  # one process has one database here
        self.workman.start()
        self.closer.start()
        await self.eraser.complete()
        self.eraser.start()

    async def stop(self) -> None:
        self.stopping = True
        await self.closer.stop()
        await self.eraser.stop()
        await self.workman.stop()
        await self.writer.close()
        await self.peer.close()
        self.storage.close()
        self._lock.close()

    async def delete(self, campaign_id: bytes) -> None:
        """Erase everything but a tombstone. Asked again it erases what an interruption left, as does the next start."""
        await self.writer.run(lambda: self.storage.campaigns.delete(campaign_id))
        self.crash("delete-noted")
        self.publisher.forget(campaign_id)
        self.sealer.forget(campaign_id)
        await asyncio.to_thread(self.folder(campaign_id).erase)
        await self.writer.run(self.storage.campaigns.forget_deleted)

    def _erase_deleted(self) -> None:
        for campaign_id in self.storage.campaigns.deleted():
            self.folder(campaign_id).erase()
        for entry in self.storage.campaigns.all():
            for wave in self.storage.waves.all(entry.campaign.id):
                if wave.state != CHECKING:
                    self.folder(entry.campaign.id, wave.number).drop_candidates()  # keys that may have been erased
        with suppress(StorageBusy):
            self.storage.campaigns.forget_deleted()
