"""How long Eq. 2 takes against the size of the grid: cvxopt, as the paper uses, and ours."""

import time

from matplotlib.axes import Axes
from tqdm import tqdm

from analyst.estimation import smooth
from bench.figures.figure import Claim, Figure, Options, Row, means, save
from bench.figures.synthetic import published

RUNS = 3


METHODS: dict[str, smooth.Solver] = {"cvxopt": "cvxopt", "Clarabel": "clarabel"}


def _compute(options: Options) -> list[Row]:
    """One at a time: what is timed shares the machine with nothing else of ours."""
    rows: list[Row] = []
    for levels in tqdm(range(8, options.levels + 1), desc="runtime"):
        truth, raw = published("paper-tree", levels, 1.0, 3.0, options.seed)
        for run in range(min(RUNS, options.runs)):
            for method, solver in METHODS.items():
                for norm in (1, 2):
                    start = time.perf_counter()
                    smooth.tree(raw, truth[-1], norm=norm, mechanism="paper-tree", solver=solver)
                    took = time.perf_counter() - start
                    rows.append({"method": f"{method}, {norm}-norm", "N": 1 << levels, "run": run, "seconds": took})
            start = time.perf_counter()
            smooth.isotonic(raw, truth[-1])
            rows.append({"method": "isotonic", "N": 1 << levels, "run": run, "seconds": time.perf_counter() - start})
    return rows


def _draw(rows: list[Row], options: Options) -> None:
    styles = {
        "cvxopt, 1-norm": ("#c1551b", "--", "s"),
        "cvxopt, 2-norm": ("#7a1f1f", "-", "o"),
        "Clarabel, 1-norm": ("#3f7d4f", "--", "^"),
        "Clarabel, 2-norm": ("#1b3a5c", "-", "v"),
        "isotonic": ("#777777", ":", "d"),
    }

    def draw(axes: Axes) -> None:
        for name, (x, y, _) in means(rows, "N", "seconds").items():
            colour, line, marker = styles[name]
            axes.plot(x, y, label=name, color=colour, linestyle=line, marker=marker, markersize=5)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("N")
        axes.set_ylabel("seconds")
        axes.legend()
        axes.set_title("Time to smooth a curve (Eq. 2, same sparse constraints)")

    save(options, "runtime", draw, "paper-tree, epsilon = 1, lambda = 3, one core")


def _claims(rows: list[Row]) -> list[Claim]:
    last = max(row["N"] for row in rows)
    seconds = {name: dict(zip(x, y, strict=True))[last] for name, (x, y, _) in means(rows, "N", "seconds").items()}
    one, two = seconds["cvxopt, 1-norm"], seconds["cvxopt, 2-norm"]
    measured = f"cvxopt at N = {last:.0f}: 2-norm {two:.2f} s, 1-norm {one:.2f} s; Clarabel: "
    measured += f"{seconds['Clarabel, 2-norm']:.2f} and {seconds['Clarabel, 1-norm']:.2f} s"
    return [Claim("runtime", "the quadratic program is solved more quickly than the linear one", measured, two < one)]


FIGURES = [Figure("runtime", "time to smooth against N", _compute, _draw, _claims)]
