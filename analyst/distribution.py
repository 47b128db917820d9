"""Numbers that describe a distribution, and how far two of them are apart: from smoothed cells, with both intervals."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst import bands
from analyst.compare import quantile_estimates
from analyst.curve import Curve
from analyst.estimate import INTERVALS, Estimate, Estimates, Part, Ranged, estimate, moved
from analyst.table import Columns, Tabular
from campaign.errors import InvalidQuery

Floats = NDArray[np.float64]


def summary(curve: Curve, trim: float = 0.1, confidence: float = 0.95) -> Estimates:
    """Mean, trimmed mean, standard deviation, quartiles and their range, reference interval, Gini coefficient."""
    low, first, middle, third, high = quantile_estimates(curve, [0.025, 0.25, 0.5, 0.75, 0.975], confidence)
    spread = moved("interquartile range", first, third)
    rows: list[Estimate] = [curve.mean_estimate(confidence), trimmed_mean(curve, trim), deviation(curve)]
    rows += [first, middle, third, spread, low, high]
    rows += [gini(curve)] if curve.values[0] >= 0 else []
    reference = "0.025 and 0.975 quantiles: the reference interval of the values"
    return Estimates(rows, {**curve.about(), "reference_interval": reference, "notes": curve.notes}, confidence)


def trimmed_mean(curve: Curve, trim: float = 0.1) -> Estimate:
    """The mean without this share of the values at each end."""
    if not 0 <= trim < 0.5:
        raise InvalidQuery(f"the share to trim lies between 0 and 1/2, got {trim}")
    x, kept = curve.values, np.clip(curve.fractions, trim, 1 - trim)
    shares = np.diff(kept, prepend=trim)
    inside = np.flatnonzero(shares > 0)
    ends = (x[inside[0]], x[inside[-1]]) if trim > 0 else (x[0], x[-1])
    winsorised = np.clip(x, *ends)
    mean = float(winsorised @ curve.cells) / curve.total
    slopes = (winsorised - mean) / (1 - 2 * trim) / curve.total
    return estimate(f"{trim:g} trimmed mean", float(x @ shares) / (1 - 2 * trim), [(curve, slopes)])


def _moments(curve: Curve) -> tuple[float, float]:
    mean = float(curve.values @ curve.cells) / curve.total
    return mean, float((curve.values - mean) ** 2 @ curve.cells) / curve.total


def deviation(curve: Curve) -> Estimate:
    """The standard deviation of the values."""
    mean, variance = _moments(curve)
    root = math.sqrt(max(variance, 1e-300))
    slopes = ((curve.values - mean) ** 2 - variance) / (2 * root * curve.total)
    return estimate("standard deviation", root, [(curve, slopes)], bounds=(0.0, math.inf))


def gini(curve: Curve) -> Estimate:
    """Half the mean absolute difference of two values over their mean: 0 where all have the same."""
    x, shares = curve.values, curve.cells / curve.total
    if x[0] < 0:
        raise InvalidQuery("a Gini coefficient needs values that are not negative")
    mean = max(float(x @ shares), 1e-300)
    # sum over y of |x - y| shares(y), from running sums
    below, partial = np.cumsum(shares), np.cumsum(x * shares)
    apart = x * (2 * below - 1) + mean - 2 * partial
    difference = float(apart @ shares)
    value = difference / (2 * mean)
    slopes = ((apart - difference) / mean - value * (x - mean) / mean) / curve.total
    return estimate("Gini coefficient", value, [(curve, slopes)], bounds=(0.0, 1.0))


def standardised_difference(first: Curve, second: Curve) -> Estimate:
    """The difference of means, second - first, over the root mean square of both standard deviations."""
    (m1, v1), (m2, v2) = _moments(first), _moments(second)
    pooled = math.sqrt(max((v1 + v2) / 2, 1e-300))
    value = (m2 - m1) / pooled

    def slopes(curve: Curve, sign: float, mean: float, variance: float) -> Part:
        of_variance = (curve.values - mean) ** 2 - variance
        return curve, (sign * (curve.values - mean) / pooled - value * of_variance / (4 * pooled**2)) / curve.total

    parts = [slopes(first, -1.0, m1, v1), slopes(second, 1.0, m2, v2)]
    return estimate("standardised mean difference", value, parts)


def wasserstein(first: Curve, second: Curve, confidence: float = 0.95, seed: int = 0) -> Ranged:
    """The area between both curves: how far values must be moved, on average, to make one of the other.

    Noise alone makes it positive; its intervals hold with at least this confidence, from bands that hold both curves.
    """
    steps, curves, ranges = np.diff(first.values), (first, second), {}
    value = float(np.abs(first.fractions - second.fractions)[:-1] @ steps)
    for kind in INTERVALS:
        level = confidence if kind == "noise" else (1 + confidence) / 2
        rates = {c.strata: c.fractions for c in curves}
        factor = bands.simultaneous_factor(first.campaign, rates, level, seed)
        more = [0.0 if kind == "noise" else bands.dkw(c.total, (3 + confidence) / 4) for c in curves]
        (low, high), (other_low, other_high) = (c.limits(factor, m) for c, m in zip(curves, more, strict=True))
        least = np.maximum(np.maximum(low - other_high, other_low - high), 0.0)
        most = np.maximum(high - other_low, other_high - low)
        ranges[kind] = min(value, float(least[:-1] @ steps)), max(value, float(most[:-1] @ steps))
    return Ranged("Wasserstein distance", value, math.nan, math.nan, (0, math.inf), None, ranges, confidence)


@dataclass(frozen=True)
class Lorenz(Tabular):
    """Which share of the sum of all values the lowest share of them has."""

    curve: Curve

    def __post_init__(self) -> None:
        _ = self.gini  # which values below zero do not have

    @cached_property
    def gini(self) -> Estimate:
        return gini(self.curve)

    def columns(self) -> Columns:
        held = np.cumsum(self.curve.values * self.curve.cells)
        return {
            "share_of_people": np.concatenate([[0.0], self.curve.fractions]),
            "share_of_total": np.concatenate([[0.0], held / max(float(held[-1]), 1e-300)]),
        }

    def about(self) -> dict[str, Any]:
        intervals = {f"gini_{kind}_95_%": [round(x, 6) for x in self.gini.interval(kind)] for kind in INTERVALS}
        return {**self.curve.about(), "gini": self.gini.value, **intervals}
