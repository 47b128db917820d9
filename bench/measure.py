"""Timing on a noisy machine: the best of several runs, and everything that is compared runs in turn."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def _no_gc() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def best_in_turn(what: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of the fastest run of each, the candidates taking turns so that a slow spell hits all of them."""
    best = dict.fromkeys(what, float("inf"))
    with _no_gc():
        for _ in range(rounds):
            for name, run in what.items():
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
    return best
