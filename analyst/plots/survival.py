"""Survival as journals print it: curves with bands, and below them how many are at risk."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analyst.estimation.estimate import Interval
from analyst.plots.curves import BAND_ALPHA, STYLE, about_line, inks, literal, x_label
from analyst.present.table import p_words, short
from analyst.statistics.survival import Arm, log_rank
from analyst.statistics.survival_tables import Survival


def survival(result: Survival, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Kaplan-Meier curves of all arms with bands, their medians and tests, and a table of the number at risk.

    Into axes that are given come the curves alone: the table needs axes of its own.
    """
    campaign, first = result.arms[0].event.campaign, result.arms[0].event
    with mpl.rc_context(STYLE):
        if ax is not None:
            _curves(ax, result, interval)
            ax.set_xlabel(x_label(campaign))
            drawing = ax.get_figure(root=True)
            assert isinstance(drawing, Figure)
            return drawing
        figure = Figure(figsize=(7.2, 4.6 + 0.24 * len(result.arms)), layout="constrained")
        heights = [4.2, 0.5 + 0.26 * len(result.arms)]
        axes, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": heights})
        _curves(axes, result, interval)
        _table(below, result)
        below.set_xlabel(x_label(campaign))
        figure.supxlabel(about_line(first.n, first.epsilon, first.smoothing), fontsize=8, color="#555555")
    return figure


def _curves(axes: Axes, result: Survival, interval: Interval) -> None:
    for arm, (colour, dashes) in zip(result.arms, inks(len(result.arms)), strict=True):
        _curve(axes, arm, colour, dashes, interval, result.confidence)
    axes.fill_between([], [], color="#777777", alpha=BAND_ALPHA, label=f"{result.confidence:.0%} band ({interval})")
    for arm in result.arms[1:]:
        told = f"log-rank: {p_words(log_rank(result.arms[0], arm)[1])} (noise included)"
        axes.plot([], [], " ", label=told if len(result.arms) == 2 else f"{literal(arm.name)}: {told}")
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("survival" if not result.hazard else "survival (table: cumulative hazard)")
    axes.legend(loc="lower left")
    axes.set_title(literal(result.arms[0].event.campaign.title))


def _curve(axes: Axes, arm: Arm, colour: str, dashes: Any, interval: Interval, confidence: float) -> None:
    index = np.arange(arm.last + 1)
    times, values = np.append(0.0, arm.times[index]), np.append(1.0, arm.survival[index])
    at, low, high = arm.band(interval, confidence)
    edge = np.append(0.0, arm.times[at])
    axes.fill_between(
        edge, np.append(1.0, low), np.append(1.0, high), color=colour, alpha=BAND_ALPHA, linewidth=0, step="post"
    )
    median = arm.median(interval, confidence)[0]
    label = f"{literal(arm.name)}, median {short(median) if np.isfinite(median) else 'not reached'}"
    axes.step(times, values, where="post", color=colour, linestyle=dashes, label=label)


def _table(axes: Axes, result: Survival) -> None:
    """The number at risk below each tick; published with noise, so about."""
    longest = max(float(arm.times[arm.last]) for arm in result.arms)
    ticks = [t for t in MaxNLocator(7).tick_values(0.0, longest) if 0 <= t <= 1.001 * longest]
    axes.set_xticks(ticks)
    axes.set_xlim(-0.05 * longest, 1.03 * longest)
    axes.set_ylim(len(result.arms) - 0.4, -0.7)
    for row, (arm, (colour, _)) in enumerate(zip(result.arms, inks(len(result.arms)), strict=True)):
        for tick in ticks:
            index = int(np.searchsorted(arm.times, tick))
            text = f"{arm.at_risk[index]:.0f}" if index <= arm.last else "-"
            axes.text(tick, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_yticks(range(len(result.arms)), [literal(arm.name) for arm in result.arms])
    axes.set_title("number at risk (about)", fontsize=9, loc="left", color="#333333")
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
