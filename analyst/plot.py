"""Pictures of results. What is drawn was computed elsewhere; every picture says n and epsilon, and reads in grey.

>>> from analyst import plot
>>> plot.save(plot.ecdf(curve), "curve.png")  # doctest: +SKIP
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

from analyst.calibration import Calibration
from analyst.curve import Curve, Histogram
from analyst.quantile import Quantiles
from analyst.roc import Region, Roc
from analyst.table import short

Floats = NDArray[np.float64]

# Dark to light, with a dash pattern each: apart on a grey print, too.
INKS: Sequence[tuple[str, Any]] = (("#1b3a5c", "-"), ("#c1551b", "--"), ("#3f7d4f", "-."), ("#7b4f9d", ":"))
BAND_ALPHA = 0.22
MOST_POINTS = 4000

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


def figure(draw: Callable[[Axes], None], about: str, *, square: bool = False) -> Figure:
    """One picture with one pair of axes and a line below it that says what it shows."""
    with mpl.rc_context(STYLE):
        made = Figure(figsize=(5.2, 5.2) if square else (7.2, 4.4), layout="constrained")
        axes = made.add_subplot()
        draw(axes)
        if square:
            axes.set_aspect("equal")
            axes.set_xlim(-0.02, 1.02)
            axes.set_ylim(-0.02, 1.02)
        made.supxlabel(about, fontsize=8, color="#555555")
    return made


def save(made: Figure, path: str | Path) -> None:
    """As PNG, SVG or PDF, by the name's ending."""
    with mpl.rc_context(STYLE):
        made.savefig(path, dpi=150)


def as_svg(made: Figure) -> str:
    """The picture as SVG text, to be put into a page."""
    out = io.StringIO()
    with mpl.rc_context(STYLE):
        made.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def ecdf(*curves: Curve, quantiles: Quantiles | None = None, confidence: float = 0.95) -> Figure:
    """One or more strata with their simultaneous bands, and quantiles with intervals of the first."""

    def draw(axes: Axes) -> None:
        for curve, (colour, dashes) in zip(curves, _inks(len(curves)), strict=True):
            x, keep = _axis(axes, curve), _spread(curve.counts.size)
            lower, upper = curve.band(confidence)
            axes.fill_between(
                x[keep], lower[keep], upper[keep], color=colour, alpha=BAND_ALPHA, linewidth=0, step="post"
            )
            name = f"stratum {literal(curve.stratum)}" if len(curves) > 1 else "F"
            label = f"{name}, with its {confidence:.0%} band"
            axes.step(x[keep], curve.fractions[keep], color=colour, linestyle=dashes, where="post", label=label)
        if quantiles is not None:
            _draw_quantiles(axes, curves[0], quantiles)
        axes.set_ylabel("fraction at or below")
        axes.set_xlabel("value")
        axes.set_ylim(-0.02, 1.02)
        axes.legend(loc="lower right")
        axes.set_title(literal(curves[0].campaign.title))

    return figure(draw, _about(curves[0].n, curves[0].epsilon, curves[0].smoothing))


