"""python -m bench docs: write the parts of docs/ that follow from the code (problems) or from a run (speed)."""

import json
import textwrap
from pathlib import Path
from typing import Any

from campaign.errors import Problem, problems

WIDTH = 120
DOCS = Path(__file__).resolve().parents[1] / "docs"
START, END = "<!-- problems: made by python -m bench docs -->", "<!-- end of problems -->"
SPEED_START, SPEED_END = "<!-- speed: made by python -m bench docs from performance.json -->", "<!-- end of speed -->"


def problem_table(kinds: list[type[Problem]] | None = None) -> str:
    rows = [f"| `{k.code}` | {k.status} | {k.title} |" for k in kinds or problems()]
    return "\n".join(["| code | status | meaning |", "| --- | --- | --- |", *rows])


def speed_table(run: dict[str, Any] | None = None) -> str:
    """What `python -m bench core --json docs/performance.json` measured of the keys, and where."""
    run = run or json.loads((DOCS / "performance.json").read_text())
    load = run["load"][0]
    head = (
        f"`{run['command']}`, commit {run['commit']}, seed {run['seed']}: {run['cpu']}, {run['cores']} cores, "
        f"load {load:.1f} at the end, native kernel with {run['instructions'] or 'nothing'}."
    )
    rows = [
        f"| `{key}` | {'not run' if value is None else f'{value:.3g}'} | {run['goals'].get(key, {}).get('goal', '')} "
        f"| {run['what'][key]} |"
        for key, value in run["results"].items()
        if not key.startswith("slice")
    ]
    return "\n".join([head, "", "| key | value | goal | what |", "| --- | --- | --- | --- |", *rows])


def main(argv: list[str]) -> int:
    del argv
    write_between(DOCS / "protocol.md", START, END, problem_table())
    write_between(DOCS / "performance.md", SPEED_START, SPEED_END, speed_table())
    return 0


def write_between(target: Path, start: str, end: str, text: str) -> None:
    """Replace what stands between two markers of a page."""
    before, rest = target.read_text().split(start)
    after = rest.split(end)[1]
    target.write_text(f"{before}{start}\n{wrapped(text)}\n{end}{after}")
    print(f"wrote {target.name}")


def wrapped(text: str) -> str:
    """Long lines of prose and lists at 120 columns; rows of tables and pictures are one line by their nature."""
    return "\n".join(line if line.startswith(("|", "![")) else _fill(line) for line in text.split("\n"))


def _fill(line: str) -> str:
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
