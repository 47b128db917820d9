"""What is noted while servers are under load: calls with their latency, and what a process holds."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Calls:
    """Every call: when, how long, with which outcome (0: none). Filled by many threads."""

    _rows: dict[str, list[tuple[float, float, int]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, at: float, seconds: float, status: int) -> None:
        with self._lock:
            self._rows.setdefault(kind, []).append((at, seconds, status))

    @property
    def kinds(self) -> list[str]:
        return sorted(self._rows)

    def rows(self, kind: str, between: tuple[float, float] = (0, float("inf"))) -> list[tuple[float, float, int]]:
        return [row for row in self._rows.get(kind, []) if between[0] <= row[0] < between[1]]

    def statuses(self, kind: str, between: tuple[float, float] = (0, float("inf"))) -> list[int]:
        return [status for _, _, status in self.rows(kind, between)]

    def percentile(self, kind: str, percent: float, between: tuple[float, float]) -> float:
        """Of the seconds that successful calls took."""
        taken = [seconds for _, seconds, status in self.rows(kind, between) if status == 200]
        return float(np.percentile(taken, percent)) if taken else float("nan")

    def rate(self, kind: str, seconds: float) -> float:
        return sum(status == 200 for status in self.statuses(kind)) / seconds


@dataclass(frozen=True)
class Sample:
    """What a server holds at one moment."""

    at: float
    memory_mb: float
    files: int
    threads: int
    disk_mb: float


def sample(at: float, pid: int, data: Path) -> Sample:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    sizes = []
    for path in data.rglob("*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # replaced or deleted meanwhile
            continue
    files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    memory = int(status["RssAnon"].split()[0]) / 1024
    return Sample(at, memory, files, int(status["Threads"]), sum(sizes) / 2**20)
