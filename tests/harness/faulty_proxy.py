"""A TCP proxy that misbehaves: what goes through it is passed on, delayed, delivered late, cut or swallowed.

It sees TLS records only, so it acts on bytes and chunks: a client's first chunk is its hello, and what a server sends
after the client's second chunk is its answer.
"""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.harness.loop import CHUNK, LOOPBACK, Loop


@dataclass(frozen=True)
class Fault:
    """What a link does to everything that goes through it, until it is told otherwise."""

    kind: str = "none"
    amount: float = 0.0  # bytes to let through, or seconds to wait

    @staticmethod
    def draw(rng: random.Random) -> "Fault":
        kind = rng.choice(["refuse", "cut-request", "cut-response", "drop-response", "hold-request", "slow"])
        if kind.startswith("cut"):
            return Fault(kind, rng.choice([100, 600, 900, 2000, 6000]) + rng.randrange(200))
        return Fault(kind, {"hold-request": rng.uniform(0.4, 1.2), "slow": rng.uniform(0.02, 0.3)}.get(kind, 0.0))


NONE = Fault()


class Link:
    """Listens on a port of its own and passes on to another, as its fault allows."""

    def __init__(self, loop: Loop, target: int) -> None:
        self._loop, self._target = loop, target
        self.fault, self.held = NONE, 0
        self._open: set[asyncio.Task[Any]] = set()
        self._server = loop.run(asyncio.start_server(self._serve, LOOPBACK, 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """End all connections now."""
        self._loop.run(self._cut())

    def settle(self) -> None:
        """Be a good link again; what was held is delivered first."""
        self.fault = NONE
        self._loop.run(self._settle())

    def close(self) -> None:
        self._loop.run(self._close())

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0.05)  # whoever was let in before has a task by then
        await self._cut()

    async def _cut(self) -> None:
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle(self) -> None:
        while self.held:
            await asyncio.sleep(0.05)
        await self._cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await _Connection(self).run(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio's server would report it
        finally:
            writer.transport.abort()
            self._open.discard(task)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(LOOPBACK, self._target)


class _Connection:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._chunks_up = 0

    async def run(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self._link.fault.kind == "refuse":
            return
        with suppress(OSError):
            server, to_server = await self._link.connect()
            try:
                await self._both_ways(client, to_client, server, to_server)
            finally:
                to_server.transport.abort()

    async def _both_ways(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        """Until one side ends or the fault cuts."""
        tasks = {asyncio.create_task(self._up(client, to_server)), asyncio.create_task(self._down(server, to_client))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _up(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        passed = 0
        while chunk := await source.read(CHUNK):
            self._chunks_up += 1
            fault = self._link.fault
            if fault.kind == "cut-request" and passed + len(chunk) > fault.amount:
                target.write(chunk[: max(0, int(fault.amount) - passed)])
                await target.drain()
                return
            if fault.kind == "slow" or (fault.kind == "hold-request" and self._chunks_up > 1):
                await self._hold(fault.amount)
            target.write(chunk)
            await target.drain()
            passed += len(chunk)
        if self._link.fault.kind == "hold-request":
            await self._hold(0.5)  # the server gets to read what came late before it hears that the client left

    async def _hold(self, seconds: float) -> None:
        self._link.held += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._link.held -= 1

    async def _down(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        passed = 0
        while chunk := await source.read(CHUNK):
            fault = self._link.fault
            if fault.kind == "drop-response" and self._chunks_up > 1:
                continue
            if fault.kind == "cut-response" and passed + len(chunk) > fault.amount:
                return
            if fault.kind == "slow":
                await asyncio.sleep(fault.amount)
            with suppress(OSError):  # the client has gone; what it sent is still on its way
                target.write(chunk)
                await target.drain()
            passed += len(chunk)
