"""Evaluating batches of keys: at points, over the whole domain, key by key or summed over all keys.

The functions are the same for both schemes; `dcf` and `dpf` each carry them by name. Shares of the
two parties add up, in Z_p, to the function's value. Sums never hold more than one chunk of keys times one block of
points, so their memory does not grow with keys times points.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fss import field
from fss.errors import DomainError, KeyMismatchError
from fss.field import Words
from fss.keys import KeyBatch, KeyType, Scheme
from fss.plan import Index, Plan, check_points, points_plan, whole_domain
from fss.walk import Sink, Walker

# Rows (nodes x keys) that are expanded together, and in how many nodes. With fewer rows numpy's calls are felt, and
# threads wait for each other between calls; with more the buffers leave the cache.
ROWS = 65536
WIDTH = 32


class _Each(Sink):
    """Keep every key's share: out[point, key]."""

    def __init__(self, shares: Words) -> None:
        self._shares = shares

    def put(self, out: Index, shares: Words) -> None:
        wanted = out >= 0
        self._shares[out[wanted]] = field.canonical(shares[wanted])


class _Sum(Sink):
    """Keep only the sum over the keys: out[point]."""

    def __init__(self, answers: int, rows: int) -> None:
        self._halves = np.zeros((2, answers), np.uint64)
        self._scratch = np.empty(rows, np.uint64)

    def put(self, out: Index, shares: Words) -> None:
        wanted = out >= 0
        # Large temporaries would be mapped and unmapped by every call, and that stops the other threads.
        part = self._scratch[: shares.size].reshape(shares.shape)
        for half, (cut, by) in zip(self._halves, field.HALVES, strict=True):
            half[out[wanted]] += np.add.reduce(cut(shares, by, out=part), axis=-1)[wanted]

    def sums(self) -> Words:
        return field.join(*self._halves)


class PlanMaker(Protocol):
    def __call__(self, type: KeyType, width: int) -> Plan: ...


def _distinct(points: ArrayLike, keys: KeyBatch) -> tuple[PlanMaker, Index]:
    """A plan for the distinct points, and where each given point finds its answer."""
    distinct, back = np.unique(check_points(points, keys.type.bits), return_inverse=True)

    def make(type: KeyType, width: int) -> Plan:
        return points_plan(type, distinct, width)

    return make, np.asarray(back, np.int64)


def _shape(keys: int, answers: int) -> tuple[int, int]:
    """(keys in a chunk, nodes in a block) for this many keys and answers."""
    nodes = min(WIDTH, 1 << (answers - 1).bit_length())
    chunk = max(1, min(keys, ROWS // nodes))
    width = max(nodes, 1 << (ROWS // chunk).bit_length() - 1)
    return chunk, width


def _signed(shares: Words, party: int) -> Words:
    """BCG+21 Fig. 3: party 1 contributes the negative of what it collected."""
    return field.neg(shares) if party else shares


def _each(keys: KeyBatch, make: PlanMaker, answers: int) -> Words:
    chunk, width = _shape(len(keys), answers)
    plan = make(keys.type, width)
    walker = Walker(plan, chunk)
    shares = np.empty((plan.answers, len(keys)), np.uint64)
    for start in range(0, len(keys), chunk):
        part = slice(start, start + chunk)
        walker.walk(keys[part], _Each(shares[:, part]))
    return _signed(shares, keys.type.party)


def _sums(keys: KeyBatch, make: PlanMaker, answers: int, threads: int) -> Words:
    if threads < 1:
        raise DomainError(f"threads must be at least 1, got {threads}")
    chunk, width = _shape(len(keys), answers)
    plan = make(keys.type, width)
    starts = list(range(0, len(keys), chunk))

    def run(mine: list[int]) -> Words:
        walker, sink = Walker(plan, chunk), _Sum(plan.answers, plan.width * chunk * keys.type.leaves)
        for start in mine:
            walker.walk(keys[start : start + chunk], sink)
        return sink.sums()

    workers = max(1, min(threads, len(starts)))
    shares = [starts[i::workers] for i in range(workers)]
    return _signed(field.add_all(_in_threads(run, shares)), keys.type.party)


def _in_threads(run: Callable[[list[int]], Words], shares: list[list[int]]) -> list[Words]:
    if len(shares) == 1:
        return [run(shares[0])]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(run, shares))


class Evaluator:
    """The evaluations of one scheme; keys of the other one are refused."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def at_points(self, keys: KeyBatch, points: ArrayLike) -> Words:
        """Every key's share at every point: shape (points, keys). Common prefixes of the points are walked once."""
        self._require(keys)
        make, back = _distinct(points, keys)
        return _each(keys, make, back.size)[back]

    def at_point(self, keys: KeyBatch, point: int) -> Words:
        """Every key's share at one point: shape (keys,)."""
        shares: Words = self.at_points(keys, np.array([point]))[0]
        return shares

    def over_domain(self, keys: KeyBatch) -> Words:
        """Every key's share at every point of the domain: shape (2^bits, keys). For few keys or small domains."""
        self._require(keys)
        return _each(keys, whole_domain, 1 << keys.type.bits)

    def sum_at_points(self, keys: KeyBatch, points: ArrayLike, *, threads: int = 1) -> Words:
        """The sum over all keys of the shares at each point: shape (points,)."""
        self._require(keys)
        make, back = _distinct(points, keys)
        return _sums(keys, make, back.size, threads)[back]

    def sum_over_domain(self, keys: KeyBatch, *, threads: int = 1) -> Words:
        """The sum over all keys of the shares at each point of the domain: shape (2^bits,)."""
        self._require(keys)
        return _sums(keys, whole_domain, 1 << keys.type.bits, threads)

    def _require(self, keys: KeyBatch) -> None:
        if keys.type.scheme is not self._scheme:
            raise KeyMismatchError(f"these are {keys.type.scheme.name} keys, expected {self._scheme.name}")


def cores() -> int:
    """How many threads this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
