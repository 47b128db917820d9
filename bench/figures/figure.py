"""What a figure is: a computation that gives rows, a drawing of them, and the paper's claims they bear on."""

import csv
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from tqdm import tqdm

from analyst.plots import curves
from fss.evaluate import cores

Row = dict[str, Any]
Line = tuple[list[float], list[float], list[float]]

# One style for each way to make a curve, in all figures.
STYLES: dict[str, dict[str, Any]] = {
    "paper-tree, raw": {"color": "#999999", "linestyle": ":", "marker": "x"},
    "paper-tree, 1-norm": {"color": "#c1551b", "linestyle": "--", "marker": "s"},
    "paper-tree, 2-norm": {"color": "#7a1f1f", "linestyle": "-", "marker": "o"},
    "paper-tree, isotonic": {"color": "#d9a441", "linestyle": "-.", "marker": "d"},
    "slice-tree, raw": {"color": "#7f9fbf", "linestyle": ":", "marker": "+"},
    "slice-tree, 1-norm": {"color": "#3f7d4f", "linestyle": "--", "marker": "^"},
    "slice-tree, 2-norm": {"color": "#1b3a5c", "linestyle": "-", "marker": "v"},
    "slice-tree, isotonic": {"color": "#5b2a86", "linestyle": "-.", "marker": "*"},
}


@dataclass(frozen=True)
class Options:
    """What a run of all figures was asked for."""

    out: Path
    runs: int
    seed: int
    levels: int  # N = 2^levels for synthetic data
    data_dir: Path | None
    workers: int = field(default_factory=cores)


@dataclass(frozen=True)
class Claim:
    """Something the paper says in words, what we measured, and whether it holds here."""

    figure: str
    paper: str
    measured: str
    holds: bool


class MissingData(Exception):
    """A data set that the figure needs is not in the directory."""


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    compute: Callable[[Options], list[Row]]
    draw: Callable[[list[Row], Options], None]
    claims: Callable[[list[Row]], list[Claim]]


def spread(
    job: Callable[..., list[Row]], arguments: Sequence[tuple[Any, ...]], options: Options, what: str
) -> list[Row]:
    """Run a job for all arguments on all cores, with a progress bar; rows in the order of the arguments."""
    if options.workers == 1:
        return [row for args in tqdm(arguments, desc=what) for row in job(*args)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(job, *args) for args in arguments]
        return [row for future in tqdm(futures, desc=what) for row in future.result()]


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    listed = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)


def read_csv(path: Path) -> list[Row]:
    """Rows as `write_csv` wrote them."""

    def value(text: str) -> float | str:
        try:
            return float(text)
        except ValueError:
            return text

    with path.open(newline="") as file:
        return [{name: value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def means(rows: Iterable[Row], x: str, y: str) -> dict[str, Line]:
    """For each method: the values of x, and the mean and the standard error of y at each."""
    groups: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        groups.setdefault(row["method"], {}).setdefault(row[x], []).append(row[y])
    return {
        name: (
            list(at),
            [float(np.mean(values)) for values in at.values()],
            [float(np.std(values) / np.sqrt(len(values))) for values in at.values()],
        )
        for name, at in groups.items()
    }


def draw_lines(axes: Axes, lines: dict[str, Line]) -> None:
    """Means with error bars of one standard error, in the style of their method."""
    for name, (x, y, error) in lines.items():
        axes.errorbar(x, y, error, label=name, markersize=5, capsize=2, linewidth=1.4, **STYLES.get(name, {}))


def save(options: Options, name: str, draw: Callable[[Axes], None], about: str, *, square: bool = False) -> None:
    curves.save(curves.figure(draw, about, square=square), options.out / f"{name}.png")
