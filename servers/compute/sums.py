"""Sums of a whole key file, slice by slice; what is done is saved now and then, so that others can go on with it."""

import asyncio
import hashlib
import io
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fss import SCHEMES, KeyType, field
from fss.field import Words
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.files import write_durably
from servers import log
from servers.compute.executor import SLICE, Executor
from servers.compute.raw_share import RawShare
from servers.compute.table_sums import TableSums
from servers.compute.worker import Check, Part, Slice

Report = Callable[[float], Awaitable[None]]

SAVE_EVERY_S = 5.0


class BadPart(Exception):
    """A worker, on another machine perhaps, answered with what cannot be a sum of these keys."""


@dataclass(frozen=True)
class KeyFile:
    """The keys of a set, how they are checked, if they are, and where their sum is kept."""

    path: Path
    type: KeyType
    digest: bytes
    count: int
    check: Check | None = None
    slice: int = SLICE  # how many keys are summed at a time
    tables: TableSums | None = None  # where the sum of the set's tables is kept, if there are any

    def slices(self) -> list[Slice]:
        starts = range(0, self.count, self.slice)
        return [Slice(str(self.path), self.type, s, min(s + self.slice, self.count), self.check) for s in starts]

    @property
    def sum_path(self) -> Path:
        return self.path.with_name("curve" if self.path.name == "keys" else f"{self.path.name}-curve")

    def name(self) -> str:
        """What a saved sum belongs to."""
        about = b"" if self.check is None else self.check.digest + b"".join(self.check.seeds)
        return hashlib.sha256(self.digest + about).hexdigest()


class Sum:
    """A sum under way: which slices are in it. Saved as one file, so that sum and slices always fit together."""

    def __init__(self, file: KeyFile) -> None:
        self.file, self._slices = file, file.slices()
        self.total, self.done = np.zeros(1 << file.type.bits, np.uint64), set[int]()
        self.messages = np.zeros((3, 0 if file.check is None else file.count), np.uint64)
        self._load()

    @property
    def share(self) -> float:
        return len(self.done) / max(1, len(self._slices))

    @property
    def is_complete(self) -> bool:
        return len(self.done) == len(self._slices)

    def todo(self) -> list[int]:
        return [n for n in range(len(self._slices)) if n not in self.done]

    def _load(self) -> None:
        try:
            head, body = self.file.sum_path.read_bytes().split(b"\n", 1)
            about, data = json.loads(head), io.BytesIO(body)
            total, messages = (np.load(data, allow_pickle=False) for _ in range(2))
            done, size = {int(n) for n in about["done"]}, int(about["slice"])
            if len(done) == -(-self.file.count // size):  # a whole sum is one, whatever it was made of
                done, size = set(range(len(self._slices))), self.file.slice
            fits = about["keys"] == self.file.name() and size == self.file.slice
            fits = fits and about["sum"] == hashlib.sha256(body).hexdigest()
        except Exception:  # whatever is wrong with it, it can be made again
            return
        fits = fits and (total.shape, messages.shape) == (self.total.shape, self.messages.shape)
        if fits and total.dtype == messages.dtype == np.uint64 and field.is_canonical(total):
            self.total, self.messages, self.done = total, messages, done

    def add(self, number: int, part: Part) -> None:
        some = slice(self._slices[number].start, self._slices[number].stop)
        for words, shape in ((part.sums, self.total.shape), (part.messages, self.messages[:, some].shape)):
            if words.shape != shape or words.dtype != np.uint64 or not field.is_canonical(words):
                raise BadPart("a worker's sum has another form than this server's; do both run the same version?")
        if number in self.done:
            raise AssertionError("a slice is added once")
        self.total = field.add(self.total, part.sums)
        self.messages[:, some] = part.messages
        self.done.add(number)

    def save(self) -> None:
        body = io.BytesIO()
        np.save(body, self.total)
        np.save(body, self.messages)
        about = {"keys": self.file.name(), "slice": self.file.slice, "done": sorted(self.done)}
        about["sum"] = hashlib.sha256(body.getvalue()).hexdigest()
        write_durably(self.file.sum_path, json.dumps(about).encode() + b"\n" + body.getvalue())

    def become(self, file: KeyFile, without: Words) -> None:
        """The sum of another file, that of the same keys but for some whose sum this is; kept under its name."""
        self.total = field.sub(self.total, without)
        self.file, self._slices = file, file.slices()
        self.messages, self.done = np.zeros((3, 0), np.uint64), set(range(len(self._slices)))
        self.save()

    def curve(self, campaign: Campaign) -> RawShare:
        """Of the keys; tables come to that."""
        return RawShare(SCHEMES[campaign.variable.scheme].curve(self.total))


async def complete(file: KeyFile, executor: Executor, report: Report) -> Sum:
    """The whole sum; goes on with what an earlier run has saved beside the key file."""
    file = replace(file, slice=executor.slice)
    slices, result = file.slices(), await asyncio.to_thread(Sum, file)
    todo, saved, was_complete = result.todo(), time.monotonic(), result.is_complete
    await report(result.share)

    async def one(number: int) -> tuple[int, Part]:
        return number, await executor.run(slices[number])

    if todo:
        await executor.prepare(file.path, slices, file.name())
    # A few more than there are workers, so that none waits, but no more results in memory than that.
    running: set[asyncio.Task[tuple[int, Part]]] = set()
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
    if not was_complete:
        await _save(result)
    await executor.finish(file.path, slices)  # also what one left who was killed just before
    return result


async def _save(result: Sum) -> None:
    """A full disk costs a resumption, not the result."""
    with log.failures("sum-not-saved", OSError):
        await asyncio.to_thread(result.save)
