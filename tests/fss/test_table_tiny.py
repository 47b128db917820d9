"""The check of tables over fields so small that everything can be tried: all words, all points, all randomness."""

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle.table import Message, TableOracle

Ints = NDArray[np.int64]


def histograms(oracle: TableOracle) -> list[tuple[int, ...]]:
    every = itertools.product(range(oracle.count + 1), repeat=oracle.positions)
    return [h for h in every if sum(h) == oracle.count]


class Everything:
    """All y, all Q but for a factor, and all W - v Q, at all points: what is accepted of them.

    Words with W and v, or Q times a factor, are accepted where those with W - v Q and 0, or the monic Q, are.
    """

    def __init__(self, oracle: TableOracle) -> None:
        self.oracle, p, degree = oracle, oracle.p, oracle.degree
        self.taus = range(oracle.labels + 1, p)
        polynomials = np.array(list(itertools.product(range(p), repeat=degree + 1)))
        powers = np.array([[pow(tau, i, p) for i in range(degree + 1)] for tau in self.taus])
        slopes = np.array([[i * pow(tau, i - 1, p) if i else 0 for i in range(degree + 1)] for tau in self.taus])
        masks = np.array([oracle.g(tau) for tau in self.taus])
        self.w_at = polynomials @ powers.T * masks % p
        self.monic = np.array([q for q in polynomials if q.any() and q[np.flatnonzero(q)[-1]] == 1])
        self.q_at, self.slope_at = self.monic @ powers.T % p, self.monic @ slopes.T % p

    def accepting(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Ints]]:
        """For each y and Q, at how many points each W - v Q is accepted, whatever the total."""
        p, labels = self.oracle.p, range(1, self.oracle.labels + 1)
        inverses = np.array([[pow(tau - label, -1, p) for label in labels] for tau in self.taus])
        for y in itertools.product(range(p), repeat=len(labels)):
            left = (self.q_at * (inverses @ np.array(y) % p) - self.slope_at) % p
            for q, q_at, at in zip(self.monic, self.q_at, left, strict=True):
                yield y, tuple(q.tolist()), ((self.w_at == at) & (q_at != 0)).sum(axis=1)

    def honest(self, y: tuple[int, ...], q: tuple[int, ...]) -> bool:
        """Whether this Q has y_l times the root l and no other."""
        if sum(y) > self.oracle.degree:
            return False
        roots = [1]
        for label, times in enumerate(y, start=1):
            for _ in range(times):
                roots = self.oracle._times_linear(roots, label)
        return list(q) == roots + [0] * (self.oracle.degree + 1 - len(roots))

    def worst(self) -> int:
        """The most points at which words that are no table, whatever their total, are accepted."""
        most = 0
        for y, q, points in self.accepting():
            if self.honest(y, q):
                assert points[0] == len(self.taus)  # W = v Q: always
                points = points[1:]
            most = max(most, int(points.max()))
        return most


@pytest.mark.parametrize(("p", "labels", "degree"), [(11, 1, 1), (11, 2, 1), (13, 1, 2), (13, 2, 1), (17, 2, 1)])
def test_only_tables_pass_and_the_bound_is_tight(p: int, labels: int, degree: int) -> None:
    oracle = TableOracle(labels, degree, 2, 1, degree, p)
    assert Everything(oracle).worst() == labels + 2 * degree < p - labels - 1


@pytest.mark.slow
@pytest.mark.parametrize(("p", "labels", "degree"), [(11, 2, 2), (13, 2, 2), (17, 1, 2), (17, 3, 1)])
def test_the_same_for_larger_tables(p: int, labels: int, degree: int) -> None:
    oracle = TableOracle(labels, degree, 2, 1, degree, p)
    assert Everything(oracle).worst() == labels + 2 * degree


@pytest.mark.parametrize("less", [1, 2])
def test_a_smaller_exponent_is_not_sound(less: int) -> None:
    oracle = TableOracle(2, 1, 2, 1, 1, 13, exponent_less=less)
    assert Everything(oracle).worst() > oracle.labels + 2 * oracle.degree


# Two positions and one coin; one position and two coins would have one histogram only
SHAPES = [TableOracle(2, 2, 2, 1, 2, 11), TableOracle(2, 3, 2, 2, 3, 13), TableOracle(3, 2, 2, 1, 2, 17)]


@pytest.mark.parametrize("oracle", SHAPES, ids=lambda o: f"Z_{o.p}-{o.coins}-coins")
def test_messages_are_the_same_for_all_tables(oracle: TableOracle) -> None:
    """For every point, over all rho and v: a any but 0, b any, c their product, the total the count."""
    p = oracle.p
    expected = Counter(Message(a, b, a * b % p, oracle.count) for a in range(1, p) for b in range(p))
    for tau in range(oracle.labels + 1, p):
        for histogram in histograms(oracle):
            drawn = itertools.product(range(1, p), range(p))
            assert Counter(oracle.message(oracle.witness(histogram, rho, v), tau) for rho, v in drawn) == expected


def test_messages_at_a_label_or_0_are_not() -> None:
    """Why such points are refused: at 0 the mask counts nothing."""
    oracle = TableOracle(2, 2, 2, 1, 2, 11)
    seen = [frozenset(oracle.message(oracle.witness(h, 1, v), 0).b for v in range(11)) for h in histograms(oracle)]
    assert len(set(seen)) == len(seen) == 3


@pytest.mark.parametrize("oracle", SHAPES[:2], ids=lambda o: f"Z_{o.p}-{o.coins}-coins")
def test_what_a_server_that_lies_sees_depends_on_its_lie_only(oracle: TableOracle) -> None:
    """It adds anything to its messages, as it would by shifting its words: whether the table is then accepted is as
    likely for all tables."""
    p, tau = oracle.p, oracle.labels + 1
    lies = list(itertools.product((0, 1, p - 2), repeat=3))
    answers = set()
    for histogram in histograms(oracle):
        drawn = itertools.product(range(1, p), range(p))
        told = [oracle.message(oracle.witness(histogram, rho, v), tau) for rho, v in drawn]
        answers.add(tuple(sum(oracle.accepts(m, (*lie, 0)) for m in told) for lie in lies))
    assert len(answers) == 1


@pytest.mark.parametrize(("server", "tau"), [(0, 3), (1, 4)])
def test_the_whole_view_of_a_server_is_the_same_for_all_tables(server: int, tau: int) -> None:
    """Over Z_5, one value at two positions: a server's seven words and the other's four messages, over all sharings.
    Both servers see the same kind of thing: uniform words, and what the other computes."""
    oracle = TableOracle(2, 1, 2, 1, 1, 5)
    size, p = oracle.labels + 1 + 2 * (oracle.degree + 1), oracle.p
    masks = np.array(list(itertools.product(range(p), repeat=size)))
    linear = np.array([oracle.message([int(i == j) for j in range(size)], tau) for i in range(size)])
    views = []
    for histogram in histograms(oracle):
        seen = []
        for rho, v in itertools.product(range(1, p), range(p)):
            rest = (np.array(oracle.witness(histogram, rho, v)) - masks) % p
            mine, other = (masks, rest) if server else (rest, masks)
            view = np.concatenate([mine, other @ linear % p], axis=1)
            seen.append(view @ p ** np.arange(size + 4))
        views.append(np.sort(np.concatenate(seen)))
    assert np.array_equal(views[0], views[1])
