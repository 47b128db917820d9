"""Pictures of results. What is drawn was computed elsewhere; every picture says n and epsilon, and reads in grey.

>>> from analyst import plots
>>> plots.save(plots.ecdf(curve), "curve.png")  # doctest: +SKIP
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analyst.estimation.estimate import Estimates, Interval
from analyst.statistics.curve import Curve
from analyst.statistics.distribution import Lorenz
from analyst.statistics.histogram import Histogram
from analyst.statistics.quantile import Quantiles
from fss_ecdf.campaign.campaign import Campaign

Floats = NDArray[np.float64]

# Dark to light, with a dash pattern each: apart on a grey print and for colour-blind eyes, too (Okabe and Ito).
INKS: Sequence[tuple[str, Any]] = (("#00466e", "-"), ("#c14a00", "--"), ("#00805f", "-."), ("#a0447c", ":"))
BAND_ALPHA = 0.22
MOST_POINTS = 4000
MARGINS = {"left": 0.1, "right": 0.98, "top": 0.93, "bottom": 0.17}
SQUARE_MARGINS = {"left": 0.13, "right": 0.97, "top": 0.94, "bottom": 0.13}

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "fss-ecdf",
    "svg.fonttype": "path",
}


def figure(
    draw: Callable[[Axes], None],
    about: str,
    *,
    square: bool = False,
    names: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """One picture with one pair of axes and a line below it that says what it shows; or into axes that are given.

    `names` says that there are people's own words beside the axes, for which room has to be found: twice the time.
    """
    with mpl.rc_context(STYLE):
        if ax is None:
            result = Figure(figsize=(5.4, 5.4) if square else (7.2, 4.4), layout="constrained" if names else None)
            axes = result.add_subplot()
            if not names:
                result.subplots_adjust(**(SQUARE_MARGINS if square else MARGINS))
            result.supxlabel(about, fontsize=8, color="#555555")
        else:
            axes = ax
        draw(axes)
        if square:
            axes.set_aspect("equal")
            axes.set_xlim(-0.02, 1.02)
            axes.set_ylim(-0.02, 1.02)
    drawing = axes.get_figure(root=True)
    assert isinstance(drawing, Figure)
    return drawing


def save(result: Figure, path: str | Path) -> None:
    """As PNG, SVG or PDF, by the name's ending."""
    with mpl.rc_context(STYLE):
        result.savefig(path, dpi=150)


def as_svg(result: Figure) -> str:
    """The picture as SVG text, to be put into a page."""
    out = io.StringIO()
    with mpl.rc_context(STYLE):
        result.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def ecdf(
    *curves: Curve,
    quantiles: Quantiles | None = None,
    confidence: float = 0.95,
    interval: Interval = "population",
    ax: Axes | None = None,
) -> Figure:
    """One or more strata with their simultaneous bands, and quantiles with intervals of the first."""

    def draw(axes: Axes) -> None:
        for curve, (colour, dashes) in zip(curves, inks(len(curves)), strict=True):
            x, keep = axis(axes, curve), spread(curve.counts.size)
            lower, upper = curve.band(confidence, interval=interval)
            axes.fill_between(
                x[keep], lower[keep], upper[keep], color=colour, alpha=BAND_ALPHA, linewidth=0, step="post"
            )
            name = literal(curve.stratum) if len(curves) > 1 else "F"
            axes.step(x[keep], curve.fractions[keep], color=colour, linestyle=dashes, where="post", label=name)
        axes.fill_between([], [], color="#777777", alpha=BAND_ALPHA, label=f"{confidence:.0%} band ({interval})")
        if quantiles is not None:
            _draw_quantiles(axes, curves[0], quantiles, interval)
        axes.set_ylabel("fraction at or below")
        axes.set_xlabel(x_label(curves[0].campaign))
        axes.set_ylim(-0.02, 1.02)
        axes.legend(loc="lower right")
        title = curves[0].campaign.title
        if len(curves) == 1 and len(curves[0].campaign.strata) > 1:
            title = f"{title}: {curves[0].stratum}"
        axes.set_title(literal(title))

    return figure(draw, about_line(curves[0].n, curves[0].epsilon, curves[0].smoothing, interval), ax=ax)


