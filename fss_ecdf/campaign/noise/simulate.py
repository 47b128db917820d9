"""Noise as analysts and planners simulate it: distributed as what one server adds, from an ordinary generator.

For bands, p-values and plans only. What the servers add is drawn exactly, from a secret seed
(servers/release/noise.py); here floating point is good enough. Both mechanisms have heavier tails than a Gaussian where
few nodes add up, at the ends of a curve, so that a band made of Gaussian curves would be too narrow there.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.noise.mechanism import SERVERS, Mechanism, Positions
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.tables import Floats, Table, build

Counts = NDArray[np.int64]

# Below this epsilon for one value the noise is as good as continuous, and its scale is proportional to 1 / epsilon.
_COARSEST = 0.5
# Releases of one kind that are simulated one by one.
_MOST_DRAWN = 8
# What is cut off both ends of a table.
_TAIL = 1e-13


def both_servers(noise: Mechanism, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """What both servers add together."""
    return np.asarray(np.sum([noise_curves(noise, count, levels, rng) for _ in range(SERVERS)], axis=0))


def noise_curves(noise: Mechanism, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """Simulated noise of one server at 2^levels evenly spaced positions, ends of stretches: (count, 2^levels)."""
    if noise.parts != ((noise, 1),):
        return np.asarray(sum(_repeated(part, times, count, levels, rng) for part, times in noise.parts))
    if noise.scales and noise.epsilon / noise.instances < 0.99 * _COARSEST:
        coarse = type(noise)(noise.depth, _COARSEST)
        return noise_curves(coarse, count, levels, rng) * math.sqrt(noise.mean_variance() / coarse.mean_variance())
    curves = noise.noise_curve(_Simulated(noise, count, rng), levels)
    return np.broadcast_to(curves, (count, 1 << levels)).astype(np.float64)


def _repeated(noise: Mechanism, times: int, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """So many releases added up; beyond a few, a few of them scaled: their sum is as good as Gaussian."""
    drawn = min(times, _MOST_DRAWN)
    each = (noise_curves(noise, count, levels, rng) for _ in range(drawn))
    return np.asarray(sum(each)) * math.sqrt(times / drawn)


class _Simulated:
    """So many trees at once, from an ordinary generator."""

    def __init__(self, noise: Mechanism, count: int, rng: np.random.Generator) -> None:
        self._weights, self._count, self._rng = noise.level_weights, count, rng

    def split(self, level: int, parents: Counts, nodes: Positions) -> Counts:
        values = np.broadcast_to(parents, (self._count, nodes.size))
        f = _centre(build(self._weights)[level].floats)
        return _left_children(f, values.ravel(), self._rng).reshape(values.shape)

    def divide(self, level: int, parents: Counts, nodes: Positions, tables: tuple[Table, Table]) -> Counts:  # noqa: ARG002
        values = np.broadcast_to(parents, (self._count, nodes.size))
        left, right = (_centre(table.floats) for table in tables)
        return _divided(left, right, values.ravel(), self._rng).reshape(values.shape)

    def laplace(self, level: int, nodes: Positions) -> Counts:  # noqa: ARG002
        """The difference of two geometric variables."""
        p, shape = -math.expm1(-self._weights[0]), (self._count, nodes.size)
        return self._rng.geometric(p, shape) - self._rng.geometric(p, shape)


def _centre(f: Floats) -> Floats:
    cut = int(np.searchsorted(np.cumsum(f), _TAIL * f.sum()))
    return f[cut : f.size - cut]


def _left_children(f: Floats, parents: Counts, rng: np.random.Generator) -> Counts:
    """z with probability proportional to f(z) f(p - z) for each parent p, by inversion, one distinct |p| at a time."""
    sizes, reach = np.minimum(np.abs(parents), f.size - 1), f.size // 2
    order = np.argsort(sizes, kind="stable")
    values, starts = np.unique(sizes[order], return_index=True)
    u, drawn = rng.random(parents.size), np.empty(parents.size, np.int64)
    for value, start, end in zip(values, starts, [*starts[1:], parents.size], strict=True):
        weights = np.cumsum(f[value:] * f[value:][::-1])
        drawn[start:end] = np.searchsorted(weights, u[start:end] * weights[-1]) + value - reach
    left = np.empty_like(drawn)
    left[order] = drawn
    return np.where(parents < 0, -left, left)


def _divided(left: Floats, right: Floats, parents: Counts, rng: np.random.Generator) -> Counts:
    """z with probability proportional to left(z) right(p - z) for each parent p, by inversion, one p at a time."""
    reaches = left.size // 2, right.size // 2
    within = np.clip(parents, -sum(reaches), sum(reaches))
    drawn = np.empty(parents.size, np.int64)
    for p in np.unique(within):
        members = np.flatnonzero(within == p)
        low, high = max(-reaches[0], p - reaches[1]), min(reaches[0], p + reaches[1])
        # right is symmetric: right(p - z) = right(z - p)
        here = left[low + reaches[0] : high + reaches[0] + 1]
        there = right[low - p + reaches[1] : high - p + reaches[1] + 1]
        weights = np.cumsum(here * there)
        drawn[members] = np.searchsorted(weights, rng.random(members.size) * weights[-1]) + low
    return drawn


# A node whose ends are so low that the rest of the noise in it would have to exceed this many standard errors to matter
# is not looked into; a curve's largest deviation is overlooked so in less than one of a hundred curves, and by little.
_UNLIKELY = 4.0


def largest_deviations(noise: SliceTree, count: int, rng: np.random.Generator, floor: float = 0.0) -> Floats:
    """The largest deviation of each of so many curves of both servers, in standard errors, over all positions.

    As `noise_curves`, top down, but only into nodes that may still hold the largest deviation of their curve: at 2^20
    positions a few in a hundred. What is below the floor is not looked for: such curves are told as the floor.
    """
    if noise.scales and noise.epsilon / noise.instances < 0.99 * _COARSEST:
        noise = SliceTree(noise.depth, _COARSEST)
    errors = np.sqrt(SERVERS * np.append(noise.variance(np.arange(noise.positions)), 0.0))
    errors[errors < 1e-9] = np.inf  # where nothing is noisy, nothing deviates
    best, curve = np.full(count, floor), np.arange(count)
    start, before, nodes = np.zeros(count, np.int64), np.zeros(count), np.zeros((SERVERS, count), np.int64)
    for level in range(noise.depth - 1, -1, -1):
        f = _centre(noise.tables[level].floats)
        left = np.array([_left_children(f, mine, rng) for mine in nodes])
        middle = start + (1 << level)
        deviation = np.abs(before + left.sum(axis=0)) / errors[middle - 1]
        np.maximum.at(best, curve, deviation)
        start, nodes = np.concatenate([start, middle]), np.concatenate([left, nodes - left], axis=1)
        before, curve = np.concatenate([before, before + left.sum(axis=0)]), np.tile(curve, 2)
        rest = math.sqrt(SERVERS * _inside_variance(noise, level))
        keep = _promising(before, nodes.sum(axis=0), errors, start, 1 << level, _UNLIKELY * rest) > best[curve]
        start, nodes, before, curve = start[keep], nodes[:, keep], before[keep], curve[keep]
    return best


def _inside_variance(noise: SliceTree, level: int) -> float:
    """The largest variance of the noise at a position in a node of this level, given the noise at its ends."""
    step = 1 << max(0, level - 12)
    at = np.arange(step // 3, 1 << level, step)
    return float((noise.level_variances[:level] @ noise.haar(at)[:level] ** 2).max())


def _promising(before: Floats, inside: Counts, errors: Floats, start: Counts, size: int, rest: float) -> Floats:
    """How far the noise in a node may deviate, by its ends and by what the rest of its noise may add."""
    ends = errors[start - 1], errors[start + size - 1]
    least = np.minimum(*(np.where(np.isinf(e), 0.0, e) for e in ends))
    highest = np.maximum(np.abs(before), np.abs(before + inside)) + rest
    return np.asarray(np.divide(highest, least, out=np.full(highest.shape, np.inf), where=least > 0))
