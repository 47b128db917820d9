"""Bounds on what a connection may send before it amounts to anything, whatever parses its HTTP.

Parsers keep the head of a request, or the trailer of its body, until it is complete, and some of them without a limit.
So bytes are counted here, before any parser has them: those that neither finished a head nor brought a byte of a body.
What comes of a body after its request was answered is thrown away, and not for long. An address has so many
connections, and a client that does not read its answer is noted for `serve.py`, which cuts it.
"""

import json
from collections import Counter
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from fss_ecdf.campaign.errors import HeadersTooLarge, Problem, TooManyRequests
from servers import log, metrics
from servers.api.limits import address_key

# Room for a question about ten thousand thresholds, whose address is part of the head.
HEAD_BYTES = 1 << 16
# Of a body whose request was rejected before it was read; who sends more is cut off.
UNREAD_BYTES = 1 << 20
FAREWELL_S = 1.0


class BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Uvicorn's protocol for the parser that is installed, with HEAD_BYTES for a head."""

    per_address: ClassVar[int] = 1 << 30  # connections; set when the settings are known
    _open: ClassVar[Counter[str]] = Counter()  # connections by address
    stuck_since: float | None = None  # when the client has not read what was sent to it

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unused = 0  # bytes since the last that made a request or a part of its body
        self._owed = 0  # bytes that the last request announced as its body, and that are still to come
        self._unread = 0  # bytes that came after the last request was answered
        self._address = ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._address = address_key(self.client[0] if self.client else "")
        self._open[self._address] += 1
        if self._open[self._address] > self.per_address:
            self._refuse(TooManyRequests(f"an address has at most {self.per_address} connections", retry_after=1))

    def connection_lost(self, exc: Exception | None) -> None:
        self._open[self._address] -= 1
        if not self._open[self._address]:
            del self._open[self._address]
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self.stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.stuck_since = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        while data and not self.transport.is_closing():
            piece, data = data[: HEAD_BYTES - self._unused], data[HEAD_BYTES - self._unused :]
            before, body = self.cycle, _body_bytes(self.cycle)
            was_answered = before is not None and before.response_complete
            super().data_received(piece)
            if self.cycle is not before:
                self._unused, self._owed, self._unread = 0, _announced(self.cycle), 0
                continue
            self._unread += len(piece) if was_answered else 0
            owed = min(len(piece), self._owed)
            self._owed -= owed
            # A connection that waits for its turn is not read from, so what it sent already is all there is.
            used = _body_bytes(self.cycle) > body or self.flow.read_paused
            self._unused = 0 if used else self._unused + len(piece) - owed
            if self._unused >= HEAD_BYTES:
                what = f"the head of a request, its address included, has at most {HEAD_BYTES} bytes"
                self._refuse(HeadersTooLarge(what))
            elif self._unread > UNREAD_BYTES:
                self.flow.pause_reading()  # its answer is there to be read
                self.loop.call_later(FAREWELL_S, self.transport.abort)
                return

    def _refuse(self, problem: Problem) -> None:
        log.event(problem.code)
        metrics.REFUSALS.labels(problem.code).inc()
        # An answer out of turn would be taken for another request's.
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_answer(problem))
            self.transport.close()
            # Time to read the answer, but not as long as TLS waits for the end of a client that goes on sending.
            self.loop.call_later(FAREWELL_S, self.transport.abort)
        else:
            self.transport.abort()


def _answer(problem: Problem) -> bytes:
    body = json.dumps(problem.document()).encode()
    again = "" if problem.retry_after is None else f"retry-after: {problem.retry_after}\r\n"
    head = (
        f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\n{again}connection: close\r\n\r\n"
    )
    return head.encode() + body


def _body_bytes(cycle: Any) -> int:
    """What has arrived of a request's body and was not read yet; only reading, which never happens here, lowers it."""
    return 0 if cycle is None else len(cycle.body)


def _announced(cycle: Any) -> int:
    lengths = [value for name, value in cycle.scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() and len(lengths[0]) < 20 else 0
