"""The noise that is drawn: reproducible, exact, independent, and distributed as claimed.

Statistical tests fix their seed; each states its false-alarm probability.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.mechanism import Mechanism
from fss_ecdf.campaign.noise.paper_tree import ExactPaperTree, PaperTree
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from servers.release import noise as noise_module
from servers.release.noise import DiscreteLaplace, NoiseTree, Prf
from tests.oracle.noise import Oracle

ROOT = Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests" / "vectors" / "noise.json").read_text())["cases"]
FALSE_ALARM = 1e-6

ALL = [SliceTree, PaperTree, ExactPaperTree]
every_mechanism = pytest.mark.parametrize("kind", ALL, ids=lambda k: k.name)


def tree(m: Mechanism, seed: int = 0, *, server: int = 0, covers: bytes = bytes(32)) -> NoiseTree:
    return NoiseTree(seed.to_bytes(32, "little"), server=server, covers=covers, mechanism=m)


@pytest.mark.parametrize("case", CASES, ids=[f"{c['mechanism']}-{c['depth']}" for c in CASES])
def test_frozen_noise(case: dict[str, Any]) -> None:
    m = mechanism(case["mechanism"], case["depth"], case["epsilon"], case["instances"])
    for server in (0, 1):
        tree = NoiseTree(bytes.fromhex(case["seed"]), server=server, covers=bytes.fromhex(case["covers"]), mechanism=m)
        assert tree.at(case["positions"]).tolist() == case["noise"][server]


@every_mechanism
@pytest.mark.parametrize("depth", [1, 2, 5, 7, pytest.param(9, marks=pytest.mark.slow)])
def test_curve_points_and_oracle_agree(kind: type[SliceTree | PaperTree], depth: int) -> None:
    m = kind(depth, 1.0)
    curve = tree(m, depth).curve()
    everything = np.arange(1 << depth)
    assert curve.dtype == np.int64
    assert np.array_equal(tree(m, depth).at(everything), curve)
    shuffled = np.random.default_rng(depth).permutation(np.repeat(everything, 2))
    assert np.array_equal(tree(m, depth).at(shuffled), curve[shuffled])
    oracle = Oracle(depth.to_bytes(32, "little"), 0, bytes(32), m)
    assert curve.tolist() == [oracle.noise(int(t)) for t in everything]


@pytest.mark.parametrize("scale", [1e4, 1e12])
def test_the_exact_fallback_gives_the_same_draws(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a floating-point filter that trusts itself less, or never, more draws are decided by integers: no change."""
    trees = [tree(SliceTree(8, 1.0)), tree(PaperTree(8, 1.0))]
    curves = [t.curve() for t in trees]
    exact = 0

    def counted(cumulative: list[int], u: int) -> int:
        nonlocal exact
        exact += 1
        return original(cumulative, u)

    original = noise_module._pick_exactly
    monkeypatch.setattr(noise_module, "_pick_exactly", counted)
    monkeypatch.setattr(noise_module, "_ULP", noise_module._ULP * scale)
    for t, curve in zip(trees, curves, strict=True):
        assert np.array_equal(t.curve(), curve)
    assert exact > 0 if scale > 1e10 else True


def test_the_same_in_another_process() -> None:
    code = (
        "from fss_ecdf.campaign.noise.slice_tree import SliceTree; from servers.release.noise import NoiseTree;"
        "t = NoiseTree(bytes(32), server=1, covers=b'x' * 32, mechanism=SliceTree(12, 0.7));"
        "print(t.curve().tolist())"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    here = NoiseTree(bytes(32), server=1, covers=b"x" * 32, mechanism=SliceTree(12, 0.7)).curve().tolist()
    assert outputs == {f"{here}\n"}


@every_mechanism
def test_other_seeds_servers_campaigns_and_mechanisms_are_independent(kind: type[Mechanism]) -> None:
    """Correlation of node noise between sources; false alarm below 1e-6 over the whole test."""
    m = kind(12, 1.0)
    sources = [
        tree(m, 1),
        tree(m, 2),
        tree(m, 1, server=1),
        tree(m, 1, covers=b"other".ljust(32, b".")),
        tree(SliceTree(12, 1.0) if kind is not SliceTree else PaperTree(12, 1.0), 1),
    ]
    steps = [np.diff(source.curve()) for source in sources]
    limit = stats.norm.isf(FALSE_ALARM / 2 / 10)
    for i in range(5):
        for j in range(i):
            r = float(np.corrcoef(steps[i], steps[j])[0, 1])
            # neighbouring steps are correlated within a source, which widens r: by less than 2 here
            assert abs(r) * np.sqrt(steps[0].size) < 2 * limit, (i, j)
            assert not np.array_equal(steps[i], steps[j])


def test_every_node_has_its_own_bits() -> None:
    prf = Prf(bytes(32), 0, bytes(32), b"curve")
    draws = np.concatenate([prf.draws(level, np.arange(1 << 10)) for level in range(33)])
    assert len({row.tobytes() for row in draws}) == draws.shape[0]
    ones = np.unpackbits(draws.view(np.uint8), axis=1).sum(axis=0)
    z = (ones - len(draws) / 2) / np.sqrt(len(draws) / 4)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)


