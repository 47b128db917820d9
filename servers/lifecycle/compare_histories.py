"""Comparing histories with the other server also where nothing else is said between the two."""

import asyncio
from collections.abc import Callable

from fss_ecdf.campaign.errors import Problem
from servers import log
from servers.lifecycle.periodic_task import PeriodicTask
from servers.peer import PeerClient
from servers.storage.storage import Storage

EVERY_S = 60.0
SOON_S = 5.0  # after a failure: a server that was restarted is asked again before it does anything


class HistoryComparer(PeriodicTask):
    """Asks at the start, and then every minute, until it is stopped."""

    def __init__(self, storage: Storage, peer: PeerClient) -> None:
        self._storage, self._peer = storage, peer
        self._failed = False

    async def _run(self) -> None:
        with self._storage.leading("comparing") as one:  # of several processes of this server
            while True:
                compared = await self._compare(one.leads)
                await asyncio.sleep(EVERY_S if compared else SOON_S)

    async def _compare(self, leads: Callable[[], bool]) -> bool:
        try:
            if await asyncio.to_thread(leads):
                await self._peer.compare()
        except Problem as problem:
            if not self._failed:  # said once, not every few seconds
                log.event("not-compared", level="warning", code=problem.code)
            self._failed = True
            return False
        except Exception as error:  # a busy database: the next look finds it again
            log.event("not-compared", level="warning", error=type(error).__name__, where=log.where(error))
            return False
        self._failed = False
        return True
