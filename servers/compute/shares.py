"""One server's share of the curve: at points, directly, or whole, in the background, by an executor.

The whole curve is summed slice by slice; what is done is saved now and then, so that whoever takes the work over goes
on where it stopped. Shares leave this room wrapped up (`Unnoised`).
"""

import asyncio
import hashlib
import io
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from campaign.errors import Unavailable
from campaign.files import write_durably
from campaign.spec import Campaign
from fss import KeyBatch, KeyType, dcf, field
from fss.field import Words
from servers.compute.executor import Executor
from servers.compute.unnoised import Unnoised
from servers.compute.worker import Slice

Gone = Callable[[], Awaitable[bool]]  # has whoever asked gone away?

SLICE = 4096
SLICE_WORK = 4_000_000  # keys times points: some tenths of a second
SAVE_EVERY_S = 5.0


async def share_at(keys: KeyBatch, positions: NDArray[np.int64], gone: Gone) -> Unnoised:
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
    return Unnoised(total)


@dataclass(frozen=True)
class KeyFile:
    """The keys of a sealed set, and where their sum is kept."""

    path: Path
    type: KeyType
    digest: bytes
    count: int

    def slices(self) -> list[Slice]:
        starts = range(0, self.count, SLICE)
        return [Slice(str(self.path), self.type, start, min(start + SLICE, self.count)) for start in starts]

    @property
    def sum_path(self) -> Path:
        return self.path.with_name("curve")


class _Sum:
    """A sum under way: which slices are in it. Saved as one file, so that sum and slices always fit together."""

    def __init__(self, file: KeyFile) -> None:
        self._file, self._slices = file, len(file.slices())
        self.total, self.done = np.zeros(1 << file.type.bits, np.uint64), set[int]()
        self._load()

    @property
    def share(self) -> float:
        return len(self.done) / max(1, self._slices)

    @property
    def is_complete(self) -> bool:
        return len(self.done) == self._slices

    def todo(self) -> list[int]:
        return [n for n in range(self._slices) if n not in self.done]

    def _load(self) -> None:
        try:
            head, body = self._file.sum_path.read_bytes().split(b"\n", 1)
            about = json.loads(head)
            total = np.load(io.BytesIO(body), allow_pickle=False)
            fits = about["keys"] == self._file.digest.hex() and about["slices"] == self._slices
            fits = fits and about["sum"] == hashlib.sha256(body).hexdigest()
            done = {int(n) for n in about["done"]}
        except Exception:  # whatever is wrong with it, it can be made again
            return
        if fits and total.shape == self.total.shape and total.dtype == np.uint64 and field.is_canonical(total):
            self.total, self.done = total, done

    def add(self, number: int, part: Words) -> None:
        self.total = field.add(self.total, part)
        self.done.add(number)

    def save(self) -> None:
        body = io.BytesIO()
        np.save(body, self.total)
        about = {"keys": self._file.digest.hex(), "slices": self._slices, "done": sorted(self.done)}
        about["sum"] = hashlib.sha256(body.getvalue()).hexdigest()
        write_durably(self._file.sum_path, json.dumps(about).encode() + b"\n" + body.getvalue())

    def curve(self, campaign: Campaign) -> Unnoised:
        return Unnoised(self.total if campaign.scheme == "dcf" else field.prefix_sum(self.total))


async def whole_share(
    campaign: Campaign, file: KeyFile, executor: Executor, report: Callable[[float], Awaitable[None]]
) -> Unnoised:
    """This server's share at every position; goes on with what an earlier run has saved beside the key file."""
    slices, result = file.slices(), await asyncio.to_thread(_Sum, file)
    todo, saved = result.todo(), time.monotonic()
    await report(result.share)

    async def one(number: int) -> tuple[int, Words]:
        return number, await executor.run(slices[number])

    # A few more than there are workers, so that none waits, but no more results in memory than that.
    running: set[asyncio.Task[tuple[int, Words]]] = set()
    try:
        while todo or running:
            while todo and len(running) < 2 * executor.workers:
                running.add(asyncio.create_task(one(todo.pop(0))))
            finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                result.add(*task.result())
            await report(result.share)
            if time.monotonic() - saved > SAVE_EVERY_S and todo:
                await _save(result)
                saved = time.monotonic()
    finally:
        for task in running:
            task.cancel()
    await _save(result)
    return result.curve(campaign)


def saved_share(campaign: Campaign, file: KeyFile) -> Unnoised | None:
    """The whole share as it was saved, if it is complete."""
    result = _Sum(file)
    return result.curve(campaign) if result.is_complete else None


async def _save(result: _Sum) -> None:
    """A full disk costs a resumption, not the result."""
    with suppress(OSError):
        await asyncio.to_thread(result.save)
