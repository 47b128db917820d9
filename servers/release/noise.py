"""The secret side of the noise: integers, drawn from a 32-byte seed, the same for ever.

Noise is a function of (seed, server, what it covers, purpose, node). One AES-256 call under a key derived from the
first four turns a node's number into DRAW_BITS = 128 bits u; the draw is the value at which the exact cumulative
distribution of fss_ecdf/campaign/noise/tables.py first exceeds u / 2^128. Nothing is stored but the seed, and any node
or prefix can be computed alone, in O(depth), with the result that computing the whole curve gives.

**Exactness.** The comparison of u with the cumulative weights is done in integers, in effect: it is first done in
floating point together with a bound on the error made there (sums of w positive doubles, each a rounded product:
relative error at most (2 w + 8) 2^-53), and wherever u lies within twice that bound of a step, again with the exact
integers. So the result does not depend on the machine's floating point, and the distance of all noise of a campaign
from the ideal distribution is `Mechanism.distance`: at most 2^(depth + 1) draws, each off by

- what was cut from the tails of a table: at most 4 / (1 - exp(-w_0)) 2^-128,
- the rounding of its entries: at most 4 * 2^-128,
- rounding the probabilities of at most 2 * 2 * reach + 1 values to multiples of 2^-128.

For depth 16 and epsilon 1 that is below 2^-98, for depth 32 and epsilon 0.01 below 2^-75. The pseudorandom function
adds its own, computational, advantage; AES as a random function on q nodes loses at most q^2 / 2^129.
"""

import hashlib
import hmac
from bisect import bisect_right
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
from Crypto.Cipher import AES
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, MAX_CURVE_BITS, Mechanism, Positions
from fss_ecdf.campaign.noise.tables import Floats, Table, build, joint_weights

SEED_BYTES = 32
_SET_SECRET = b"fss-ecdf noise secret 2\n"

Counts = NDArray[np.int64]
Draws = NDArray[np.uint64]

_ULP = 2.0**-53
# Rows of cumulative sums that are made together: a few megabytes.
_CELLS = 1 << 19


def covers(campaign: bytes, variable: str, key_set: bytes, key_file: bytes) -> bytes:
    """What a server's noise is bound to: campaign, variable, the checksum of the ids, and the digest of its keys.

    Other content, after a wrong restore or by a dishonest peer, never meets the same noise: two releases of different
    sets are independent, and their difference is as well hidden as each of them.
    """
    return campaign + hashlib.sha256(variable.encode()).digest() + key_set + key_file


def set_secret(seed: bytes, covered: bytes) -> bytes:
    """The secret of the noise of one set: an auditor who is given it learns nothing of the noise of another."""
    return hmac.digest(seed, _SET_SECRET + covered, "sha256")


