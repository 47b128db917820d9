"""Where slices are summed: one interface, and the pool of processes on this machine behind it."""

import asyncio
import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Protocol

from fss.evaluate import cores
from servers.compute.worker import Part, Slice, slice_sum

SLICE = 4096


class Executor(Protocol):
    """Sums slices, some at a time. What fails may be given to it again."""

    @property
    def workers(self) -> int: ...
    @property
    def slice(self) -> int:
        """How many keys it wants at a time."""

    async def prepare(self, path: Path, slices: list[Slice], of: str) -> None:
        """Before any of these slices: all there are of the key file at this path, whose content is named too."""

    async def run(self, task: Slice) -> Part: ...
    async def finish(self, path: Path, slices: list[Slice]) -> None:
        """All of them are summed; copies of their keys go."""

    def erase(self, folder: str) -> None:
        """Copies of keys of a campaign, by the name of its folder."""

    def close(self) -> None: ...


class LocalExecutor:
    """What executors on this machine have in common: they read the key file itself."""

    slice = SLICE

    async def prepare(self, path: Path, slices: list[Slice], of: str) -> None: ...
    async def finish(self, path: Path, slices: list[Slice]) -> None: ...
    def erase(self, folder: str) -> None: ...


class LocalPool(LocalExecutor):
    """Worker processes on this machine, started when there is work and anew where they were killed."""

    def __init__(self, workers: int) -> None:
        self._count = workers or cores()
        self._processes: ProcessPoolExecutor | None = None

    @property
    def workers(self) -> int:
        return self._count

    async def run(self, task: Slice) -> Part:
        if self._processes is None:
            context = multiprocessing.get_context("spawn")
            self._processes = ProcessPoolExecutor(self._count, context, _die_with_parent, (os.getpid(),))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._processes, slice_sum, task)
        except BrokenProcessPool:
            self._processes = None
            raise

    def close(self) -> None:
        """End the workers; what they were doing is saved up to the last slice."""
        if self._processes is None:
            return
        self._processes.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
            child.join()


def _die_with_parent(parent: int) -> None:
    """In a worker: do not outlive a server that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
