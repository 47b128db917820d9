"""flat, for categories: discrete Laplace noise in every cell, given that all of it adds up to 0.

Categories have no order, so only counts of single cells matter. P(z) is proportional to exp(-w sum over cells |z_i|)
with sum z_i = 0, since n is public: a slice-tree with all of its weight on the leaves. Replacing a value moves one unit
from one cell to another, so w = epsilon / 2 for each value of a person.

A cell is a category of a stratum. Positions between the last category and the next power of two, and those of strata
that do not exist, are unused: no value of a person can be there, neither before nor after a replacement. They have no
noise, and no cell's noise is the larger for them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.mechanism import Counts, Mechanism, NoiseSampler, Positions
from fss_ecdf.campaign.noise.slice_tree import curve_by_splits, prefixes_by_splits
from fss_ecdf.campaign.noise.tables import Floats, Table, build, convolve, distance_of_draw, tilt


@dataclass(frozen=True)
class Cells:
    """Which of 2^depth positions are used: in each of some strata of equal length, the first `size`."""

    depth: int
    size: int
    strata: int = 1

    def __post_init__(self) -> None:
        if self.strata < 1 or not 1 <= self.size <= 1 << max(self.bits, 0) or self.count < 2:
            raise InvalidCampaign(
                f"categories take at least 2 cells in all and at most 2^{self.depth} positions, "
                f"got {self.size} in each of {self.strata} strata"
            )

    @property
    def bits(self) -> int:
        """Of a position within its stratum."""
        return self.depth - (self.strata - 1).bit_length()

    @property
    def count(self) -> int:
        return self.strata * self.size

    def before(self, positions: ArrayLike) -> Positions:
        """How many cells there are before each of these positions."""
        at = np.asarray(positions, np.int64)
        stratum, within = at >> self.bits, at & ((1 << self.bits) - 1)
        inside = stratum * self.size + np.minimum(within, self.size)
        return np.asarray(np.where(stratum < self.strata, inside, self.count))

    def below(self, level: int, nodes: Positions) -> Positions:
        """How many cells there are below each of these nodes."""
        return self.before((nodes + 1) << level) - self.before(nodes << level)

    def children(self, level: int, count: int) -> tuple[int, int]:
        """How many of a node's cells are below either child. Cells fill a node from the left."""
        half = 1 << (level - 1) if level <= self.bits else self.size << (level - 1 - self.bits)
        left = min(count, half)
        return left, count - left


@lru_cache(maxsize=256)
def node_table(weight: float, exponent: int, cells: Cells, level: int, count: int) -> Table:
    """The distribution of the noise of a node with so many cells: that of their sum, without the condition.

    Each is the convolution of its children's, rounded once (tables.py).
    """
    if level == 0:
        return build((weight,), exponent)[0]
    left, right = cells.children(level, count)
    if right == 0:
        return node_table(weight, exponent, cells, level - 1, left)
    both = [node_table(weight, exponent, cells, level - 1, each) for each in (left, right)]
    return Table(tilt(convolve(both[0], both[1]), 0.0))


