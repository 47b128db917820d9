"""What everybody knows before the first answer, and how much less noise is left once it is used.

Nobody sits in a stratum's padding, between the last threshold and the next power of two, and all strata together hold n
values. The published counts of these stretches are noise and nothing else, and that noise is correlated with all
other. So every published count is replaced by its best linear estimate given these facts (the conditional expectation,
were the noise Gaussian): for rows w of weights and rows G of known stretches

    value f_w - C_wG C_GG^-1 (f_G - truth),   covariance C_ww - C_wG C_GG^-1 C_Gw.

Afterwards padding holds exactly nobody, and the strata's totals add up to n.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.mechanism import SERVERS, Mechanism
from fss_ecdf.campaign.noise.registry import summed

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Parts = tuple[tuple[float, int], ...]

# Up to so many numbers, covariances of all positions with all facts are kept, and facts are as fine as they can be.
_MOST_NUMBERS = 1 << 23
_NO_NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class PublicConstraints:
    """Stretches of positions, above one and up to another, whose true counts are public."""

    noise: Mechanism
    released: int  # positions, from the first on, whose counts are published
    after: Index
    up_to: Index
    whole: int | None  # which of them, if any, holds everybody; the others hold nobody

    @cached_property
    def _root(self) -> Floats:
        """The Cholesky factor of C_GG."""
        return np.asarray(cholesky(self._with_facts(self.up_to) - self._with_facts(self.after), lower=True))

    def _with_facts(self, positions: Index) -> Floats:
        """The covariance of the noise at positions (-1: nothing) with the facts: (positions, facts)."""
        return self._prefixes(positions, self.up_to) - self._prefixes(positions, self.after)

    def _prefixes(self, first: Index, second: Index) -> Floats:
        a, b = first[:, np.newaxis], second[np.newaxis]
        covariance = self.noise.covariance(np.maximum(a, 0), np.maximum(b, 0))
        return np.asarray(SERVERS * np.where((a >= 0) & (b >= 0), covariance, 0.0))

    @cached_property
    def _all_parts(self) -> Floats | None:
        """`parts` of every position and, last, of none; where that is not too much."""
        if not self.after.size or self.after.size << self.noise.depth > _MOST_NUMBERS:
            return None
        rows = np.array([self._row(one) for one in np.eye(self.after.size)])
        covariance = SERVERS * self.noise.prefix_covariance(rows)
        solved = solve_triangular(self._root, covariance, lower=True)
        return np.vstack([solved.T, np.zeros(self.after.size)])

    def parts(self, positions: Index) -> Floats:
        """Rows whose products are what the facts take from the covariance of the noise at positions (-1: nothing)."""
        if not self.after.size:
            return np.zeros((positions.size, 0))
        if self._all_parts is not None:
            return np.asarray(self._all_parts[positions])
        return np.asarray(solve_triangular(self._root, self._with_facts(positions).T, lower=True).T)

    def _row(self, amounts: Floats) -> Floats:
        """Weights over all positions: each fact's amount on its stretch."""
        steps = np.zeros(self.noise.positions + 1)
        np.add.at(steps, self.after + 1, amounts)
        np.add.at(steps, self.up_to + 1, -amounts)
        return np.asarray(np.cumsum(steps)[:-1])

    def adjust(self, published: Floats, n: float) -> Floats:
        """Published counts at the released positions, or rows of them, given the facts."""
        counts = np.atleast_2d(published)
        if not self.after.size:
            return published
        before = np.where(self.after >= 0, counts[:, np.maximum(self.after, 0)], 0.0)
        off = counts[:, self.up_to] - before
        if self.whole is not None:
            off[:, self.whole] -= n
        amounts = cho_solve((self._root, True), off.T).T
        rows = np.array([self._row(a) for a in amounts])
        noise = SERVERS * self.noise.prefix_covariance(rows)[:, : self.released]
        return np.asarray((counts - noise).reshape(published.shape))

    def features(self, weights: Floats) -> Floats:
        """Sums over positions as vectors whose products are their covariances, given the facts."""
        return np.asarray(np.sqrt(float(SERVERS)) * self.noise.features(weights))

    @cached_property
    def _fact_features(self) -> Floats | None:
        if not self.after.size or self.after.size << self.noise.depth > _MOST_NUMBERS:
            return None
        return self.features(np.array([self._row(one) for one in np.eye(self.after.size)]))

    def taken(self, weights: Floats, features: Floats) -> Floats:
        """Rows whose products are what the facts take from the covariance of sums over positions."""
        if not self.after.size:
            return np.zeros((len(weights), 0))
        if self._fact_features is not None:
            shared = features @ self._fact_features.T
        else:
            covariance = SERVERS * self.noise.prefix_covariance(weights)
            before = np.where(self.after >= 0, covariance[:, np.maximum(self.after, 0)], 0.0)
            shared = covariance[:, self.up_to] - before
        return np.asarray(solve_triangular(self._root, shared.T, lower=True).T)

    def covariance(self, weights: Floats) -> Floats:
        """Of sums over positions, (k, positions), given the facts: (k, k)."""
        features = self.features(weights)
        taken = self.taken(weights, features)
        return np.asarray(features @ features.T - taken @ taken.T)

    def variance(self, weights: Floats) -> Floats:
        """Of each of these sums."""
        features = self.features(weights)
        taken = self.taken(weights, features)
        left = np.einsum("ij,ij->i", features, features) - np.einsum("ij,ij->i", taken, taken)
        return np.asarray(np.maximum(left, 0.0))


def public_constraints(campaign: Campaign) -> PublicConstraints:
    """What is public about a campaign's counts."""
    variable = campaign.variable
    about = variable.mechanism, campaign.bits, campaign.noise_parts, campaign.max_values_per_person
    return _facts(*about, variable.size, 1 << variable.index_bits, len(campaign.strata))


@lru_cache(maxsize=8)
def _facts(name: str, bits: int, parts: Parts, instances: int, size: int, each: int, strata: int) -> PublicConstraints:
    noise = summed(name, bits, parts, instances)
    stretches = [(start + size - 1, start + each - 1) for start in range(0, strata * each, each)] if size < each else []
    nodes = [node for stretch in stretches for node in _nodes(*stretch)]
    known = nodes if len(nodes) << bits <= _MOST_NUMBERS else stretches
    end = strata * each - 1
    whole = float(noise.variance(end)) > _NO_NOISE
    ends = np.array([*known, (-1, end)] if whole else known, np.int64).reshape(-1, 2)
    return PublicConstraints(noise, end + 1, ends[:, 0], ends[:, 1], len(known) if whole else None)


def _nodes(after: int, up_to: int) -> list[tuple[int, int]]:
    """A stretch cut into nodes of the tree: each of them known, they tell more than their sum."""
    spans = []
    while after < up_to:
        size = (after + 1) & -(after + 1)
        spans.append((after, after + size))
        after += size
    return spans