class Prf:
    """128 pseudorandom bits for every (level, node) of one server, set of keys (see `covers`) and purpose."""

    def __init__(self, seed: bytes, server: int, covers: bytes, purpose: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a noise seed has {SEED_BYTES} bytes, got {len(seed)}")
        fields = [b"fss-ecdf noise 2", bytes([server]), covers, purpose]
        context = b"".join(len(field).to_bytes(2, "little") + field for field in fields)
        self._cipher = AES.new(hmac.digest(seed, context, hashlib.sha256), AES.MODE_ECB)

    def draws(self, level: int, nodes: ArrayLike) -> Draws:
        """Shape (nodes, 2): the low and the high half of each node's 128 bits."""
        numbers = np.asarray(nodes, np.uint64)
        blocks = np.empty((numbers.size, 2), "<u8")
        blocks[:, 0] = numbers
        blocks[:, 1] = level
        return np.frombuffer(self._cipher.encrypt(blocks.tobytes()), "<u8").reshape(-1, 2)


def _fractions(u: Draws) -> Floats:
    """u / 2^128, to within one unit in the last place of a double."""
    return np.asarray(u[:, 1] * 2.0**-64 + u[:, 0] * 2.0**-128)


def _integer(u: Draws) -> int:
    return int(u[1]) << 64 | int(u[0])


def _pick(cumulative: Floats, u: Draws, tail: float) -> tuple[Counts, NDArray[np.bool_]]:
    """Where the cumulative sums first exceed u, and for which u floating point could not tell.

    `tail` bounds, relative to the sum, what lies outside the given range on both sides.
    """
    total = cumulative[-1]
    target = _fractions(u) * total
    at = np.searchsorted(cumulative, target, side="right")
    margin = (2 * (2 * cumulative.size + 8) * _ULP + 2 * tail) * total
    edges = np.concatenate([[0.0], cumulative, [total]])
    unsure = (target - edges[at] <= margin) | (edges[at + 1] - target <= margin)
    return at, np.asarray(unsure | (at >= cumulative.size))


def _pick_exactly(cumulative: list[int], u: int) -> int:
    """The first index at which the cumulative sum, as a share of the total, exceeds u / 2^DRAW_BITS."""
    return bisect_right(cumulative, u * cumulative[-1] >> DRAW_BITS)


class _Split:
    """Draws left children given their parents' values, for one level of a slice-tree."""

    def __init__(self, table: Table) -> None:
        self._table = table
        f = table.floats
        # Half of the table reaches down to 2^-128 of the middle for a parent of 0, far below what a double resolves.
        self._reach = -(-table.reach // 2)
        width = 2 * self._reach + 1
        self._pad = 3 * table.reach + self._reach + 2
        self._windows = sliding_window_view(np.pad(f, self._pad), width)
        self._zero = self._pad + table.reach
        self._rows = max(1, _CELLS // width)

    def draw(self, parents: Counts, u: Draws) -> Counts:
        values, group = np.unique(parents, return_inverse=True)
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(values.size + 1))
        left = np.empty(parents.size, np.int64)
        for start in range(0, values.size, self._rows):
            some = values[start : start + self._rows]
            for i, (p, cumulative, tail) in enumerate(zip(some, *self._cumulative(some), strict=True), start):
                members = order[ends[i] : ends[i + 1]]
                left[members] = self._draw_under(int(p), cumulative, float(tail), u[members])
        return left

    def _cumulative(self, parents: Counts) -> tuple[Floats, Floats]:
        """For each parent p, running sums of f(z) f(p - z) for z around p / 2, and a bound on what lies outside."""
        first = self._zero + parents // 2 - self._reach
        # f is symmetric: f(p - z) = f(z - p)
        products = self._windows[first] * self._windows[first - parents]
        cumulative = np.cumsum(products, axis=1)
        # f is log-concave, so beyond the range the products fall at least as fast as at its ends.
        tails = np.zeros(parents.size)
        for end, inner in ((0, 1), (-1, -2)):
            edge, next_to = products[:, end], products[:, inner]
            inside = edge > 0
            falling = np.minimum(edge[inside] / next_to[inside], 1 - _ULP)
            tails[inside] += edge[inside] / (1 - falling)
        return cumulative, tails / cumulative[:, -1]

    def _draw_under(self, p: int, cumulative: Floats, tail: float, u: Draws) -> Counts:
        at, unsure = _pick(cumulative, u, tail)
        left = at + (p // 2 - self._reach)
        for i in np.flatnonzero(unsure):
            low, weights = self._table.weights(p)
            left[i] = low + _pick_exactly(list(accumulate(weights)), _integer(u[i]))
        return np.asarray(left, np.int64)


class _Divide:
    """Draws left children given their parents' values, where both children have tables of their own."""

    def __init__(self, left: Table, right: Table) -> None:
        self._left, self._right = left, right

    def draw(self, parents: Counts, u: Draws) -> Counts:
        left = np.empty(parents.size, np.int64)
        order = np.argsort(parents, kind="stable")
        values, starts = np.unique(parents[order], return_index=True)
        for p, members in zip(map(int, values), np.split(order, starts[1:]), strict=True):
            left[members] = self._draw_under(p, u[members])
        return left

    def _draw_under(self, p: int, u: Draws) -> Counts:
        """From all values that the tables have: nothing lies outside."""
        reach = self._left.reach, self._right.reach
        low, high = max(-reach[0], p - reach[1]), min(reach[0], p + reach[1])
        here = self._left.floats[low + reach[0] : high + reach[0] + 1]
        # tables are symmetric: f(p - z) = f(z - p)
        there = self._right.floats[low - p + reach[1] : high - p + reach[1] + 1]
        at, unsure = _pick(np.cumsum(here * there), u, 0.0)
        left = at + low
        for i in np.flatnonzero(unsure):
            _, weights = joint_weights(self._left, self._right, p)
            left[i] = low + _pick_exactly(list(accumulate(weights)), _integer(u[i]))
        return np.asarray(left, np.int64)


@lru_cache(maxsize=8)
def _splits(weights: tuple[float, ...]) -> list[_Split]:
    return [_Split(table) for table in build(weights)]


class DiscreteLaplace:
    """Independent noise k with probability proportional to exp(-rate |k|), one for each (level, node)."""

    def __init__(self, prf: Prf, rate: float) -> None:
        self._prf = prf
        self._table = build((rate,))[0]
        self._cumulative = np.cumsum(self._table.floats)

    @cached_property
    def _exact(self) -> list[int]:
        half = self._table.half
        return list(accumulate([*half[:0:-1], *half]))

    def at(self, level: int, nodes: ArrayLike) -> Counts:
        u = self._prf.draws(level, nodes)
        at, unsure = _pick(self._cumulative, u, 0.0)
        noise = at - self._table.reach
        for i in np.flatnonzero(unsure):
            noise[i] = _pick_exactly(self._exact, _integer(u[i])) - self._table.reach
        return np.asarray(noise, np.int64)


class NoiseTree:
    """One server's noise for one set of keys: the exact source of its mechanism's draws."""

    def __init__(self, seed: bytes, *, server: int, covers: bytes, mechanism: Mechanism) -> None:
        self._prf = Prf(seed, server, covers, b"curve " + mechanism.name.encode())
        self.mechanism = mechanism

    def __repr__(self) -> str:
        return f"<NoiseTree {self.mechanism.name} depth={self.mechanism.depth}>"

    def at(self, positions: ArrayLike) -> Counts:
        """The noise of the counts at these positions, each computed from the root down."""
        t = np.asarray(positions)
        if t.ndim != 1 or (t.size and t.dtype.kind not in "iu"):
            raise InvalidQuery(f"positions must be a list of whole numbers, got shape {t.shape}, dtype {t.dtype}")
        if t.size and not (t.min() >= 0 and t.max() < self.mechanism.positions):
            raise InvalidQuery(f"positions must be 0 to {self.mechanism.positions - 1}")
        return self.mechanism.noise_at(self, t.astype(np.int64))

    def curve(self) -> Counts:
        """The noise at every position."""
        depth = self.mechanism.depth
        if depth > MAX_CURVE_BITS:
            raise InvalidQuery(f"a whole curve has at most 2^{MAX_CURVE_BITS} positions, this one 2^{depth}")
        return self.mechanism.noise_curve(self, depth)

    def split(self, level: int, parents: Counts, nodes: Positions) -> Counts:
        return _splits(self.mechanism.level_weights)[level].draw(parents, self._prf.draws(level, nodes))

    def divide(self, level: int, parents: Counts, nodes: Positions, tables: tuple[Table, Table]) -> Counts:
        return _Divide(*tables).draw(np.broadcast_to(parents, nodes.shape), self._prf.draws(level, nodes))

    def laplace(self, level: int, nodes: Positions) -> Counts:
        return self._laplace.at(level, nodes)

    @cached_property
    def _laplace(self) -> DiscreteLaplace:
        return DiscreteLaplace(self._prf, self.mechanism.level_weights[0])
