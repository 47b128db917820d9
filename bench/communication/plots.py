"""The plots of `python -m bench communication`. They differ in line and marker, not only in colour."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bench.communication import onehot, pointwise
from bench.communication.findings import Found, Key
from bench.communication.model import Row
from bench.communication.tables import LINES, size
from bench.communication.traffic import OURS

STYLES: dict[Key, dict[str, object]] = {
    (OURS, True): {"color": "#0b3c5d", "linestyle": "-", "marker": "o", "linewidth": 2.2},
    (pointwise.NAME, True): {"color": "#d1495b", "linestyle": "--", "marker": "s"},
    (pointwise.NAME, False): {"color": "#8f2d56", "linestyle": "-.", "marker": "^"},
    (onehot.NAME, True): {"color": "#6c9a3b", "linestyle": ":", "marker": "D"},
}
SHADES = ("#0b3c5d", "#328cc1", "#8fb8d8", "#d9d9d9", "#f2a65a", "#d1495b", "#c9a227")
HATCHES = ("", "//", "..", "", "\\\\", "xx", "xx")


def draw(measured: Found, folder: Path) -> list[tuple[Path, str]]:
    """Write all plots; returns the files and what they show."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = measured.plan
    figures = [
        (_by_queries(measured), "queries", f"Bytes of one party against the number of questions, n = {plan.n}"),
        (_by_grid(measured), "grid", "Bytes of one party against the size of the grid"),
        (_parts(measured), "parts", "Where the bytes of one party go with our protocol"),
    ]
    files = []
    for figure, name, caption in figures:
        path = folder / f"communication-{name}.png"
        figure.savefig(path, dpi=120)
        files.append((path, caption))
    print(f"wrote {', '.join(str(path) for path, _ in files)}")
    return files


def _figure(height: float = 4.2) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _bytes_on_y(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value).replace(".0", "")))
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_ylabel("TCP payload of one party, both servers")


def _line(axes: Axes, rows: list[Row], x: list[int], style: dict[str, object], label: str) -> None:
    """Measured points are full, extrapolated ones hollow."""
    y = [row.party for row in rows]
    line = {key: value for key, value in style.items() if key != "marker"}
    axes.plot(x, y, **line, zorder=2)  # type: ignore[arg-type]
    for measured in (True, False):
        points = [(a, b) for a, b, row in zip(x, y, rows, strict=True) if row.measured == measured]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                linestyle="none",
                marker=str(style["marker"]),
                color=str(style["color"]),
                markerfacecolor=str(style["color"]) if measured else "white",
                markersize=6,
                zorder=3,
            )
    axes.plot([], [], **style, label=label)  # type: ignore[arg-type]


def _legend(axes: Axes) -> None:
    axes.plot([], [], "o", color="#555555", markerfacecolor="white", label="hollow: extrapolated")
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _by_queries(measured: Found) -> Figure:
    figure, axes = _figure()
    for line, label in LINES.items():
        rows = measured.along_queries(line)
        _line(axes, rows, [row.queries for row in rows], STYLES[line], label)
    for alive, right in ((False, 0.4), (True, 1.7)):
        at = measured.crossover(alive)
        if at is not None:
            _mark(axes, at, measured.ours(at), right, "kept alive" if alive else "new connections")
    floor = measured.parts["key"] + measured.parts["proof"]
    axes.axhline(floor, color="#777777", linestyle=":", linewidth=1.2)
    axes.annotate(
        f"keys and proofs alone: {floor / 1000:.2f} kB",
        (0.99, floor),
        (0, 4),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
        color="#555555",
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    _bytes_on_y(axes)
    axes.set_ylim(bottom=1.2e2)  # room for what is said below the lines
    axes.set_xlabel("questions |B|")
    axes.set_title(
        f"One party, TLS and HTTP included (n = {measured.plan.n}, N = {_power(measured.plan.bits)})", fontsize=10
    )
    _legend(axes)
    return figure


def _mark(axes: Axes, at: int, height: float, right: float, which: str) -> None:
    """The crossover, with a note below it."""
    axes.plot([at], [height], marker="*", markersize=13, color="black", zorder=4)
    line = {"arrowstyle": "-", "color": "#555555"}
    note = f"ours is cheaper from\n{at} questions on\n({which})"
    axes.annotate(note, (at, height), (at * right, height / 40), fontsize=8.5, arrowprops=line)


def _power(bits: int) -> str:
    return f"$2^{{{bits}}}$"


def _by_grid(measured: Found) -> Figure:
    figure, axes = _figure()
    for line, label in LINES.items():
        rows = measured.along_grids(line)
        _line(axes, rows, [1 << row.bits for row in rows], STYLES[line], label)
    axes.set_xscale("log", base=2)
    every = [row.bits for row in measured.along_grids((OURS, True))]
    axes.set_xticks([1 << bits for bits in every], [_power(bits) for bits in every])
    _bytes_on_y(axes)
    axes.set_xlabel("positions of the grid N")
    axes.set_title(
        f"One party, TLS and HTTP included (n = {measured.plan.grid_n}, {measured.plan.grid_queries} questions)",
        fontsize=10,
    )
    _legend(axes)
    return figure


def _parts(measured: Found) -> Figure:
    figure, axes = _figure(2.7)
    left, whole = 0.0, sum(measured.parts.values())
    for (name, value), shade, hatch in zip(measured.parts.items(), SHADES, HATCHES, strict=True):
        label = f"{name}: {value:,.0f} B ({value / whole:.0%})"
        axes.barh([0], [value], left=left, color=shade, hatch=hatch, edgecolor="white", label=label, height=0.5)
        left += value
    axes.set_yticks([])
    axes.spines[["left"]].set_visible(False)
    axes.set_xlim(0, whole)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("TCP payload of one party in bytes, both servers, once and for all")
    axes.set_title(f"Where our bytes go (N = {_power(measured.plan.bits)})", fontsize=10)
    figure.legend(frameon=False, fontsize=9, ncols=2, loc="outside lower center")
    return figure
