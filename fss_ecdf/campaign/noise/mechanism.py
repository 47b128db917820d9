"""The public side of the noise: what is drawn, with which weights, how much it varies, and which epsilon that provides.

Noise is drawn per node of a binary tree over the 2^depth positions of a campaign and added to counts. Positions are
numbered from 0; the noise at position t is what is added to the number of values at positions 0, ..., t.

`slice_tree.py` (the default): leaf noise z with z_root = 0, every inner node the sum of its children, and P(z)
proportional to exp(-sum over nodes v below the root of w_level(v) |z_v|). The noise at t is z_0 + ... + z_t.

`paper_tree.py`: an independent discrete Laplace variable on every node, the root included; the noise at t is the sum
over t and all its ancestors (Eq. 1 of the paper).

Everything here is one server's noise. Both servers add theirs, so an answer has twice the variance.
"""

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.tables import DRAW_BITS as DRAW_BITS
from fss_ecdf.campaign.noise.tables import Floats, Table

MAX_DEPTH = 32
# Each adds a whole noise tree of its own.
SERVERS = 2
# Of a whole campaign at most, and of one value at least: below, tables take minutes to make.
MAX_EPSILON, MIN_EPSILON_EACH = 20.0, 0.01

MAX_CURVE_BITS = 26  # of a whole curve that is held in memory
CURVE_BITS = 20  # up to which servers make whole curves, unless they are set otherwise

Positions = NDArray[np.int64]
Counts = NDArray[np.int64]


class NoiseSampler(Protocol):
    """Where the noise of a tree comes from: exact and from a secret on a server, floating point in a simulation.

    Arrays may have further dimensions in front, one entry for each of several trees; nodes count from the left.
    """

    def split(self, level: int, parents: Counts, nodes: Positions) -> Counts:
        """Left children on a level, below parents of these values."""
        ...

    def divide(self, level: int, parents: Counts, nodes: Positions, tables: tuple[Table, Table]) -> Counts:
        """Left children on a level, below parents of these values, by the tables of both children."""
        ...

    def laplace(self, level: int, nodes: Positions) -> Counts:
        """Discrete Laplace variables of these nodes."""
        ...


class Mechanism(ABC):
    """One server's noise over 2^depth positions, for up to `instances` values a party and `epsilon` in all."""

    name: str
    scales = True  # the noise of another depth-equal tree is this one's, but for its scale: simulations use it

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
    def parts(self) -> "tuple[tuple[Mechanism, int], ...]":
        """The releases whose noise this is, and how many there are of each."""
        return ((self, 1),)

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

    @property
    @abstractmethod
    def level_weights(self) -> tuple[float, ...]:
        """How much each unit of a node's noise costs: on every level from the leaves up, or on all of them alike."""

    @abstractmethod
    def noise_at(self, source: NoiseSampler, positions: Positions) -> Counts:
        """The noise at these positions."""

    @abstractmethod
    def noise_curve(self, source: NoiseSampler, levels: int) -> Counts:
        """The noise at the ends of 2^levels stretches of equal length; at every position for `levels` = depth."""

    def stretch_ends(self, levels: int) -> Positions:
        return (np.arange(1, (1 << levels) + 1) << (self.depth - levels)) - 1

    def difference_variance(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """The exact variance of the difference of the noise at two positions, as of the count between them.

        Position -1 stands for "nothing counted yet", where there is no noise.
        """
        a, b = np.broadcast_arrays(self._check(first, -1), self._check(second, -1))
        first_noise, second_noise = a >= 0, b >= 0
        both = first_noise & second_noise
        found = np.zeros(a.shape)
        found[first_noise] += self.variance(a[first_noise])
        found[second_noise] += self.variance(b[second_noise])
        found[both] -= 2 * self.covariance(a[both], b[both])
        return np.maximum(found, 0.0)

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
