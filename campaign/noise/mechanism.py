"""The public side of the noise: what is drawn, with which weights, how much it varies, and which epsilon that provides.

Noise is drawn per node of a binary tree over the 2^depth positions of a campaign and added to counts. Positions are
numbered from 0; the noise at position t is what is added to the number of values at positions 0, ..., t.

`SliceTree` (the default): leaf noise z with z_root = 0, every inner node the sum of its children, and
P(z) proportional to exp(-sum over nodes v below the root of w_level(v) |z_v|). The noise at t is z_0 + ... + z_t.

`PaperTree`: an independent discrete Laplace variable on every node, the root included; the noise at t is the sum over
t and all its ancestors (Eq. 1 of the paper).

Everything here is one server's noise. Both servers add theirs, so an answer has twice the variance.
"""

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from campaign.errors import InvalidCampaign
from campaign.noise import tables
from campaign.noise.tables import KEPT_BITS, Floats, Table

MAX_DEPTH = 32
# Each adds a whole noise tree of its own.
SERVERS = 2
# Of a whole campaign at most, and of one value at least: below, tables take minutes to make.
MAX_EPSILON, MIN_EPSILON_EACH = 20.0, 0.01

# Bits of the pseudorandom function that decide one draw (servers/release/noise.py).
DRAW_BITS = 128
MAX_CURVE_BITS = 26  # of a whole curve that is held in memory

Positions = NDArray[np.int64]


