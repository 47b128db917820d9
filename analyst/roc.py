"""ROC and precision-recall curves from two strata of one release, and the areas under them.

The grid variable is a score, and whoever has a score above t is called positive. With F_0 and F_1 the curves of the
negative and the positive stratum, the false and true positive rates at t are 1 - F_0(t) and 1 - F_1(t). Points run
from the highest threshold, where nobody is called positive, to "everybody".

Defined behaviour where noise could spoil a fraction: a stratum whose smoothed total is below 1 is an error
(`too-noisy`); a total within three standard errors of zero is a note in the result; where nobody is called positive,
precision is 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst import uncertainty
from analyst.curve import Curve
from analyst.table import Columns, Tabular
from campaign.errors import InvalidQuery

Floats = NDArray[np.float64]


def cells(counts: Floats) -> Floats:
    """How many values lie in each cell of the grid."""
    return np.diff(counts, prepend=0.0)


def area_and_slopes(negative: Floats, positive: Floats) -> tuple[float, Floats, Floats]:
    """P(positive > negative) + P(equal) / 2 from cells, and its derivatives by each negative and positive cell.

    The number U of correctly ordered pairs (Mann and Whitney) over the number of all pairs.
    """
    n0, n1 = negative.sum(), positive.sum()
    below = np.cumsum(negative) - negative / 2  # negatives under a positive of each cell, ties as halves
    above = n1 - np.cumsum(positive) + positive / 2
    area = float(below @ positive / (n0 * n1))
    return area, (above / n1 - area) / n0, (below / n0 - area) / n1


@dataclass(frozen=True)
class Roc(Tabular):
    """One point for each threshold, and the two ends; index i calls positive who is above the i-th highest."""

    negative: Curve
    positive: Curve

    def __post_init__(self) -> None:
        if self.negative.campaign.digest != self.positive.campaign.digest:
            raise InvalidQuery("both curves must come from the same campaign")
        if self.negative.stratum == self.positive.stratum:
            raise InvalidQuery(f"a ROC curve needs two strata, got {self.positive.stratum!r} twice")
        _ = self.negative.total, self.positive.total

    @cached_property
    def false_positive_rate(self) -> Floats:
        return _rates(self.negative)

    @cached_property
    def true_positive_rate(self) -> Floats:
        return _rates(self.positive)

    @property
    def recall(self) -> Floats:
        return self.true_positive_rate

    @cached_property
    def precision(self) -> Floats:
        """True positives among those called positive; 1 where nobody is."""
        true = self.true_positive_rate * self.positive.total
        called = true + self.false_positive_rate * self.negative.total
        return np.divide(true, called, out=np.ones_like(true), where=called > 1e-9)

    @cached_property
    def _area(self) -> tuple[float, float]:
        area, by_negative, by_positive = area_and_slopes(cells(self.negative.counts), cells(self.positive.counts))
        weights = {self.negative.stratum: by_negative, self.positive.stratum: by_positive}
        return area, uncertainty.error_of_sum(self.negative.campaign, weights)

    @property
    def auc(self) -> float:
        """The area under the ROC curve."""
        return self._area[0]

    @property
    def auc_error(self) -> float:
        """The standard error of the area by the noise, to first order."""
        return self._area[1]

    def auc_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        half = uncertainty.z_score(confidence) * self.auc_error
        return max(0.0, self.auc - half), min(1.0, self.auc + half)

    @property
    def average_precision(self) -> float:
        """The area under the precision-recall curve as a sum of steps, without interpolation."""
        return float(np.diff(self.recall) @ self.precision[1:])

    def region(self, confidence: float = 0.95, seed: int = 0) -> "Region":
        """Limits of both rates that hold the true point of every threshold, all at once, with this probability."""
        curves = (self.negative, self.positive)
        rates = {curve.stratum: curve.fractions for curve in curves}
        factor = uncertainty.simultaneous_factor(self.negative.campaign, rates, confidence, seed)
        limits = [_ends(limit) for curve in curves for limit in reversed(curve.limits(factor))]
        return Region(*limits)

    @property
    def notes(self) -> list[str]:
        return [*self.negative.notes, *self.positive.notes]

    def columns(self) -> Columns:
        size = self.negative.counts.size
        return {
            "called_positive_above": [*self.negative.campaign.grid.labels(np.arange(size)[::-1]), None],
            "false_positive_rate": self.false_positive_rate,
            "true_positive_rate": self.true_positive_rate,
            "precision": self.precision,
        }

    def about(self) -> dict[str, Any]:
        return {
            "negative": self.negative.stratum,
            "positive": self.positive.stratum,
            "n": self.negative.n,
            "n_negative": self.negative.total,
            "n_positive": self.positive.total,
            "epsilon": self.negative.epsilon,
            "smoothing": self.negative.smoothing,
            "auc": self.auc,
            "auc_error": self.auc_error,
            "average_precision": self.average_precision,
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Region:
    """Limits of the false and the true positive rate, from the highest threshold to below the lowest."""

    least_false: Floats
    most_false: Floats
    least_true: Floats
    most_true: Floats


def _rates(curve: Curve) -> Floats:
    return _ends(curve.fractions)


def _ends(fractions: Floats) -> Floats:
    """1 - F from the highest threshold to below the lowest."""
    return np.append(1.0 - fractions[::-1], 1.0)
