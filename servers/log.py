"""Structured logs: one JSON object a line, on standard error. Nothing in them is secret or names a party.

Callers give counts, codes, durations and campaign ids (which are public), never keys, shares, tokens, seeds or the
thresholds somebody asked for. What is logged while a request is answered carries its id.
"""

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error")
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_least = LEVELS.index("info")


def set_level(level: str) -> None:
    """From now on, nothing below this is written."""
    global _least
    _least = LEVELS.index(level)


class ServerLog(logging.Handler):
    """What uvicorn has to say, in the same form and without tracebacks, which could show what a request carried."""

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        event("server", level=level if level in LEVELS else "error", message=record.getMessage().strip())


def event(what: str, *, level: str = "info", **fields: object) -> None:
    if LEVELS.index(level) < _least:
        return
    at, request = datetime.now(UTC).isoformat(timespec="milliseconds"), request_id.get()
    head = {"at": at, "level": level, "event": what} | ({} if request is None else {"request": request})
    print(json.dumps({**head, **fields}), file=sys.stderr, flush=True)


class failures:  # noqa: N801
    """Background work goes on after a failure of these kinds, which becomes an event of this name."""

    def __init__(self, what: str, *kinds: type[Exception], **fields: object) -> None:
        self._what, self._kinds, self._fields = what, kinds, fields

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or not isinstance(error, self._kinds):
            return False
        event(self._what, level="warning", **self._fields, error=type(error).__name__, where=where(error))
        return True


def where(error: BaseException) -> list[str]:
    """The last places an error passed through, as file:line; what was in their variables stays there."""
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    return [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
