"""The flat mechanism: exact epsilon by enumeration, exact variances, draws equal to an oracle, distributed as claimed.

Statistical tests fix their seed; each states its false-alarm probability.
"""

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.flat import Cells, Flat
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, SERVERS
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.tables import joint_weights
from servers.release import noise as noise_module
from servers.release.noise import NoiseTree
from tests.oracle.flat import FlatOracle
from tests.servers.test_noise import FALSE_ALARM, chi_square
from tests.servers.test_privacy import log


def flat(size: int, epsilon: float, strata: int = 1, instances: int = 1) -> Flat:
    depth = (size - 1).bit_length() + (strata - 1).bit_length()
    return Flat(depth, epsilon, instances, size=size, strata=strata)


def tree(m: Flat, seed: int = 0) -> NoiseTree:
    return NoiseTree(seed.to_bytes(32, "little"), server=0, covers=bytes(32), mechanism=m)


def leaves_of(m: Flat, cells: tuple[int, ...]) -> list[int]:
    """Noise of cells at their positions, 0 at all others."""
    used = np.flatnonzero(np.diff(m.cells.before(np.arange(m.positions + 1))))
    whole = [0] * m.positions
    for at, z in zip(used, cells, strict=True):
        whole[at] = z
    return whole


class Joint:
    """The probability of noise of all cells, through the arithmetic of production: how many of 2^128 draws give it."""

    def __init__(self, m: Flat) -> None:
        self.m, self._known = m, dict[tuple[int, int, int], dict[int, Fraction]]()

    def __call__(self, cells: tuple[int, ...]) -> Fraction:
        probability, nodes = Fraction(1), leaves_of(self.m, cells)
        for level in range(self.m.depth):
            parents = [a + b for a, b in zip(nodes[::2], nodes[1::2], strict=True)]
            for i, (left, parent) in enumerate(zip(nodes[::2], parents, strict=True)):
                probability *= self._left(level, i, parent).get(left, Fraction(0))
            nodes = parents
        return probability if nodes == [0] else Fraction(0)

    def _left(self, level: int, node: int, parent: int) -> dict[int, Fraction]:
        count = int(self.m.cells.below(level + 1, np.array([node]))[0])
        if not self.m.cells.children(level + 1, count)[1]:
            return {parent: Fraction(1)}
        key = level, count, parent
        if key not in self._known:
            both = self.m.tables(level + 1, count)
            if abs(parent) > sum(table.reach for table in both):
                return {}
            low, weights = joint_weights(*both, parent)
            total, reached, below, found = sum(weights), 0, 0, {}
            for z, weight in enumerate(weights, low):
                reached += weight
                upto = -(-(reached << DRAW_BITS) // total)
                found[z], below = Fraction(upto - below, 1 << DRAW_BITS), upto
            assert below == 1 << DRAW_BITS
            self._known[key] = found
        return self._known[key]


def largest_log_ratio(m: Flat, span: int, values: int = 1) -> Decimal:
    """Over noise up to `span` in all cells, and all replacements of so many values."""
    joint, k = Joint(m), m.cells.count
    moves = list(itertools.permutations(range(k), 2))
    changes = {
        tuple(sum((i == a) - (i == b) for a, b in some) for i in range(k))
        for some in itertools.combinations_with_replacement(moves, values)
    }
    worst = Fraction(1)
    for first in itertools.product(range(-span, span + 1), repeat=k - 1):
        z = (*first, -sum(first))
        p = joint(z)
        for change in changes:
            worst = max(worst, p / joint(tuple(a + b for a, b in zip(z, change, strict=True))))
    return log(worst)


@pytest.mark.parametrize(
    ("m", "span", "values"),
    [
        (flat(2, 1.0), 12, 1),
        (flat(3, 1.0), 5, 1),
        (flat(4, 0.3), 3, 1),
        (flat(5, 1.0), 1, 1),
        (flat(3, 2.0, strata=2), 1, 1),
        (flat(2, 1.0, strata=3), 1, 1),
        (flat(3, 1.0, instances=2), 3, 2),
        (flat(2, 1.5, instances=3), 6, 3),
    ],
    ids=lambda x: f"{x.cells.size}x{x.cells.strata}" if isinstance(x, Flat) else None,
)
def test_the_privacy_loss_is_exactly_epsilon(m: Flat, span: int, values: int) -> None:
    """For cells whose number is no power of two, too, and for all values of a person."""
    assert values == m.instances
    worst = largest_log_ratio(m, span, values)
    with localcontext(Context(prec=60)):
        claimed = 2 * m.instances * Decimal(m.weight)
        assert (worst - claimed).copy_abs() < Decimal("1e-28")
    assert m.epsilon == pytest.approx(float(worst), abs=1e-14)


def test_unused_positions_never_have_noise() -> None:
    m = flat(5, 1.0, strata=3)
    used = np.diff(m.cells.before(np.arange(33))) == 1
    assert used.sum() == 15
    for seed in range(50):
        each = np.diff(tree(m, seed).curve(), prepend=0)
        assert not each[~used].any()
        assert each.sum() == 0
    assert not m.variance(np.arange(20, 32)).any()


def test_the_table_of_standard_errors() -> None:
    """Both servers, epsilon 1: what `docs/privacy.md` says, beside a slice tree and independent noise."""
    sizes = [2, 4, 8, 16, 32, 128]
    flat_errors = [math.sqrt(SERVERS * flat(k, 1.0).cell_variance) for k in sizes]
    assert [round(e, 2) for e in flat_errors] == [1.92, 2.84, 3.37, 3.65, 3.80, 3.92]
    trees = [SliceTree((k - 1).bit_length(), 1.0) for k in sizes]
    steps = [m.difference_variance(np.arange(m.positions), np.arange(-1, m.positions - 1)).mean() for m in trees]
    assert [round(math.sqrt(SERVERS * v), 2) for v in steps] == [1.92, 2.84, 3.53, 4.32, 5.22, 7.28]
    r = math.exp(-0.5)
    assert round(math.sqrt(SERVERS * 2 * r / (1 - r) ** 2), 2) == 3.96


def test_cells_beside_a_power_of_two_cost_nothing() -> None:
    """The error grows with the number of cells, whatever the number of positions."""
    errors = [flat(k, 1.0).cell_variance for k in range(2, 34)]
    assert (np.diff(errors) > 0).all()
    assert Flat(8, 1.0, size=5).cell_variance == flat(5, 1.0).cell_variance
    assert flat(3, 1.0, strata=2).cell_variance == pytest.approx(flat(6, 1.0).cell_variance, rel=1e-12)


def exact_cell(m: Flat) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The distribution of one cell's noise by the definition: f(z) times all ways to add up to -z in the others."""
    reach = 60 + int(40 / m.weight)
    z = np.arange(-reach, reach + 1)
    f = np.exp(-m.weight * np.abs(z).astype(float) ** m.exponent)
    rest = np.ones(1)
    for _ in range(m.cells.count - 1):
        rest = np.convolve(rest, f)
    middle = rest.size // 2
    law = f * rest[middle - reach : middle + reach + 1]
    return z, law / law.sum()


@pytest.mark.parametrize(("size", "strata", "epsilon"), [(2, 1, 1.0), (3, 1, 4.0), (5, 2, 1.0), (7, 1, 0.5)])
def test_variances_equal_those_of_the_definition(size: int, strata: int, epsilon: float) -> None:
    m = flat(size, epsilon, strata)
    z, law = exact_cell(m)
    assert m.cell_variance == pytest.approx(float(law @ z**2), rel=1e-9)


@pytest.mark.parametrize(("size", "strata"), [(4, 1), (5, 3), (3, 2)])
def test_covariances_are_consistent(size: int, strata: int) -> None:
    m = flat(size, 1.0, strata)
    t = np.arange(m.positions)
    covariance = m.covariance(t[:, np.newaxis], t)
    assert np.allclose(covariance, covariance.T)
    assert np.allclose(np.diag(covariance), m.variance(t))
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * covariance.max()
    weights = np.random.default_rng(1).normal(size=(3, m.positions))
    by_steps = -np.diff(weights, axis=1, append=0.0)
    assert m.functional_covariance(weights) == pytest.approx(by_steps @ covariance @ by_steps.T, abs=1e-9)
    assert m.prefix_covariance(weights) == pytest.approx(by_steps @ covariance, abs=1e-9)
    assert m.mean_variance() == pytest.approx(m.variance(t).mean())


@pytest.mark.parametrize(("size", "strata", "epsilon"), [(2, 1, 1.0), (3, 1, 3.0), (5, 3, 4.0), (16, 1, 6.0)])
def test_draws_equal_the_oracle(size: int, strata: int, epsilon: float) -> None:
    m = flat(size, epsilon, strata)
    for seed in range(3):
        curve = tree(m, seed).curve()
        assert curve.tolist() == FlatOracle(seed.to_bytes(32, "little"), 0, bytes(32), m).curve()
        assert np.array_equal(tree(m, seed).at(np.arange(m.positions)), curve)


def test_the_exact_fallback_gives_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    m = flat(13, 1.0)
    curves = [tree(m, seed).curve() for seed in range(5)]
    monkeypatch.setattr(noise_module, "_ULP", noise_module._ULP * 1e12)
    assert all(np.array_equal(tree(m, seed).curve(), curve) for seed, curve in enumerate(curves))


@pytest.mark.parametrize("campaigns", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_noise_of_cells_fits(campaigns: int) -> None:
    """Chi-square of one cell and of a sum of two, from independent campaigns; false alarm below 1e-6 in all."""
    m = flat(5, 2.0, strata=2)
    each = np.stack([np.diff(tree(m, seed).curve(), prepend=0) for seed in range(campaigns)])
    z, law = exact_cell(m)
    for at in (0, 4, 8, 12):
        assert chi_square(each[:, at], z, law) > FALSE_ALARM / 4, at


@pytest.mark.slow
def test_chi_square_finds_the_noise_of_another_epsilon() -> None:
    wrong = flat(5, 2.4, strata=2)
    each = np.array([np.diff(tree(wrong, seed).curve(), prepend=0)[8] for seed in range(2000)])
    assert chi_square(each, *exact_cell(flat(5, 2.0, strata=2))) < FALSE_ALARM / 4


@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_simulated_noise_has_the_exact_variance(epsilon: float) -> None:
    """4000 curves of both servers: a cell's variance has a relative deviation below 4 %, and 25 % are six of them."""
    m = flat(5, epsilon, strata=2)
    curves = both_servers(m, 4000, m.depth, np.random.default_rng(2))
    each = np.diff(curves, axis=1, prepend=0)
    assert each[:, 9].var() == pytest.approx(SERVERS * m.cell_variance, rel=0.25)
    assert not each[:, [5, 6, 7, 15]].any()


@pytest.mark.parametrize(("size", "epsilon"), [(2, 20.0), (2, 0.01), (1000, 1.0), (200, 0.05)])
def test_delta_is_negligible(size: int, epsilon: float) -> None:
    assert 0 < flat(size, epsilon).delta < 2.0**-60


def test_a_person_with_more_values_has_more_noise() -> None:
    assert flat(6, 1.0, instances=4).weight == pytest.approx(flat(6, 0.25).weight)
    assert flat(6, 1.0, instances=4).epsilon <= 1.0
    for instances in range(1, 60):
        assert flat(6, 1.0, instances=instances).epsilon <= 1.0


@pytest.mark.parametrize(
    ("depth", "size", "strata"), [(3, 9, 1), (3, 5, 2), (3, 0, 1), (3, 1, 1), (1, 2, 4), (3, 4, 0)]
)
def test_cells_that_do_not_fit(depth: int, size: int, strata: int) -> None:
    with pytest.raises(InvalidCampaign, match="categories take at least 2 cells"):
        Cells(depth, size, strata)
