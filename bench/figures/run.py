"""python -m bench figures [NAME ...]: the paper's experiments, with its mechanism and ours in the same pictures."""

import json
from pathlib import Path

from PIL import Image

from bench import docs, output
from bench.figures import estimators, hosmer, roc, runtime, synthetic, waves
from bench.figures.figure import Claim, Figure, MissingData, Options, read_csv, write_csv

START, END = "<!-- figures: made by python -m bench figures --docs -->", "<!-- end of figures -->"
CELL = 300  # characters
FIGURES: dict[str, Figure] = {
    figure.name: figure for room in (synthetic, estimators, waves, roc, hosmer, runtime) for figure in room.FIGURES
}


def main(argv: list[str]) -> int:
    parser = output.parser("figures", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FIGURES)}; default: all")
    parser.add_argument("--data-dir", type=Path, help="where the paper's data sets are (docs/benchmarks.md)")
    parser.add_argument("--out", type=Path, default=Path("bench-results/figures"), help="for PNG and CSV files")
    parser.add_argument("--runs", type=int, default=100, help="repetitions with fresh noise")
    parser.add_argument("--levels", type=int, default=15, help="N = 2^levels for synthetic data")
    parser.add_argument("--docs", action="store_true", help="write all figures of --out into docs/benchmarks.md")
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in FIGURES]
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    output.print_machine(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    options = Options(args.out, args.runs, args.seed, args.levels, args.data_dir)
    maker = _made_by(options)
    claims = [claim for name in args.names or FIGURES for claim in _make(FIGURES[name], options, maker)]
    print_claims(claims)
    if args.docs:
        write_docs(args.out)
    if args.json:
        body = {**output.about(args.seed), "runs": args.runs, "claims": [vars(claim) for claim in claims]}
        Path(args.json).write_text(json.dumps(body, indent=2) + "\n")
        print(f"\nwrote {args.json}")
    return 0


def _made_by(options: Options) -> str:
    """What made a figure, without the name of the folder that the data are in."""
    machine = output.about(options.seed)
    command = str(machine["command"]).replace(str(options.data_dir), "DATA")
    return f"`{command}`, commit {machine['commit']}, seed {options.seed}, {machine['cpu']}"


def _make(figure: Figure, options: Options, maker: str) -> list[Claim]:
    try:
        rows = figure.compute(options)
    except MissingData as missing:
        print(f"{figure.name}: left out. {missing}")
        return []
    write_csv(options.out / f"{figure.name}.csv", rows)
    (options.out / f"{figure.name}.txt").write_text(maker)
    figure.draw(rows, options)
    print(f"{figure.name}: {options.out / figure.name}.png and .csv")
    return figure.claims(rows)


def write_docs(folder: Path) -> None:
    """The section of docs/benchmarks.md, from the tables and pictures of a folder; other figures stay as they are."""
    page = docs.DOCS / "benchmarks.md"
    text = page.read_text().split(START)[1].split(END)[0]
    rows, makers = [], {}
    for figure in FIGURES.values():
        if not (folder / f"{figure.name}.csv").exists():
            rows += [line for line in text.splitlines() if line.startswith(f"| {figure.name} |")]
            makers[figure.name] = _maker_in(text, figure.name)
            continue
        claims = figure.claims(read_csv(folder / f"{figure.name}.csv"))
        rows += [row for claim in claims for row in _rows(claim)]
        makers[figure.name] = (folder / f"{figure.name}.txt").read_text()
        _small_picture(folder / f"{figure.name}.png", docs.DOCS / "images" / f"{figure.name}.png")
    head = ["| figure | the paper says | holds here | measured |", "| --- | --- | --- | --- |"]
    lines = [f"- {', '.join(n for n in makers if makers[n] == m)}: {m}" for m in dict.fromkeys(makers.values()) if m]
    parts = [f"![{f.title}](images/{f.name}.png)" for f in FIGURES.values() if makers[f.name]]
    docs.write_between(page, START, END, "\n".join(["Made by", "", *lines, "", *head, *rows, "", *parts]))


def _rows(claim: Claim) -> list[str]:
    """Of a table; what was measured in as many as keep its cells short."""
    cells = [""]
    for part in claim.measured.split("; "):
        more = f"{cells[-1]}; {part}" if cells[-1] else part
        cells[-1:] = [more] if len(more) < CELL else [f"{cells[-1]};", part]
    first = f"| {claim.figure} | {claim.paper} | {'yes' if claim.holds else '**no**'} | {cells[0]} |"
    return [first, *(f"| {claim.figure} | | | {cell} |" for cell in cells[1:])]


def _maker_in(text: str, name: str) -> str:
    """What the page says that a figure was made by; nothing if it is not there."""
    for line in text.replace("\n  ", " ").splitlines():
        names, _, maker = line.removeprefix("- ").partition(": ")
        if line.startswith("- ") and name in names.split(", "):
            return maker
    return ""


def _small_picture(source: Path, target: Path) -> None:
    with Image.open(source) as picture:
        picture.thumbnail((800, 600))
        # a fraction of the bytes, and looks the same
        picture.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)


def print_claims(claims: list[Claim]) -> None:
    print("\nwhat the paper says, and what we measured")
    for claim in claims:
        print(f"  {'holds' if claim.holds else 'DOES NOT HOLD':<14} {claim.figure:<18} {claim.paper}")
        print(f"{'':36}{claim.measured}")
