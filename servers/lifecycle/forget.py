"""Forgetting campaigns that another process of this server deleted: noise seed and HPKE key leave this one's memory."""

import asyncio
from collections.abc import Callable, Collection

from servers import log
from servers.lifecycle.periodic_task import PeriodicTask
from servers.storage.storage import Storage

LOOK_S = 2.0


class Forgetter(PeriodicTask):
    """In every process, where there are several: looks for what was deleted until it is stopped."""

    def __init__(
        self, storage: Storage, known: Callable[[], Collection[bytes]], forget: Callable[[bytes], None]
    ) -> None:
        """`known` are the campaigns that this process has anything of in memory."""
        self._storage, self._known, self._forget = storage, known, forget

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # a busy database: the next look finds it again
                log.event("forgetting-failed", level="warning", error=type(error).__name__, where=log.where(error))
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        for campaign in await asyncio.to_thread(self._storage.campaigns.gone, self._known()):
            self._forget(campaign)