def histogram(made: Histogram, title: str = "") -> Figure:
    """Bars with error bars of one standard error."""

    def draw(axes: Axes) -> None:
        x = np.arange(made.counts.size)
        axes.bar(x, made.counts, width=0.92, color="#9db4cc", edgecolor=INKS[0][0], linewidth=0.6)
        axes.errorbar(x, made.counts, made.standard_errors, fmt="none", ecolor="#222222", elinewidth=0.9, capsize=2)
        shown = x[:: max(1, -(-x.size // 12))]
        axes.set_xticks(shown, [_tick(made.up_to[i]) for i in shown], rotation=0 if shown.size <= 8 else 45)
        axes.set_xlabel("up to (above the bin before it)")
        axes.set_ylabel("values (bars: one standard error)")
        axes.grid(axis="x", visible=False)
        axes.set_title(literal(title or f"Histogram of {made.description['stratum']}"))

    about = made.description
    return figure(draw, _about(about["n"], about["epsilon"], about["smoothing"]))


def roc(made: Roc, confidence: float = 0.95) -> Figure:
    """The ROC curve, the region that holds the whole true curve, and the area."""

    def draw(axes: Axes) -> None:
        x, y = made.false_positive_rate, made.true_positive_rate
        region = made.region(confidence)
        _region(axes, region)
        low, top = made.auc_interval(confidence)
        axes.plot(x, y, color=INKS[0][0], label=f"AUC {made.auc:.3f} ({confidence:.0%}: {low:.3f} to {top:.3f})")
        axes.plot([0, 1], [0, 1], color="#888888", linestyle=":", label="no better than chance")
        axes.set_xlabel(f"false positive rate ({literal(made.negative.stratum)})")
        axes.set_ylabel(f"true positive rate ({literal(made.positive.stratum)})")
        axes.legend(loc="lower right")
        axes.set_title("ROC curve")

    return figure(draw, _about(made.negative.n, made.negative.epsilon, made.negative.smoothing), square=True)


def precision_recall(made: Roc) -> Figure:
    """Precision against recall."""

    def draw(axes: Axes) -> None:
        axes.step(
            made.recall,
            made.precision,
            where="pre",
            color=INKS[0][0],
            label=f"average precision {made.average_precision:.3f}",
        )
        share = made.positive.total / (made.positive.total + made.negative.total)
        axes.axhline(share, color="#888888", linestyle=":", label=f"share of positives {share:.3f}")
        axes.set_xlabel(f"recall ({literal(made.positive.stratum)})")
        axes.set_ylabel("precision")
        axes.legend(loc="upper right")
        axes.set_title("Precision and recall")

    return figure(draw, _about(made.negative.n, made.negative.epsilon, made.negative.smoothing), square=True)


def calibration(made: Calibration) -> Figure:
    """What share of each group was positive, against what its scores said."""

    def draw(axes: Axes) -> None:
        style: Any = {"fmt": "o", "markersize": 5, "color": INKS[0][0], "capsize": 3, "elinewidth": 1}
        axes.plot([0, 1], [0, 1], color="#888888", linestyle=":", label="perfectly calibrated")
        axes.errorbar(made.predicted, made.observed, 1.96 * made.observed_errors, **style, label="groups (noise, 95%)")
        axes.plot([], [], " ", label=f"H = {short(made.statistic)}, p = {short(made.p_value)} (noise included)")
        axes.set_xlabel("mean score of the group")
        axes.set_ylabel("share of positives")
        axes.legend(loc="upper left")
        axes.set_title("Calibration")

    return figure(draw, _about(made.groups.n, made.groups.epsilon, None), square=True)


def literal(text: str) -> str:
    """People's own words: a dollar sign in them begins no formula."""
    return text.replace("$", r"\$")


def _about(n: int, epsilon: float, smoothing: str | None) -> str:
    text = f"n = {n:,}".replace(",", " ") + f", epsilon = {epsilon:g}, noise from both servers"
    return text if smoothing in (None, "none") else f"{text}; smoothed: {smoothing}"


def _inks(count: int) -> list[tuple[str, Any]]:
    return [INKS[i % len(INKS)] for i in range(count)]


def _spread(size: int) -> NDArray[np.int64]:
    """Indices to draw: all, or as many as a picture can show."""
    return np.unique(np.linspace(0, size - 1, min(size, MOST_POINTS)).astype(np.int64))


def _axis(axes: Axes, curve: Curve) -> Any:
    """Thresholds as the picture's x values; dates and logarithmic grids get their own scales."""
    grid = curve.campaign.grid
    if grid.values == "date":
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    elif grid.kind == "logarithmic":
        axes.set_xscale("log")
    return curve.thresholds


def _draw_quantiles(axes: Axes, curve: Curve, made: Quantiles) -> None:
    grid = curve.campaign.grid
    for number, level in enumerate(made.levels):
        middle, low, high = (
            float(grid.thresholds(grid.index_at([label]))[0])
            for label in (made.thresholds[number], made.lower[number], made.upper[number])
        )
        label = f"quantiles with {made.confidence:.0%} intervals" if number == 0 else None
        axes.plot([low, high], [level, level], color="#222222", linewidth=1.6, solid_capstyle="butt")
        axes.plot([middle], [level], "o", color="#222222", markersize=4, label=label)


def _region(axes: Axes, region: Region) -> None:
    """Between the upper left and the lower right corners of all boxes."""
    x = np.concatenate([[0.0], region.least_false, [1.0], region.most_false[::-1], [0.0]])
    y = np.concatenate([region.most_true[:1], region.most_true, [1.0], region.least_true[::-1], [0.0]])
    axes.fill(x, y, color=INKS[0][0], alpha=BAND_ALPHA, linewidth=0, label="holds the whole curve")


def _tick(label: Any) -> str:
    return f"{label:.4g}" if isinstance(label, float) else str(label)
