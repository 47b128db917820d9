"""Smoothing: optimal, never worse where that is promised, and never silently wrong."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from analyst.estimation import smooth
from analyst.estimation.smooth import isotonic, tree
from fss_ecdf.campaign.errors import InvalidQuery, SmoothingFailed
from fss_ecdf.campaign.noise.registry import mechanism
from servers.release.noise import NoiseTree

TREES = ["slice-tree", "paper-tree"]


def noisy(name: str, depth: int, seed: int, mean: float = 3.0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A true curve of Poisson counts and the same with one server's noise."""
    truth = np.cumsum(np.random.default_rng(seed).poisson(mean, 1 << depth))
    source = NoiseTree(seed.to_bytes(32, "little"), server=0, covers=bytes(32), mechanism=mechanism(name, depth, 1.0))
    return truth, truth + source.curve()


def is_proper(curve: np.ndarray[Any, Any], n: float) -> bool:
    return bool((np.diff(curve) >= 0).all() and curve.min() >= 0 and curve.max() <= n)


def test_isotonic_never_increases_the_squared_error() -> None:
    """1000 seeded runs, both mechanisms."""
    for seed in range(500):
        for name in TREES:
            truth, curve = noisy(name, 6, seed, mean=0.5)
            smoothed = isotonic(curve, truth[-1])
            assert ((smoothed - truth) ** 2).sum() <= ((curve - truth) ** 2).sum() + 1e-9
            assert is_proper(smoothed, truth[-1])


def dense_tree(name: str, depth: int) -> np.ndarray[Any, Any]:
    """What every node's correction does to every position, written out."""
    n = 1 << depth
    at = np.arange(n)
    levels = range(depth + 1) if name == "paper-tree" else range(depth)
    return np.array([(at >> level) == j for level in levels for j in range(n >> level)], float).T


def least_distance(rows: np.ndarray[Any, Any], bound: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """min |u| subject to rows u >= bound, exactly: Lawson and Hanson, Solving Least Squares Problems, chapter 23."""
    system = np.vstack([rows.T, bound])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    residual = system @ nnls(system, target, maxiter=10_000)[0] - target
    return np.asarray(-residual[:-1] / residual[-1])


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("seed", range(20))
def test_two_norm_equals_a_textbook_solution(name: str, seed: int) -> None:
    truth, curve = noisy(name, 3, seed, mean=0.7)
    n, nodes = float(truth[-1]), dense_tree(name, 3)
    if name == "paper-tree":
        effect = nodes
    else:
        # Leaf corrections that sum to 0, in coordinates in which the norm over all nodes is the ordinary one.
        balanced = np.vstack([np.eye(7), -np.ones(7)])
        effect = np.cumsum(balanced, axis=0) @ np.linalg.inv(np.linalg.qr(nodes.T @ balanced)[1])
    rows = np.vstack([np.diff(effect, axis=0, prepend=np.zeros((1, effect.shape[1]))), -effect[-1:]])
    bound = np.append(-np.diff(curve, prepend=0.0), curve[-1] - n)
    best = least_distance(rows, bound)
    program = smooth.make_program(curve.astype(float), n, np.arange(8), 3, name, True)
    assert (smooth.solve(program, 2) ** 2).sum() == pytest.approx((best**2).sum(), rel=1e-5, abs=1e-6)
    assert tree(curve, n, mechanism=name) == pytest.approx(curve + effect @ best, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_one_norm_reaches_the_optimum_of_a_dense_linear_program(seed: int) -> None:
    truth, curve = noisy("paper-tree", 3, seed, mean=0.7)
    effect = dense_tree("paper-tree", 3)
    k = effect.shape[1]
    steps = np.diff(effect, axis=0, prepend=np.zeros((1, k)))
    rows = np.vstack([-steps, effect[-1:]])
    right = np.concatenate([np.diff(curve, prepend=0.0), [truth[-1] - curve[-1]]])
    best = linprog(np.ones(2 * k), A_ub=np.hstack([rows, -rows]), b_ub=right)
    program = smooth.make_program(curve.astype(float), float(truth[-1]), np.arange(8), 3, "paper-tree", True)
    assert np.abs(smooth.solve(program, 1)).sum() == pytest.approx(best.fun, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("norm", [1, 2])
def test_both_solvers_reach_the_same_optimum(name: str, norm: int) -> None:
    truth, curve = noisy(name, 7, 3)
    program = smooth.make_program(curve.astype(float), float(truth[-1]), np.arange(128), 7, name, True)
    values = [(np.abs(s(program, norm)) ** norm).sum() for s in (smooth.solve, smooth.solve_with_cvxopt)]
    assert values[0] == pytest.approx(values[1], rel=1e-5, abs=1e-5)


def test_the_solver_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, curve = noisy("paper-tree", 6, 1)
    chosen = tree(curve, float(truth[-1]), mechanism="paper-tree", solver="cvxopt")
    monkeypatch.setitem(smooth._SOLVERS, "clarabel", smooth.solve_with_cvxopt)
    assert np.array_equal(chosen, tree(curve, float(truth[-1]), mechanism="paper-tree"))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_positions_and_norm_give_a_proper_curve(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(TREES))
    truth, curve = noisy(name, 8, data.draw(st.integers(0, 30)), mean=0.5)
    some = data.draw(st.lists(st.integers(0, 255), min_size=1, max_size=60, unique=True).map(sorted))
    smoothed = tree(
        curve[some], float(truth[-1]), at=some, depth=8, mechanism=name, norm=data.draw(st.sampled_from([1, 2]))
    )
    assert smoothed.shape == (len(some),)
    assert is_proper(smoothed, float(truth[-1]))


def test_a_curve_that_is_proper_already_is_left_alone() -> None:
    curve = np.array([0.0, 2.0, 2.0, 7.0])
    for name in TREES:
        for norm in (1, 2):
            assert tree(curve, 7, mechanism=name, norm=norm) == pytest.approx(curve, abs=1e-4)
    assert isotonic(curve, 7).tolist() == curve.tolist()


@pytest.mark.parametrize(("name", "factor"), [("paper-tree", 0.6), ("slice-tree", 0.95)])
def test_the_two_norm_helps_on_poisson_data(name: str, factor: float) -> None:
    """Ten curves of 2^10 positions: the mean squared error falls clearly, as the paper's first figure shows."""
    pairs = [noisy(name, 10, seed) for seed in range(10)]
    raw = np.mean([((c - t) ** 2.0).mean() for t, c in pairs])
    smoothed = np.mean([((tree(c, t[-1], mechanism=name) - t) ** 2).mean() for t, c in pairs])
    assert smoothed < factor * raw


def test_what_cannot_be_solved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # a public total above n: nothing can bring the last count down
    with pytest.raises(SmoothingFailed, match="was not solved"):
        tree([1.0, 2.0, 3.0, 9.0], 5, mechanism="slice-tree")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tree([1, 2], 2, norm=3), "norm is 1 or 2"),
        (lambda: tree([1, 2], 2, solver="abacus"), "solver is one of clarabel, cvxopt"),  # type: ignore[arg-type]
        (lambda: tree([1, 2], 2, at=[3, 1]), "positions must increase"),
        (lambda: tree([1, 2], 2, at=[1]), "one for each count"),
        (lambda: tree([1, 2], 2, at=[0, 9], depth=3), "below 2"),
        (lambda: isotonic([], 1), "list of finite counts"),
        (lambda: isotonic([np.nan], 1), "list of finite counts"),
        (lambda: isotonic([1.0], -1), "at least 0"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        call()
