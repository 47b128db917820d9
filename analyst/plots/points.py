"""Pictures of what is known at some places only: points of a curve, and quantiles."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analyst.estimation.estimate import Interval
from analyst.plots.curves import INKS, about_line, figure, literal
from analyst.statistics.ecdf_points import Points
from analyst.statistics.quantile import Quantiles


def points(
    made: Points, quantiles: Quantiles | None = None, interval: Interval = "population", ax: Axes | None = None
) -> Figure:
    """The curve at some values with their intervals, and quantiles of it."""

    def draw(axes: Axes) -> None:
        x, (low, high) = places(made.thresholds), made.ranges[interval]
        arms = [np.maximum(made.fractions - low, 0.0), np.maximum(high - made.fractions, 0.0)]
        style: Any = {"fmt": ".", "color": INKS[0][0], "elinewidth": 0.8, "markersize": 4}
        axes.errorbar(x, made.fractions, arms, **style, label=f"points, 95% intervals ({interval})")
        if quantiles is not None:
            _levels(axes, quantiles, interval)
        _name(axes, made.description)

    about = made.description
    return figure(draw, about_line(about["n"], about["epsilon"], about["smoothing"], interval), ax=ax)


def quantiles(made: Quantiles, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Each level at the value where the curve reaches it, with its interval."""

    def draw(axes: Axes) -> None:
        _levels(axes, made, interval)
        _name(axes, made.description)

    about = made.description
    return figure(draw, about_line(about["n"], about["epsilon"], about["smoothing"], interval), ax=ax)


def _levels(axes: Axes, made: Quantiles, interval: Interval) -> None:
    ends = [places(end) for end in made.ranges[interval]]
    axes.hlines(made.levels, *ends, color="#222222", linewidth=1.6)
    label = f"quantiles, {made.confidence:.0%} intervals ({interval})"
    axes.plot(places(made.thresholds), made.levels, "o", color="#222222", markersize=4, label=label)


def _name(axes: Axes, about: Any) -> None:
    axes.set_ylabel("fraction at or below")
    axes.set_xlabel(literal(about["value"]))
    axes.set_ylim(-0.02, 1.02)
    axes.legend(loc="lower right")
    axes.set_title(literal(f"Distribution function: {about['stratum']}"))


def places(labels: Sequence[Any]) -> Any:
    """Thresholds on an axis: dates as dates."""
    try:
        return np.array(labels, np.float64)
    except ValueError:
        return np.array(labels, "datetime64[D]")
