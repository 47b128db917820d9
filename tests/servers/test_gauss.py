"""Discrete Gaussian noise: Renyi divergences by enumeration, exact variances, draws equal to an oracle, an audit.

Statistical tests fix their seed; each states its false-alarm probability.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise import zcdp
from fss_ecdf.campaign.noise.flat import Flat
from fss_ecdf.campaign.noise.gauss import GaussFlat, GaussTree, gauss_profile
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.registry import CATEGORY_MECHANISMS, MECHANISMS, RHO_MECHANISMS
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.tables import build
from servers.release.noise import NoiseTree, _Divide
from tests.campaign.test_zcdp import gaussian_delta
from tests.oracle.flat import FlatOracle
from tests.oracle.noise import Oracle
from tests.servers import test_flat
from tests.servers.test_noise import FALSE_ALARM, chi_square, exact_marginals
from tests.servers.test_privacy import Joint, drawn

Array = np.ndarray[Any, Any]


def tree(m: GaussTree | GaussFlat, seed: int = 0) -> NoiseTree:
    return NoiseTree(seed.to_bytes(32, "little"), server=0, covers=bytes(32), mechanism=m)


def categories(size: int, rho: float, strata: int = 1, instances: int = 1) -> GaussFlat:
    return GaussFlat((size - 1).bit_length() + (strata - 1).bit_length(), rho, instances, size=size, strata=strata)


def sampled(m: SliceTree, level: int, parent: int) -> dict[int, Fraction]:
    """As `drawn`, and nothing below parents that no children add up to."""
    return drawn(m, level, parent) if abs(parent) <= 2 * m.tables[level].reach else {}


def law(joint: Any, cells: int, span: int) -> dict[tuple[int, ...], float]:
    """The probability of all noise up to `span`, through the 128-bit draws; the rest has less than 1e-12."""
    everything = {}
    for first in itertools.product(range(-span, span + 1), repeat=cells - 1):
        z = (*first, -sum(first))
        p = float(joint(z)) if abs(z[-1]) <= span else 0.0
        if p > 0:
            everything[z] = p
    assert sum(everything.values()) == pytest.approx(1, abs=1e-9)
    return everything


def divergence(p: dict[tuple[int, ...], float], move: tuple[int, ...], alpha: float) -> float:
    """The Renyi divergence of order alpha between the noise and the noise shifted by a replacement."""
    total = 0.0
    for z, probability in p.items():
        other = p.get(tuple(a - b for a, b in zip(z, move, strict=True)), 0.0)
        if other > 0:
            total += probability**alpha * other ** (1 - alpha)
    return math.log(total) / (alpha - 1)


def moves(cells: int, values: int) -> set[tuple[int, ...]]:
    pairs = list(itertools.permutations(range(cells), 2))
    return {
        tuple(sum((i == a) - (i == b) for a, b in some) for i in range(cells))
        for some in itertools.combinations_with_replacement(pairs, values)
    }


ENUMERATED: list[tuple[GaussTree | GaussFlat, int]] = [
    (GaussTree(1, 0.7), 30),
    (GaussTree(2, 3.0), 12),
    (GaussTree(1, 2.0, 2), 20),
    (categories(3, 1.5), 25),
    (categories(4, 3.0), 12),
    (categories(3, 6.0, instances=2), 20),
]


@pytest.mark.parametrize(("m", "span"), ENUMERATED, ids=[f"{m.name}-{m.depth}-{m.instances}" for m, _ in ENUMERATED])
def test_the_renyi_divergence_of_a_replacement_is_alpha_rho(m: GaussTree | GaussFlat, span: int) -> None:
    """For whole alpha exactly, for others at most; over all replacements of all values of a person."""
    cells = m.cells.count if isinstance(m, GaussFlat) else m.positions
    joint = test_flat.Joint(m) if isinstance(m, GaussFlat) else Joint(m, sampled)
    p = law(joint, cells, span)
    for alpha in (2, 3):
        each = [divergence(p, move, alpha) / alpha for move in moves(cells, m.instances)]
        assert max(each) == pytest.approx(m.rho, rel=1e-6), alpha
    for between in (1.5, 2.5):
        each = [divergence(p, move, between) / between for move in moves(cells, m.instances)]
        assert 0.9 * m.rho < max(each) <= m.rho * (1 + 1e-9)


@pytest.mark.parametrize("instances", [1, 3, 10])
@pytest.mark.parametrize("rho", [0.003, 0.0243, 1.7])
@pytest.mark.parametrize("depth", [1, 4, 15])
def test_rho_follows_from_the_weights(depth: int, rho: float, instances: int) -> None:
    for m in (GaussTree(depth, rho, instances), GaussFlat(depth, rho, instances)):
        total = 2 * instances**2 * sum(Fraction(w) for w in m.level_weights)
        assert Fraction(rho) * (1 - Fraction(1, 10**13)) < total <= Fraction(rho)
        assert m.rho == float(total)


def test_values_of_a_person_cost_their_square() -> None:
    one, ten = GaussTree(6, 0.5), GaussTree(6, 0.5, 10)
    assert ten.weights == pytest.approx([w / 100 for w in one.weights])
    assert ten.mean_variance() == pytest.approx(100 * one.mean_variance(), rel=0.01)


@pytest.mark.parametrize("depth", [1, 2, 5, 10])
def test_no_other_weights_have_a_smaller_mean_variance(depth: int) -> None:
    """Against a numerical search over the recursion of variances."""
    mean = np.array([1 / 3 + 1 / (6 * 4.0**level) for level in range(depth)])

    def variance(profile: Array) -> float:
        q = 0.0
        total = 0.0
        for c, w in zip(mean, profile / profile.sum(), strict=True):
            q = q / 2 + 2 * w
            total += c / (2 * q)
        return total

    best = optimize.minimize(lambda x: variance(np.exp(x)), np.zeros(depth), method="BFGS")
    assert variance(np.array(gauss_profile(depth))) <= best.fun * (1 + 1e-6)
    assert min(gauss_profile(depth)) > 0


def test_the_table_of_many_variables() -> None:
    """Root mean square error of a point, 2^8 positions, and of one of 8 categories; epsilon 1, delta 1e-6 in all.

    By the proved conversion; and with the larger rho that continuous Gaussian noise would be allowed.
    """
    proved = zcdp.rho_at(1.0, 1e-6)
    ideal = optimize.brentq(lambda rho: gaussian_delta(rho, 1.0) - 1e-6, 1e-4, 1)

    def point(m: SliceTree) -> float:
        return math.sqrt(SERVERS * m.mean_variance())

    def cell(m: Flat) -> float:
        return math.sqrt(SERVERS * m.cell_variance)

    assert [round(point(SliceTree(8, 1 / v)), 1) for v in (1, 5, 30)] == [15.4, 77.2, 463.4]
    assert [round(point(GaussTree(8, ideal / v)), 1) for v in (1, 5, 30)] == [21.3, 47.6, 116.5]
    assert [round(point(GaussTree(8, proved / v)), 1) for v in (1, 5, 30)] == [22.8, 51.0, 124.9]
    assert round(cell(Flat(3, 1 / 30)), 1) == 102.5
    assert [round(cell(GaussFlat(3, rho / 30)), 1) for rho in (ideal, proved)] == [43.3, 46.4]


def test_the_promise_is_epsilon_and_delta() -> None:
    rho = zcdp.rho_at(1.0, 1e-6)
    for m in (GaussTree(8, rho), categories(5, rho)):
        assert m.epsilon <= 1.0
        assert m.epsilon == pytest.approx(1.0, abs=1e-9)
        assert 1e-6 <= m.delta < 1e-6 + 2.0**-50
        assert 0 < m.distance < 2.0**-90


def test_variances_equal_an_enumeration() -> None:
    m = GaussTree(2, 1.0)
    moments = np.zeros((4, 4))
    for z, p in law(Joint(m, sampled), 4, 14).items():
        moments += p * np.outer(np.cumsum(z), np.cumsum(z))
    t = np.arange(4)
    assert m.covariance(t[:, np.newaxis], t) == pytest.approx(moments, rel=1e-6, abs=1e-9)
    for flat in (categories(3, 2.0), categories(5, 0.5, strata=2)):
        z_, exact = test_flat.exact_cell(flat)
        assert flat.cell_variance == pytest.approx(float(exact @ z_**2), rel=1e-9)


def test_tables_equal_slow_convolutions() -> None:
    weights, z = (0.02, 0.01, 0.03), np.arange(-90, 91)
    f = np.exp(-weights[0] * z**2.0)
    for level, table in enumerate(build(weights, 2)):
        reach = min(60, table.reach)
        mine = table.floats[table.reach - reach : table.reach + reach + 1]
        theirs = f[90 - reach : 90 + reach + 1]
        assert mine / mine.max() == pytest.approx(theirs / theirs.max(), rel=1e-9, abs=1e-13)
        if level < 2:
            f = np.convolve(f, f)[90:-90] * np.exp(-weights[level + 1] * z**2.0)


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_draws_equal_the_oracle(depth: int) -> None:
    m = GaussTree(depth, 0.4)
    curve = tree(m, depth).curve()
    assert np.array_equal(tree(m, depth).at(np.arange(m.positions)), curve)
    oracle = Oracle(depth.to_bytes(32, "little"), 0, bytes(32), m)
    assert curve.tolist() == [oracle.noise(int(t)) for t in range(m.positions)]
    flat = categories(5, 3.0, strata=2)
    assert tree(flat, depth).curve().tolist() == FlatOracle(depth.to_bytes(32, "little"), 0, bytes(32), flat).curve()


@pytest.mark.parametrize("campaigns", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_noise_fits(campaigns: int) -> None:
    """Chi-square of a node on every level and of a category, from independent campaigns; false alarm 1e-6 in all."""
    m, flat = GaussTree(3, 0.5), categories(5, 0.5)
    curves = np.stack([tree(m, seed).curve() for seed in range(campaigns)])
    leaves = np.diff(curves, axis=1, prepend=0)
    for level, (values, probability) in enumerate(exact_marginals(m)):
        assert chi_square(leaves[:, : 1 << level].sum(axis=1), values, probability) > FALSE_ALARM / 4, level
    cells = np.array([np.diff(tree(flat, seed).curve(), prepend=0)[4] for seed in range(campaigns)])
    assert chi_square(cells, *test_flat.exact_cell(flat)) > FALSE_ALARM / 4


def test_simulated_noise_has_the_exact_variance() -> None:
    """4000 curves: a Gaussian variance is known to sqrt(2 / 4000) = 2.2 %, and 14 % are six of them."""
    m = GaussTree(4, 0.001)
    curves = both_servers(m, 4000, 4, np.random.default_rng(1))
    assert curves.var(axis=0)[:15] == pytest.approx(SERVERS * m.variance(np.arange(15)), rel=0.14)


def sample(m: GaussTree, count: int, rng: np.random.Generator) -> Array:
    """Leaves of many trees through the servers' own sampler, with the test's randomness."""
    nodes = np.zeros((count, 1), np.int64)
    for level in range(m.depth - 1, -1, -1):
        u, table = rng.integers(0, 2**64, (nodes.size, 2), dtype=np.uint64), m.tables[level]
        left = _Divide(table, table).draw(nodes.ravel(), u).reshape(nodes.shape)
        nodes = np.stack([left, nodes - left], axis=2).reshape(count, -1)
    return nodes


def audited_delta(released: GaussTree, claimed: GaussTree, epsilon: float, runs: int, seed: int) -> float:
    """A lower bound on delta at an epsilon that holds with probability 1 - 1e-4: the best likelihood-ratio test."""
    rng = np.random.default_rng(seed)
    move = np.zeros(claimed.positions, np.int64)
    move[0], move[-1] = 1, -1

    def log_likelihood(leaves: Array) -> Array:
        total, nodes = np.zeros(len(leaves)), leaves
        for w in claimed.weights:
            total -= w * (nodes.astype(float) ** 2).sum(axis=1)
            nodes = nodes.reshape(len(leaves), -1, 2).sum(axis=2)
        return total

    scores = []
    for shift in (0, 1):
        out = sample(released, runs, rng) + shift * move
        scores.append(log_likelihood(out - move) - log_likelihood(out))
    half = runs // 2

    def counts(threshold: float, part: slice) -> tuple[int, int]:
        return int((scores[1][part] > threshold).sum()), int((scores[0][part] > threshold).sum())

    def gain(threshold: float) -> float:
        hits, alarms = counts(threshold, slice(0, half))
        return hits - math.exp(epsilon) * alarms

    best = max(np.quantile(scores[1], np.arange(0.02, 1, 0.02)), key=lambda c: gain(float(c)))
    hits, alarms = counts(float(best), slice(half, None))
    low = stats.beta.ppf(0.5e-4, hits, half - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - 0.5e-4, alarms + 1, half - alarms) if alarms < half else 1.0
    return float(low - math.exp(epsilon) * high)


def test_an_audit_stays_below_the_claim_and_finds_half_the_noise() -> None:
    claimed, epsilon = GaussTree(3, 0.5), 1.0
    promised = zcdp.delta_at(claimed.rho, epsilon)
    honest = audited_delta(claimed, claimed, epsilon, 100_000, 1)
    broken = audited_delta(GaussTree(3, 2.0), claimed, epsilon, 100_000, 2)
    assert 0.3 * promised < honest <= promised
    assert broken > 1.2 * promised


def test_campaigns_cannot_choose_them_yet() -> None:
    assert set(CATEGORY_MECHANISMS) == {"flat", "gauss-flat"}
    assert set(RHO_MECHANISMS) == {"gauss-tree", "gauss-flat"}
    assert not set(MECHANISMS) & {*CATEGORY_MECHANISMS, *RHO_MECHANISMS}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((8, 0.0), "rho must be at most 10"),
        ((8, 11.0), "rho must be at most 10"),
        ((8, math.nan), "rho must be at most 10"),
        ((8, 1e-5, 10), "at least 1e-06, got 1e-05 for 10"),
        ((0, 0.1), "1 to 32 levels"),
        ((8, 0.1, 0), "at least 1 value"),
    ],
)
def test_what_is_refused(args: Any, message: str) -> None:
    for kind in (GaussTree, GaussFlat):
        with pytest.raises(InvalidCampaign, match=message):
            kind(*args)
    with pytest.raises(InvalidCampaign, match="delta must be between 0 and 1"):
        GaussTree(8, 0.1, stated_delta=0.0)
