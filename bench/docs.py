"""python -m bench docs: write the parts of docs/ that follow from the code (problems) or from runs (figures)."""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fss_ecdf.campaign.errors import Problem, problems

WIDTH = 120
DOCS = Path(__file__).resolve().parents[1] / "docs"
START, END = "<!-- problems: made by python -m bench docs -->", "<!-- end of problems -->"


@dataclass(frozen=True)
class Measured:
    """A table of a page, and the run beside it that it is made of."""

    page: str
    run: str
    left_out: str = "-"  # keys that begin so

    @property
    def start(self) -> str:
        return f"<!-- measured: made by python -m bench docs from {self.run} -->"

    end = "<!-- end of measured -->"

    def table(self) -> str:
        run = json.loads((DOCS / self.run).read_text())
        wanted = {key: value for key, value in run["results"].items() if not key.startswith(self.left_out)}
        return figures_table({**run, "results": wanted})


MEASURED = [
    Measured("performance.md", "performance.json", left_out="slice"),
    Measured("operations.md", "system.json"),
    Measured("scale.md", "scale.json"),
]


def problem_table(kinds: list[type[Problem]] | None = None) -> str:
    rows = [f"| `{k.code}` | {k.status} | {k.title} |" for k in kinds or problems()]
    return "\n".join(["| code | status | meaning |", "| --- | --- | --- |", *rows])


def figures_table(run: dict[str, Any]) -> str:
    """What a benchmark's `--json` wrote: where it ran, and each figure with its goal."""
    kernel = f"native kernel with {run['instructions']}" if run["backend"] == "native" else "without the native kernel"
    head = (
        f"`{run['command']}`, commit {run['commit']}, seed {run['seed']}: {run['cpu']}, {run['cores']} cores, "
        f"load {run['load'][0]:.1f} at the end, {kernel}."
    )
    rows = [
        f"| `{key}` | {'not run' if value is None else f'{value:.3g}'} | {run['goals'].get(key, {}).get('goal', '')} "
        f"| {run['what'][key]} |"
        for key, value in run["results"].items()
    ]
    return "\n".join([head, "", "| key | value | goal | what |", "| --- | --- | --- | --- |", *rows])


def main(argv: list[str]) -> int:
    del argv
    write_between(DOCS / "protocol.md", START, END, problem_table())
    for measured in MEASURED:
        write_between(DOCS / measured.page, measured.start, measured.end, measured.table())
    return 0


def write_between(target: Path, start: str, end: str, text: str) -> None:
    """Replace what stands between two markers of a page."""
    before, rest = target.read_text().split(start)
    after = rest.split(end, 1)[1]
    target.write_text(f"{before}{start}\n{wrapped(text)}\n{end}{after}")
    print(f"wrote {target.name}")


def wrapped(text: str) -> str:
    """Long lines of prose and lists at 120 columns; rows of tables and pictures are one line by their nature."""
    return "\n".join(line if line.startswith(("|", "![")) else _fill(line) for line in text.split("\n"))


def _fill(line: str) -> str:
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
