"""From text to fields: strict JSON, TOML with its dates, and what pydantic found wrong as a sentence."""

import json
import tomllib
from datetime import date, datetime
from typing import Any

from fss_ecdf.campaign.error_text import short

# Of one JSON object: more than any message of ours has.
MAX_FIELDS = 100


def parse_json(text: str | bytes) -> Any:
    """JSON in UTF-8 that says everything once, or a ValueError."""
    decoded = text.decode() if isinstance(text, bytes) else text
    fields = json.loads(decoded, object_pairs_hook=_no_duplicates)
    # Half of a surrogate pair is a string to Python, but not one that can be written again.
    if "\\u" in decoded:
        json.dumps(fields, ensure_ascii=False).encode()
    return fields


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_FIELDS:
        raise ValueError(f"{len(pairs)} fields in one object; no message has more than {MAX_FIELDS}")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


def parse_toml(text: str) -> dict[str, Any]:
    """TOML, or a ValueError; its dates as text."""
    fields: dict[str, Any] = _dates_as_text(tomllib.loads(text))
    return fields


def _dates_as_text(value: Any) -> Any:
    """TOML has dates of its own; a grid's ends may be written so."""
    if isinstance(value, dict):
        return {key: _dates_as_text(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_dates_as_text(v) for v in value]
    return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else value


def explain(error: Any) -> str:
    """One pydantic error as: field: what was wrong and what was expected."""
    where = ".".join(short(str(part)) for part in error["loc"] if part not in ("linear", "logarithmic", "explicit"))
    what = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        what = "unknown field"
    return f"{where}: {short(what, 500)}" if where else short(what, 500)
