"""All pictures in one place, for the command line and the report."""

from analyst.plots.categories import categories
from analyst.plots.curves import as_svg, box, drawn_strata, ecdf, forest, histogram, lorenz, save, x_label
from analyst.plots.points import points, quantiles
from analyst.plots.scores import calibration, calibration_curve, decision_curve, precision_recall, roc
from analyst.plots.survival import survival
from analyst.plots.trend import fractions, over_time

__all__ = [
    "as_svg",
    "box",
    "calibration",
    "calibration_curve",
    "categories",
    "decision_curve",
    "drawn_strata",
    "ecdf",
    "forest",
    "fractions",
    "histogram",
    "lorenz",
    "over_time",
    "points",
    "precision_recall",
    "quantiles",
    "roc",
    "save",
    "survival",
    "x_label",
]
