"""Timing on a noisy machine: the best of several runs, and everything that is compared runs in turn.

Memory of another process, too.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


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


def status_mb(pid: int, field: str) -> float:
    """A field of /proc/PID/status that is an amount of memory, in millions of bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise LookupError(field)


def reset_peak(pid: int) -> None:
    """From now on VmHWM is the most since now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
