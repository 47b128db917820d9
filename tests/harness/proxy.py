"""A TCP proxy that counts. It stands between two programs, changes nothing, and holds no key: TLS passes through.

Bytes are counted where they are read, so that what a sender put on the wire counts even if the receiver has gone.
TLS records of application data (RFC 8446, section 5) are counted by their cleartext headers.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Self

from tests.harness.loop import CHUNK, LOOPBACK, Loop

APPLICATION_DATA = 23
RECORD_HEADER = 5
# What a TLS 1.3 record of AES-GCM or ChaCha20-Poly1305 adds to its content: header, content type, tag.
RECORD_OVERHEAD = RECORD_HEADER + 1 + 16


@dataclass
class Count:
    """TCP payload from the side that connected (up) and back (down), and TLS records of application data in it."""

    connections: int = 0
    up: int = 0
    down: int = 0
    records: int = 0

    @property
    def bytes(self) -> int:
        return self.up + self.down

    def __add__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))


class Records:
    """Follows one direction of a TLS connection from record to record."""

    def __init__(self) -> None:
        self._header, self._skip = b"", 0

    def feed(self, data: bytes) -> int:
        """How many records of application data start in these bytes."""
        records = at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip, at = self._skip - step, at + step
                continue
            step = RECORD_HEADER - len(self._header)
            self._header, at = self._header + data[at : at + step], at + step
            if len(self._header) == RECORD_HEADER:
                records += self._header[0] == APPLICATION_DATA
                self._skip, self._header = int.from_bytes(self._header[3:], "big"), b""
        return records


class Proxy:
    """`with Proxy(port) as proxy:` listens on proxy.port and forwards to the given one, on loopback."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = Count()
        self.port = 0

    def __enter__(self) -> Self:
        self._loop = Loop()
        self._server = self._loop.run(asyncio.start_server(self._accept, LOOPBACK, 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._close())
        self._loop.close()

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    def count(self) -> Count:
        """Everything so far."""
        return self._loop.run(self._snapshot())

    def settled(self, seconds: float = 20) -> Count:
        """Everything, once all connections are closed on both sides."""
        until = time.monotonic() + seconds
        while self._tasks:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(self._tasks)} connections are still open")
            time.sleep(0.005)
        return self.count()

    async def _snapshot(self) -> Count:
        return self._count + Count()

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(self._pipe(reader, back, "up"), self._pipe(there, writer, "down"))
        finally:
            for end in (writer, back):
                end.close()

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """Read to the end even when nobody takes it any more, then pass the end on."""
        records = Records()
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                setattr(self._count, way, getattr(self._count, way) + len(data))
                self._count.records += records.feed(data)
                with suppress(ConnectionError):
                    writer.write(data)
                    await writer.drain()
        with suppress(OSError):
            writer.write_eof()
