"""ROC and precision-recall curves from two strata of one release, and the areas under them.

The grid variable is a score, and whoever has a score above t is called positive. With F_0 and F_1 the curves of the
negative and the positive stratum, the false and true positive rates at t are 1 - F_0(t) and 1 - F_1(t). Points run
from the highest threshold, where nobody is called positive, to "everybody".

Defined behaviour where noise could spoil a fraction: a stratum whose total is below two standard errors is an error
(`too-noisy`), and so is an area that is off by half; a total within four standard errors of zero is a note in the
result; where nobody is called positive, precision is 1; an average precision whose noise leaves nothing to tell has an
interval and no value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import bands, uncertainty
from analyst.estimation.bias import biases
from analyst.estimation.cells import cells
from analyst.estimation.estimate import (
    INTERVALS,
    MOST_ERROR,
    SHARE,
    Estimate,
    Interval,
    IntervalEstimate,
    Part,
    caution,
    check_interval,
    estimate,
    hidden,
    untold,
)
from analyst.present.table import Columns, Tabular
from analyst.statistics.curve import Curve, about_outcomes
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy

Floats = NDArray[np.float64]

_MOST_AREA_ERROR = 0.5
# A stratum's total must be so many standard errors for an average precision: with fewer, those at the highest scores,
# who count most, are noise.
_LEAST_CLEAR = 8.0


def area_and_slopes(negative: Floats, positive: Floats) -> tuple[float, Floats, Floats]:
    """P(positive > negative) + P(equal) / 2 from cells, and its derivatives by each negative and positive cell.

    The number U of correctly ordered pairs (Mann and Whitney) over the number of all pairs.
    """
    n0, n1 = negative.sum(), positive.sum()
    below = np.cumsum(negative) - negative / 2  # negatives under a positive of each cell, ties as halves
    above = n1 - np.cumsum(positive) + positive / 2
    area = float(below @ positive / (n0 * n1))
    return area, (above / n1 - area) / n0, (below / n0 - area) / n1


def delong(negative: Floats, positive: Floats) -> float:
    """The sampling variance of the area (DeLong, DeLong and Clarke-Pearson), from cells that are not negative."""
    n0, n1 = negative.sum(), positive.sum()
    _, by_negative, by_positive = area_and_slopes(negative, positive)
    corrected = n0 / max(n0 - 1, 1.0), n1 / max(n1 - 1, 1.0)
    return float(corrected[0] * (negative @ by_negative**2) + corrected[1] * (positive @ by_positive**2))


def precision_and_slopes(negative: Floats, positive: Floats) -> tuple[float, Floats, Floats]:
    """Average precision, the area under the precision-recall curve as a sum of steps, and its derivatives by cells."""
    true, false = (np.cumsum(part[::-1])[::-1] for part in (positive, negative))
    called, n1 = np.maximum(true + false, 1e-9), max(float(positive.sum()), 1e-9)
    precision = np.where(true + false > 1e-9, true / called, 1.0)
    average = float(positive @ precision) / n1
    by_negative = -np.cumsum(positive * true / called**2) / n1
    by_positive = (precision + np.cumsum(positive * false / called**2) - average) / n1
    return average, by_negative, by_positive


@dataclass(frozen=True)
class Roc(Tabular, picture="roc"):
    """One point for each threshold, and the two ends; index i calls positive who is above the i-th highest."""

    negative: Curve
    positive: Curve
    confidence: float = field(default=0.95, kw_only=True)

    def __post_init__(self) -> None:
        if self.negative.campaign.digest != self.positive.campaign.digest:
            raise InvalidQuery("both curves must come from the same campaign")
        shared = set(self.negative.strata) & set(self.positive.strata)
        if shared:
            raise InvalidQuery(f"a ROC curve needs two strata, got {', '.join(map(repr, sorted(shared)))} twice")
        _ = self.negative.total, self.positive.total

    @cached_property
    def false_positive_rate(self) -> Floats:
        return _ends(self.negative.fractions)

    @cached_property
    def true_positive_rate(self) -> Floats:
        return _ends(self.positive.fractions)

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
    def area_parts(self) -> tuple[float, list[Part]]:
        """The area, and its slopes."""
        area, by_negative, by_positive = area_and_slopes(self.negative.cells, self.positive.cells)
        return area, [(self.negative, by_negative), (self.positive, by_positive)]

    @cached_property
    def area(self) -> Estimate:
        """The area under the ROC curve, with DeLong's sampling variance."""
        value, parts = self.area_parts
        variance = delong(*(np.maximum(curve.cells, 0.0) for curve in (self.negative, self.positive)))
        auc = estimate("AUC", value, parts, bounds=SHARE, sampling_variance=variance)
        if auc.noise_error > _MOST_AREA_ERROR:
            raise TooNoisy(
                f"the area under this ROC curve is off by {auc.noise_error:.2g} (one standard error): it tells "
                "nothing. Take a larger epsilon or more parties"
            )
        return auc

    @property
    def auc(self) -> float:
        return self.area.value

    @property
    def auc_error(self) -> float:
        """The standard error of the area by the noise, to first order."""
        return self.area.noise_error

    def auc_interval(self, confidence: float = 0.95, interval: Interval = "population") -> tuple[float, float]:
        return self.area.interval(interval, confidence)

    @cached_property
    def average_precision(self) -> Estimate:
        """The area under the precision-recall curve; no number where its noise error leaves nothing to tell."""
        counted = (np.maximum(curve.cells, 0.0) for curve in (self.negative, self.positive))
        value, *slopes = precision_and_slopes(*counted)
        parts = list(zip((self.negative, self.positive), slopes, strict=True))
        clear = [curve.raw_total / curve.total_error for curve, _ in parts if curve.total_error > 0]
        beyond = min(clear, default=math.inf) - _LEAST_CLEAR
        wider = max(caution(parts), uncertainty.caution(beyond))
        found = estimate("average precision", value, parts, bounds=SHARE, wider=wider)
        if beyond < 0 or found.noise_error > MOST_ERROR:
            return hidden(estimate("average precision", value, parts, bounds=SHARE))
        # where noise moves it on average, the interval reaches as far to the other side
        bias = biases((self.negative, self.positive), self._average_precision)
        ends = {kind: (found.interval(kind), bias[kind]) for kind in INTERVALS}
        ranges = {kind: (low - max(b, 0.0), high - min(b, 0.0)) for kind, ((low, high), b) in ends.items()}
        within = {kind: (max(low, 0.0), min(high, 1.0)) for kind, (low, high) in ranges.items()}
        return IntervalEstimate(found.name, found.value, found.noise_error, found.sampling_error, SHARE, None, within)

    def _average_precision(self, rates: Sequence[Floats]) -> float:
        totals = self.negative.total, self.positive.total
        return precision_and_slopes(*(cells(r) * t for r, t in zip(rates, totals, strict=True)))[0]

    def region(self, confidence: float = 0.95, seed: int = 0, interval: Interval = "population") -> "Region":
        """Limits of both rates that hold the true point of every threshold, all at once, with this probability."""
        check_interval(interval)
        curves = (self.negative, self.positive)
        rates = {curve.strata: curve.fractions for curve in curves}
        level = confidence if interval == "noise" else (1 + confidence) / 2
        factor = bands.simultaneous_factor(self.negative.campaign, rates, level, seed)
        each = (3 + confidence) / 4  # what is left to miss is shared by two samples
        more = [0.0 if interval == "noise" else bands.dkw(curve.total, each) for curve in curves]
        pairs = [curve.limits(factor, m) for curve, m in zip(curves, more, strict=True)]
        return Region(*(_ends(limit) for low, high in pairs for limit in (high, low)))

    @property
    def notes(self) -> list[str]:
        return [*self.negative.notes, *self.positive.notes, *untold([self.average_precision])]

    def columns(self) -> Columns:
        size = self.negative.counts.size
        return {
            "called_positive_above": [*self.negative.campaign.variable.grid.labels(np.arange(size)[::-1]), None],
            "false_positive_rate": self.false_positive_rate,
            "true_positive_rate": self.true_positive_rate,
            "precision": self.precision,
        }

    def metadata(self) -> dict[str, Any]:
        about = about_outcomes(self.negative, self.positive)
        for key, row in (("auc", self.area), ("average_precision", self.average_precision)):
            about[key] = None if math.isnan(row.value) else row.value
            for kind in ("noise", "population"):
                about[f"{key}_{kind}_lower"], about[f"{key}_{kind}_upper"] = (round(x, 6) for x in row.interval(kind))
        return {**about, "confidence": 0.95, "notes": self.notes}


@dataclass(frozen=True)
class Region:
    """Limits of the false and the true positive rate, from the highest threshold to below the lowest."""

    least_false: Floats
    most_false: Floats
    least_true: Floats
    most_true: Floats


def _ends(fractions: Floats) -> Floats:
    """1 - F from the highest threshold to below the lowest."""
    return np.append(1.0 - fractions[::-1], 1.0)
