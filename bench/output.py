"""What every benchmark prints and writes: a table, and JSON that names the machine, commit, seed and command."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fss import backend


@dataclass(frozen=True)
class Result:
    """One figure (None: not run), what it is, and the goal it is held against."""

    key: str
    value: float | None
    what: str
    goal: str = ""
    met: bool | None = None

    @staticmethod
    def at_most(key: str, value: float | None, limit: float, what: str) -> "Result":
        return Result(key, value, what, f"<= {limit:g}", None if value is None else value <= limit)

    @staticmethod
    def at_least(key: str, value: float | None, limit: float, what: str) -> "Result":
        return Result(key, value, what, f">= {limit:g}", None if value is None else value >= limit)


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    here = Path(__file__).resolve().parent
    run = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True)
    return run.stdout.strip() or "unknown"


def _instructions() -> str | None:
    """What the native kernel uses of this processor, where it is installed."""
    try:
        from fss import _native
    except ImportError:
        return None
    return _native.sets()[0]


def about(seed: int) -> dict[str, object]:
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "backend": backend(),
        "instructions": _instructions(),
        "commit": commit(),
        "seed": seed,
        "command": " ".join(["python -m bench", *sys.argv[1:]]),
    }


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    arguments = argparse.ArgumentParser(prog=f"python -m bench {name}", description=description)
    arguments.add_argument("--json", metavar="FILE", help="also write the results there")
    arguments.add_argument("--seed", type=int, default=1)
    return arguments


def print_machine(seed: int) -> None:
    machine = about(seed)
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, commit {machine['commit']}\n")


def print_table(results: Sequence[Result]) -> None:
    print(f"{'key':<26} {'value':>10} {'goal':>9}        what")
    for r in results:
        value = "not run" if r.value is None else f"{r.value:.3g}"
        met = {None: "", True: "ok", False: "MISSED"}[r.met]
        print(f"{r.key:<26} {value:>10} {r.goal:>9} {met:<6} {r.what}")


def write_json(path: str | None, results: Sequence[Result], seed: int, **more: object) -> None:
    if path is None:
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    body = {
        **about(seed),
        "results": {r.key: r.value for r in results},
        "goals": {r.key: {"goal": r.goal, "met": r.met, "what": r.what} for r in results if r.goal},
        "what": {r.key: r.what for r in results},
        **more,
    }
    target.write_text(json.dumps(body, indent=2) + "\n")
    print(f"\nwrote {target}")
