"""Two strata side by side: how far apart their curves are, which has the larger values, and whether that is chance.

Tests are made for the population: they ask whether two groups of people could have come from one distribution, and
count the noise in. A p-value that ignores the noise is small for equal groups up to every time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import bands, smooth, uncertainty
from analyst.estimation.estimate import (
    INTERVALS,
    SHARE,
    Estimate,
    Estimates,
    IntervalEstimate,
    estimate,
    mover_interval,
    weights,
)
from analyst.statistics.curve import Curve
from analyst.statistics.roc import Roc
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison(Estimates):
    """Statistics of two strata, each with both intervals, and p-values for the population."""

    first: Curve | None = None
    second: Curve | None = None
    where: Any = None

    @property
    def distance(self) -> IntervalEstimate:
        """The Kolmogorov-Smirnov distance."""
        row = self.rows[0]
        assert isinstance(row, IntervalEstimate)
        return row

    @property
    def superiority(self) -> Estimate:
        """P(second > first) + P(equal) / 2."""
        return self.rows[1]

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "largest_difference_at": self.where, "notes": self.description["notes"]}


def compare(first: Curve, second: Curve, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Kolmogorov-Smirnov and Mann-Whitney, and differences of means and medians, of two strata of a release."""
    apart, where = ks_distance(first, second, confidence, seed)
    distance = replace(apart, p_value=kolmogorov_smirnov_p(first, second, seed))
    roc = Roc(first, second)
    superiority = Estimate(
        f"P({second.stratum} > {first.stratum}) + P(=)/2",
        roc.area.value,
        roc.area.noise_error,
        roc.area.sampling_error,
        SHARE,
        mann_whitney_p(first, second),
    )
    rows = [
        distance,
        superiority,
        difference_of_means(first, second),
        *difference_of_quantiles(first, second, confidence),
    ]
    about = {
        "first": first.stratum,
        "second": second.stratum,
        "n": first.n,
        "n_first": first.total,
        "n_second": second.total,
        "epsilon": first.epsilon,
        "smoothing": first.smoothing,
        "p_values": "for the population, noise included",
        "notes": [*first.notes, *second.notes],
    }
    return Comparison(rows, about, confidence, first, second, where)


def ks_distance(first: Curve, second: Curve, confidence: float = 0.95, seed: int = 0) -> tuple[IntervalEstimate, Any]:
    """The largest difference of two curves, and where it is.

    Its intervals hold with at least this confidence: from bands that hold both whole curves. Noise alone makes the
    distance of equal curves positive, so look at its lower end.
    """
    apart = np.abs(first.fractions - second.fractions)
    campaign, curves, ranges = first.campaign, (first, second), {}
    for kind in INTERVALS:
        level = confidence if kind == "noise" else (1 + confidence) / 2
        factor = bands.simultaneous_factor(campaign, {c.strata: c.fractions for c in curves}, level, seed)
        more = [0.0 if kind == "noise" else bands.dkw(c.total, (3 + confidence) / 4) for c in curves]
        (low, high), (other_low, other_high) = (c.limits(factor, m) for c, m in zip(curves, more, strict=True))
        least = max(0.0, float(np.maximum(low - other_high, other_low - high).max()))
        ranges[kind] = least, float(np.maximum(high - other_low, other_high - low).max())
    at = int(np.argmax(apart))
    distance = IntervalEstimate(
        "Kolmogorov-Smirnov distance", float(apart[at]), math.nan, math.nan, SHARE, None, ranges, confidence
    )
    return distance, campaign.variable.grid.labels(np.array([at]))[0]


def kolmogorov_smirnov_p(first: Curve, second: Curve, seed: int = 0) -> float:
    """The share of simulated pairs of equal groups, with this noise, whose published curves are as far apart."""
    campaign, rng = first.campaign, np.random.default_rng([seed, 7])
    pooled = np.maximum(first.cells, 0.0) + np.maximum(second.cells, 0.0)
    shares = pooled / pooled.sum()
    observed = float(np.abs(first.fractions - second.fractions)[:-1].max(initial=0.0))
    reached, runs = 0, bands.curves_for(campaign)
    for row in bands.simulated_parts(campaign, [first.strata, second.strata], runs, seed):
        drawn = [rng.multinomial(round(curve.total), shares).astype(float) for curve in (first, second)]
        rates = [smooth.rates_with_noise(d, e) for d, e in zip(drawn, row, strict=True)]
        reached += float(np.abs(rates[0] - rates[1])[:-1].max(initial=0.0)) >= observed - 1e-12
    return (1 + reached) / (runs + 1)