def histogram(result: Histogram, title: str = "", interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Bars of shares with intervals."""

    def draw(axes: Axes) -> None:
        x, (low, high) = np.arange(result.counts.size), result.ranges[interval]
        axes.bar(x, result.fractions, width=0.92, color="#9db4cc", edgecolor=INKS[0][0], linewidth=0.6)
        arms = [result.fractions - low, high - result.fractions]
        axes.errorbar(x, result.fractions, arms, fmt="none", ecolor="#222222", elinewidth=0.9, capsize=2)
        shown = x[:: max(1, -(-x.size // 12))]
        axes.set_xticks(shown, [_tick(result.up_to[i]) for i in shown], fontsize=9 if shown.size <= 8 else 8)
        axes.set_xlabel(literal(f"{result.description['value']}: up to the number below its bar"))
        axes.set_ylabel(f"share (bars: {result.description['confidence']:.0%} {interval} interval)")
        axes.grid(axis="x", visible=False)
        axes.set_title(literal(title or f"Histogram of {result.description['stratum']}"))

    about = result.description
    return figure(draw, about_line(about["n"], about["epsilon"], about["smoothing"], interval), ax=ax)


def box(*curves: Curve, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Median with its interval, quartiles, and the central 95 % of each stratum."""

    def draw(axes: Axes) -> None:
        for row, (curve, (colour, _)) in enumerate(zip(curves, inks(len(curves)), strict=True)):
            x, result = axis(axes, curve), curve.quantile([0.025, 0.25, 0.5, 0.75, 0.975])
            ends = [x[i] for i in result.index]
            low, high = (x[i[2]] for i in result.indices[interval])
            axes.plot([ends[0], ends[4]], [row, row], color=colour, linewidth=1.2)
            axes.barh(row, ends[3] - ends[1], left=ends[1], height=0.42, color="#dfe7ef", edgecolor=colour)
            axes.plot([low, high], [row, row], color=colour, linewidth=5, alpha=0.55, solid_capstyle="butt")
            axes.plot([ends[2]] * 2, [row - 0.21, row + 0.21], color=colour, linewidth=2.2)
        axes.set_yticks(range(len(curves)), [literal(c.stratum) for c in curves])
        axes.set_ylim(len(curves) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(x_label(curves[0].campaign))
        axes.set_title("Median, quartiles and central 95% of values")

    about = about_line(curves[0].n, curves[0].epsilon, curves[0].smoothing)
    return figure(draw, f"thick: 95% {interval} interval of the median\n{about}", names=True, ax=ax)


def lorenz(*result: Lorenz, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Which share of all there is the lowest share of people has, and the Gini coefficient of each curve."""

    def draw(axes: Axes) -> None:
        for one, (colour, dashes) in zip(result, inks(len(result)), strict=True):
            columns, (low, high) = one.columns(), one.gini.interval(interval)
            name = f"{literal(one.curve.stratum)}: " if len(result) > 1 else ""
            value = f"{one.gini.value:.3f}" if np.isfinite(one.gini.value) else "not told"
            label = f"{name}Gini {value} (95% {interval}: {low:.3f} to {high:.3f})"
            axes.plot(
                columns["share_of_people"], columns["share_of_total"], color=colour, linestyle=dashes, label=label
            )
        axes.plot([0, 1], [0, 1], color="#888888", linestyle=":", label="all have the same")
        axes.set_xlabel("share of people, from the lowest value on")
        axes.set_ylabel("share of the sum of all values")
        axes.legend(loc="upper left")
        axes.set_title("Lorenz curve")

    curve = result[0].curve
    return figure(draw, about_line(curve.n, curve.epsilon, curve.smoothing, interval), square=True, ax=ax)


def forest(result: Estimates, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Estimates below each other with their intervals."""

    def draw(axes: Axes) -> None:
        rows = [row for row in result.rows if np.isfinite(row.interval(interval, result.confidence)).all()]
        for y, row in enumerate(rows):
            low, high = row.interval(interval, result.confidence)
            axes.plot([low, high], [y, y], color=INKS[0][0], linewidth=1.6)
            axes.plot([row.value], [y], "s", color=INKS[0][0], markersize=6)
        axes.axvline(0.0, color="#888888", linestyle=":")
        axes.set_yticks(range(len(rows)), [literal(row.name) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"value with {result.confidence:.0%} {interval} interval")

    about = result.description
    return figure(draw, about_line(about["n"], about["epsilon"], about.get("smoothing"), interval), names=True, ax=ax)


def literal(text: str) -> str:
    """People's own words: a dollar sign in them begins no formula."""
    return text.replace("$", r"\$")


def about_line(n: int, epsilon: float, smoothing: str | None, interval: str | None = None) -> str:
    text = f"n = {n:,}".replace(",", " ") + f", epsilon = {epsilon:g}, noise from both servers"
    if smoothing not in (None, "none"):
        text += f"; smoothed: {smoothing}"
    return text if interval is None else f"{text}; intervals: {interval}"


def x_label(campaign: Campaign) -> str:
    return literal(campaign.variable.label)


def drawn_strata(campaign: Campaign) -> tuple[str, tuple[str, ...]]:
    """The strata that one picture can tell apart, and what to call them."""
    strata = campaign.strata[: len(INKS)]
    return "All strata" if len(strata) == len(campaign.strata) else f"The first {len(strata)} strata", strata


def inks(count: int) -> list[tuple[str, Any]]:
    return [INKS[i % len(INKS)] for i in range(count)]


def spread(size: int) -> NDArray[np.int64]:
    """Indices to draw: all, or as many as a picture can show."""
    return np.unique(np.linspace(0, size - 1, min(size, MOST_POINTS)).astype(np.int64))


def axis(axes: Axes, curve: Curve) -> Any:
    """Thresholds as the picture's x values; dates and logarithmic grids get their own scales."""
    grid = curve.campaign.variable.grid
    if grid.values == "date":
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    elif grid.kind == "logarithmic":
        axes.set_xscale("log")
    return curve.thresholds


def _draw_quantiles(axes: Axes, curve: Curve, result: Quantiles, interval: Interval) -> None:
    for number, level in enumerate(result.levels):
        ends = [result.index[number], *(end[number] for end in result.indices[interval])]
        middle, low, high = curve.thresholds[ends].tolist()
        label = f"quantiles, {result.confidence:.0%} intervals ({interval})" if number == 0 else None
        axes.plot([low, high], [level, level], color="#222222", linewidth=1.6, solid_capstyle="butt")
        axes.plot([middle], [level], "o", color="#222222", markersize=4, label=label)


def _tick(label: Any) -> str:
    return f"{label:.4g}" if isinstance(label, float) else str(label)
