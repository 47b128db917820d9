"""A cut-off of any scale as a test: sensitivity, specificity, predictive values and likelihood ratios from sums.

Values at or above a cut-off are called positive (blood pressure >= 140). The sums are counts of both strata between
cut-offs: every value is in one of them, so replacing it changes two of them by one, however many cut-offs there are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation.estimate import INTERVALS, Interval, IntervalEstimate
from analyst.estimation.noisy import Noisy, proportion
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_ANY_RATIO = (0.0, math.inf)


def cutoff_rows(first_called: Sequence[int], size: int) -> Integers:
    """Weights over the cells of two strata (negative, positive): stretches that start at the cut-offs, and at 0."""
    starts = np.asarray([0, *first_called], np.int64)
    if len(first_called) < 1 or (np.diff(starts) < 1).any() or starts[-1] >= size:
        raise InvalidQuery(f"cut-offs are increasing indices from 1 to {size - 1}, got {list(first_called)}")
    stretch = np.searchsorted(starts, np.arange(size), side="right") - 1
    inside = (stretch == np.arange(starts.size)[:, np.newaxis]).astype(np.int64)
    return np.asarray(np.kron(np.eye(2, dtype=np.int64), inside))


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """Noisy counts of stretches, those of the negative stratum first; n of both strata is public."""

    counts: Noisy
    labels: tuple[str, ...]
    confidence: float = 0.95

    @classmethod
    def from_sums(cls, counts: Noisy, n: int, labels: Sequence[str], confidence: float = 0.95) -> "Cutoffs":
        if counts.values.size != 2 * (len(labels) + 1):
            raise InvalidQuery(f"{counts.values.size} counts for {len(labels)} cut-offs of two strata")
        return cls(counts.given(np.ones(counts.values.size), n), tuple(labels), confidence)

    def at(self, label: str) -> list[IntervalEstimate]:
        """Sensitivity, specificity, predictive values, likelihood ratios, in this order."""
        i, half = self.labels.index(label) + 1, self.counts.values.size // 2
        negative, positive = np.arange(2 * half) < half, np.arange(2 * half) >= half
        called = np.tile(np.arange(half) >= i, 2)
        sensitivity = self._fraction(f"sensitivity at {label}", positive & called, positive)
        specificity = self._fraction(f"specificity at {label}", negative & ~called, negative)
        missed = self._fraction("missed", positive & ~called, positive)
        false = self._fraction("false alarms", negative & called, negative)
        return [
            sensitivity,
            specificity,
            self._fraction(f"positive predictive value at {label}", positive & called, called),
            self._fraction(f"negative predictive value at {label}", negative & ~called, ~called),
            ratio_of_fractions(f"positive likelihood ratio at {label}", sensitivity, false),
            ratio_of_fractions(f"negative likelihood ratio at {label}", missed, specificity),
        ]

    def _fraction(self, name: str, top: ArrayLike, bottom: ArrayLike) -> IntervalEstimate:
        rows = np.vstack([np.asarray(top, np.float64), np.asarray(bottom, np.float64)])
        return proportion(name, self.counts.combine(rows), self.confidence)


def ratio_of_fractions(name: str, top: IntervalEstimate, bottom: IntervalEstimate) -> IntervalEstimate:
    """Two fractions of different people, one over the other, from the intervals of both (MOVER, on logarithms)."""
    if math.isnan(top.value) or math.isnan(bottom.value):
        everything: dict[Interval, tuple[float, float]] = dict.fromkeys(INTERVALS, _ANY_RATIO)
        return IntervalEstimate(name, math.nan, math.nan, math.nan, _ANY_RATIO, None, everything, top.confidence)
    value = top.value / bottom.value if bottom.value > 0 else math.nan
    ranges = {kind: _ratio_limits(top, bottom, kind) for kind in INTERVALS}
    return IntervalEstimate(name, value, math.nan, math.nan, _ANY_RATIO, None, ranges, top.confidence)


def _ratio_limits(top: IntervalEstimate, bottom: IntervalEstimate, kind: Interval) -> tuple[float, float]:
    (a, b), (c, d) = top.ranges[kind], bottom.ranges[kind]
    if top.value <= 0 or bottom.value <= 0:  # no logarithm: from the least to the largest that both can make
        return (a / d if d > 0 else 0.0), (b / c if c > 0 else math.inf)
    value = top.value / bottom.value
    low = 0.0 if a <= 0 else value * math.exp(-math.hypot(math.log(top.value / a), math.log(d / bottom.value)))
    high = math.inf if c <= 0 else value * math.exp(math.hypot(math.log(b / top.value), math.log(bottom.value / c)))
    return low, high
