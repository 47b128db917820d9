"""Bounds on what a connection may send before it amounts to anything, whatever parses its HTTP.

Parsers keep the head of a request, or the trailer of its body, until it is complete, and some of them without a limit.
So bytes are counted here, before any parser has them: those that neither finished a head nor brought a byte of a body.
"""

import json
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from campaign.errors import HeadTooLarge
from servers import log, metrics

# Room for a question about ten thousand thresholds, whose address is part of the head.
HEAD_BYTES = 1 << 16
FAREWELL_S = 1.0


class BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Uvicorn's protocol for the parser that is installed, with HEAD_BYTES for a head."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unused = 0  # bytes since the last that made a request or a part of its body
        self._owed = 0  # bytes that the last request announced as its body, and that are still to come

    def data_received(self, data: bytes) -> None:
        while data and not self.transport.is_closing():
            piece, data = data[: HEAD_BYTES - self._unused], data[HEAD_BYTES - self._unused :]
            before, body = self.cycle, _body_bytes(self.cycle)
            super().data_received(piece)
            if self.cycle is not before:
                self._unused, self._owed = 0, _announced(self.cycle)
                continue
            owed = min(len(piece), self._owed)
            self._owed -= owed
            # A connection that waits for its turn is not read from, so what it sent already is all there is.
            used = _body_bytes(self.cycle) > body or self.flow.read_paused
            self._unused = 0 if used else self._unused + len(piece) - owed
            if self._unused >= HEAD_BYTES:
                self._refuse()

    def _refuse(self) -> None:
        log.event("head-too-large")
        metrics.REFUSALS.labels(HeadTooLarge.code).inc()
        # An answer out of turn would be taken for another request's.
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_answer())
            self.transport.close()
            # Time to read the answer, but not as long as TLS waits for the end of a client that goes on sending.
            self.loop.call_later(FAREWELL_S, self.transport.abort)
        else:
            self.transport.abort()


def _answer() -> bytes:
    problem = HeadTooLarge(f"the head of a request, its address included, has at most {HEAD_BYTES} bytes")
    body = json.dumps(problem.document()).encode()
    head = (
        f"HTTP/1.1 {problem.status} Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def _body_bytes(cycle: Any) -> int:
    """What has arrived of a request's body and was not read yet; only reading, which never happens here, lowers it."""
    return 0 if cycle is None else len(cycle.body)


def _announced(cycle: Any) -> int:
    lengths = [value for name, value in cycle.scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() and len(lengths[0]) < 20 else 0
