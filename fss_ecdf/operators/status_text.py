"""Waves of a campaign, as an operator sees them."""

from collections.abc import Iterator
from typing import Any

SHOWN = 8  # the newest; earlier ones are counted


def lines(status: dict[str, Any]) -> Iterator[str]:
    """From one server's status; nothing of a campaign without waves."""
    for trouble in status.get("troubles", []):
        yield f"  {of(trouble['wave'] or None)}{trouble['what']} since {trouble['since']}: {trouble['detail']}"
    waves = status.get("waves", [])
    if not waves:
        return
    yield f"  wave {status['wave']} is the newest; whoever joins it consents to epsilon {status['consent']:g} in all"
    earlier = waves[:-SHOWN]
    if earlier:
        total = sum(int(wave["count"]) for wave in earlier)
        yield f"  waves 1 to {earlier[-1]['number']}: {total} uploads"
    for wave in waves[-SHOWN:]:
        parts = [str(wave["state"]), f"{wave['count']} uploads"]
        parts += [f"{wave['rejected']} rejected"] if wave["rejected"] else []
        parts += [f"{wave['unmatched']} excluded, which only this server had"] if wave.get("unmatched") else []
        parts += [f"{wave['phase']} {100 * wave['progress']:.0f} %"] if "phase" in wave else []
        yield f"  wave {wave['number']}: {', '.join(parts)}"


def of(wave: int | None) -> str:
    return "" if wave is None else f"wave {wave}: "


def show_progress(line: str) -> None:
    print(f"\r{line:<78}", end="", flush=True)
