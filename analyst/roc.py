"""ROC and precision-recall curves from two strata of one release, and the areas under them.

The grid variable is a score, and whoever has a score above t is called positive. With F_0 and F_1 the curves of the
negative and the positive stratum, the false and true positive rates at t are 1 - F_0(t) and 1 - F_1(t). Points run
from the highest threshold, where nobody is called positive, to "everybody".

Defined behaviour where noise could spoil a fraction: a stratum whose total is below two standard errors is an error
(`too-noisy`), and so is an area that is off by half; a total within four standard errors of zero is a note in the
result; where nobody is called positive, precision is 1; an average precision whose bias exceeds its error is left out.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst import bands, smooth
from analyst.cells import cells
from analyst.curve import Curve, about_outcomes
from analyst.estimate import SHARE, Estimate, Interval, Part, check_interval, estimate
from analyst.table import Columns, Tabular
from campaign.errors import InvalidQuery, TooNoisy

Floats = NDArray[np.float64]

_RUNS = 200
_MOST_AREA_ERROR = 0.5


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


def average_precision(negative: Floats, positive: Floats) -> float:
    """The area under the precision-recall curve as a sum of steps, from cells, without interpolation."""
    true, false = np.cumsum(positive[::-1]), np.cumsum(negative[::-1])
    called = true + false
    precision = np.divide(true, called, out=np.ones_like(true), where=called > 1e-9)
    return float(positive[::-1] @ precision / max(true[-1], 1e-9))


@dataclass(frozen=True)
class Roc(Tabular):
    """One point for each threshold, and the two ends; index i calls positive who is above the i-th highest."""

    negative: Curve
    positive: Curve

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
    def average_precision(self) -> Estimate | None:
        """The area under the precision-recall curve, or None where its bias by the noise exceeds its error.

        Both are those of simulated releases of the smoothed curves, with and without sampling, smoothed again.
        """
        curves = (self.negative, self.positive)
        counted = [np.maximum(curve.cells, 0.0) for curve in curves]
        value = average_precision(*counted)
        noisy, sampled, rng = [], [], np.random.default_rng(0)
        for row in bands.simulated_parts(self.negative.campaign, [curve.strata for curve in curves], _RUNS):
            again = [rng.poisson(c).astype(np.float64) for c in counted]
            noisy.append(average_precision(*(_smoothed(c, e) for c, e in zip(counted, row, strict=True))))
            sampled.append(average_precision(*(_smoothed(c, e) for c, e in zip(again, row, strict=True))))
        bias, error = float(np.mean(noisy)) - value, float(np.std(noisy))
        if abs(bias) > error + 1e-3:
            return None
        sampling = max(float(np.var(sampled)) - error**2, 0.0) ** 0.5
        return Estimate("average precision", value, error, sampling, SHARE)

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
        told = [*self.negative.notes, *self.positive.notes]
        if self.average_precision is None:
            told.append("average precision is left out: the noise biases it by more than its error")
        return told

    def columns(self) -> Columns:
        size = self.negative.counts.size
        return {
            "called_positive_above": [*self.negative.campaign.grid.labels(np.arange(size)[::-1]), None],
            "false_positive_rate": self.false_positive_rate,
            "true_positive_rate": self.true_positive_rate,
            "precision": self.precision,
        }

    def about(self) -> dict[str, Any]:
        about = about_outcomes(self.negative, self.positive)
        for row in (self.area, self.average_precision):
            if row is not None:
                key = "auc" if row is self.area else "average_precision"
                about[key] = row.value
                for kind in ("noise", "population"):
                    about[f"{key}_{kind}_95_%"] = [round(x, 6) for x in row.interval(kind)]
        return {**about, "notes": self.notes}


@dataclass(frozen=True)
class Region:
    """Limits of the false and the true positive rate, from the highest threshold to below the lowest."""

    least_false: Floats
    most_false: Floats
    least_true: Floats
    most_true: Floats


def _smoothed(counted: Floats, noise: Floats) -> Floats:
    """Cells as they would be published and smoothed, with this noise in the counts."""
    counts = np.cumsum(counted) + noise
    total = max(float(counts[-1]), 1.0)
    again = smooth.isotonic(counts, total)
    again[-1] = total
    return cells(again)


def _ends(fractions: Floats) -> Floats:
    """1 - F from the highest threshold to below the lowest."""
    return np.append(1.0 - fractions[::-1], 1.0)
