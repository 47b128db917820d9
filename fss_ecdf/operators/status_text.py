"""Waves of a campaign, as an operator sees them."""

from collections.abc import Iterator

from fss_ecdf.campaign.status import Status

SHOWN = 8  # the newest; earlier ones are counted


def lines(status: Status) -> Iterator[str]:
    """What goes wrong, and the waves of a campaign that has several."""
    for trouble in status.troubles:
        yield f"  {of(trouble.wave or None)}{trouble.what} since {trouble.since}: {trouble.detail}"
    if len(status.waves) == 1 and status.planned_waves is None:
        return
    epsilon = f"{status.epsilon_for_party:g}"
    yield f"  wave {status.wave} is the newest; whoever joins it consents to epsilon {epsilon} in all"
    earlier = status.waves[:-SHOWN]
    if earlier:
        total = sum(wave.uploads for wave in earlier)
        yield f"  waves {earlier[0].number} to {earlier[-1].number}: {total} uploads"
    for wave in status.waves[-SHOWN:]:
        parts = ["abandoned" if wave.abandoned else wave.state, f"{wave.uploads} uploads"]
        parts += [f"{wave.rejected} rejected"] if wave.rejected else []
        parts += [f"{wave.unmatched} excluded, which only this server had"] if wave.unmatched else []
        parts += [] if wave.phase is None else [f"{wave.phase} {100 * (wave.progress or 0):.0f} %"]
        yield f"  wave {wave.number}: {', '.join(parts)}"


def of(wave: int | None) -> str:
    return "" if wave is None else f"wave {wave}: "


def show_progress(line: str) -> None:
    print(f"\r{line:<78}", end="", flush=True)
