"""python -m bench docs: write the parts of docs/ that follow from the code (the table of problems)."""

from pathlib import Path

from campaign.errors import Problem, problems

TARGET = Path(__file__).resolve().parents[1] / "docs" / "protocol.md"
START, END = "<!-- problems: made by python -m bench docs -->", "<!-- end of problems -->"


def problem_table(kinds: list[type[Problem]] | None = None) -> str:
    rows = [f"| `{k.code}` | {k.status} | {k.title} |" for k in kinds or problems()]
    return "\n".join(["| code | status | meaning |", "| --- | --- | --- |", *rows])


def main(argv: list[str]) -> int:
    del argv
    write_between(TARGET, START, END, problem_table())
    return 0


def write_between(target: Path, start: str, end: str, made: str) -> None:
    """Replace what stands between two markers of a page."""
    before, rest = target.read_text().split(start)
    after = rest.split(end)[1]
    target.write_text(f"{before}{start}\n{made}\n{end}{after}")
    print(f"wrote {target.name}")
