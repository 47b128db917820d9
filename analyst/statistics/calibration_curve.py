"""A smooth calibration curve: the share of positives near each score, with intervals and a band."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import bands, uncertainty
from analyst.estimation.estimate import INTERVALS, SHARE, Interval, limits_as_columns, weights
from analyst.present.table import Columns, Tabular
from analyst.statistics.calibration import check_scores
from analyst.statistics.curve import Curve
from analyst.statistics.logistic import local_rates
from analyst.statistics.quantile import inverse

Floats = NDArray[np.float64]

_POINTS = 50


@dataclass(frozen=True)
class CalibrationCurve(Tabular, picture="calibration_curve"):
    """At some scores: the share of positives near them, and the band that holds the whole curve."""

    description: Mapping[str, Any]
    confidence: float
    width: float
    scores: Floats
    rates: Floats
    errors: Mapping[Interval, Floats]
    factors: Mapping[Interval, float]

    def band(self, kind: Interval = "population") -> tuple[Floats, Floats]:
        """Limits between which the whole smoothed curve lies."""
        half = self.factors[kind] * self.errors[kind]
        return np.clip(self.rates - half, *SHARE), np.clip(self.rates + half, *SHARE)

    def columns(self) -> Columns:
        return {
            "score": self.scores,
            "share_positive": self.rates,
            **limits_as_columns({kind: self.band(kind) for kind in INTERVALS}),
        }

    def metadata(self) -> dict[str, Any]:
        return {
            **self.description,
            "intervals": "bands that hold the whole curve",
            "kernel_width": self.width,
            "confidence": self.confidence,
        }


def calibration_curve(negative: Curve, positive: Curve, confidence: float = 0.95) -> CalibrationCurve:
    """By a local line with a Gaussian kernel, from the 2.5 % to the 97.5 % quantile of all scores.

    Its width falls with the fifth root of n, as usual. What is estimated is the smoothed curve; a calibrated model's is
    the diagonal, whatever the width.
    """
    check_scores(negative, positive)
    x, pooled = negative.values, np.maximum(negative.cells, 0.0) + np.maximum(positive.cells, 0.0)
    total = negative.total + positive.total
    mean = float(pooled @ x) / total
    spread = (float(pooled @ (x - mean) ** 2) / total) ** 0.5
    width = max(1.6 * spread * total**-0.2, 2 * float(np.diff(x).max()))
    counts = np.cumsum(pooled)
    low, high = (float(x[inverse(counts, level * counts[-1])]) for level in (0.025, 0.975))
    at = np.linspace(low, high, _POINTS)
    rates, (first, second) = local_rates(x, negative.cells, positive.cells, at, width)
    parts = [(negative, first), (positive, second)]
    noise = uncertainty.covariance(negative.campaign, weights(parts))
    # An outcome varies by r (1 - r) where the curve is r: less shaky than squared residuals where few have a score.
    share = np.clip(np.interp(x, at, rates), 1 / total, 1 - 1 / total)
    lead = second - first
    sampling = (lead * pooled * share * (1 - share)) @ lead.T
    more: dict[Interval, Floats | None] = {"noise": None, "population": np.asarray(sampling)}
    errors = {kind: np.sqrt(np.maximum(np.diag(noise if s is None else noise + s), 0.0)) for kind, s in more.items()}
    rows = weights(parts)
    factors = {kind: bands.joint_factor(negative.campaign, rows, confidence, s) for kind, s in more.items()}
    about = {
        "negative": negative.stratum,
        "positive": positive.stratum,
        "n": negative.n,
        "epsilon": negative.epsilon,
        "smoothing": negative.smoothing,
    }
    return CalibrationCurve(about, confidence, width, at, np.clip(rates, *SHARE), errors, factors)
