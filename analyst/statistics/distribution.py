"""Numbers that describe a distribution, and how far two of them are apart, with both intervals."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import bands, uncertainty
from analyst.estimation.clipping import clipped
from analyst.estimation.estimate import (
    ANY,
    INTERVALS,
    MOST_NOISE,
    SHARE,
    Estimate,
    Estimates,
    Interval,
    IntervalEstimate,
    estimate,
    mover_interval,
    quotient,
    untold,
    weights,
)
from analyst.present.table import Columns, Tabular, plain
from analyst.statistics.compare import quantile_estimates
from analyst.statistics.curve import Curve
from analyst.statistics.quantile import inverse, target
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]

_ENDS = "lower", "upper"
_ROOT_IS_LINEAR = 0.15  # up to so large a noise error of a root, over its size


def summary(curve: Curve, trim: float = 0.1, confidence: float = 0.95) -> Estimates:
    """Mean, trimmed mean, standard deviation, quartiles and their range, reference interval, Gini coefficient."""
    low, first, middle, third, high = quantile_estimates(curve, [0.025, 0.25, 0.5, 0.75, 0.975], confidence)
    spread = mover_interval("interquartile range", first, third, curve.thresholds)
    rows: list[Estimate] = [curve.mean_estimate(confidence), trimmed_mean(curve, trim), deviation(curve, confidence)]
    rows += [first, middle, third, spread, low, high]
    rows += [gini(curve, confidence)] if curve.values[0] >= 0 else []
    reference = "0.025 and 0.975 quantiles: the reference interval of the values"
    about = {**curve.metadata(), "reference_interval": reference, "notes": [*curve.notes, *clipped(curve)]}
    return Estimates(rows, about, confidence)


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
    """Mean and variance, from raw counts: smoothing leaves noise at the far end of a wide grid, where it counts most.

    The square of a noisy mean is too large by the noise's variance in it, which is known.
    """
    x, total = curve.values, curve.raw_total
    mean = float(x @ curve.raw_cells) / total
    noise = uncertainty.error_of_sum(curve.campaign, weights([(curve, (x - mean) / total)]))
    return mean, float((x - mean) ** 2 @ curve.raw_cells) / total + noise**2


def _central(curve: Curve) -> tuple[float, float]:
    """Mean and variance of the values, those beyond the 2.5 % and 97.5 % quantiles counted as these.

    Hardly noisy, and so what decides whether noise hides a mean or a variance: a decision by the noisy number itself
    would show it just when it happens to be large.
    """
    x, cells = curve.values, np.maximum(curve.cells, 0.0)
    ends = (inverse(curve.counts, target(level, curve.total)) for level in (0.025, 0.975))
    inside = np.clip(x, *(x[i] for i in ends))
    mean = float(inside @ cells) / cells.sum()
    return mean, float((inside - mean) ** 2 @ cells) / cells.sum()


def _variance(curve: Curve) -> tuple[float, Floats]:
    """The variance of the values, and its slopes by the cells."""
    mean, variance = _moments(curve)
    return variance, ((curve.values - mean) ** 2 - variance) / curve.raw_total


def deviation(curve: Curve, confidence: float = 0.95) -> IntervalEstimate:
    """The standard deviation of the values: the root of their variance, whose interval is that of raw counts."""
    value, slopes = _variance(curve)
    found = estimate("variance", value, [(curve, slopes)])
    ranges: dict[Interval, tuple[float, float]] = {}
    for kind in INTERVALS:
        low, high = found.interval(kind, confidence)
        ranges[kind] = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    hidden = value <= 0 or found.noise_error > MOST_NOISE * _central(curve)[1]
    root = math.nan if hidden else math.sqrt(value)
    by_noise, by_sampling = (e / (2 * root) for e in (found.noise_error, found.sampling_error))
    return IntervalEstimate(
        "standard deviation", root, by_noise, by_sampling, (0.0, math.inf), None, ranges, confidence
    )


def gini(curve: Curve, confidence: float = 0.95) -> IntervalEstimate:
    """Half the mean absolute difference of two values over their mean: 0 where all have the same.

    The integral of F (1 - F) over the mean, from raw counts. F's noise takes its variance from F (1 - F), which is
    given back. The interval is Fieller's, for both are noisy.
    """
    x, total = curve.values, curve.raw_total
    if x[0] < 0:
        raise InvalidQuery("a Gini coefficient needs values that are not negative")
    steps, rates = np.diff(x), curve.raw / total
    hidden = curve.noise.rate_variances(np.clip(rates, *SHARE)) / total**2
    spread = float((rates * (1 - rates) + hidden)[:-1] @ steps)
    mean = float(x @ curve.raw_cells) / total
    # sum over y of |x - y| shares(y) / 2, from running sums: how much one more at x adds to the integral, times total
    apart = np.concatenate([[0.0], np.cumsum((2 * rates[:-1] - 1) * steps)])
    apart = (apart - float(apart @ curve.raw_cells) / total) / total
    parts = [[(curve, apart)], [(curve, (x - mean) / total)]]
    return quotient("Gini coefficient", parts, (spread, mean), _central(curve)[0], SHARE, confidence)


def standardised_difference(first: Curve, second: Curve, confidence: float = 0.95) -> IntervalEstimate:
    """The difference of means, second - first, over the root mean square of both standard deviations."""
    (m1, v1), (m2, v2) = _moments(first), _moments(second)
    size = math.sqrt((_central(first)[1] + _central(second)[1]) / 2)
    pooled = math.sqrt(max((v1 + v2) / 2, (1e-3 * size) ** 2, 1e-300))
    tops = [
        (curve, sign * (curve.values - mean) / curve.raw_total)
        for curve, sign, mean in ((first, -1.0, m1), (second, 1.0, m2))
    ]
    bottoms = [
        (curve, ((curve.values - mean) ** 2 - variance) / (4 * pooled * curve.raw_total))
        for curve, mean, variance in ((first, m1, v1), (second, m2, v2))
    ]
    known = size**2 / pooled  # whether it is told depends on the noise of the variance, not on the variance found
    found = quotient("standardised mean difference", [tops, bottoms], (m2 - m1, pooled), known, ANY, confidence)
    noise = uncertainty.error_of_sum(first.campaign, weights(bottoms))
    if noise <= _ROOT_IS_LINEAR * known:
        return found
    # The root of a noisy variance has no linear error: from the intervals of the difference and of the variance, each
    # with half of what may be missed.
    spreads = [(curve, 2 * pooled * slopes) for curve, slopes in bottoms]
    both = estimate("difference", m2 - m1, tops), estimate("variance", (v1 + v2) / 2, spreads)
    ends = {kind: tuple(row.interval(kind, (1 + confidence) / 2) for row in both) for kind in INTERVALS}
    return replace(found, ranges={kind: _over_root(*two) for kind, two in ends.items()})


def _over_root(top: tuple[float, float], squared: tuple[float, float]) -> tuple[float, float]:
    """From the least to the largest that a number over the root of another can be."""
    small, large = (math.sqrt(max(end, 0.0)) for end in squared)
    low, high = (top[0], small if top[0] < 0 else large), (top[1], small if top[1] > 0 else large)
    return (low[0] / low[1] if low[1] > 0 else -math.inf), (high[0] / high[1] if high[1] > 0 else math.inf)


def wasserstein(first: Curve, second: Curve, confidence: float = 0.95, seed: int = 0) -> IntervalEstimate:
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
    return IntervalEstimate("Wasserstein distance", value, math.nan, math.nan, (0, math.inf), None, ranges, confidence)


@dataclass(frozen=True)
class Lorenz(Tabular, picture="lorenz"):
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

    def metadata(self) -> dict[str, Any]:
        ends = {kind: self.gini.interval(kind) for kind in INTERVALS}
        intervals = {f"gini_{kind}_{end}": round(ends[kind][i], 6) for kind in ends for i, end in enumerate(_ENDS)}
        notes = [*self.curve.notes, *clipped(self.curve), *untold([self.gini])]
        return {
            **self.curve.metadata(),
            "gini": plain(self.gini.value),
            **intervals,
            "confidence": 0.95,
            "notes": notes,
        }
