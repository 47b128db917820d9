"""Two strata side by side: how far apart their curves are, and which has the larger values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analyst import uncertainty
from analyst.curve import Curve
from analyst.roc import Roc
from analyst.table import Columns, Tabular


@dataclass(frozen=True)
class Comparison(Tabular):
    """The Kolmogorov-Smirnov distance, with an interval, and P(second > first) + P(equal) / 2 (Mann-Whitney)."""

    first: Curve
    second: Curve
    confidence: float
    distance: float
    distance_lower: float
    distance_upper: float
    where: Any
    superiority: float
    superiority_error: float

    def columns(self) -> Columns:
        z = uncertainty.z_score(self.confidence)
        low, high = self.superiority - z * self.superiority_error, self.superiority + z * self.superiority_error
        name = f"P({self.second.stratum} > {self.first.stratum}) + P(=)/2"
        return {
            "statistic": ["Kolmogorov-Smirnov distance", name],
            "value": [self.distance, self.superiority],
            "lower": [self.distance_lower, max(0.0, low)],
            "upper": [self.distance_upper, min(1.0, high)],
        }

    def about(self) -> dict[str, Any]:
        return {
            "first": self.first.stratum,
            "second": self.second.stratum,
            "n": self.first.n,
            "n_first": self.first.total,
            "n_second": self.second.total,
            "epsilon": self.first.epsilon,
            "smoothing": self.first.smoothing,
            "confidence": self.confidence,
            "largest_difference_at": self.where,
            "notes": [*self.first.notes, *self.second.notes],
        }


def compare(first: Curve, second: Curve, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Compare two strata of a release.

    The distance's interval holds with at least this confidence: from bands that hold both whole curves. Noise alone
    makes the distance of equal curves positive, so look at its lower end.
    """
    roc = Roc(first, second)
    apart = np.abs(first.fractions - second.fractions)
    campaign, curves = first.campaign, (first, second)
    factor = uncertainty.simultaneous_factor(campaign, {c.stratum: c.fractions for c in curves}, confidence, seed)
    (low, high), (other_low, other_high) = first.limits(factor), second.limits(factor)
    where = int(np.argmax(apart))
    return Comparison(
        first,
        second,
        confidence,
        distance=float(apart[where]),
        distance_lower=max(0.0, float(np.maximum(low - other_high, other_low - high).max())),
        distance_upper=float(np.maximum(high - other_low, other_high - low).max()),
        where=campaign.grid.labels(np.array([where]))[0],
        superiority=roc.auc,
        superiority_error=roc.auc_error,
    )
