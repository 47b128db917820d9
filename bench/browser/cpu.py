"""Processor time of programs and all that they started, by thread, as Linux counts it: load changes it little."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC, _TICKS = Path("/proc"), os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Seconds: of all threads together, and of the one that worked most."""

    all: float
    busiest: float


class Watched:
    """From the moment on that it is made."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = set(roots)
        self._before = self._times()

    def spent(self) -> Spent:
        grown = [seconds - self._before.get(thread, 0.0) for thread, seconds in self._times().items()]
        return Spent(sum(grown), max(grown, default=0.0))

    def _times(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for pid in self._processes():
            for stat in (_PROC / str(pid) / "task").glob("*/stat"):
                fields = _fields(stat)
                if fields:
                    found[str(stat)] = (int(fields[11]) + int(fields[12])) / _TICKS
        return found

    def _processes(self) -> set[int]:
        parents = {int(stat.parent.name): _fields(stat) for stat in _PROC.glob("[0-9]*/stat")}
        found, new = set[int](), set(self._roots)
        while new:
            found |= new
            new = {pid for pid, fields in parents.items() if fields and int(fields[1]) in new} - found
        return found


def _fields(stat: Path) -> list[str]:
    """What stands behind the name, which may hold anything; nothing of what has ended meanwhile."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []
