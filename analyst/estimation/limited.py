"""The default estimator of curves and histograms: isotonic regression, moved half-way by a limited tree shrinkage.

The noise of a slice-tree is a Haar series: the deviations of inner nodes are uncorrelated, with a known variance for
each level. So, given its parent, how a node splits between its children is one normal observation. What splits look
like is learnt level by level, from the root down, as a mixture of a few kinds (even, smooth, one side empty) by a few
steps of expectation maximisation. The posterior mean of a split is anchored at that of isotonic regression, which
averages noise over flat stretches as no single split does, and may differ from it by at most h standard errors
(limited translation, Efron and Morris 1972): a wrong prior costs a split no more than that. The mean with isotonic
regression halves the risk again. Below a gate of 100 standard errors the result is isotonic regression itself.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation.smooth import isotonic

Floats = NDArray[np.float64]

GATE = 100.0  # a total below so many standard errors of a count is left to isotonic regression
_SPREAD = (0.0, 0.03, 0.08, 0.2, 0.4, 0.7, 1.0)  # how far splits lie from even ones
_SMOOTH = (0.0, 0.05, 0.15)  # and from those of a smooth density
_FEWEST_SMOOTH = 4  # nodes of a level from which on neighbours say anything of a slope
_PRIOR, _STEPS = 4.0, 12
_LEARN, _LEAST = 0.02, 0.002  # nodes so much smaller than their noise teach nothing, and are split evenly
_TIGHT_LEVELS, _TIGHT = 3, 0.5


def limited(counts: ArrayLike, total: float, variances: ArrayLike) -> Floats:
    """Counts at all thresholds, non-decreasing from 0 to the total.

    `variances`: of the noise in half the difference of two neighbouring nodes, from the leaves up.
    """
    raw, noise = np.asarray(counts, np.float64), np.asarray(variances, np.float64)
    flat = isotonic(raw, total)
    flat[-1] = total
    scale = 1 / 3 + 1 / (6 * 4.0 ** np.arange(noise.size))
    if total < GATE * math.sqrt(float(noise @ scale)):
        return flat
    shrunk = np.cumsum(_tree(raw, flat, total, noise))[: raw.size]
    found = np.minimum((flat + shrunk) / 2, total)
    found[-1] = total
    return np.asarray(np.maximum.accumulate(found))  # what rounding may have undone


def _tree(raw: Floats, flat: Floats, total: float, noise: Floats) -> Floats:
    """Counts of all leaves, from splits of the total."""
    depth, real = noise.size, raw.size
    halves = [_halves(curve, depth) for curve in (raw, flat)]
    parents, weights = np.array([total]), np.zeros(0)
    for level in range(depth - 1, -1, -1):
        size = 1 << level
        start = np.arange(parents.size) * 2 * size
        left, whole = np.clip(real - start, 0, size), np.clip(real - start, 0, 2 * size)
        share = np.divide(left, whole, out=np.ones(parents.size), where=whole > 0)
        tight = _TIGHT if depth - 1 - level < _TIGHT_LEVELS else 1.0
        split, weights = _splits(
            parents, halves[0][level], halves[1][level], float(noise[level]), share, weights, tight
        )
        parents = np.stack([parents / 2 + split, parents / 2 - split], axis=1).ravel()
    return parents


def _halves(curve: Floats, depth: int) -> list[Floats]:
    """Half the difference of the two children of every node, from the leaves up."""
    cells = np.zeros(1 << depth)
    cells[: curve.size] = np.diff(curve, prepend=0.0)
    found = []
    for _ in range(depth):
        left, right = cells[0::2], cells[1::2]
        found.append((left - right) / 2)
        cells = left + right
    return found


def _splits(
    parents: Floats, seen: Floats, anchor: Floats, v: float, share: Floats, weights: Floats, tight: float
) -> tuple[Floats, Floats]:
    """How much more than half of each parent its left child has, and the weights of the mixture."""
    even, limit = (share - 0.5) * parents, tight * math.sqrt(v)
    wanted = even.copy()
    some = np.flatnonzero(parents**2 / 4 > _LEAST * v)
    if some.size and v > 0:
        centre, spread = _components(parents, even, share, some)
        if weights.size != len(centre):
            weights = np.full(len(centre), 1 / len(centre))
        d = seen[some]
        logarithm = -0.5 * ((d - centre) ** 2 / (spread + v) + np.log(spread + v))
        likelihood = np.exp(logarithm - logarithm.max(axis=0))
        weights = _learnt(likelihood[:, parents[some] ** 2 / 4 > _LEARN * v], weights)
        belongs = weights[:, np.newaxis] * likelihood
        belongs /= belongs.sum(axis=0)
        wanted[some] = (belongs * (centre + (anchor[some] - centre) * spread / (spread + v))).sum(axis=0)
    elif v == 0:
        wanted = anchor
    moved = np.clip(wanted, anchor - limit, anchor + limit)
    return np.clip(moved, -parents / 2, parents / 2), weights


def _components(parents: Floats, even: Floats, share: Floats, some: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Centres and variances of the kinds of splits, (kinds, nodes)."""
    p, k, c = parents[some], (share * (1 - share))[some], even[some]
    kinds = [(c, k * (s * s * p * p + (1 - s * s) * p)) for s in _SPREAD]
    if parents.size >= _FEWEST_SMOOTH:
        slope = np.empty_like(parents)
        slope[1:-1] = (parents[:-2] - parents[2:]) / 16
        slope[0], slope[-1] = (parents[0] - parents[1]) / 8, (parents[-2] - parents[-1]) / 8
        padded = np.pad(share != 0.5, 1)  # a neighbour that holds padding says nothing of a slope
        beside = padded[:-2] | padded[1:-1] | padded[2:]
        slope = np.clip(np.where(beside, even, slope), -parents / 2, parents / 2)[some]
        kinds += [(slope, k * (s * s * p * p + (1 - s * s) * p)) for s in _SMOOTH]
    nothing = np.zeros_like(p)
    kinds += [(p / 2, nothing), (-p / 2, nothing)]
    return np.array([centre for centre, _ in kinds]), np.array([spread for _, spread in kinds])


def _learnt(likelihood: Floats, weights: Floats) -> Floats:
    prior = _PRIOR * weights
    for _ in range(_STEPS):
        # how much of each node belongs to each kind, summed over nodes
        weights = weights * (likelihood @ (1 / (weights @ likelihood))) + prior
        weights = weights / weights.sum()
    return np.asarray(weights)
