"""How far an answer may be from the truth by the noise: from the campaign's public parameters, never from the data.

Everything is given what is public (analyst/estimation/public_constraints.py). What other people would have answered is
a matter of sampling, which analyst/estimation/estimate.py adds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from analyst.estimation import public_constraints
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.mechanism import SERVERS

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

_MOST_WEIGHTS = 1 << 26
_FAR = 4.0  # standard errors above a guard, from where on it does not matter
# Pooled curves: the covariance of each stratum's count with each other's, at every threshold.
_MOST_PAIRS = 1 << 22


def z_score(confidence: float) -> float:
    """How many standard errors to both sides hold a normal variable with this probability."""
    if not 0 < confidence < 1:
        raise InvalidQuery(f"a confidence level lies between 0 and 1, got {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def caution(distance: float) -> float:
    """How much wider a noise interval must be because a number was shown: 1 far from the guard, more near it.

    A stratum is shown if its noisy total lies above a guard, `distance` standard errors below it. Given that, the
    noise of the total is one-sided: where a true total lies below the guard, only those are shown that noise made too
    large. The lower 97.5 % limit x of a normal variable given that it lies above the guard solves
    P(> x) = .025 P(> x - distance); this is x over 1.96. What depends on the total in full is then held in 95 % of
    the runs in which it is shown, and everything else more often.
    """
    usual = z_score(0.95)
    if distance > _FAR:
        return 1.0
    low, high = usual, 40.0 / max(distance, 0.05)
    for _ in range(60):
        middle = (low + high) / 2
        too_likely = log_ndtr(-middle) > math.log(0.025) + log_ndtr(max(distance, 0.05) - middle)
        low, high = (middle, high) if too_likely else (low, middle)
    return max(1.0, high / usual)


@dataclass(frozen=True, eq=False)
class CountNoise:
    """The noise of the counts of one stratum, or of several pooled, at or below thresholds of the grid."""

    campaign: Campaign
    strata: tuple[str, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [self.campaign.position(self.campaign.stratum(name), 0) for name in self.strata]

    @property
    def _last(self) -> Index:
        return np.array([self.campaign.variable.grid.size - 1])

    def covariance(self, first: Index, second: Index) -> Floats:
        """Of the counts at two grid indices (-1: no count), taken pairwise."""
        a, b = np.broadcast_arrays(first, second)
        if a.size * len(self._starts) ** 2 > max(_MOST_PAIRS, a.size):
            raise InvalidQuery(f"{len(self._starts)} strata are too many to pool on this grid")
        total: Floats | float = 0.0
        for i, s in enumerate(self._starts):
            if first is second:  # each pair of strata once
                others = [(t, 1.0 if t == s else 2.0) for t in self._starts[i:]]
            else:
                others = [(t, 1.0) for t in self._starts]
            total = total + sum(times * self._pair(s + a, s - 1, t + b, t - 1) for t, times in others)
        taken = np.einsum("ij,ij->i", self._parts(a.ravel()), self._parts(b.ravel())).reshape(a.shape)
        left = np.asarray(SERVERS * total) - taken
        return np.where((a < 0) | (b < 0), 0.0, left)

    def _pair(self, up_to: Index, after: int, other_up_to: Index, other_after: int) -> Floats:
        """The covariance of two counts, each of the positions above one and up to another."""
        noise, scalar = self.campaign.noise, np.array([other_after])
        if up_to is other_up_to or (after == other_after and np.array_equal(up_to, other_up_to)):
            covariance = noise.variance(np.maximum(up_to, 0))
        else:
            covariance = noise.covariance(np.maximum(up_to, 0), np.maximum(other_up_to, 0))
        if other_after >= 0:
            covariance = covariance - noise.covariance(np.maximum(up_to, 0), scalar)
        if after >= 0:
            covariance = covariance - noise.covariance(np.array([after]), np.maximum(other_up_to, 0))
        if after >= 0 and other_after >= 0:
            covariance = covariance + noise.covariance(np.array([after]), scalar)
        return np.asarray(covariance)

    def _parts(self, index: Index) -> Floats:
        facts = public_constraints.public_constraints(self.campaign)
        ends = [facts.parts(s + np.maximum(index, 0)) - facts.parts(np.array([s - 1])) for s in self._starts]
        return np.asarray(np.sum(ends, axis=0))

    @cached_property
    def _all(self) -> tuple[Floats, Floats]:
        index = np.arange(self.campaign.variable.grid.size)
        return np.maximum(self.covariance(index, index), 0.0), self.covariance(index, self._last)

    @cached_property
    def total_variance(self) -> float:
        """Of the stratum's total; n is public, so that of a single stratum has none."""
        last = self._last
        return max(float(self.covariance(last, last)[0]), 0.0)

    def variances(self, index: Index | None = None) -> tuple[Floats, Floats]:
        """Of the counts at all thresholds or some, and their covariances with the total."""
        if index is None:
            return self._all
        return np.maximum(self.covariance(index, index), 0.0), self.covariance(index, self._last)

    def errors(self, index: Index | None = None) -> Floats:
        """Standard errors of the counts at all thresholds or some."""
        return np.sqrt(self.variances(index)[0])

    def bin_errors(self, above: ArrayLike, up_to: ArrayLike) -> Floats:
        """Standard errors of the counts above one index (-1: from the start) and up to another."""
        return np.sqrt(self.bin_variances(above, up_to)[0])

    def bin_variances(self, above: ArrayLike, up_to: ArrayLike) -> tuple[Floats, Floats]:
        """Variances of the counts above one index and up to another, and their covariances with the total."""
        low, high = np.asarray(above, np.int64), np.asarray(up_to, np.int64)
        variance = self.covariance(low, low) + self.covariance(high, high) - 2 * self.covariance(low, high)
        shared = self.covariance(high, self._last) - self.covariance(low, self._last)
        return np.maximum(variance, 0.0), shared

    @cached_property
    def rest_errors(self) -> Floats:
        """Standard errors of the counts from each threshold's cell on."""
        variance, shared = self._all
        before, with_total = np.append(0.0, variance[:-1]), np.append(0.0, shared[:-1])
        return np.asarray(np.sqrt(np.maximum(self.total_variance - 2 * with_total + before, 0.0)))

    def rate_variances(self, rates: ArrayLike, index: Index | None = None) -> Floats:
        """Variances of count - rate * total, which has noise e_i - F_i e."""
        variance, shared = self.variances(index)
        r = np.asarray(rates, np.float64)
        return np.maximum(variance - 2 * r * shared + r * r * self.total_variance, 0.0)


