"""gauss-tree and gauss-flat, for studies of many variables: discrete Gaussian noise, whose cost adds up as rho.

As slice_tree.py and flat.py, with squares: P(z) is proportional to exp(-sum over nodes v below the root of
w_level(v) z_v^2), z_root = 0, every inner node the sum of its children. Replacing a value shifts z by d = e_a - e_b,
and the Renyi divergence of order alpha between z and z + d is at most alpha Q(d), with Q(d) = sum of w d_v^2, exactly
alpha Q(d) for whole alpha. Two nodes change on each level, each by one: rho = 2 (w_0 + ...). With m values a node
changes by at most m, and rho is m^2 times that.

It is another promise than epsilon alone: (epsilon, delta), with a delta that is stated (zcdp.py).
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise import tables, zcdp
from fss_ecdf.campaign.noise.flat import Cells, Flat
from fss_ecdf.campaign.noise.mechanism import MAX_DEPTH, Counts, Mechanism, NoiseSampler, Positions
from fss_ecdf.campaign.noise.slice_tree import SliceTree, curve_by_splits, prefixes_by_splits
from fss_ecdf.campaign.noise.tables import Floats, Table

# Of one value at least: below, tables take minutes to make.
MIN_RHO_EACH = 1e-6
STATED_DELTA = 1e-6


class _Gaussian(Mechanism):
    """What both have in common: how much privacy they cost."""

    stated_delta: float
    scales = False

    def _prepare(self, depth: int, rho: float, instances: int, stated_delta: float) -> None:
        if not 1 <= depth <= MAX_DEPTH:
            raise InvalidCampaign(f"the noise tree has 1 to {MAX_DEPTH} levels, got {depth}")
        if instances < 1:
            raise InvalidCampaign(f"a party contributes at least 1 value, got {instances}")
        if not 0 < rho <= zcdp.MAX_RHO or rho / instances**2 < MIN_RHO_EACH:
            raise InvalidCampaign(
                f"rho must be at most {zcdp.MAX_RHO:g} and, divided by the square of the values a person contributes, "
                f"at least {MIN_RHO_EACH:g}, got {rho:g} for {instances}"
            )
        if not 0 < stated_delta < 1:
            raise InvalidCampaign(f"delta must be between 0 and 1, got {stated_delta:g}")
        self.depth, self.instances, self.stated_delta = depth, instances, stated_delta
        self._wanted = rho / instances**2
        while Fraction(self._wanted) * instances**2 > Fraction(rho):
            self._wanted = math.nextafter(self._wanted, 0.0)

    @property
    def rho(self) -> float:
        """For a person who replaces up to `instances` values, derived from the weights."""
        return float(self.instances**2 * 2 * sum(Fraction(w) for w in self.level_weights))

    @property
    def epsilon(self) -> float:
        """The epsilon that goes with the stated delta, for this noise alone; of several releases, rho adds up."""
        return zcdp.epsilon_at(self.rho, self.stated_delta)

    @property
    def delta(self) -> float:
        """The stated delta, and what the distance from the ideal distribution adds."""
        return self.stated_delta + (1 + math.exp(self.epsilon)) * self.distance


def gauss_profile(depth: int) -> list[float]:
    """Relative weights from the leaves to the children of the root: the minimum of the mean variance, in closed form.

    For noise that is as good as continuous, 1 / q_l is the variance of a node's f_l, with q_0 = 2 w_0 and
    q_l = q_{l-1} / 2 + 2 w_l, and the deviation of a left child has the variance 1 / (2 q_l). So the mean variance is
    the sum of c_l / (2 q_l), c_l = 1/3 + 1 / (6 4^l), and the cost 2 (w_0 + ...) is half of all q_l and the other half
    of the last one: q_l is proportional to sqrt(c_l / a_l), a_l = 1/2 and 1 for the last.
    """
    mean = [1 / 3 + 1 / (6 * 4.0**level) for level in range(depth)]
    q = [math.sqrt(c / (1.0 if level == depth - 1 else 0.5)) for level, c in enumerate(mean)]
    return [(q[level] - (q[level - 1] / 2 if level else 0.0)) / 2 for level in range(depth)]


class GaussTree(_Gaussian, SliceTree):
    """One server's noise over 2^depth positions at `rho`, for up to `instances` values a person."""

    name = "gauss-tree"

    def __init__(self, depth: int, rho: float, instances: int = 1, *, stated_delta: float = STATED_DELTA) -> None:
        self._prepare(depth, rho, instances, stated_delta)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """w_0 (leaves) to w_{depth - 1}, such that 2 (w_0 + ...) is at most rho for one value, exactly."""
        profile = gauss_profile(self.depth)
        scale = self._wanted / (2 * math.fsum(profile))
        while 2 * sum(Fraction(u * scale) for u in profile) > Fraction(self._wanted):
            scale = math.nextafter(scale, 0.0)
        return tuple(u * scale for u in profile)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tables.build(self.weights, 2)

    @property
    def distance(self) -> float:
        return 2.0 ** (self.depth + 1) * tables.distance_of_draw(self.tables)

    @cached_property
    def node_variances(self) -> Floats:
        return tables.marginal_variances(self.weights, 2)

    def noise_curve(self, source: NoiseSampler, levels: int) -> Counts:
        return curve_by_splits(lambda *node: self._split(source, *node), self.depth, levels)

    def noise_at(self, source: NoiseSampler, positions: Positions) -> Counts:
        return prefixes_by_splits(lambda *node: self._split(source, *node), self.depth, positions)

    def _split(self, source: NoiseSampler, level: int, parents: Counts, nodes: Positions) -> Counts:
        table = self.tables[level]
        return np.asarray(source.divide(level, parents, nodes, (table, table)))


class GaussFlat(_Gaussian, Flat):
    """One server's noise of a variable with `size` categories in each of some strata, at `rho`."""

    name = "gauss-flat"
    exponent = 2

    def __init__(
        self,
        depth: int,
        rho: float,
        instances: int = 1,
        *,
        size: int | None = None,
        strata: int = 1,
        stated_delta: float = STATED_DELTA,
    ) -> None:
        self._prepare(depth, rho, instances, stated_delta)
        self.cells = Cells(depth, (1 << depth) // strata if size is None else size, strata)
