"""Structured logs: one JSON object a line, on standard error. Nothing in them is secret or names a party.

Callers give counts, codes, durations and campaign ids (which are public), never keys, shares, tokens, seeds or the
thresholds somebody asked for.
"""

import json
import sys
from datetime import UTC, datetime


def event(what: str, **fields: object) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    print(json.dumps({"at": now, "event": what, **fields}), file=sys.stderr, flush=True)
