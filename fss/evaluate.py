"""Evaluating batches of keys: at points, over the whole domain, key by key or summed over all keys.

The functions are the same for both schemes; `dcf` and `dpf` each carry them by name. Shares of the
two parties add up, in Z_p, to the function's value. Keys go to the back end chunk by chunk; a sum over them never needs
an array of keys times points.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from fss import field
from fss.backends import Evaluation, current
from fss.challenge import Weights
from fss.errors import DomainError, KeyMismatchError
from fss.field import Words
from fss.keys import KeyBatch, Scheme
from fss.observe import observed_rows
from fss.plan import Index, Points, check_points, check_whole


def _distinct(points: ArrayLike, keys: KeyBatch) -> tuple[Points, Index]:
    """The distinct points, sorted, and where each given point finds its answer."""
    distinct, back = np.unique(check_points(points, keys.type.bits), return_inverse=True)
    return distinct, np.asarray(back, np.int64)


def _signed(shares: Words, server: int) -> Words:
    """BCG+21 Fig. 3: party 1 contributes the negative of what it collected."""
    return field.neg(shares) if server else shares


def _each(keys: KeyBatch, points: Points | None) -> Words:
    chunk, make = current().evaluation(keys.type, points, len(keys))
    evaluation = make()
    shares = np.empty((1 << keys.type.bits if points is None else points.size, len(keys)), np.uint64)
    for start in range(0, len(keys), chunk):
        part = slice(start, start + chunk)
        evaluation.each(keys[part], shares[:, part])
    return _signed(shares, keys.type.server)


def _sums(keys: KeyBatch, points: Points | None, threads: int) -> Words:
    return _summed(keys, points, threads, lambda evaluation, part: evaluation.add(keys[part]))


def sum_and_observe(keys: KeyBatch, weights: Weights, *, threads: int = 1) -> tuple[Words, Words]:
    """The sum over the whole domain, and what the check of each key needs (`fss/observe.py`), in one pass."""
    check_whole(keys.type)
    seen = np.empty((observed_rows(keys.type), len(keys)), np.uint64)
    sums = _summed(keys, None, threads, lambda e, part: e.observe(keys[part], weights, seen[:, part]))
    return sums, seen


def _summed(keys: KeyBatch, points: Points | None, threads: int, add: Callable[[Evaluation, slice], None]) -> Words:
    if threads < 1:
        raise DomainError(f"threads must be at least 1, got {threads}")
    chunk, make = current().evaluation(keys.type, points, len(keys))
    waiting = deque(range(0, len(keys), chunk))
    workers = max(1, min(threads, len(waiting)))

    def run() -> Words:
        evaluation = make()
        for start in _taken(waiting):
            add(evaluation, slice(start, start + chunk))
        return evaluation.sums()

    if workers == 1:
        return _signed(run(), keys.type.server)
    with ThreadPoolExecutor(workers) as pool:
        try:
            sums = [done.result() for done in [pool.submit(run) for _ in range(workers)]]
        finally:
            waiting.clear()  # after an interruption, threads finish what they are at and no more
    return _signed(field.add_all(sums), keys.type.server)


def _taken(waiting: deque[int]) -> Iterator[int]:
    """One after the other, as long as there is one. Threads share it: one that is slow leaves more to the others."""
    while True:
        try:
            start = waiting.popleft()
        except IndexError:
            return
        yield start


class Evaluator:
    """The evaluations of one scheme; keys of the other one are refused."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def at_points(self, keys: KeyBatch, points: ArrayLike) -> Words:
        """Every key's share at every point: shape (points, keys). Common prefixes of the points are walked once."""
        self._require(keys)
        distinct, back = _distinct(points, keys)
        return _each(keys, distinct)[back]

    def at_point(self, keys: KeyBatch, point: int) -> Words:
        """Every key's share at one point: shape (keys,)."""
        shares: Words = self.at_points(keys, np.array([point]))[0]
        return shares

    def over_domain(self, keys: KeyBatch) -> Words:
        """Every key's share at every point of the domain: shape (2^bits, keys). For few keys or small domains."""
        self._require(keys)
        check_whole(keys.type)
        return _each(keys, None)

    def sum_at_points(self, keys: KeyBatch, points: ArrayLike, *, threads: int = 1) -> Words:
        """The sum over all keys of the shares at each point: shape (points,)."""
        self._require(keys)
        distinct, back = _distinct(points, keys)
        return _sums(keys, distinct, threads)[back]

    def sum_over_domain(self, keys: KeyBatch, *, threads: int = 1) -> Words:
        """The sum over all keys of the shares at each point of the domain: shape (2^bits,)."""
        self._require(keys)
        check_whole(keys.type)
        return _sums(keys, None, threads)

    def _require(self, keys: KeyBatch) -> None:
        if keys.type.scheme is not self._scheme:
            raise KeyMismatchError(f"these are {keys.type.scheme.name} keys, expected {self._scheme.name}")


def cores() -> int:
    """How many threads this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
