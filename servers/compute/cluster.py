"""Slices summed by a Dask cluster: the same sums as on one machine, bit for bit, whatever happens to its parts.

What a lost worker was at, the scheduler gives to another one; what a lost scheduler knew is given anew to the one that
takes its place; what is finished is added here and saved beside the key file, as with the local pool. Where nobody
works for a while, that is said.

Whoever reaches the scheduler may run what they like on its workers, so it is reached over TLS with certificates on both
sides, or on the same machine.
"""

import asyncio
import secrets
import time
from pathlib import Path
from typing import Any

import distributed
from distributed.scheduler import KilledWorker

from fss_ecdf.campaign.errors import NotReady
from servers import log
from servers.compute.chunks import Chunk, Chunks, Damaged, chunk_sum
from servers.compute.worker import Part, Slice
from servers.settings import Cluster
from servers.storage.key_files import chunk_folder

CONNECT_S = 5.0  # that one try takes
LOOK_S = 0.1
STALL_S = 40.0  # without a scheduler or a worker, until it is said
TRIES = 5  # of one chunk that fails on its own
FETCHING = 4  # results on their way here at a time, however many workers there are

_LOST = (OSError, TimeoutError, asyncio.CancelledError, distributed.CancelledError)


def count_workers(settings: Cluster) -> int:
    """Threads at a scheduler, for `fss-server doctor`; raises OSError or TimeoutError where it does not answer."""
    client = connect(settings)
    try:
        return sum(client.nthreads().values())
    finally:
        client.close(timeout=CONNECT_S)


def connect(about: Cluster) -> distributed.Client:
    security = None
    if about.ca is not None:
        security = distributed.Security(
            require_encryption=True,
            tls_ca_file=str(about.ca),
            tls_client_cert=str(about.certificate),
            tls_client_key=str(about.key),
        )
    return distributed.Client(about.scheduler, timeout=CONNECT_S, security=security, set_as_default=False)


class DaskCluster:
    """Behind the executor's interface. Connects when there is work."""

    def __init__(self, settings: Cluster) -> None:
        self._settings = settings
        self.slice = settings.chunk_keys
        self._client: distributed.Client | None = None
        self._connecting = asyncio.Lock()
        self._fetching = asyncio.Semaphore(FETCHING)
        self._threads, self._seen, self._looked = 0, time.monotonic(), 0.0
        self._chunks: dict[tuple[str, int], Chunk] = {}

    @property
    def workers(self) -> int:
        return max(1, self._threads)

    def _folder(self, path: Path) -> str:
        """Of the chunks of one key file: beside it, or where the settings say."""
        if self._settings.chunks is None:
            return str(chunk_folder(path))
        of_campaign = path.parts[-3 if path.parent.name.startswith("wave-") else -2 :]
        return "/".join([self._settings.chunks.rstrip("/"), *of_campaign])

    async def prepare(self, path: Path, slices: list[Slice], of: str) -> None:
        """Put them where the cluster finds them."""
        chunks = await asyncio.to_thread(Chunks(self._folder(path)).write, slices, of)
        for task, chunk in zip(slices, chunks, strict=True):
            self._chunks[task.path, task.start] = chunk
        self._seen = time.monotonic()

    async def finish(self, path: Path, slices: list[Slice]) -> None:
        for task in slices:
            self._chunks.pop((task.path, task.start), None)
        await asyncio.to_thread(Chunks(self._folder(path)).erase)

    def erase(self, folder: str) -> None:
        if self._settings.chunks is not None:  # what is beside the keys goes with them
            Chunks(f"{self._settings.chunks.rstrip('/')}/{folder}").erase()

    async def run(self, task: Slice) -> Part:
        chunk = self._chunks[task.path, task.start]
        for left in reversed(range(TRIES)):
            try:
                return await self._once(chunk)
            except (KilledWorker, Damaged) as error:
                log.event("chunk-failed", chunk=chunk.number, error=type(error).__name__, tries_left=left)
                if not left:
                    await asyncio.to_thread(Chunks(self._folder(Path(task.path))).erase)  # to be written anew
                    raise
        raise AssertionError

    async def _once(self, chunk: Chunk) -> Part:
        """Until it is done, by whichever scheduler."""
        while True:
            client = await self._connected()
            try:
                name = f"fss-{secrets.token_hex(8)}"
                future = await asyncio.to_thread(client.submit, chunk_sum, chunk, key=name, pure=False)
                part = await self._result(client, future)
            except _LOST as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                await self._drop(client, error)
                continue
            if part is not None:
                self._seen = time.monotonic()
                return part
            await self._drop(client, None)

    async def _result(self, client: distributed.Client, future: "distributed.Future[Part]") -> Part | None:
        """None where the scheduler has forgotten it."""
        try:
            while future.status == "pending":
                await self._look(client)
                await asyncio.sleep(LOOK_S)
            if future.status in ("cancelled", "lost"):
                return None
            async with self._fetching:
                part: Part = await asyncio.to_thread(future.result, 60)
                return part
        finally:
            with log.failures("future-not-released", Exception):
                future.release()

    async def _connected(self) -> distributed.Client:
        async with self._connecting:
            while self._client is None or self._client.status != "running":
                self._complain()
                try:
                    self._client = await asyncio.to_thread(connect, self._settings)
                except (OSError, TimeoutError) as error:
                    log.event("no-scheduler", level="warning", error=type(error).__name__)
                    await asyncio.sleep(1)
            return self._client

    async def _drop(self, client: distributed.Client, error: BaseException | None) -> None:
        """This scheduler is lost; the next one is asked."""
        async with self._connecting:
            if self._client is client:
                log.event("scheduler-lost", level="warning", error=type(error).__name__)
                self._client = None
                with log.failures("scheduler-not-closed", Exception):
                    await asyncio.to_thread(client.close, CONNECT_S)

    async def _look(self, client: distributed.Client) -> None:
        """Now and then: who works there?"""
        if client.status != "running":
            raise OSError("the scheduler is away")
        now = time.monotonic()
        if now - self._looked > 2:
            self._looked = now
            found: dict[str, Any] = await asyncio.wait_for(asyncio.to_thread(client.nthreads), CONNECT_S)
            self._threads = sum(found.values())
            self._seen = time.monotonic() if self._threads else self._seen
        self._complain()

    def _complain(self) -> None:
        if time.monotonic() - self._seen > STALL_S:
            self._seen = time.monotonic()  # the next try has as long
            raise NotReady(
                f"no worker at the Dask scheduler {self._settings.scheduler} for {STALL_S:g} s; see that it runs and "
                "that workers with the same certificates reach it",
                retry_after=10,
            )

    def close(self) -> None:
        if self._client is not None:
            with log.failures("scheduler-not-closed", Exception):
                self._client.close(timeout=CONNECT_S)
            self._client = None