def test_fields_of_the_context_cannot_be_shifted() -> None:
    one = Prf(bytes(32), 0, b"ab", b"c").draws(0, [0])
    other = Prf(bytes(32), 0, b"a", b"bc").draws(0, [0])
    assert not np.array_equal(one, other)


def chi_square(samples: np.ndarray[Any, Any], values: np.ndarray[Any, Any], probability: np.ndarray[Any, Any]) -> float:
    """p-value of samples against exact probabilities, outcomes expected fewer than 10 times pooled."""
    expected = probability * samples.size
    common = expected >= 10
    observed = np.array([(samples == v).sum() for v in values[common]])
    rest = samples.size - observed.sum(), samples.size - expected[common].sum()
    statistic = ((observed - expected[common]) ** 2 / expected[common]).sum()
    if rest[1] > 1:
        statistic += (rest[0] - rest[1]) ** 2 / rest[1]
    return float(stats.chi2.sf(statistic, common.sum() - (rest[1] <= 1)))


def exact_marginals(m: SliceTree) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The distribution of a node on every level, from the root down, straight from the integer weights."""
    above, marginals = {0: 1.0}, []
    for table in reversed(m.tables):
        here: dict[int, float] = {}
        for p, probability in above.items():
            if probability < 1e-18:
                continue
            low, weights = table.weights(p)
            total = sum(weights)
            for z, weight in enumerate(weights, low):
                here[z] = here.get(z, 0.0) + probability * (weight / total)
        above = here
        values = np.array(sorted(here))
        marginals.append((values, np.array([here[int(v)] for v in values])))
    return marginals[::-1]


@pytest.mark.parametrize("campaigns", [1000, pytest.param(4000, marks=pytest.mark.slow)])
def test_slice_tree_node_values_fit_their_exact_marginals(campaigns: int) -> None:
    """Chi-square on every level, from independent campaigns; false alarm below 1e-6 over all levels."""
    m = SliceTree(4, 2.0)
    curves = np.stack([tree(m, seed).curve() for seed in range(campaigns)])
    leaves = np.diff(curves, axis=1, prepend=0)
    for level, (values, probability) in enumerate(exact_marginals(m)):
        nodes = leaves[:, : 1 << level].sum(axis=1)
        assert chi_square(nodes, values, probability) > FALSE_ALARM / 4, level
        assert float((probability * values**2).sum()) == pytest.approx(m.node_variances[level], rel=1e-9)


def test_discrete_laplace_fits() -> None:
    """Chi-square of 100 000 draws; false alarm 1e-6."""
    samples = DiscreteLaplace(Prf(bytes(32), 0, bytes(32), b"test"), 0.3).at(0, np.arange(100_000))
    k = np.arange(-200, 201)
    r = np.exp(-0.3)
    assert chi_square(samples, k, (1 - r) / (1 + r) * r ** np.abs(k)) > FALSE_ALARM


@pytest.mark.parametrize(("kind", "expected"), [(SliceTree, 714.5), (PaperTree, 8189.3)])
def test_mean_variance_on_a_large_grid(kind: type[Mechanism], expected: float) -> None:
    """Mean squared noise over 2^15 points, 40 curves, against the exact variance; false alarm below 1e-4."""
    m = kind(15, 1.0)
    assert m.mean_variance() == pytest.approx(expected, rel=1e-3)
    squares = np.array([(tree(m, seed).curve() ** 2.0).mean() for seed in range(40)])
    z = (squares.mean() - m.mean_variance()) / (squares.std(ddof=1) / np.sqrt(40))
    assert abs(z) < stats.t.isf(0.5e-4, 39)


def test_the_last_count_of_a_slice_tree_has_no_noise() -> None:
    """n is public: what counts everything is exact."""
    for depth in (1, 3, 32):
        assert tree(SliceTree(depth, 1.0)).at([(1 << depth) - 1]).tolist() == [0]


def test_bad_input() -> None:
    with pytest.raises(InvalidQuery, match="positions must be 0 to 255"):
        tree(SliceTree(8, 1.0)).at([256])
    for bad in (5, [[1]], [1.5], [2**70]):
        with pytest.raises(InvalidQuery, match="positions must be"):
            tree(SliceTree(8, 1.0)).at(bad)
    with pytest.raises(InvalidQuery, match=r"at most 2\^26 positions"):
        tree(SliceTree(32, 1.0)).curve()
    with pytest.raises(ValueError, match="32 bytes, got 31"):
        NoiseTree(bytes(31), server=0, covers=bytes(32), mechanism=SliceTree(8, 1.0))


def test_repr_hides_the_seed() -> None:
    assert repr(tree(SliceTree(8, 1.0), 7)) == "<NoiseTree slice-tree depth=8>"
