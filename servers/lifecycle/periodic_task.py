"""Something that looks again and again beside the requests, from the start of a server to its end."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress


class PeriodicTask(ABC):
    """What `_run` does, until it is stopped."""

    _task: asyncio.Task[None] | None = None

    @abstractmethod
    async def _run(self) -> None: ...

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
