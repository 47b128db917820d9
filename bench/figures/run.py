"""python -m bench figures [NAME ...]: the paper's experiments, with its mechanism and ours in the same pictures."""

import json
from pathlib import Path

from PIL import Image

from bench import docs, output
from bench.figures import hosmer, roc, runtime, synthetic
from bench.figures.figure import Claim, Figure, MissingData, Options, read_csv, write_csv

START, END = "<!-- figures: made by python -m bench figures --docs -->", "<!-- end of figures -->"
FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in [*synthetic.FIGURES, *roc.FIGURES, *hosmer.FIGURES, *runtime.FIGURES]
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
    claims = [claim for name in args.names or FIGURES for claim in _make(FIGURES[name], options)]
    print_claims(claims)
    if args.docs:
        write_docs(args.out, args.runs, args.seed)
    if args.json:
        body = {**output.about(args.seed), "runs": args.runs, "claims": [vars(claim) for claim in claims]}
        Path(args.json).write_text(json.dumps(body, indent=2) + "\n")
        print(f"\nwrote {args.json}")
    return 0


def _make(figure: Figure, options: Options) -> list[Claim]:
    try:
        rows = figure.compute(options)
    except MissingData as missing:
        print(f"{figure.name}: left out. {missing}")
        return []
    write_csv(options.out / f"{figure.name}.csv", rows)
    figure.draw(rows, options)
    print(f"{figure.name}: {options.out / figure.name}.png and .csv")
    return figure.claims(rows)


def write_docs(folder: Path, runs: int, seed: int) -> None:
    """The section of docs/benchmarks.md, from the tables and pictures of a folder."""
    parts, claims = [], []
    for figure in FIGURES.values():
        if (folder / f"{figure.name}.csv").exists():
            claims += figure.claims(read_csv(folder / f"{figure.name}.csv"))
            with Image.open(folder / f"{figure.name}.png") as picture:
                picture.thumbnail((800, 600))
                few = picture.convert("RGB").quantize(
                    64, Image.Quantize.MAXCOVERAGE
                )  # a fraction of the bytes, and looks the same
                few.save(docs.DOCS / "images" / f"{figure.name}.png", optimize=True)
            parts.append(f"![{figure.title}](images/{figure.name}.png)")
    table = [f"| {c.figure} | {c.paper} | {'yes' if c.holds else '**no**'} | {c.measured} |" for c in claims]
    machine = output.about(seed)
    made = f"Made by `{machine['command']}`, {runs} runs, commit {machine['commit']}, seed {seed}, {machine['cpu']}."
    head = ["| figure | the paper says | holds here | measured |", "| --- | --- | --- | --- |"]
    docs.write_between(docs.DOCS / "benchmarks.md", START, END, "\n".join([made, "", *head, *table, "", *parts]))


def print_claims(claims: list[Claim]) -> None:
    print("\nwhat the paper says, and what we measured")
    for claim in claims:
        print(f"  {'holds' if claim.holds else 'DOES NOT HOLD':<14} {claim.figure:<18} {claim.paper}")
        print(f"{'':36}{claim.measured}")
