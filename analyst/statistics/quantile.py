"""The inverse of a curve (Algorithm 1 of the paper), on indices of the grid.

The paper searches the interval [0, 1] for a value; here the search is over the indices of the grid, where it ends. On a
curve that does not decrease it finds the first index at which the count reaches the target. On a raw curve, which may,
it finds an index at which the count reaches the target and before which it does not: one of the crossings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation.estimate import Interval, limits_as_columns
from analyst.present.table import Columns, Tabular

Floats = NDArray[np.float64]


def target(level: float, total: float) -> float:
    """The count that a quantile must reach; 0.07 of 100 values are 7, not a little more by rounding."""
    return level * total * (1 - 1e-12)


def inverse(counts: Floats, target: float) -> int:
    """Binary search for the index at which the count reaches the target; the last one if none does."""
    low, high = 0, counts.size - 1
    while low < high:
        middle = (low + high) // 2
        if counts[middle] >= target:
            high = middle
        else:
            low = middle + 1
    return low


def interval(counts: Floats, reach: Floats, target: float) -> tuple[int, int]:
    """From the first index whose count may have reached the target to the last one whose predecessor may not have.

    `reach`: how far a raw count may be off. The true index i has a count at or above the target and its predecessor
    one below it, so each end misses it with at most half the probability that a count is off by more. Counts are off
    by whole numbers: a reach between two is rounded up.
    """
    reach = np.ceil(reach - 1e-6)
    may_have = counts + reach >= target
    may_not = counts - reach < target
    lower = int(np.argmax(may_have)) if may_have.any() else counts.size - 1
    upper = counts.size - int(np.argmax(may_not[::-1])) if may_not.any() else 0
    return lower, min(upper, counts.size - 1)


def between(lower: Floats, upper: Floats, level: float) -> tuple[int, int]:
    """The first and the last index at which a curve between two others may reach a level."""
    wanted, last = target(level, 1.0), lower.size - 1
    first, end = (int(np.searchsorted(curve, wanted - 1e-12)) for curve in (upper, lower))
    return min(first, last), min(end, last)


@dataclass(frozen=True)
class Quantiles(Tabular, picture="quantiles"):
    """For each level, the threshold at which the curve reaches it, and both intervals for it."""

    description: Mapping[str, Any]
    confidence: float
    levels: list[float]
    index: list[int]
    thresholds: list[Any]
    ranges: Mapping[Interval, tuple[list[Any], list[Any]]]
    indices: Mapping[Interval, tuple[list[int], list[int]]]

    @property
    def lower(self) -> list[Any]:
        """The lower ends for the population."""
        return self.ranges["population"][0]

    @property
    def upper(self) -> list[Any]:
        return self.ranges["population"][1]

    def columns(self) -> Columns:
        return {"level": self.levels, "threshold": self.thresholds, **limits_as_columns(self.ranges)}

    def metadata(self) -> dict[str, Any]:
        return {**self.description, "confidence": self.confidence}
