"""Sensitivity at a given specificity, with an interval that is right for smooth scores and for ties.

The interval joins, over all thresholds that may be the first with this specificity, the sensitivities that each of them
may have. A threshold that counts must be d standard errors off to be leaves sqrt(r^2 - d^2) standard errors for its
sensitivity. For a smooth curve the union is what the slope of the ROC curve gives; with ties, where a slope means
nothing, it is right as well. r holds the worst of ties, where the specificity is exactly that of a threshold:
P(max(0, Z)^2 + Z'^2 <= r^2) is the confidence, Z and Z' independent and normal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from analyst.estimation.estimate import INTERVALS, SHARE, Interval, IntervalEstimate
from analyst.statistics.curve import Curve
from analyst.statistics.quantile import inverse, target
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]


def sensitivity_at(negative: Curve, positive: Curve, specificity: float, confidence: float) -> IntervalEstimate:
    """Sensitivity at the first threshold that has this specificity."""
    if not 0 < specificity < 1:
        raise InvalidQuery(f"a specificity lies between 0 and 1, got {specificity}")
    k = inverse(negative.counts, target(specificity, negative.total))
    value, r = 1 - float(positive.fractions[k]), _radius(confidence)
    ranges: dict[Interval, tuple[float, float]] = {}
    for kind in INTERVALS:
        off = _distances(negative, specificity, kind)
        near = np.flatnonzero(off <= r)
        low, high = positive.limits_within(kind, np.sqrt(r**2 - off[near] ** 2), near)
        ranges[kind] = min(value, float(1 - high.max(initial=0.0))), max(value, float(1 - low.min(initial=1.0)))
    name = f"sensitivity at specificity {specificity:g}"
    return IntervalEstimate(name, value, math.nan, math.nan, SHARE, None, ranges, confidence)


def _distances(curve: Curve, specificity: float, kind: Interval) -> Floats:
    """How many standard errors counts must be off for each threshold to be the first with this specificity.

    Counts are off by whole numbers: by one, they are not off.
    """
    sampling = curve.raw_total * specificity * (1 - specificity) if kind == "population" else 0.0
    errors = np.maximum(np.sqrt(curve.caution**2 * curve.noise.rate_variances(specificity) + sampling), 1e-9)
    wanted = target(specificity, curve.raw_total)
    short, over = wanted - curve.raw - 1, curve.raw - 1 - wanted
    here, before = np.maximum(short, 0.0) / errors, np.maximum(over, 0.0) / errors
    return np.asarray(np.maximum(here, np.append(0.0, before[:-1])))


def _radius(confidence: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(60):
        r = (low + high) / 2
        held = (math.erf(r / math.sqrt(2)) + 1 - math.exp(-r * r / 2)) / 2
        low, high = (r, high) if held < confidence else (low, r)
    return high
