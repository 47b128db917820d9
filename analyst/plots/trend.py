"""Pictures over time: quantiles of every wave with bands, shares with their limits and alerts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analyst.estimation.estimate import Interval
from analyst.plots.curves import BAND_ALPHA, figure, inks, literal, x_label
from analyst.statistics.trend import FractionTrend, QuantileTrend, TrendTable


def over_time(table: QuantileTrend, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Each level a line over the waves, with a band."""

    def draw(axes: Axes) -> None:
        levels = list(dict.fromkeys(row["level"] for row in table.rows))
        for level, (colour, dashes) in zip(levels, inks(len(levels)), strict=True):
            rows = [row for row in table.rows if row["level"] == level and "value" in row]
            x = _times(axes, rows)
            values, low, high = (_numbers(rows, name) for name in ("value", f"{interval}_lower", f"{interval}_upper"))
            axes.fill_between(x, low, high, color=colour, alpha=BAND_ALPHA, linewidth=0)
            name = "median" if level == 0.5 else f"{level:g} quantile"
            axes.plot(x, values, color=colour, linestyle=dashes, marker="o", markersize=3, label=name)
        axes.set_ylabel(x_label(table.campaign))
        axes.set_xlabel("end of the wave" if _is_timed(table.rows) else "wave")
        axes.set_title(literal(table.campaign.title))
        _legend_beside(axes)

    return figure(draw, _about(table, interval), names=True, ax=ax)


def fractions(table: FractionTrend, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """The share over the waves with intervals; waves outside the limits are marked."""

    def draw(axes: Axes) -> None:
        rows = [row for row in table.rows if "share" in row]
        x, (colour, _) = _times(axes, rows), inks(1)[0]
        values, low, high = (_numbers(rows, name) for name in ("share", f"{interval}_lower", f"{interval}_upper"))
        axes.errorbar(x, values, [values - low, high - values], fmt="o-", color=colour, markersize=3, capsize=2)
        outside = [i for i, row in enumerate(rows) if row.get("outside")]
        if outside:
            alerts = [x[i] for i in outside]
            axes.plot(alerts, values[outside], "D", color="#c14a00", markersize=8, fillstyle="none", label="outside")
            _legend_beside(axes)
        for limit in str(table.description.get("limits", "")).split(" to "):
            if limit:
                axes.axhline(float(limit), color="#222222", linewidth=1, linestyle="--")
        axes.set_ylabel(f"share at or below {table.description['at_or_below']}")
        axes.set_xlabel("end of the wave" if _is_timed(table.rows) else "wave")
        axes.set_title(literal(table.campaign.title))

    return figure(draw, _about(table, interval), names=True, ax=ax)


def _legend_beside(axes: Axes) -> None:
    """To the right of the axes, where it covers no data."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _numbers(rows: Sequence[Any], name: str) -> np.ndarray[Any, Any]:
    """A column; days of a date grid as what they are drawn at."""
    values = [row[name] for row in rows]
    return np.array(values, "datetime64[D]" if values and isinstance(values[0], str) else np.float64)


def _is_timed(rows: Sequence[Any]) -> bool:
    return bool(rows) and all(row.get("closes") for row in rows)


def _times(axes: Axes, rows: Sequence[Any]) -> Any:
    if not _is_timed(rows):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return [row["wave"] for row in rows]
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    return [datetime.fromisoformat(row["closes"]) for row in rows]


def _about(table: TrendTable, interval: Interval) -> str:
    waves, epsilon = table.description["waves"], table.description["epsilon"]
    confidence = table.description["confidence"]
    return f"{waves} waves, epsilon = {epsilon:g} each, {confidence:.0%} intervals ({interval})"
