"""A server for tests: it ends like a power cut at a named point, and its clock is wrong by what a file says.

What it does is in `hooks.json` beside its settings, written by `tests.harness.server_pair.Pair.configure`.
"""

import argparse
import json
import os
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from servers.run import now, run
from servers.settings import load

HOOKS = ("crash_at", "clock_file")


def file_for(config: Path) -> Path:
    return config.with_name("hooks.json")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.hooked", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    config = parser.parse_args(argv).config
    hooks = json.loads(file_for(config).read_text())

    def clock() -> datetime:
        wrong = hooks.get("clock_file")
        return now() + timedelta(seconds=float((config.parent / wrong).read_text()) if wrong else 0.0)

    def crash(point: str) -> None:
        if hooks.get("crash_at") == point:
            os._exit(137)

    run(partial(load, config), clock, crash)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
