"""What a report has to say about a release: the sections of all statistics that the campaign supports."""

from collections.abc import Callable, Iterator
from functools import partial

from analyst import plots
from analyst.point_queries import PointRelease
from analyst.present.section import Section, merged, stratum_parts
from analyst.present.table import short
from analyst.registry import statistics
from analyst.release import Release
from analyst.statistics.trend import Trend
from fss_ecdf.campaign.errors import Problem


def sections(release: Release | PointRelease, waves: Trend | None = None) -> list[Section]:
    """Waves first, then the statistics in their order; what the noise does not allow is said in its place."""
    if isinstance(release, PointRelease):
        return list(_by_points(release))
    reported = [entry for entry in statistics().values() if entry.is_reported(release.campaign)]
    parts: list[Section] = []
    for statistic in sorted(reported, key=lambda entry: entry.source != "waves"):
        source = waves if statistic.source == "waves" else release
        if source is not None:
            parts += _allowed(statistic.title, partial(statistic.section, source))
        if (make := statistic.shown.stratum_section) is not None:
            for part in stratum_parts(release.campaign):
                parts += _allowed(part.title, partial(make, release, part))
    return merged(parts)


def _allowed(title: str, make: Callable[[], Section | None]) -> list[Section]:
    """A section, or why the noise does not allow it."""
    try:
        section = make()
    except Problem as problem:
        return [Section(title, notes=[problem.detail])]
    return [] if section is None else [section]


def _by_points(release: PointRelease) -> Iterator[Section]:
    """Of a grid that is too large for whole curves."""
    for part in stratum_parts(release.campaign):
        found = release.parts[part.stratum]
        if isinstance(found, str):
            yield Section(part.title, notes=[found])
            continue
        curve, quantiles, bins = found
        name, key = part.name, part.key
        figures = {
            f"{key}-curve": (f"Distribution function of {name} at some values", plots.points(curve, quantiles)),
            f"{key}-histogram": (f"Histogram of {name}", plots.histogram(bins, f"Histogram: {name}")),
        }
        tables = {f"{key}-quantiles": quantiles, f"{key}-histogram": bins, f"{key}-points": curve}
        notes = [
            f"This grid has 2^{release.campaign.bits} positions, too many for whole curves: points were asked for. "
            "What needs all of it (means, ROC, calibration, comparisons) is not here.",
            *bins.metadata()["notes"],
        ]
        at = quantiles.levels.index(0.5)
        ends = f"{short(quantiles.lower[at])} to {short(quantiles.upper[at])}"
        finding = f"Median of {name}: {short(quantiles.thresholds[at])} (95 % population interval {ends})."
        yield Section(part.title, [], figures, tables, notes, [finding])
