"""Structured logs: one JSON object a line, on standard error. Nothing in them is secret or names a party.

Callers give counts, codes, durations and campaign ids (which are public), never keys, shares, tokens, seeds or the
thresholds somebody asked for.
"""

import json
import logging
import sys
from datetime import UTC, datetime


class ServerLog(logging.Handler):
    """What uvicorn has to say, in the same form and without tracebacks, which could show what a request carried."""

    def emit(self, record: logging.LogRecord) -> None:
        event("server", level=record.levelname.lower(), message=record.getMessage().strip())


def event(what: str, **fields: object) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    print(json.dumps({"at": now, "event": what, **fields}), file=sys.stderr, flush=True)