Weighted = list[tuple[Curve, Floats]]


def mann_whitney_p(first: Curve, second: Curve) -> float:
    """Two-sided, of two strata of one release."""
    return rank_p(first, second, lambda parts: uncertainty.error_of_sum(first.campaign, weights(parts)) ** 2)


def rank_p(first: Curve, second: Curve, noise: Callable[[Weighted], float]) -> float:
    """By a score without a noisy denominator: ranks in the smoothed pooled curve, summed over raw cells.

    `noise`: the variance that noise gives such a sum.
    """
    pooled = np.maximum(first.cells, 0.0) + np.maximum(second.cells, 0.0)
    n = pooled.sum()
    rank = (np.cumsum(pooled) - pooled / 2) / n - 0.5
    share = second.total / (first.total + second.total)
    parts = [(first, -share * rank), (second, (1 - share) * rank)]
    score = sum(float(g @ curve.raw_cells) for curve, g in parts)
    variance = share * (1 - share) * float(pooled @ rank**2) * n / max(n - 1, 1.0) + noise(parts)
    return 2 * NormalDist().cdf(-abs(score) / math.sqrt(max(variance, 1e-300)))


def difference_of_means(first: Curve, second: Curve) -> Estimate:
    """second - first, to first order in both noisy totals."""
    parts, means = [], []
    for curve, sign in ((first, -1.0), (second, 1.0)):
        mean = curve.mean_estimate().value
        means.append(sign * mean)
        parts.append((curve, sign * (curve.values - mean) / curve.raw_total))
    return estimate("difference of means", sum(means), parts)


def difference_of_quantiles(
    first: Curve, second: Curve, confidence: float = 0.95, levels: Sequence[float] = (0.5,)
) -> list[IntervalEstimate]:
    """second - first at each level, from both quantiles' intervals."""
    both = [quantile_estimates(curve, levels, confidence) for curve in (first, second)]
    names = ["difference of medians" if level == 0.5 else f"difference of {level:g} quantiles" for level in levels]
    return [mover_interval(name, a, b, first.thresholds) for name, a, b in zip(names, *both, strict=True)]


def quantile_estimates(curve: Curve, levels: Sequence[float], confidence: float = 0.95) -> list[IntervalEstimate]:
    """Quantiles as numbers."""
    quantiles, tau, rows = curve.quantile(levels, confidence), curve.thresholds, []
    for i, level in enumerate(levels):
        ranges = {kind: (float(tau[low[i]]), float(tau[high[i]])) for kind, (low, high) in quantiles.indices.items()}
        name = "median" if level == 0.5 else f"{level:g} quantile"
        value = float(tau[quantiles.index[i]])
        rows.append(IntervalEstimate(name, value, math.nan, math.nan, ranges=ranges, confidence=confidence))
    return rows


def auc_difference(first: Roc, second: Roc) -> Estimate:
    """The area of the second ROC curve less that of the first, of four different strata, and whether that is chance."""
    (a, parts), (b, more) = first.area_parts, second.area_parts
    strata = [set(curve.strata) for curve, _ in (*parts, *more)]
    if len(set().union(*strata)) != sum(map(len, strata)):
        raise InvalidQuery("two areas are compared between four different strata")
    signed = [(curve, -g) for curve, g in parts] + more
    sampling = first.area.sampling_error**2 + second.area.sampling_error**2
    difference = estimate("difference of AUCs", b - a, signed, bounds=(-1.0, 1.0), sampling_variance=sampling)
    p = 2 * NormalDist().cdf(-abs(difference.value) / max(difference.population_error, 1e-300))
    return Estimate(
        difference.name, difference.value, difference.noise_error, difference.sampling_error, difference.bounds, p
    )
