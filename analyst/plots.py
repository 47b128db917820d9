"""All pictures in one place, for the command line and the report."""

from analyst.plot import as_svg, box, ecdf, forest, histogram, lorenz, save, x_label
from analyst.plot_points import points, quantiles
from analyst.plot_scores import calibration, calibration_curve, decision, precision_recall, roc
from analyst.plot_survival import survival
from analyst.plot_trend import over_time, shares

__all__ = [
    "as_svg",
    "box",
    "calibration",
    "calibration_curve",
    "decision",
    "ecdf",
    "forest",
    "histogram",
    "lorenz",
    "over_time",
    "points",
    "precision_recall",
    "quantiles",
    "roc",
    "save",
    "shares",
    "survival",
    "x_label",
]
