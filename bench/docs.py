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
    text = TARGET.read_text()
    before, rest = text.split(START)
    after = rest.split(END)[1]
    TARGET.write_text(f"{before}{START}\n{problem_table()}\n{END}{after}")
    print(f"wrote {TARGET.name}")
    return 0
