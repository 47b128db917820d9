"""Which tree nodes an evaluation visits, in which order, and where each answer goes.

A plan depends on the public points only; it is made once and then walked by every chunk of keys. A `Block` is a set of
nodes of one level that are expanded together. Children are laid out left ones first, then right ones, so that all
writes are contiguous; the order that results is undone by `Terminal.out`. When a block has more than `width` children,
they are cut into parts that are walked one after the other, depth first, so that the working set stays in the cache.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss.errors import DomainError, ShapeError
from fss.keys import KeyType

Index = NDArray[np.int64]
Points = NDArray[np.uint64]

MAX_WHOLE_BITS = 26


@dataclass(frozen=True)
class Chosen:
    """Some nodes of a block: their number, and which ones (None: all, in order)."""

    count: int
    rows: Index | None


@dataclass(frozen=True)
class Terminal:
    """Which leaves of a terminal block are wanted from at least one node, and where their answers go.

    `out[i, node]` is the place of the answer of leaf `leaves[i]` of that node, or -1 where it is not wanted.
    """

    leaves: list[int]
    out: Index


class Block(ABC):
    """Nodes of one level that are expanded together."""

    level: int

    @abstractmethod
    def sides(self) -> tuple[Chosen, Chosen]:
        """The nodes whose left, and whose right child is visited."""

    @abstractmethod
    def parts(self) -> Sequence[tuple[slice, "Block"]]:
        """The children, cut into the blocks that follow."""

    @abstractmethod
    def terminal(self) -> Terminal:
        """For a terminal block: its answers."""


@dataclass(frozen=True)
class Plan:
    type: KeyType
    root: Block
    answers: int
    width: int


class _PointBlock(Block):
    """Nodes above a set of sorted, distinct points. Built once; its children are kept."""

    def __init__(self, type: KeyType, points: Points, width: int, level: int, prefixes: Points) -> None:
        self.level = level
        if level == type.depth:
            self._terminal = _terminal(type, points, prefixes)
            return
        children = [(prefixes << np.uint64(1)) | np.uint64(side) for side in (0, 1)]
        wanted = [_present(points >> np.uint64(type.bits - level - 1), child) for child in children]
        self._sides = _chosen(wanted[0]), _chosen(wanted[1])
        below = np.concatenate([child[there] for child, there in zip(children, wanted, strict=True)])
        self._parts = [
            (part, _PointBlock(type, points, width, level + 1, below[part])) for part in _cuts(below.size, width)
        ]

    def sides(self) -> tuple[Chosen, Chosen]:
        return self._sides

    def parts(self) -> Sequence[tuple[slice, Block]]:
        return self._parts

    def terminal(self) -> Terminal:
        return self._terminal


def _terminal(type: KeyType, points: Points, prefixes: Points) -> Terminal:
    at = (prefixes << np.uint64(type.leaf_bits)) | np.arange(type.leaves, dtype=np.uint64)[:, np.newaxis]
    out = np.where(_present(points, at), np.searchsorted(points, at), -1)
    leaves = np.flatnonzero((out >= 0).any(axis=1))
    return Terminal(leaves.tolist(), out[leaves])


def _present(sorted_values: Points, wanted: Points) -> NDArray[np.bool_]:
    at = np.searchsorted(sorted_values, wanted)
    return np.asarray(sorted_values[np.minimum(at, sorted_values.size - 1)] == wanted)


def _chosen(mask: NDArray[np.bool_]) -> Chosen:
    rows = np.flatnonzero(mask)
    return Chosen(rows.size, None if rows.size == mask.size else rows)


def _cuts(count: int, width: int) -> list[slice]:
    parts = -(-count // width)
    size = -(-count // parts)
    return [slice(a, min(a + size, count)) for a in range(0, count, size)]


class _WholeBlock(Block):
    """Nodes of a complete tree: all children are visited. Made on the way, since it follows from two numbers.

    The first log2(width) levels grow one block; below, each block is `width` nodes whose prefixes have the same
    ending, so the leaves of a terminal block lie at `first` + ending * leaves.
    """

    def __init__(self, type: KeyType, top: int, first: Index, level: int = 0, ending: int = 0) -> None:
        self.level = level
        self._type, self._top, self._first, self._ending = type, top, first, ending
        self._nodes = 1 << min(level, top)

    def sides(self) -> tuple[Chosen, Chosen]:
        both = Chosen(self._nodes, None)
        return both, both

    def parts(self) -> Sequence[tuple[slice, Block]]:
        if self.level < self._top:
            return [(slice(0, 2 * self._nodes), self._below(0))]
        cut = self._nodes
        return [
            (slice(0, cut), self._below(2 * self._ending)),
            (slice(cut, 2 * cut), self._below(2 * self._ending + 1)),
        ]

    def _below(self, ending: int) -> "_WholeBlock":
        return _WholeBlock(self._type, self._top, self._first, self.level + 1, ending)

    def terminal(self) -> Terminal:
        leaves = self._type.leaves
        ending = np.arange(leaves)[:, np.newaxis] + self._ending * leaves
        return Terminal(list(range(leaves)), self._first + ending)


def whole_domain(type: KeyType, width: int) -> Plan:
    """Every point of the domain; `width` must be a power of two."""
    top = min(width.bit_length() - 1, type.depth)
    first = np.zeros(1, np.int64)
    for level in range(top):
        first = np.concatenate([first, first + (1 << (type.bits - level - 1))])
    # `first` was built with the root's choice varying fastest, as left-then-right layouts do: no reordering needed.
    return Plan(type, _WholeBlock(type, top, first), 1 << type.bits, 1 << top)


def points_plan(type: KeyType, points: Points, width: int) -> Plan:
    """Sorted, distinct points."""
    root = _PointBlock(type, points, width, 0, np.zeros(1, np.uint64))
    return Plan(type, root, points.size, width)


def check_whole(type: KeyType) -> None:
    if type.bits > MAX_WHOLE_BITS:
        raise DomainError(
            f"a whole domain has at most {MAX_WHOLE_BITS} bits (512 MiB of answers), these keys have {type.bits}; "
            "evaluate at points instead"
        )


def check_points(points: object, bits: int) -> Points:
    """The points as a uint64 array, or an error that names the first bad one."""
    array = np.asarray(points)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise ShapeError(f"points must be a non-empty 1-d integer array, got shape {array.shape}, dtype {array.dtype}")
    bad = np.flatnonzero((array < 0) | (array > (1 << bits) - 1))
    if bad.size:
        raise DomainError(f"point {int(array[bad[0]])} (number {bad[0]}) is outside the domain 0 to {(1 << bits) - 1}")
    return array.astype(np.uint64)