def weights_over_positions(campaign: Campaign, weights: Mapping[str, Floats]) -> Floats:
    """What each cell of each stratum counts, (k, size) each, as rows over all positions."""
    k = next(iter(weights.values())).shape[0]
    if k << campaign.bits > _MOST_WEIGHTS:
        raise InvalidQuery(f"{k} sums over 2^{campaign.bits} positions need too much memory; take fewer groups")
    rows = np.zeros((k, 1 << campaign.bits))
    for stratum, w in weights.items():
        start = campaign.position(campaign.stratum(stratum), 0)
        rows[:, start : start + campaign.variable.grid.size] = w
    return rows


def covariance(campaign: Campaign, weights: Mapping[str, Floats]) -> Floats:
    """The covariance of k sums over cells: `weights` maps strata to what each cell counts, (k, size)."""
    return public_constraints.public_constraints(campaign).covariance(weights_over_positions(campaign, weights))


def variances(campaign: Campaign, weights: Mapping[str, Floats]) -> Floats:
    """The variance of each of k sums over cells."""
    return public_constraints.public_constraints(campaign).variance(weights_over_positions(campaign, weights))


def error_of_sum(campaign: Campaign, weights: Mapping[str, Floats]) -> float:
    """The standard error of one sum over cells."""
    return math.sqrt(variances(campaign, {name: w[np.newaxis] for name, w in weights.items()})[0])
