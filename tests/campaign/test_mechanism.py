"""The public side of the noise: tables, weights, variances, epsilon and delta, against slow and independent sums."""

import math
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise import tables
from fss_ecdf.campaign.noise.mechanism import Mechanism
from fss_ecdf.campaign.noise.paper_tree import ExactPaperTree, PaperTree
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.slice_tree import SliceTree, slice_profile

ALL = [SliceTree, PaperTree, ExactPaperTree]
every_mechanism = pytest.mark.parametrize("kind", ALL, ids=lambda k: k.name)


def test_convolution_is_exact() -> None:
    half = (1 << 256, 12345 << 200, 7 << 199, 3)
    whole = [*half[:0:-1], *half]
    slow = [sum(whole[i] * whole[k - i] for i in range(7) if 0 <= k - i < 7) for k in range(13)]
    assert tables.Table(half).convolved() == slow[6:]


@settings(deadline=None)
@given(half=st.lists(st.integers(0, (1 << 256) - 1), min_size=1, max_size=40), bits=st.integers(1, 256))
def test_squares_of_palindromes_whether_they_overlap_or_not(half: list[int], bits: int) -> None:
    """Small numbers leave digits empty, where a carry could hide: then they are not packed that closely."""
    half = [mpz(f >> (256 - bits)) for f in half]
    whole, n = [*half[:0:-1], *half], len(half)
    slow = [sum(map(mul, whole[p:], reversed(whole[p:]))) for p in range(2 * n - 1)]
    width = 2 * bits + (2 * n).bit_length()
    assert tables.square(whole, width) == slow
    assert tables._square_apart(whole, width) == slow


def test_exponentials_are_right_to_the_last_bits() -> None:
    """Against a Taylor series in exact fractions."""
    for w in (0.0, 1e-3, 0.1977, 3.0):
        x = Fraction(w)
        series, term = Fraction(0), Fraction(1)
        for i in range(1, 200):
            series += term
            term *= -x / i
        assert abs(tables.exponential(w) - series * 2**512) < 2


def test_tables_equal_slow_convolutions() -> None:
    """Three levels in floating point, by the definition."""
    weights = (0.5, 0.3, 0.2)
    z = np.arange(-60, 61)
    f = np.exp(-weights[0] * np.abs(z))
    for level, table in enumerate(tables.build(weights)):
        reach = min(60, table.reach)
        mine = table.floats[table.reach - reach : table.reach + reach + 1]
        theirs = f[60 - reach : 60 + reach + 1]
        assert mine / mine.max() == pytest.approx(theirs / theirs.max(), rel=1e-9, abs=1e-12)
        if level < 2:
            wide = np.convolve(f, f)[60:-60]
            f = wide * np.exp(-weights[level + 1] * np.abs(z))


def test_each_step_of_a_table_is_the_weight() -> None:
    """What privacy rests on: f_l(z) / F_l(z) falls by exp(-w_l) from z to z + 1, to 2^-120, wherever it is kept."""
    m = SliceTree(6, 0.8)
    assert m.tables[0].reach > 100
    for level in range(1, 6):
        below, here = m.tables[level - 1].convolved(), m.tables[level].half
        w = m.weights[level]
        for z in range(0, len(here) - 1, 7):
            step = Fraction(here[z + 1] * below[z], here[z] * below[z + 1])
            assert abs(float(step / Fraction(tables.exponential(w), 2**512) - 1)) < 2.0**-120


@pytest.mark.parametrize("depth", [1, 2, 3, 6, 7, 15, 32])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.3])
def test_epsilon_follows_from_the_weights(depth: int, epsilon: float) -> None:
    m = SliceTree(depth, epsilon)
    assert len(m.weights) == depth
    total = 2 * sum(Fraction(w) for w in m.weights)
    assert total <= Fraction(epsilon)
    assert float(total) == pytest.approx(epsilon, rel=1e-14)
    assert m.epsilon == float(total)
    assert slice_profile(depth)[-1] == (0.0 if depth > 1 else 1.0)


@every_mechanism
def test_a_contribution_bound_scales_the_noise(kind: type[Mechanism]) -> None:
    one, ten = kind(8, 1.0), kind(8, 1.0, instances=10)
    assert ten.epsilon == pytest.approx(1.0)
    assert ten.epsilon <= 1.0
    assert ten.mean_variance() == pytest.approx(100 * one.mean_variance(), rel=0.01)


