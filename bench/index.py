"""python -m bench index FOLDER: one page with the tables and pictures that the other benchmarks left in a folder."""

import argparse
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from bench import output


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench index", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(argv).folder
    target = folder / "index.html"
    target.write_text(page(folder), encoding="utf-8")
    print(f"wrote {target}: open it in a browser")
    return 0


def page(folder: Path) -> str:
    pages = Environment(loader=PackageLoader("bench", ""), autoescape=True)
    pages.filters["number"] = _number
    return pages.get_template("index.html").render(
        cpu=output.cpu_name(),
        commit=output.commit(),
        runs=[(path.stem, _run(path)) for path in sorted(folder.rglob("*.json"))],
        pictures=[(str(path.relative_to(folder)), path.stem) for path in sorted(folder.rglob("*.png"))],
    )


def _run(path: Path) -> dict[str, Any]:
    """One benchmark's figures with their goals, and the paper's claims if it has some."""
    return {"results": {}, "command": "", "cpu": "", "load": "", **json.loads(path.read_text())}


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else str(value)
