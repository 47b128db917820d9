"""How many values lie in each of several bins, and which share of all that is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import uncertainty
from analyst.estimation.estimate import INTERVALS, Interval, limits_as_columns, ratio_interval
from analyst.present.table import Columns, Tabular
from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.grid import Grid

if TYPE_CHECKING:
    from analyst.statistics.curve import Curve

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Histogram(Tabular, picture="histogram"):
    """Counts and shares of bins, each above its lower and at or below its upper edge; the first has no lower one."""

    description: Mapping[str, Any]
    above: list[Any]
    up_to: list[Any]
    edges: Floats
    counts: Floats
    standard_errors: Floats
    fractions: Floats
    ranges: Mapping[Interval, tuple[Floats, Floats]]

    def columns(self) -> Columns:
        return {
            "above": self.above,
            "up_to": self.up_to,
            "count": self.counts,
            "count_noise_error": self.standard_errors,
            "share": self.fractions,
            **limits_as_columns(self.ranges),
        }

    def metadata(self) -> dict[str, Any]:
        return dict(self.description)


def bin_ends(grid: Grid, edges: Values) -> tuple[Index, list[str]]:
    """The last index of each bin, and a note for every edge that lay between thresholds."""
    if isinstance(edges, int | np.integer):
        bins = int(edges)
        if bins < 1:
            raise InvalidQuery(f"a histogram has at least 1 bin, got {bins}")
        # Of numbers that are measured, the first cell holds but the lowest of all; of those that are counted, as many.
        before = 0 if grid.values == "float" and bins < grid.size else -1
        index = np.unique(np.linspace(before, grid.size - 1, bins + 1)[1:].round().astype(np.int64).clip(0))
        fewer = [f"the grid has {grid.size} thresholds: {index.size} bins, not {bins}"] if index.size < bins else []
        return index, fewer
    edges = many(edges)
    index = grid.index_at(edges)
    if not index.size or not (np.diff(index, prepend=-1) > 0).all():
        raise InvalidQuery("the edges of a histogram must increase by at least one step of the grid")
    moved = grid.thresholds(index) != grid.numbers(edges)
    return index, [
        f"the edge {given} is no threshold of the grid and was moved to {grid.label(int(i))}"
        for given, i, differs in zip(edges, index, moved, strict=True)
        if differs
    ]


def histogram(curve: "Curve", edges: Values, confidence: float = 0.95) -> Histogram:
    """Of one curve."""
    grid = curve.campaign.variable.grid
    index, notes = bin_ends(grid, edges)
    below = np.concatenate([[-1], index[:-1]])
    variance, shared = (curve.caution**2 * v for v in curve.noise.bin_variances(below, index))
    counts, raw = np.diff(curve.counts[index], prepend=0.0), np.diff(curve.raw[index], prepend=0.0)
    shares, z, ranges = counts / curve.total, uncertainty.z_score(confidence), {}
    for kind in INTERVALS:
        binomial = curve.raw_total if kind == "population" else 0.0
        quadratic = variance, binomial - 2 * shared, curve.caution**2 * curve.noise.total_variance - binomial
        low, high = ratio_interval(raw, curve.raw_total, quadratic, z, whole=True)
        ranges[kind] = np.minimum(low, shares), np.maximum(high, shares)
    if index[-1] < grid.size - 1:
        rest = curve.counts[-1] - curve.counts[index[-1]]
        notes.append(f"about {rest:.0f} values lie above the last edge, in no bin")
    about = {**curve.metadata(), "confidence": confidence, "notes": notes}
    above: list[Any] = [None, *grid.labels(index[:-1])]
    labels = grid.labels(index)
    return Histogram(about, above, labels, grid.thresholds(index), counts, np.sqrt(variance), shares, ranges)
