"""Noise as analysts and planners simulate it: distributed as what one server adds, from an ordinary generator.

For bands, p-values and plans only. What the servers add is drawn exactly, from a secret seed
(servers/release/noise.py); here floating point is good enough. Both mechanisms have heavier tails than a Gaussian where
few nodes add up, at the ends of a curve, so that a band made of Gaussian curves would be too narrow there.
"""

import math

import numpy as np
from numpy.typing import NDArray

from campaign.noise.mechanism import SERVERS, Mechanism, PaperTree, SliceTree
from campaign.noise.tables import Floats

Counts = NDArray[np.int64]

# Below this epsilon for one value the noise is as good as continuous, and its scale is proportional to 1 / epsilon.
_COARSEST = 0.5
# What is cut off both ends of a table.
_TAIL = 1e-13


def both_servers(noise: Mechanism, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """What both servers add together."""
    return np.asarray(np.sum([noise_curves(noise, count, levels, rng) for _ in range(SERVERS)], axis=0))


def noise_curves(noise: Mechanism, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """Simulated noise of one server at 2^levels evenly spaced positions, ends of stretches: (count, 2^levels)."""
    if noise.epsilon / noise.instances < 0.99 * _COARSEST:
        coarse = type(noise)(noise.depth, _COARSEST)
        return noise_curves(coarse, count, levels, rng) * math.sqrt(noise.mean_variance() / coarse.mean_variance())
    if isinstance(noise, PaperTree):
        return _paper_curves(noise, count, levels, rng)
    assert isinstance(noise, SliceTree)
    return _slice_curves(noise, count, levels, rng)


def _slice_curves(noise: SliceTree, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """Top down, as the servers draw it: a left child given its parent."""
    nodes = np.zeros((count, 1), np.int64)
    for level in range(noise.depth - 1, noise.depth - 1 - levels, -1):
        left = _left_children(_centre(noise.tables[level].floats), nodes.ravel(), rng).reshape(nodes.shape)
        nodes = np.stack([left, nodes - left], axis=2).reshape(count, -1)
    return np.cumsum(nodes, axis=1).astype(np.float64)


def _centre(f: Floats) -> Floats:
    cut = int(np.searchsorted(np.cumsum(f), _TAIL * f.sum()))
    return f[cut : f.size - cut]


def _left_children(f: Floats, parents: Counts, rng: np.random.Generator) -> Counts:
    """z with probability proportional to f(z) f(p - z) for each parent p, by inversion, one distinct |p| at a time."""
    sizes, reach = np.minimum(np.abs(parents), f.size - 1), f.size // 2
    order = np.argsort(sizes, kind="stable")
    values, starts = np.unique(sizes[order], return_index=True)
    u, found = rng.random(parents.size), np.empty(parents.size, np.int64)
    for value, start, end in zip(values, starts, [*starts[1:], parents.size], strict=True):
        weights = np.cumsum(f[value:] * f[value:][::-1])
        found[start:end] = np.searchsorted(weights, u[start:end] * weights[-1]) + value - reach
    left = np.empty_like(found)
    left[order] = found
    return np.where(parents < 0, -left, left)


def _paper_curves(noise: PaperTree, count: int, levels: int, rng: np.random.Generator) -> Floats:
    """The sum over all ancestors; those below the sampled levels belong to one position each."""
    curve = np.zeros((count, 1))
    for _ in range(levels):
        curve = np.repeat(curve + _laplace(noise.rate, curve.shape, rng), 2, axis=1)
    for _ in range(noise.depth + 1 - levels):
        curve += _laplace(noise.rate, curve.shape, rng)
    return curve


def _laplace(rate: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Discrete Laplace: the difference of two geometric variables."""
    p = -math.expm1(-rate)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(np.float64)
