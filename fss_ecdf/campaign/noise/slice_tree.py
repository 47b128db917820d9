"""slice-tree, the default: noise that adds up over the tree, weighed level by level.

P(z) is proportional to exp(-sum over nodes v below the root of w_level(v) |z_v|), z_root = 0, every inner node the sum
of its children. The noise at t is z_0 + ... + z_t.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fss_ecdf.campaign.noise import tables
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, Counts, Mechanism, NoiseSampler, Positions
from fss_ecdf.campaign.noise.tables import KEPT_BITS, Floats, Table

# Positions whose coefficients on all levels are computed together: they fit into a processor's cache.
_AT_ONCE = 1 << 12


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
    def level_weights(self) -> tuple[float, ...]:
        return self.weights

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
        flat, found = t.ravel(), np.empty(t.size)
        for start in range(0, flat.size, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            found[some] = self.level_variances @ self.haar(flat[some]) ** 2
        return found.reshape(t.shape)

    def covariance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        s, t = np.broadcast_arrays(self._check(first), self._check(second))
        here, there, found = s.ravel(), t.ravel(), np.empty(s.size)
        above = np.arange(1, self.depth + 1)[:, np.newaxis]
        for start in range(0, found.size, _AT_ONCE):
            a, b = here[start : start + _AT_ONCE], there[start : start + _AT_ONCE]
            same = ((a + 1) >> above) == ((b + 1) >> above)
            found[start : start + _AT_ONCE] = self.level_variances @ (self.haar(a) * self.haar(b) * same)
        return found.reshape(s.shape)

    def haar(self, t: Positions) -> Floats:
        """The coefficients, in the noise at each t, of the deviations of its inner nodes above all levels, (levels, t).

        With x the share of that node's half that lies at or before t: x if it is the left half, 1 - x if the right.
        """
        size = 1 << np.arange(self.depth, dtype=np.int64)[:, np.newaxis]
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
        means, deviations = self._check_weights(weights), []
        for _ in self.level_variances:
            left, right = means[:, 0::2], means[:, 1::2]
            deviations.append(left - right)
            means = (left + right) / 2
        return deviations

    def noise_curve(self, source: NoiseSampler, levels: int) -> Counts:
        return curve_by_splits(source.split, self.depth, levels)

    def noise_at(self, source: NoiseSampler, positions: Positions) -> Counts:
        return prefixes_by_splits(source.split, self.depth, positions)


Split = Callable[[int, Counts, Positions], Counts]  # level, parents' values, parents' numbers to left children


def curve_by_splits(split: Split, depth: int, levels: int) -> Counts:
    """Top down: each node's noise is split between its children."""
    nodes = np.zeros(1, np.int64)
    for level in range(depth - 1, depth - 1 - levels, -1):
        left = split(level, nodes, np.arange(nodes.shape[-1]))
        nodes = np.stack([left, nodes - left], axis=-1).reshape(*left.shape[:-1], -1)
    return np.cumsum(nodes, axis=-1)


def prefixes_by_splits(split: Split, depth: int, positions: Positions) -> Counts:
    """z_0 + ... + z_t: the left siblings on the way from the root to the leaf t + 1."""
    # The last position counts everything; its noise is z_root = 0, and it has no leaf after it.
    after = np.where(positions == (1 << depth) - 1, 0, positions + 1)
    noise, node = np.zeros_like(positions), np.zeros_like(positions)
    for level in range(depth - 1, -1, -1):
        left = split(level, node, after >> (level + 1))
        right = (after >> level) & 1 == 1
        noise = noise + np.where(right, left, 0)
        node = np.where(right, node - left, left)
    return np.asarray(noise)
