"""The performance of a prediction model, and its decision curve."""

from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION, PROBABILITIES, TWO_STRATA
from analyst.options import Confidence, Negative, Option, Positive, numbers
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from analyst.options import Values
    from analyst.present.section import Section
    from analyst.release import Release
    from analyst.statistics.performance import DecisionCurve, ModelPerformance
    from fss_ecdf.pages.local_server import Query

Threshold = Annotated[float, Option("scores above it are called positive", float)]
Specificity = Annotated[float, Option("report the sensitivity at this specificity", float)]
Thresholds = Annotated["Values | None", Option("separated by commas; default: 25 even ones", numbers)]


def performance(
    release: "Release",
    negative: Negative = None,
    positive: Positive = None,
    *,
    threshold: Threshold = 0.5,
    specificity: Specificity = 0.9,
    confidence: Confidence = 0.95,
) -> "ModelPerformance":
    """Evaluate a prediction model: Brier score, calibration slope, sensitivity, net benefit.

    Returns `ModelPerformance`, one row for each number; its methods have them at other thresholds.
    Raises `InvalidQuery` if more than two strata leave a choice, `TooNoisy` if the noise hides a stratum.
    """
    from analyst.statistics.performance import ModelPerformance

    return ModelPerformance(*release.pair(negative, positive, "isotonic"), confidence, threshold, specificity)


def decision_curve(
    release: "Release",
    thresholds: Thresholds = None,
    negative: Negative = None,
    positive: Positive = None,
    *,
    confidence: Confidence = 0.95,
) -> "DecisionCurve":
    """Compare the net benefit of a prediction model with treating everybody and nobody.

    Returns `DecisionCurve`, one row for each threshold.
    Raises `InvalidQuery` for a threshold that is not between 0 and 1, `TooNoisy` if the noise hides a stratum.
    """
    return release.performance(negative, positive, confidence=confidence).decision_curve(thresholds)  # type: ignore[no-any-return]


def _section(release: "Release") -> "Section":
    from analyst import plots
    from analyst.present.section import Section, estimate_text

    model = release.performance()
    decision = model.decision_curve()
    drawn = "Decision curve: net benefit against treating all and none", plots.decision_curve(decision)
    tables = {"performance": model, "decision": decision}
    finding = f"Calibration slope: {estimate_text(model.regression()[1])}."
    return Section("Prediction model", [], {"decision": drawn}, tables, [], [finding])


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    from analyst.present.console import as_json, confidence_of

    model = release.performance(confidence=confidence_of(query), threshold=query.number("threshold", 0.5))
    return {"decision": as_json(model.decision_curve()), "performance": as_json(model)}


_NEEDS = DISTRIBUTION, TWO_STRATA, PROBABILITIES
PERFORMANCE = Statistic(
    performance,
    "Prediction model",
    order=80,
    needs=_NEEDS,
    shown=Shown(section=_section, in_console=False),  # the view of the decision curve has it
)
DECISION_CURVE = Statistic(
    decision_curve,
    "Decision curve",
    order=92,
    needs=_NEEDS,
    shown=Shown(view=_view, view_name="decision", in_report=False),  # the section of the model has it
)
