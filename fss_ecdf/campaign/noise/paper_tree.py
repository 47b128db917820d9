"""The paper's mechanism (Eq. 1): independent noise on every node, added up over a position and its ancestors."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fss_ecdf.campaign.noise import tables
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, Counts, Mechanism, NoiseSampler, Positions
from fss_ecdf.campaign.noise.tables import KEPT_BITS, Floats, Table


class PaperTree(Mechanism):
    """The paper's mechanism, at the paper's scale (depth + 1) / epsilon."""

    name = "paper-tree"

    @property
    def sensitivity(self) -> int:
        """At most how many nodes' noise must change by one to hide the replacement of one value."""
        return self.depth + 1

    @property
    def rate(self) -> float:
        """A node's noise is k with probability proportional to exp(-rate |k|)."""
        rate = self._wanted / self.sensitivity
        while Fraction(rate) * self.sensitivity > Fraction(self._wanted):
            rate = math.nextafter(rate, 0.0)
        return rate

    @property
    def level_weights(self) -> tuple[float, ...]:
        return (self.rate,)

    @property
    def epsilon(self) -> float:
        return float(self.instances * Fraction(self.rate) * self.sensitivity)

    @cached_property
    def table(self) -> Table:
        return tables.build((self.rate,))[0]

    @property
    def distance(self) -> float:
        per_node = 4 / -math.expm1(-self.rate) * 2.0**-KEPT_BITS + (2 * self.table.reach + 1) * 2.0**-DRAW_BITS
        return 2.0 ** (self.depth + 1) * per_node

    @property
    def node_variance(self) -> float:
        """The variance of a discrete Laplace variable: 2 r / (1 - r)^2 with r = exp(-rate)."""
        return 2 * math.exp(-self.rate) / math.expm1(-self.rate) ** 2

    def variance(self, positions: ArrayLike) -> Floats:
        return np.full(self._check(positions).shape, (self.depth + 1) * self.node_variance)

    def covariance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        s, t = self._check(first), self._check(second)
        shared = sum(((s >> level) == (t >> level)).astype(np.float64) for level in range(self.depth + 1))
        return np.asarray(shared * self.node_variance)

    def mean_variance(self) -> float:
        return (self.depth + 1) * self.node_variance

    def features(self, weights: ArrayLike) -> Floats:
        return np.concatenate(self._node_sums(weights), axis=1) * math.sqrt(self.node_variance)

    def prefix_covariance(self, weights: ArrayLike) -> Floats:
        *below, total = self._node_sums(weights)
        for sums in reversed(below):
            total = np.repeat(total, 2, axis=1) + sums
        return np.asarray(total * self.node_variance)

    def _node_sums(self, weights: ArrayLike) -> list[Floats]:
        """How often each node's noise is counted, from the leaves up."""
        # In terms of the noise at t rather than what t adds to it: summation by parts.
        sums = [-np.diff(self._check_weights(weights), axis=1, append=0.0)]
        for _ in range(self.depth):
            sums.append(sums[-1][:, 0::2] + sums[-1][:, 1::2])
        return sums

    def noise_at(self, source: NoiseSampler, positions: Positions) -> Counts:
        """The sum over a position and all its ancestors."""
        noise = np.zeros_like(positions)
        for level in range(self.depth + 1):
            nodes, back = np.unique(positions >> level, return_inverse=True)
            noise = noise + source.laplace(level, nodes)[..., back]
        return np.asarray(noise)

    def noise_curve(self, source: NoiseSampler, levels: int) -> Counts:
        return self.noise_at(source, self.stretch_ends(levels))


class ExactPaperTree(PaperTree):
    """The paper's mechanism at its exact sensitivity: any interval is a signed sum of at most `depth` dyadic ones."""

    name = "paper-tree-exact"

    @property
    def sensitivity(self) -> int:
        return self.depth
