"""python -m bench index FOLDER: one page with the tables and pictures that the other benchmarks left in a folder."""

import argparse
import json
from html import escape
from pathlib import Path
from typing import Any

from bench import output

_CSS = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } img { max-width: 34rem; margin: .5rem; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid #eee; } .missed { color: #b00; }
code { background: #f4f4f4; padding: 0 .3rem; }
"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench index", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(argv).folder
    target = folder / "index.html"
    target.write_text(page(folder), encoding="utf-8")
    print(f"wrote {target}: open it in a browser")
    return 0


def page(folder: Path) -> str:
    sections = [_results(path) for path in sorted(folder.rglob("*.json"))]
    pictures = "".join(
        f'<img src="{escape(str(path.relative_to(folder)))}" alt="{escape(path.stem)}">'
        for path in sorted(folder.rglob("*.png"))
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Benchmarks</title><style>{_CSS}</style>'
        f"</head><body><h1>Benchmarks</h1>\n<p>{escape(output.cpu_name())}, commit {escape(output.commit())}</p>\n"
        + "\n".join(sections)
        + f"\n<h2>Pictures</h2>\n{pictures}</body></html>\n"
    )


def _results(path: Path) -> str:
    """One benchmark's JSON: its figures with their goals, and the paper's claims if it has some."""
    body: dict[str, Any] = json.loads(path.read_text())
    goals = body.get("goals", {})
    rows = []
    for key, value in body.get("results", {}).items():
        goal = goals.get(key, {})
        met = {True: "ok", False: '<span class="missed">missed</span>'}.get(goal.get("met"), "")
        cells = [f"<code>{escape(key)}</code>", _number(value), escape(goal.get("goal", "")), met]
        rows.append("".join(f"<td>{cell}</td>" for cell in [*cells, escape(goal.get("what", ""))]))
    for claim in body.get("claims", []):
        holds = "holds" if claim["holds"] else '<span class="missed">does not hold</span>'
        rows.append(f"<td>{escape(claim['paper'])}</td><td colspan=3>{holds}</td><td>{escape(claim['measured'])}</td>")
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<h2>{escape(path.stem)}</h2>\n<p><code>{escape(str(body.get('command', '')))}</code>, "
        f"{escape(str(body.get('cpu', '')))}, load {escape(str(body.get('load', '')))}</p>\n<table>{table}</table>"
    )


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else escape(str(value))
