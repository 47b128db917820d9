"""Threads share one queue of chunks: a slow one holds nobody up, and one that fails stops the others."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

from fss import dcf, evaluate, field
from fss.field import Words
from fss.keys import KeyBatch
from tests.fss.helpers import make

CHUNKS = 10


class Counting:
    """Counts keys. The first chunk of all waits until every other one is done, or fails."""

    def __init__(self, shared: "Shared") -> None:
        self._shared, self._sum = shared, 0

    def add(self, keys: KeyBatch) -> None:
        number = self._shared.next()
        if number == 0:
            self._shared.first()
        else:
            self._shared.others.release()
        self._sum += len(keys)

    def sums(self) -> Words:
        return np.array([self._sum], np.uint64)


class Shared:
    name = "counting"

    def __init__(self, first: Callable[["Shared"], None]) -> None:
        self._first, self._lock, self.taken = first, threading.Lock(), 0
        self.others = threading.Semaphore(0)

    def first(self) -> None:
        self._first(self)

    def next(self) -> int:
        with self._lock:
            self.taken += 1
            return self.taken - 1

    def evaluation(self, *_: object) -> tuple[int, Callable[[], Counting]]:
        return 3, lambda: Counting(self)


def wait_for_all_others(shared: Shared) -> None:
    for _ in range(CHUNKS - 1):
        assert shared.others.acquire(timeout=60), "the other thread left chunks to this one"


def fail_after_one(shared: Shared) -> None:
    assert shared.others.acquire(timeout=60)
    raise IndexError("as a bad key would")


def test_a_slow_thread_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(wait_for_all_others)
    monkeypatch.setattr(evaluate, "current", lambda: shared)
    keys = make(dcf, np.zeros(3 * CHUNKS - 1, np.int64), 5)[0]
    assert dcf.sum_at_points(keys, [0], threads=2).tolist() == [3 * CHUNKS - 1]
    assert shared.taken == CHUNKS


def test_an_error_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that looks like the end of the queue."""
    shared = Shared(fail_after_one)
    monkeypatch.setattr(evaluate, "current", lambda: shared)
    with pytest.raises(IndexError, match="as a bad key would"):
        dcf.sum_at_points(make(dcf, np.zeros(3 * CHUNKS, np.int64), 5)[0], [0], threads=2)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_the_sum_does_not_depend_on_the_threads(n: int, threads: int) -> None:
    keys = make(dcf, np.arange(n) % 256, 8)[1]
    assert np.array_equal(dcf.sum_over_domain(keys, threads=threads), field.total(dcf.over_domain(keys)))
