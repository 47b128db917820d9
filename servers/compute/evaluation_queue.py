"""How many evaluations of points run in this process at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fss_ecdf.campaign.errors import TooManyRequests


class EvaluationQueue:
    def __init__(self, running: int, waiting: int) -> None:
        self._running, self._most_waiting, self._waiting = asyncio.Semaphore(running), waiting, 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A place to evaluate in; too many in the queue are refused."""
        if self._waiting >= self._most_waiting:
            raise TooManyRequests("too many evaluations are waiting", retry_after=2)
        self._waiting += 1
        try:
            await self._running.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._running.release()
