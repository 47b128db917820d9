"""Campaigns of waves over time: quantiles, fractions with alerts, and changes."""

from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import WAVES
from analyst.options import Confidence, Option, Strata, numbers
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from analyst.options import Interval, Values
    from analyst.present.section import Section
    from analyst.statistics.trend import FractionTrend, QuantileTrend, Trend, WaveChanges
    from fss_ecdf.pages.local_server import Query

MIDDLE = (0.25, 0.5, 0.75)
Levels = Annotated["Values", Option("fractions, separated by commas", numbers)]
AtOrBelow = Annotated["float | str", Option("the value", str)]
_LIMITS = {"metavar": "LOW,HIGH"}
Limits = Annotated["tuple[float, float] | None", Option("alert where the fraction leaves them", numbers, more=_LIMITS)]


def trend(
    waves: "Trend", levels: Levels = MIDDLE, stratum: Strata = None, *, confidence: Confidence = 0.95
) -> "QuantileTrend":
    """Show quantiles of every wave.

    Returns `QuantileTrend`, one row for each wave and level; a wave that the noise hides has no value.
    Raises `InvalidQuery` for a level that is not between 0 and 1.
    """
    from fss_ecdf.campaign.array_inputs import many

    return waves.quantiles([float(level) for level in many(levels)], stratum, confidence=confidence)


def trend_fraction(
    waves: "Trend",
    at: AtOrBelow,
    stratum: Strata = None,
    *,
    limits: Limits = None,
    confidence: Confidence = 0.95,
    interval: "Interval" = "population",
) -> "FractionTrend":
    """Show the fraction at or below a value in every wave, and the waves in which it leaves its limits.

    Returns `FractionTrend`, one row for each wave; alerts hold for all waves together.
    Raises `InvalidQuery` for limits that are not two fractions, the lower one first.
    """
    ends = None if limits is None else (limits[0], limits[-1])
    return waves.fractions(at, stratum, limits=ends, confidence=confidence, interval=interval)


def trend_changes(waves: "Trend", stratum: Strata = None, *, confidence: Confidence = 0.95) -> "WaveChanges":
    """Compare each wave with the one before it, with tests.

    Returns `WaveChanges`, one row for each wave but the first.
    Raises `InvalidQuery` for a stratum that the campaign does not have.
    """
    return waves.changes(stratum, confidence=confidence)


def _section(waves: "Trend") -> "Section | None":
    from analyst import plots
    from analyst.present.section import Section

    if not waves.waves:
        return None
    quantiles, changes = waves.quantiles(), waves.changes()
    figures = {"over-time": ("Quartiles of every wave with bands", plots.over_time(quantiles))}
    certain = [str(row["wave"]) for row in changes.rows if row["p_adjusted"] < 0.05]
    finding = f"{len(waves.waves)} waves; changed from the one before (Holm-adjusted p < 0.05): "
    finding += f"wave {', '.join(certain)}." if certain else "none."
    return Section("Over time", [], figures, {"over-time": quantiles, "changes": changes}, findings=[finding])


def _view(waves: "Trend", query: "Query") -> dict[str, Any]:
    """Quartiles of every wave, and each wave against the one before it; as they are now."""
    from analyst.present.console import as_json, confidence_of

    stratum, confidence = query.texts("stratum") or None, confidence_of(query)
    quantiles = waves.quantiles(stratum=stratum, confidence=confidence)
    return {"quantiles": as_json(quantiles), "changes": as_json(waves.changes(stratum, confidence=confidence))}


_HERE = Shown(in_report=False, in_console=False)  # both have it with the quantiles
TREND = Statistic(
    trend, "Over time", order=45, needs=(WAVES,), source="waves", shown=Shown(section=_section, view=_view)
)
TREND_FRACTION = Statistic(
    trend_fraction, "Fractions over time, alerts", order=46, needs=(WAVES,), source="waves", shown=_HERE
)
TREND_CHANGES = Statistic(trend_changes, "Changes between waves", order=47, needs=(WAVES,), source="waves", shown=_HERE)
