"""The privacy claim itself: enumerated exactly on small trees, and attacked from samples."""

import itertools
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from fss_ecdf.campaign.noise.mechanism import DRAW_BITS
from fss_ecdf.campaign.noise.paper_tree import ExactPaperTree, PaperTree
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from servers.release.noise import _splits

Shares = dict[int, Fraction]


def ideal(m: SliceTree, level: int, parent: int) -> Shares:
    """The sampler's probabilities of a left child, as its integer tables define them."""
    low, weights = m.tables[level].weights(parent)
    total = sum(weights)
    return {z: Fraction(w, total) for z, w in enumerate(weights, low)}


def drawn(m: SliceTree, level: int, parent: int) -> Shares:
    """The same through the arithmetic of production: how many of the 2^128 draws give each value."""
    low, weights = m.tables[level].weights(parent)
    total, reached, below, shares = sum(weights), 0, 0, {}
    for z, weight in enumerate(weights, low):
        reached += weight
        # the draws u with u total < reached 2^128
        upto = -(-(reached << DRAW_BITS) // total)
        shares[z], below = Fraction(upto - below, 1 << DRAW_BITS), upto
    assert below == 1 << DRAW_BITS
    return shares


class Joint:
    """The probability of whole leaf vectors under the top-down sampler."""

    def __init__(self, m: SliceTree, conditional: Any) -> None:
        self.m, self._conditional = m, conditional
        self._cache: dict[tuple[int, int], Shares] = {}

    def __call__(self, leaves: tuple[int, ...]) -> Fraction:
        probability, nodes = Fraction(1), list(leaves)
        for level in range(self.m.depth):
            parents = [a + b for a, b in zip(nodes[::2], nodes[1::2], strict=True)]
            for left, parent in zip(nodes[::2], parents, strict=True):
                probability *= self._given(level, parent).get(left, Fraction(0))
            nodes = parents
        return probability if nodes == [0] else Fraction(0)

    def _given(self, level: int, parent: int) -> Shares:
        if (level, parent) not in self._cache:
            self._cache[level, parent] = self._conditional(self.m, level, parent)
        return self._cache[level, parent]


def log(x: Fraction) -> Decimal:
    with localcontext(Context(prec=60)):
        return (Decimal(x.numerator) / Decimal(x.denominator)).ln()


def largest_log_ratio(m: SliceTree, conditional: Any, span: int) -> Decimal:
    """Over all leaf vectors with entries up to `span` that sum to zero, and all moves of one unit between leaves."""
    joint, n = Joint(m, conditional), m.positions
    worst = Fraction(1)
    for first in itertools.product(range(-span, span + 1), repeat=n - 1):
        z = (*first, -sum(first))
        p = joint(z)
        for a, b in itertools.permutations(range(n), 2):
            moved = list(z)
            moved[a] += 1
            moved[b] -= 1
            worst = max(worst, p / joint(tuple(moved)))
    return log(worst)


def exact_epsilon(m: SliceTree) -> Decimal:
    with localcontext(Context(prec=60)):
        return 2 * sum((Decimal(w) for w in m.weights), Decimal(0))


@pytest.mark.parametrize("conditional", [ideal, drawn])
@pytest.mark.parametrize(("depth", "epsilon", "span"), [(1, 1.0, 12), (1, 0.1, 12), (2, 1.0, 3), (2, 3.0, 3)])
def test_slice_tree_privacy_loss_is_exactly_epsilon(depth: int, epsilon: float, span: int, conditional: Any) -> None:
    m = SliceTree(depth, epsilon)
    worst = largest_log_ratio(m, conditional, span)
    claimed = exact_epsilon(m)
    # Tables are rounded to 2^-126 of an entry; draws to 2^-128, and the rarest value looked at has more than e^-20.
    with localcontext(Context(prec=60)):
        assert (worst - claimed).copy_abs() < Decimal("1e-36" if conditional is ideal else "1e-28")
    assert claimed <= Decimal(epsilon) < claimed + Decimal("1e-14")
    assert m.epsilon == pytest.approx(epsilon, abs=1e-14)


def test_slice_tree_of_eight_leaves_on_its_worst_vectors() -> None:
    """Three levels are too many to enumerate; the vectors that reach the bound are those with one sign on each path."""
    m = SliceTree(3, 1.0)
    joint = Joint(m, drawn)
    losses = []
    rng = np.random.default_rng(3)
    vectors = [(5, 1, 1, 1, -1, -1, -1, -5), *(tuple(rng.integers(-3, 4, 7)) for _ in range(60))]
    for first in vectors:
        z = tuple(int(v) for v in first[:7])
        z = (*z, -sum(z))
        for a, b in itertools.permutations(range(8), 2):
            moved = list(z)
            moved[a] += 1
            moved[b] -= 1
            losses.append(log(joint(z) / joint(tuple(moved))).copy_abs())
    assert (max(losses) - exact_epsilon(m)).copy_abs() < Decimal("1e-26")


def test_more_instances_mean_more_noise_for_the_same_epsilon() -> None:
    one, five = SliceTree(6, 1.0), SliceTree(6, 1.0, instances=5)
    assert five.epsilon == pytest.approx(1.0)
    assert five.weights == pytest.approx([w / 5 for w in one.weights])


def representation_cost(depth: int, interval: np.ndarray[Any, Any]) -> float:
    """The smallest L1 norm of node changes that add up to an interval of counts: a linear program."""
    n = 1 << depth
    columns = [(np.arange(n) >> level) == j for level in range(depth + 1) for j in range(n >> level)]
    nodes = np.array(columns, float).T
    solution = optimize.linprog(
        np.ones(2 * nodes.shape[1]), A_eq=np.hstack([nodes, -nodes]), b_eq=interval.astype(float)
    )
    return float(solution.fun)


@pytest.mark.parametrize("depth", range(1, 6))
def test_paper_tree_sensitivity_by_linear_programming(depth: int) -> None:
    """Moving a value from position a to b > a changes the counts at a, ..., b - 1, never the last one."""
    n, at = 1 << depth, np.arange(1 << depth)
    cost = {(a, b): representation_cost(depth, (a <= at) & (at < b)) for a in range(n) for b in range(a + 1, n)}
    assert max(cost.values()) == pytest.approx(depth)
    prefixes = [c for (a, _), c in cost.items() if a == 0]
    assert max(prefixes) == pytest.approx(depth // 2 + 1 if depth > 1 else 1)
    exact, paper = ExactPaperTree(depth, 1.0), PaperTree(depth, 1.0)
    assert exact.rate * max(cost.values()) <= 1.0 + 1e-12
    assert exact.epsilon == pytest.approx(1.0)
    assert paper.sensitivity == depth + 1 > exact.sensitivity


def sample_leaves(m: SliceTree, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Many trees at once through the servers' own sampler, with the test's randomness: (count, leaves)."""
    nodes = np.zeros((count, 1), np.int64)
    for level in range(m.depth - 1, -1, -1):
        u = rng.integers(0, 2**64, (nodes.size, 2), dtype=np.uint64)
        left = _splits(m.weights)[level].draw(nodes.ravel(), u).reshape(nodes.shape)
        nodes = np.stack([left, nodes - left], axis=2).reshape(count, -1)
    return nodes


def log_likelihood(m: SliceTree, leaves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    total, nodes = np.zeros(len(leaves)), leaves
    for w in m.weights:
        total -= w * np.abs(nodes).sum(axis=1)
        nodes = nodes.reshape(len(leaves), -1, 2).sum(axis=2)
    return total


def audit(released: SliceTree, claimed: SliceTree, runs: int, seed: int) -> float:
    """A lower bound on epsilon that holds with probability 1 - 1e-4, from releases on two neighbouring data sets.

    The adversary compares the likelihoods of both data sets under the claimed mechanism, learns the best threshold
    from half of the releases, and estimates the two error rates on the other half (Clopper-Pearson).
    """
    rng = np.random.default_rng(seed)
    move = np.zeros(claimed.positions, np.int64)
    move[0], move[-1] = 1, -1
    scores = []
    for shift in (0, 1):
        out = sample_leaves(released, runs, rng) + shift * move
        scores.append(log_likelihood(claimed, out - move) - log_likelihood(claimed, out))
    half = runs // 2

    def rates(threshold: float, part: slice) -> tuple[int, int]:
        return int((scores[1][part] >= threshold).sum()), int((scores[0][part] >= threshold).sum())

    def bound(hits: int, false_alarms: int) -> float:
        low = stats.beta.ppf(0.5e-4, hits, half - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - 0.5e-4, false_alarms + 1, half - false_alarms)
        return float(np.log(low / high)) if low > 0 else -np.inf

    candidates = np.unique(np.round(scores[1], 6))
    best = max(candidates, key=lambda c: bound(*rates(c, slice(0, half))))
    return bound(*rates(float(best), slice(half, None)))


def test_an_audit_stays_below_the_claim_and_finds_half_the_noise() -> None:
    claimed = SliceTree(3, 1.0)
    honest = audit(claimed, claimed, 400_000, seed=1)
    # "half the noise" is the mechanism of twice the epsilon, passed off as this one
    broken = audit(SliceTree(3, 2.0), claimed, 400_000, seed=2)
    assert 0.5 < honest <= claimed.epsilon
    assert broken > claimed.epsilon + 0.1
