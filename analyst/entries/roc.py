"""ROC and precision-recall curves, and the areas under them."""

from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION, FOUR_STRATA, TWO_STRATA
from analyst.options import Confidence, Negative, Option, Positive, Smooth
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from analyst.estimation.estimate import Estimates
    from analyst.options import Stratum
    from analyst.present.section import Section
    from analyst.release import Release
    from analyst.statistics.roc import Roc
    from fss_ecdf.pages.local_server import Query

_PAIR = {"nargs": 2, "metavar": ("NEGATIVE", "POSITIVE")}
Pair = Annotated["tuple[Stratum, Stratum]", Option("the two strata of this AUC", more=_PAIR)]


def roc(
    release: "Release",
    negative: Negative = None,
    positive: Positive = None,
    *,
    smoothing: Smooth = "isotonic",
    confidence: Confidence = 0.95,
) -> "Roc":
    """Measure how well a score separates two strata: ROC curve, AUC, precision and recall.

    Returns `Roc`, one row for each threshold.
    Raises `InvalidQuery` if more than two strata leave a choice, `TooNoisy` if the noise hides a stratum or the area.
    """
    from analyst.statistics.roc import Roc

    return Roc(*release.pair(negative, positive, smoothing), confidence=confidence)


def _section(release: "Release") -> "Section":
    from analyst import plots
    from analyst.present.section import Section, estimate_text

    curves = release.roc()
    figures = {
        "roc": ("ROC curve with the region that holds it", plots.roc(curves)),
        "precision-recall": ("Precision against recall", plots.precision_recall(curves)),
    }
    finding = f"Area under the ROC curve: {estimate_text(curves.area)}."
    return Section("ROC", [], figures, {"roc": curves}, curves.notes, [finding])


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    from analyst.present.console import as_json, confidence_of, interval_of, json_numbers

    curves = release.roc()
    region = curves.region(confidence_of(query), interval=interval_of(query))
    limits = (region.least_false, region.most_false, region.least_true, region.most_true)
    return {"roc": as_json(curves), "region": [json_numbers(limit) for limit in limits]}


def compare_auc(release: "Release", first: Pair, second: Pair, *, confidence: Confidence = 0.95) -> "Estimates":
    """Compare two AUCs, each of a negative and a positive stratum.

    Returns `Estimates`: both areas, their difference and whether it is chance.
    Raises `InvalidQuery` if the strata are not four different ones, `TooNoisy` if the noise hides one.
    """
    from dataclasses import replace

    from analyst.estimation.estimate import Estimates
    from analyst.statistics.compare import auc_difference
    from analyst.statistics.roc import Roc

    curves = [Roc(*release.pair(*pair, "isotonic")) for pair in (first, second)]
    areas = [replace(c.area, name=f"AUC {c.positive.stratum} / {c.negative.stratum}") for c in curves]
    about = {"n": release.n, "epsilon": release.campaign.epsilon, "smoothing": "isotonic"}
    return Estimates([*areas, auc_difference(*curves)], about, confidence)


ROC = Statistic(roc, "ROC", order=70, needs=(DISTRIBUTION, TWO_STRATA), shown=Shown(section=_section, view=_view))
COMPARE_AUC = Statistic(compare_auc, "Comparison of AUCs", order=75, needs=(FOUR_STRATA,))
