"""Numbers with noise of a known covariance, as queries for sums and categories return them, and proportions of them.

Noise of both servers, from public parameters. `estimate.py` has what both kinds of intervals mean.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation import uncertainty
from analyst.estimation.estimate import INTERVALS, SHARE, Interval, IntervalEstimate, ratio_interval
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.flat import Flat
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.sums import SumQuery

Floats = NDArray[np.float64]
GUARD = 2.0  # a total below so many of its standard errors has no proportions


@dataclass(frozen=True, eq=False)
class Noisy:
    """Values, and the covariance of their noise."""

    values: Floats
    covariance: Floats

    def __post_init__(self) -> None:
        if self.covariance.shape != (self.values.size, self.values.size):
            raise InvalidQuery(f"{self.values.size} values with a covariance of shape {self.covariance.shape}")

    @classmethod
    def from_sums(cls, results: ArrayLike, query: SumQuery) -> "Noisy":
        """Results of a query for sums, whose noise is independent."""
        return cls(np.asarray(results, np.float64), np.diag(query.variances))

    @classmethod
    def from_cells(cls, counts: ArrayLike, noise: Flat) -> "Noisy":
        """Counts of all cells of a variable with categories; the noise of all of them adds up to 0."""
        k = noise.cells.count
        covariance = SERVERS * noise.cell_variance * (k * np.eye(k) - 1) / (k - 1)
        return cls(np.asarray(counts, np.float64), covariance)

    def combine(self, rows: ArrayLike) -> "Noisy":
        """Weighted sums of the values, one for each row."""
        r = np.atleast_2d(np.asarray(rows, np.float64))
        return Noisy(r @ self.values, r @ self.covariance @ r.T)

    def given(self, row: ArrayLike, total: float) -> "Noisy":
        """The best linear estimates, given that a weighted sum is known: counts that add up to the public n."""
        r = np.asarray(row, np.float64)
        shared = self.covariance @ r
        known = float(r @ shared)
        if known <= 1e-12 * float(r**2 @ np.diag(self.covariance)):  # it is known already
            return self
        moved = self.values - shared * (float(r @ self.values) - total) / known
        return Noisy(moved, self.covariance - np.outer(shared, shared) / known)


def noise_factor(confidence: float) -> float:
    """How much further than a normal variable's the limits of noise of two servers are, in standard errors.

    The sum of two Laplace variables of scale b lies beyond u b with probability (1 + u / 2) exp(-u), and has the
    standard error 2 b. Sums of more noise are nearer to normal, so that this factor is on the safe side for them.
    """
    z = uncertainty.z_score(confidence)
    low, high = 0.0, 80.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + middle / 2) * math.exp(-middle) > 1 - confidence else (low, middle)
    return max(1.0, high / 2 / z)


def proportion(name: str, both: Noisy, confidence: float = 0.95) -> IntervalEstimate:
    """The first of two counts as a fraction of the second, which contains it; Fieller's and Wilson's intervals.

    It has no value where the second count is lost in the noise. Near that guard its intervals are wider, since only
    totals that noise made large are shown (`uncertainty.caution`).
    """
    top, bottom = (float(v) for v in both.values)
    error = math.sqrt(max(float(both.covariance[1, 1]), 0.0))
    hidden = bottom <= GUARD * error or bottom <= 0
    wider = 1.0 if error == 0 or hidden else uncertainty.caution(bottom / error - GUARD)
    noise = (wider * noise_factor(confidence)) ** 2 * both.covariance
    value, z = (math.nan if hidden else float(np.clip(top / bottom, *SHARE))), uncertainty.z_score(confidence)
    ranges: dict[Interval, tuple[float, float]] = dict.fromkeys(INTERVALS, SHARE)
    for kind in INTERVALS if not hidden else ():
        binomial = bottom if kind == "population" else 0.0
        quadratic = noise[0, 0], binomial - 2 * noise[0, 1], noise[1, 1] - binomial
        low, high = ratio_interval(top, bottom, quadratic, z, whole=True)
        ranges[kind] = min(float(low), value), max(float(high), value)
    if hidden:
        return IntervalEstimate(name, value, math.nan, math.nan, SHARE, None, ranges, confidence)
    away = np.array([1.0, -value]) / bottom
    by_noise = math.sqrt(max(float(away @ both.covariance @ away), 0.0))
    return IntervalEstimate(
        name, value, by_noise, math.sqrt(value * (1 - value) / bottom), SHARE, None, ranges, confidence
    )
