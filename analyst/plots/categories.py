"""Bars of categories: their proportions in each stratum, with intervals."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analyst.estimation.estimate import Interval
from analyst.plots.curves import figure, inks, literal
from analyst.statistics.categories import CategoryTable


def categories(table: CategoryTable, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """One bar for each category of each stratum, and its interval."""
    columns, names = table.columns(), table.counts.categories
    shape = len(table.strata), len(names)
    value, low, high = (
        np.asarray(columns[name], np.float64).reshape(shape)
        for name in ("proportion", f"{interval}_lower", f"{interval}_upper")
    )

    def draw(axes: Axes) -> None:
        width, at = 0.8 / len(table.strata), np.arange(len(names), dtype=np.float64)
        for row, (stratum, (colour, _)) in enumerate(zip(table.strata, inks(len(table.strata)), strict=True)):
            x, known = at + (row - (len(table.strata) - 1) / 2) * width, np.nan_to_num(value[row])
            name = literal(stratum) if len(table.strata) > 1 else None
            axes.bar(x, known, width * 0.9, color=colour, alpha=0.6, label=name)
            ends = np.maximum([known - low[row], high[row] - known], 0.0)
            axes.errorbar(x, known, yerr=ends, fmt="none", ecolor=colour, capsize=3)
        axes.set_xticks(at, [literal(name) for name in names], rotation=0 if len(names) < 6 else 30, ha="center")
        axes.set_ylabel("proportion")
        axes.set_xlabel(literal(str(table.about["value"])))
        axes.grid(axis="x", visible=False)
        axes.set_ylim(0.0, None)
        if len(table.strata) > 1:
            axes.legend()

    told = f"n = {table.about['n']}, epsilon = {table.about['epsilon']:g}, {table.confidence:.0%} {interval} intervals"
    return figure(draw, told, names=True, ax=ax)