@pytest.mark.parametrize(
    ("m", "mean", "worst"),
    [
        (SliceTree(15, 1.0), 714, 980),
        (PaperTree(15, 1.0), 8192, 8192),
        (ExactPaperTree(15, 1.0), 7200, 7200),
        (SliceTree(16, 1.0), 861, None),
    ],
)
def test_the_figures_of_the_notes(m: Mechanism, mean: float, worst: float | None) -> None:
    assert m.mean_variance() == pytest.approx(mean, rel=2e-3)
    if worst:
        assert m.worst_variance() == pytest.approx(worst, rel=2e-3)


def exact_moments(m: SliceTree) -> np.ndarray[Any, Any]:
    """E[S_s S_t] for all positions of a small tree, by summing over every value of every node."""
    n = m.positions
    moments = np.zeros((n, n))

    def walk(level: int, nodes: list[int], probability: float) -> None:
        if level == 0:
            curve = np.cumsum(nodes)
            moments[:] += probability * np.outer(curve, curve)
            return
        table = m.tables[level - 1]

        def split(done: list[int], rest: list[int], p: float) -> None:
            if p < 1e-13:
                return
            if not rest:
                walk(level - 1, done, p)
                return
            low, weights = table.weights(rest[0])
            total = sum(weights)
            for z, weight in enumerate(weights, low):
                split([*done, z, rest[0] - z], rest[1:], p * (weight / total))

        split([], nodes, probability)

    walk(m.depth, [0], 1.0)
    return moments


@pytest.mark.parametrize(("depth", "epsilon"), [(1, 1.0), (2, 4.0), (2, 9.0)])
def test_variances_equal_an_enumeration(depth: int, epsilon: float) -> None:
    m = SliceTree(depth, epsilon)
    moments, t = exact_moments(m), np.arange(m.positions)
    assert m.variance(t) == pytest.approx(np.diag(moments), rel=1e-6, abs=1e-9)
    assert m.covariance(t[:, np.newaxis], t) == pytest.approx(moments, rel=1e-6, abs=1e-9)


@every_mechanism
@pytest.mark.parametrize("depth", [1, 3, 7])
def test_variances_are_consistent(kind: type[Mechanism], depth: int) -> None:
    m, t = kind(depth, 1.0), np.arange(1 << depth)
    covariance = m.covariance(t[:, np.newaxis], t)
    assert np.allclose(covariance, covariance.T)
    assert np.allclose(np.diag(covariance), m.variance(t))
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * covariance.max()
    by_definition = m.variance(t)[:, np.newaxis] + m.variance(t) - 2 * covariance
    assert np.allclose(m.difference_variance(t[:, np.newaxis], t), np.maximum(by_definition, 0))
    assert np.allclose(m.difference_variance(t, -1), m.variance(t))
    assert m.mean_variance() == pytest.approx(m.variance(t).mean())
    assert m.worst_variance() == pytest.approx(m.variance(t).max())


@every_mechanism
@pytest.mark.parametrize(("depth", "epsilon"), [(1, 1.0), (16, 1.0), (32, 1.0), (20, 0.1)])
def test_delta_is_far_below_two_to_the_minus_forty(kind: type[Mechanism], depth: int, epsilon: float) -> None:
    m = kind(depth, epsilon)
    assert 0 < m.distance < m.delta < 2.0**-75


@every_mechanism
def test_delta_holds_at_the_largest_epsilon(kind: type[Mechanism]) -> None:
    assert kind(32, 20.0).delta < 2.0**-50


@pytest.mark.parametrize("kind", [PaperTree, ExactPaperTree, SliceTree])
def test_rounding_never_exceeds_epsilon(kind: type[Mechanism]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        epsilon, instances = round(float(rng.uniform(1, 20)), 2), int(rng.integers(1, 50))
        assert kind(int(rng.integers(1, 33)), epsilon, instances).epsilon <= epsilon


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((0, 1.0), "1 to 32 levels, got 0"),
        ((33, 1.0), "1 to 32 levels, got 33"),
        ((8, 0.0), "above 0 and at most 20, got 0"),
        ((8, 20.1), "above 0 and at most 20, got 20.1"),
        ((8, math.nan), "above 0 and at most 20, got nan"),
        ((8, 1.0, 0), "at least 1 value, got 0"),
        ((8, 1.0, 10_000), "at least 0.01 for each value a party contributes, got 1 for 10000"),
    ],
)
def test_bad_parameters(args: Any, message: str) -> None:
    with pytest.raises(InvalidCampaign, match=message):
        SliceTree(*args)


def test_bad_names_and_positions() -> None:
    with pytest.raises(InvalidCampaign, match="one of slice-tree, paper-tree, paper-tree-exact, got 'x'"):
        mechanism("x", 8, 1.0)
    with pytest.raises(InvalidCampaign, match="0 to 255"):
        SliceTree(8, 1.0).variance([256])