class Flat(Mechanism):
    """One server's noise of a variable with `size` categories in each of some strata."""

    name = "flat"
    exponent = 1
    scales = False

    def __init__(
        self, depth: int, epsilon: float, instances: int = 1, *, size: int | None = None, strata: int = 1
    ) -> None:
        super().__init__(depth, epsilon, instances)
        self.cells = Cells(depth, (1 << depth) // strata if size is None else size, strata)

    @cached_property
    def weight(self) -> float:
        """w: at most half of epsilon for each value, exactly."""
        return self._wanted / 2

    @property
    def level_weights(self) -> tuple[float, ...]:
        return (self.weight, *[0.0] * (self.depth - 1))

    @property
    def epsilon(self) -> float:
        """Replacing a value changes two cells, each by one: 2 w, for each instance."""
        return float(self.instances * 2 * Fraction(self.weight))

    @property
    def leaf(self) -> Table:
        return build((self.weight,), self.exponent)[0]

    def tables(self, level: int, count: int) -> tuple[Table, Table]:
        """Of the children of a node on a level, with so many cells below it, of which both have some."""
        left, right = self.cells.children(level, count)
        law = self.weight, self.exponent, self.cells, level - 1
        return node_table(*law, left), node_table(*law, right)

    @property
    def distance(self) -> float:
        """Fewer than 2 nodes for each cell are drawn."""
        each = [table for level, count in self._kinds() for table in self.tables(level, count)]
        return 2.0 * self.cells.count * distance_of_draw(each)

    def _kinds(self) -> set[tuple[int, int]]:
        """Level and number of cells of the nodes that are split: on each level a full one, and the last one."""
        found, level = set(), self.depth
        pending = {self.cells.count}
        while level:
            both = {count: self.cells.children(level, count) for count in pending}
            found |= {(level, count) for count, (_, right) in both.items() if right}
            pending = {child for children in both.values() for child in children if child}
            level -= 1
        return found

    @cached_property
    def cell_variance(self) -> float:
        """Of the noise of one cell, exactly but for rounding in the last digits.

        E[z_1^2 | sum = 0] = sum over frequencies of g phi^(k - 1) / sum of phi^k, with phi the transform of f and g
        that of z^2 f, on so many frequencies that sums which are 0 modulo their number but not 0 do not count.
        """
        f, k = self.leaf.floats, self.cells.count
        z = np.arange(-self.leaf.reach, self.leaf.reach + 1.0)
        spread = math.sqrt(k * float(f @ z**2) / float(f.sum()))
        length = 1 << int(2 * self.leaf.reach + 40 * spread + 2).bit_length()
        phi, g = (np.fft.rfft(np.fft.ifftshift(_centred(values, length))).real for values in (f / f.sum(), z**2 * f))
        both = np.full(phi.size, 2.0)
        both[[0, -1]] = 1.0
        powers = both * phi ** (k - 1)
        return float(powers @ g) / float(f.sum()) / float(powers @ phi)

    def _shared(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """The covariance of the noise at positions, from how many cells they have counted: all cells are alike."""
        a, b, k = self.cells.before(np.asarray(first) + 1), self.cells.before(np.asarray(second) + 1), self.cells.count
        return np.asarray(self.cell_variance * (k * np.minimum(a, b) - a * b) / (k - 1))

    def variance(self, positions: ArrayLike) -> Floats:
        t = self._check(positions)
        return self._shared(t, t)

    def covariance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        return self._shared(self._check(first), self._check(second))

    def mean_variance(self) -> float:
        return float(self.variance(np.arange(self.positions)).mean())

    def features(self, weights: ArrayLike) -> Floats:
        """Sums of cells, less what is the same in all of them, which counts nothing."""
        return math.sqrt(self.cell_variance * self.cells.count / (self.cells.count - 1)) * self._centred(weights)

    def prefix_covariance(self, weights: ArrayLike) -> Floats:
        scale = self.cell_variance * self.cells.count / (self.cells.count - 1)
        return np.asarray(scale * np.cumsum(self._centred(weights), axis=1))

    def _centred(self, weights: ArrayLike) -> Floats:
        rows = self._check_weights(weights)
        used = np.diff(self.cells.before(np.arange(self.positions + 1))) == 1
        return np.asarray(np.where(used, rows - rows[:, used].mean(axis=1, keepdims=True), 0.0))

    def noise_curve(self, source: NoiseSampler, levels: int) -> Counts:
        return curve_by_splits(lambda *node: self._split(source, *node), self.depth, levels)

    def noise_at(self, source: NoiseSampler, positions: Positions) -> Counts:
        return prefixes_by_splits(lambda *node: self._split(source, *node), self.depth, positions)

    def _split(self, source: NoiseSampler, level: int, parents: Counts, nodes: Positions) -> Counts:
        """Left children; where the right one has no cells the left one has all of the noise."""
        counts = self.cells.below(level + 1, nodes)
        left: Counts | None = None
        for count in map(int, np.unique(counts)):
            if not self.cells.children(level + 1, count)[1]:
                continue
            at = np.flatnonzero(counts == count)
            drawn = source.divide(level, parents[..., at], nodes[at], self.tables(level + 1, count))
            if left is None:
                left = np.broadcast_to(parents, (*drawn.shape[:-1], nodes.size)).copy()
            left[..., at] = drawn
        return parents if left is None else left


def _centred(values: Floats, length: int) -> Floats:
    """Values of -reach, ..., reach as an array of this length with 0 at its middle."""
    whole, start = np.zeros(length), length // 2 - values.size // 2
    whole[start : start + values.size] = values
    return whole
