"""The paper's Theorem 2, on running sums of streams: how much noise a binary counter needs, by enumeration.

Published after t steps: the sum so far, and the noise of node ceil(t / 2^l) on every level l = 0..L of a binary tree
over time. Replacing what came in one step changes all sums from there on by the same amount. Other noise explains that:
so many nodes' noise as add up to the change must differ by it.
"""

import itertools
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from bench.figures import waves

LEVELS = range(1, 7)


def nodes_over_time(levels: int) -> NDArray[np.float64]:
    """Which times each node's noise is in: (nodes, times)."""
    times = np.arange(1 << levels)
    nodes = [(level, node) for level in range(levels + 1) for node in range(1 << (levels - level))]
    return np.array([times >> level == node for level, node in nodes], float)


@cache
def fewest(level: int, last: int, level_of_first: int) -> int:
    """The least number of nodes, added or taken away, that make `level_of_first` of a node's first times and one more
    of its `last` ones."""
    size = 1 << level
    if last in (0, size):
        return abs(level_of_first + (last == size))
    half, costs = size // 2, []
    for here in (-1, 0, 1):
        rest = level_of_first - here
        left, right = max(0, last - half), min(last, half)
        costs.append(abs(here) + fewest(level - 1, left, rest) + fewest(level - 1, right, rest))
    return min(costs)


@pytest.mark.parametrize("levels", LEVELS)
def test_half_of_the_levels_explain_every_change(levels: int) -> None:
    """Enumerated for every step: ceil((L + 1) / 2) nodes are enough, and for some step they are needed."""
    needed = [fewest(levels, last, 0) for last in range(1, (1 << levels) + 1)]
    assert max(needed) == -(-(levels + 1) // 2)


@pytest.mark.parametrize("levels", [1, 2])
def test_the_enumeration_is_that_of_all_choices(levels: int) -> None:
    over = nodes_over_time(levels)
    for last in range(1, (1 << levels) + 1):
        change = (np.arange(1 << levels) >= (1 << levels) - last).astype(float)
        choices = np.array(list(itertools.product((-1, 0, 1), repeat=len(over))))
        right = np.abs(choices[(choices @ over == change).all(axis=1)]).sum(axis=1)
        assert right.min() == fewest(levels, last, 0)


@pytest.mark.parametrize("levels", LEVELS)
def test_fractions_of_nodes_do_not_do_with_less_laplace_noise(levels: int) -> None:
    """The least sum of absolute shifts, by linear programming, is that of the enumeration: the bound is tight."""
    over = nodes_over_time(levels)
    most = 0.0
    for last in range(1, (1 << levels) + 1):
        change = (np.arange(1 << levels) >= (1 << levels) - last).astype(float)
        found = linprog(np.ones(2 * len(over)), A_eq=np.hstack([over.T, -over.T]), b_eq=change)
        most = max(most, float(found.fun))
    assert most == pytest.approx(-(-(levels + 1) // 2), abs=1e-6)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("z", [0.5, 2.0])
def test_gaussian_noise_has_the_zcdp_that_is_claimed(levels: int, z: float) -> None:
    """With variance ceil((L + 1) / 2) z^2 on every node the exact loss of the published sums, half the squared distance
    of their means in units of their covariance, is at most 1 / (2 z^2)."""
    over = nodes_over_time(levels)
    covariance = -(-(levels + 1) // 2) * z**2 * over.T @ over
    losses = []
    for last in range(1, (1 << levels) + 1):
        change = (np.arange(1 << levels) >= (1 << levels) - last).astype(float)
        losses.append(change @ np.linalg.solve(covariance, change) / 2)
    assert max(losses) <= 1 / (2 * z**2) * (1 + 1e-9)
    assert max(losses) > 0.3 / (2 * z**2)  # not for nothing


def loss(rate: float) -> float:
    """Of two sums with discrete Laplace noise on the three nodes of a tree over two steps, when a step changes by 1."""
    reach = 40
    k = np.arange(-reach, reach + 1)
    f = np.exp(-rate * np.abs(k))
    # sums (a, b) get own noise each and the root's together
    inner = k[20:-20]
    joint = np.array([[(np.exp(-rate * (abs(a - k) + abs(b - k))) * f).sum() for b in inner] for a in inner])
    worst = 0.0
    for first, second in ((1, 1), (0, 1)):  # what changes from the first step on, and from the second
        here, there = joint[1:, 1:], joint[1 - first : -first or None, 1 - second : -second or None]
        worst = max(worst, float(np.abs(np.log(here / there)).max()))
    return worst


def test_two_steps_are_epsilon_private_and_not_with_less_noise() -> None:
    """L = 1: one node explains a change, so scale 1 / epsilon is enough, and half of it is not."""
    assert loss(0.7) <= 0.7 * (1 + 1e-9)
    assert loss(1.4) > 0.7


def test_the_figure_of_waves_uses_the_theorem() -> None:
    way = waves.ways()["binary counter, Theorem 2"]
    levels = waves.levels_of(waves.WAVES) - 1
    assert way.epsilon((0, 0)) == pytest.approx(waves.EPSILON / -(-(levels + 1) // 2))
    assert way.parts(200) == waves.ancestors(200)
