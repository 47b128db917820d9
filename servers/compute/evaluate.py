"""One server's share of the curve: at points, directly, or whole, in the background, on all cores.

The whole curve is summed slice by slice by worker processes that map the key file; what is done is saved now and then,
so a restart goes on where the last one stopped. A share alone is a uniform number; it is never shown without noise.
"""

import asyncio
import io
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from campaign.errors import Unavailable
from campaign.files import write_durably
from campaign.spec import Campaign
from fss import KeyBatch, KeyType, Scheme, dcf, dpf, field
from fss.evaluate import cores
from fss.field import Words

Gone = Callable[[], Awaitable[bool]]  # has whoever asked gone away?

SLICE = 4096
SLICE_WORK = 4_000_000  # keys times points: some tenths of a second
SAVE_EVERY_S = 5.0


async def share_at(keys: KeyBatch, positions: NDArray[np.int64], gone: Gone) -> Words:
    """This server's share of the counts at these positions, from comparison keys.

    A slice of the keys at a time: a thread cannot be stopped, but the next slice need not begin when whoever asked has
    gone.
    """
    total = np.zeros(positions.size, np.uint64)
    step = max(SLICE, SLICE_WORK // max(1, positions.size))
    for start in range(0, len(keys), step):
        if await gone():
            raise Unavailable("whoever asked has gone")
        part = await asyncio.to_thread(dcf.sum_at_points, keys[start : start + step], positions)
        total = field.add(total, part)
    return total


def slice_sum(path: str, type: KeyType, start: int, stop: int) -> Words:
    """In a worker process: the whole-domain sum over some keys of the file."""
    keys = KeyBatch.open(path, type.binder, expected=type)[start:stop]
    scheme = dcf if type.scheme is Scheme.DCF else dpf
    total: Words = scheme.sum_over_domain(keys)
    return total


class Pool:
    """Worker processes that sum slices of key files."""

    def __init__(self, workers: int) -> None:
        self.workers = workers or cores()
        context = multiprocessing.get_context("spawn")
        self.executor = ProcessPoolExecutor(self.workers, context, _die_with_parent, (os.getpid(),))

    def close(self) -> None:
        """End the workers; what they were doing is saved up to the last slice."""
        self.executor.shutdown(wait=False, cancel_futures=True)
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


class Progress:
    """A sum under way: which slices are in it. Saved as one file, so that sum and slices always fit together."""

    def __init__(self, path: Path, size: int, slices: int, key_file: bytes) -> None:
        self._path, self._key_file = path, key_file
        self.total, self.done = np.zeros(size, np.uint64), set[int]()
        self.slices = slices
        self._load(size)

    def _load(self, size: int) -> None:
        try:
            head, body = self._path.read_bytes().split(b"\n", 1)
            about = json.loads(head)
            total = np.load(io.BytesIO(body), allow_pickle=False)
            fits = about["keys"] == self._key_file.hex() and about["slices"] == self.slices
            done = {int(n) for n in about["done"]}
        except Exception:  # whatever is wrong with it, it can be made again
            return
        if fits and total.shape == (size,) and total.dtype == np.uint64 and field.is_canonical(total):
            self.total, self.done = total, done

    def add(self, number: int, part: Words) -> None:
        self.total = field.add(self.total, part)
        self.done.add(number)

    def save(self) -> None:
        about = {"keys": self._key_file.hex(), "slices": self.slices, "done": sorted(self.done)}
        body = io.BytesIO()
        np.save(body, self.total)
        write_durably(self._path, json.dumps(about).encode() + b"\n" + body.getvalue())


async def whole_curve(
    campaign: Campaign,
    party: int,
    key_path: Path,
    key_digest: bytes,
    count: int,
    pool: Pool,
    report: Callable[[float], None],
) -> Words:
    """This server's share at every position; resumes what an earlier run has saved beside the key file."""
    type = campaign.key_type(party)
    starts = list(range(0, count, SLICE))
    progress = Progress(key_path.with_name("curve"), 1 << campaign.bits, len(starts), key_digest)
    loop, saved = asyncio.get_running_loop(), time.monotonic()
    todo = [n for n in range(len(starts)) if n not in progress.done]
    report(len(progress.done) / max(1, len(starts)))

    async def one(number: int) -> tuple[int, Words]:
        start = starts[number]
        arguments = (str(key_path), type, start, min(start + SLICE, count))
        return number, await loop.run_in_executor(pool.executor, slice_sum, *arguments)

    # A few more than there are workers, so that none waits, but no more results in memory than that.
    running: set[asyncio.Task[tuple[int, Words]]] = set()
    ahead = 2 * pool.workers
    try:
        while todo or running:
            while todo and len(running) < ahead:
                running.add(asyncio.create_task(one(todo.pop(0))))
            finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                progress.add(*task.result())
            report(len(progress.done) / len(starts))
            if time.monotonic() - saved > SAVE_EVERY_S and todo:
                await _save(progress)
                saved = time.monotonic()
    finally:
        for task in running:
            task.cancel()
    await _save(progress)
    return progress.total if campaign.scheme == "dcf" else field.prefix_sum(progress.total)


async def _save(progress: Progress) -> None:
    """A full disk costs a resumption, not the result."""
    with suppress(OSError):
        await asyncio.to_thread(progress.save)
