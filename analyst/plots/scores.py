"""Pictures of scores against outcomes: ROC, precision and recall, calibration."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analyst.estimation.estimate import Interval
from analyst.plots.curves import BAND_ALPHA, INKS, about_line, figure, literal
from analyst.present.table import p_words, short
from analyst.statistics.calibration import Calibration
from analyst.statistics.calibration_curve import CalibrationCurve
from analyst.statistics.curve import Curve
from analyst.statistics.performance import DecisionCurve
from analyst.statistics.roc import Region, Roc


def roc(result: Roc, confidence: float = 0.95, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """The ROC curve, the region that holds the whole true curve, and the area."""

    def draw(axes: Axes) -> None:
        x, y = result.false_positive_rate, result.true_positive_rate
        _region(
            axes, result.region(confidence, interval=interval), f"{confidence:.0%} region of the curve ({interval})"
        )
        low, top = result.auc_interval(confidence, interval)
        label = f"AUC {result.auc:.3f} ({confidence:.0%} {interval}: {low:.3f} to {top:.3f})"
        axes.plot(x, y, color=INKS[0][0], label=label)
        axes.plot([0, 1], [0, 1], color="#888888", linestyle=":", label="no better than chance")
        axes.set_xlabel(f"false positive rate ({literal(result.negative.stratum)})")
        axes.set_ylabel(f"true positive rate ({literal(result.positive.stratum)})")
        axes.legend(loc="lower right")
        axes.set_title("ROC curve")

    return figure(draw, _about(result.negative), square=True, ax=ax)


def precision_recall(result: Roc, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Precision against recall."""

    def draw(axes: Axes) -> None:
        drawing, label = result.average_precision, "average precision: too noisy to tell"
        if not math.isnan(drawing.value):
            low, high = drawing.interval(interval)
            label = f"average precision {drawing.value:.3f} (95% {interval}: {low:.3f} to {high:.3f})"
        found_any = result.recall > 0
        x, y = result.recall[found_any], result.precision[found_any]
        axes.step(x, y, where="pre", color=INKS[0][0], label=label)
        share = result.positive.total / (result.positive.total + result.negative.total)
        axes.axhline(share, color="#888888", linestyle=":", label=f"share of positives {share:.3f}")
        axes.set_xlabel(f"recall ({literal(result.positive.stratum)})")
        axes.set_ylabel("precision")
        axes.legend(loc="upper right")
        axes.set_title("Precision and recall")

    return figure(draw, _about(result.negative), square=True, ax=ax)


def calibration(result: Calibration, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """What share of each group was positive, against what its scores said."""

    def draw(axes: Axes) -> None:
        style: Any = {"fmt": "o", "markersize": 5, "color": INKS[0][0], "capsize": 3, "elinewidth": 1}
        low, high = result.limits()[interval]
        arms = np.maximum([result.observed - low, high - result.observed], 0.0)
        axes.plot([0, 1], [0, 1], color="#888888", linestyle=":", label="perfectly calibrated")
        axes.errorbar(result.predicted, result.observed, arms, **style, label=f"groups, 95% intervals ({interval})")
        told = f"H = {short(result.corrected)} (noise taken off), {p_words(result.p_value)} (noise included)"
        told = told if result.informative else "Hosmer-Lemeshow: too noisy to tell"
        axes.plot([], [], " ", label=told)
        axes.set_xlabel("mean score of the group")
        axes.set_ylabel("share of positives")
        axes.legend(loc="upper left")
        axes.set_title("Calibration")

    return figure(draw, about_line(result.groups.n, result.groups.epsilon, None), square=True, ax=ax)


def calibration_curve(result: CalibrationCurve, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """The share of positives near each score, with the band that holds the whole curve."""

    def draw(axes: Axes) -> None:
        low, high = result.band(interval)
        label = f"{result.confidence:.0%} band ({interval})"
        axes.plot([0, 1], [0, 1], color="#888888", linestyle=":", label="perfectly calibrated")
        axes.fill_between(result.scores, low, high, color=INKS[0][0], alpha=BAND_ALPHA, linewidth=0, label=label)
        axes.plot(result.scores, result.rates, color=INKS[0][0], label="share of positives near a score")
        axes.set_xlabel("score")
        axes.set_ylabel("share of positives")
        axes.legend(loc="upper left")
        axes.set_title("Calibration, smoothed")

    about = result.description
    return figure(draw, about_line(about["n"], about["epsilon"], about["smoothing"]), square=True, ax=ax)


def decision_curve(result: DecisionCurve, interval: Interval = "population", ax: Axes | None = None) -> Figure:
    """Net benefit of the model, of treating all and of treating none."""

    def draw(axes: Axes) -> None:
        x, (low, high) = np.array(result.thresholds), result.limits()[interval]
        values, everybody = np.array([r.value for r in result.rows]), np.array([r.value for r in result.everybody])
        label = f"{result.model.confidence:.0%} intervals ({interval})"
        axes.fill_between(x, low, high, color=INKS[0][0], alpha=BAND_ALPHA, linewidth=0, label=label)
        axes.plot(x, values, color=INKS[0][0], label="the model")
        axes.plot(x, everybody, color=INKS[1][0], linestyle="--", label="treat all")
        axes.axhline(0.0, color="#555555", linestyle=":", label="treat none")
        top = max(float(high.max()), float(everybody.max()), 0.0)
        axes.set_ylim(-0.35 * top - 1e-3, 1.08 * top + 1e-3)
        axes.set_xlabel("threshold: treat who has a higher score")
        axes.set_ylabel("net benefit (per person)")
        axes.legend(loc="upper right")
        axes.set_title("Decision curve")

    return figure(draw, _about(result.model.negative), ax=ax)


def _about(curve: Curve) -> str:
    return about_line(curve.n, curve.epsilon, curve.smoothing)


def _region(axes: Axes, region: Region, label: str) -> None:
    """Between the upper left and the lower right corners of all boxes."""
    x = np.concatenate([[0.0], region.least_false, [1.0], region.most_false[::-1], [0.0]])
    y = np.concatenate([region.most_true[:1], region.most_true, [1.0], region.least_true[::-1], [0.0]])
    axes.fill(x, y, color=INKS[0][0], alpha=BAND_ALPHA, linewidth=0, label=label)