class Mechanism(ABC):
    """One server's noise over 2^depth positions, for up to `instances` values a party and `epsilon` in all."""

    name: str

    def __init__(self, depth: int, epsilon: float, instances: int = 1) -> None:
        if not 1 <= depth <= MAX_DEPTH:
            raise InvalidCampaign(f"the noise tree has 1 to {MAX_DEPTH} levels, got {depth}")
        if instances < 1:
            raise InvalidCampaign(f"a party contributes at least 1 value, got {instances}")
        if not 0 < epsilon <= MAX_EPSILON:
            raise InvalidCampaign(f"epsilon must be above 0 and at most {MAX_EPSILON:g}, got {epsilon:g}")
        if epsilon / instances < MIN_EPSILON_EACH:
            raise InvalidCampaign(
                f"epsilon must be at least {MIN_EPSILON_EACH} for each value a party contributes, "
                f"got {epsilon:g} for {instances}"
            )
        self.depth, self.instances = depth, instances
        # Rounded down, so that instances times it is not above epsilon.
        self._wanted = epsilon / instances
        while Fraction(self._wanted) * instances > Fraction(epsilon):
            self._wanted = math.nextafter(self._wanted, 0.0)

    @property
    def positions(self) -> int:
        return 1 << self.depth

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The privacy loss for a party that replaces up to `instances` values, derived from the weights."""

    @property
    @abstractmethod
    def distance(self) -> float:
        """A bound on the total variation distance of all noise of a campaign from the ideal distribution."""

    @property
    def delta(self) -> float:
        """The delta that goes with `epsilon`: what is ideal within a distance d is (epsilon, (1 + e^epsilon) d)-DP."""
        return (1 + math.exp(self.epsilon)) * self.distance

    @abstractmethod
    def variance(self, positions: ArrayLike) -> Floats:
        """The exact variance of the noise at each position."""

    @abstractmethod
    def covariance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """The exact covariance of the noise at two positions; arrays are taken pairwise."""

    @abstractmethod
    def mean_variance(self) -> float:
        """The variance of the noise, averaged over all positions."""

    @abstractmethod
    def features(self, weights: ArrayLike) -> Floats:
        """Sums over the noise of single positions, (k, positions), as vectors whose products are their covariances.

        Row i stands for the sum over t of weights[i, t] times what t's noise adds to that of the position before it.
        """

    @abstractmethod
    def prefix_covariance(self, weights: ArrayLike) -> Floats:
        """The exact covariance of such sums with the noise at every position: (k, positions)."""

    def functional_covariance(self, weights: ArrayLike) -> Floats:
        """The exact covariance of such sums with each other: (k, k)."""
        features = self.features(weights)
        return np.asarray(features @ features.T)

    def difference_variance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """The exact variance of the difference of the noise at two positions, as of the count between them.

        Position -1 stands for "nothing counted yet", where there is no noise.
        """
        a, b = np.broadcast_arrays(self._check(first, -1), self._check(second, -1))
        inner = np.where((a >= 0) & (b >= 0), self.covariance(np.maximum(a, 0), np.maximum(b, 0)), 0.0)
        of_each = [np.where(p >= 0, self.variance(np.maximum(p, 0)), 0.0) for p in (a, b)]
        return np.asarray(np.maximum(of_each[0] + of_each[1] - 2 * inner, 0.0))

    def worst_variance(self) -> float:
        """The variance at the noisiest position; for more than 2^16 positions, of a dense sample of them."""
        step = max(1, self.positions >> 16)
        start = np.arange(0, self.positions, step)
        # a third of the way into each step, where no level below it contributes little
        return float(max(self.variance(start + step // 3).max(), self.variance(start + 2 * step // 3).max()))

    def _check_weights(self, weights: ArrayLike) -> Floats:
        array = np.asarray(weights, np.float64)
        if array.ndim != 2 or array.shape[1] != self.positions:
            raise InvalidCampaign(f"weights are rows over all {self.positions} positions, got shape {array.shape}")
        return array

    def _check(self, positions: ArrayLike, lowest: int = 0) -> Positions:
        array = np.asarray(positions, np.int64)
        if array.size and not (lowest <= array.min() and array.max() < self.positions):
            raise InvalidCampaign(f"positions must be {lowest} to {self.positions - 1}")
        return array


def slice_profile(depth: int) -> list[float]:
    """Relative weights from the leaves to the children of the root.

    The minimum of the mean variance, found numerically; the children of the root need no weight of their own, since
    what holds below them holds them. Small trees take the lower part of the profile.
    """
    if depth == 1:
        return [1.0]
    lower, middle, upper = [0.1977, 0.0329, 0.0545, 0.0621], 0.0642, [0.067, 0.071]
    profile = [*lower, *[middle] * (depth - 7), *upper]
    return [*profile[: depth - 1], 0.0]


class SliceTree(Mechanism):
    name = "slice-tree"

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """w_0 (leaves) to w_{depth - 1}, such that 2 (w_0 + ...) is at most epsilon, exactly."""
        profile = slice_profile(self.depth)
        scale = self._wanted / (2 * math.fsum(profile))
        while 2 * sum(Fraction(u * scale) for u in profile) > Fraction(self._wanted):
            scale = math.nextafter(scale, 0.0)
        return tuple(u * scale for u in profile)

    @property
    def epsilon(self) -> float:
        """Replacing a value changes at most two nodes of a level, each by one: 2 sum of w, for each instance."""
        return float(self.instances * 2 * sum(Fraction(w) for w in self.weights))

    @property
    def tables(self) -> tuple[Table, ...]:
        return tables.build(self.weights)

    @property
    def distance(self) -> float:
        """Per node: what was cut off both ends of a table, its rounding, and that of a draw to DRAW_BITS bits."""
        widest = max(table.reach for table in self.tables)
        cut = 4 / -math.expm1(-self.weights[0])
        per_node = (cut + 4.0) * 2.0**-KEPT_BITS + (4 * widest + 2) * 2.0**-DRAW_BITS
        return 2.0 ** (self.depth + 1) * per_node

    @cached_property
    def node_variances(self) -> Floats:
        """Var z on each level, from the leaves to the root, which is 0."""
        return tables.marginal_variances(self.weights)

    @cached_property
    def level_variances(self) -> Floats:
        """v_l = E[(z_left - p / 2)^2] for the children of level l.

        Given its parent's value p, a left child has mean p / 2, by symmetry. So the deviations z_left - p / 2 of all
        inner nodes are uncorrelated, and the noise is a Haar series in them: every variance is a sum of squares times
        v_l, and v_l = Var z_l - Var z_{l+1} / 4.
        """
        total = self.node_variances
        return np.asarray(total[:-1] - total[1:] / 4)

    def variance(self, positions: ArrayLike) -> Floats:
        t = self._check(positions)
        return np.asarray(sum(self.haar(t, level) ** 2 * v for level, v in enumerate(self.level_variances)))

    def covariance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        s, t = self._check(first), self._check(second)
        total = np.zeros(np.broadcast_shapes(s.shape, t.shape))
        for level, v in enumerate(self.level_variances):
            same = ((s + 1) >> (level + 1)) == ((t + 1) >> (level + 1))
            total += np.where(same, self.haar(s, level) * self.haar(t, level) * v, 0.0)
        return total

    @staticmethod
    def haar(t: Positions, level: int) -> Floats:
        """The coefficient, in the noise at t, of the deviation of t's inner node above `level`.

        With x the share of that node's half that lies at or before t: x if it is the left half, 1 - x if the right.
        """
        size = 1 << level
        taken = (t + 1) & (2 * size - 1)
        return np.asarray(np.minimum(taken, 2 * size - taken) / size)

    def mean_variance(self) -> float:
        total = 0.0
        for level, v in enumerate(self.level_variances):
            # the mean of (taken / size)^2 over the 2 size values of `taken`, which rise to 1 and fall again
            size = float(1 << level)
            total += float(v) * (1 / 3 + 1 / (6 * size**2))
        return total

    def features(self, weights: ArrayLike) -> Floats:
        deviations = zip(self._deviations(weights), self.level_variances, strict=True)
        return np.concatenate([math.sqrt(v) * part for part, v in deviations], axis=1)

    def prefix_covariance(self, weights: ArrayLike) -> Floats:
        deviations = self._deviations(weights)
        nodes = np.zeros((len(deviations[0]), 1))
        for part, v in zip(reversed(deviations), reversed(self.level_variances), strict=True):
            nodes = np.stack([nodes / 2 + v * part, nodes / 2 - v * part], axis=2).reshape(len(nodes), -1)
        return np.cumsum(nodes, axis=1)

    def _deviations(self, weights: ArrayLike) -> list[Floats]:
        """The coefficients, in sums over positions, of the deviations on each level, from the leaves up.

        A node's deviation is shared evenly by the leaves of its left half, and taken from those of its right half.
        """
        means, found = self._check_weights(weights), []
        for _ in self.level_variances:
            left, right = means[:, 0::2], means[:, 1::2]
            found.append(left - right)
            means = (left + right) / 2
        return found


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


class ExactPaperTree(PaperTree):
    """The paper's mechanism at its exact sensitivity: any interval is a signed sum of at most `depth` dyadic ones."""

    name = "paper-tree-exact"

    @property
    def sensitivity(self) -> int:
        return self.depth


MECHANISMS: dict[str, type[Mechanism]] = {m.name: m for m in (SliceTree, PaperTree, ExactPaperTree)}


def mechanism(name: str, depth: int, epsilon: float, instances: int = 1) -> Mechanism:
    """The mechanism of this name."""
    if name not in MECHANISMS:
        raise InvalidCampaign(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")
    return MECHANISMS[name](depth, epsilon, instances)
