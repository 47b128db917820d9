"""Calibration: whether predicted scores are probabilities."""

from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION, ONLY_TWO_STRATA, PROBABILITIES, RESERVE, TWO_STRATA
from analyst.options import Confidence, Negative, Option, Positive, numbers
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from analyst.options import Values
    from analyst.present.section import Section
    from analyst.queries import Plan, Queries
    from analyst.release import Release
    from analyst.statistics.calibration import Calibration
    from analyst.statistics.calibration_curve import CalibrationCurve
    from fss_ecdf.pages.local_server import Query

Groups = Annotated[
    "Values",
    Option("how many score groups of about equal size", int),
    Option("upper edges of the score groups instead, separated by commas", numbers, "--edges"),
]
Fitted = Annotated[bool, Option("the model was fitted to these people, not elsewhere", flag="--fitted-here")]
Spend = Annotated[
    float, Option("epsilon to spend from the campaign's reserve", float, "--spend", {"metavar": "EPSILON"})
]


def calibration(
    release: "Release",
    groups: Groups = 10,
    negative: Negative = None,
    positive: Positive = None,
    *,
    fitted: Fitted = False,
) -> "Calibration":
    """Test whether scores are probabilities: Hosmer-Lemeshow test and calibration in score groups.

    `groups`: how many of about equal size, or their upper edges.
    Returns `Calibration`, one row for each score group.
    Raises `InvalidQuery` for fewer than three groups, `TooNoisy` if the noise hides a stratum.
    """
    from analyst.statistics import calibration

    counted = calibration.from_curves(*release.pair(negative, positive, "isotonic"), groups)
    return calibration.hosmer_lemeshow(counted, fitted=fitted)


def calibration_curve(
    release: "Release", negative: Negative = None, positive: Positive = None, *, confidence: Confidence = 0.95
) -> "CalibrationCurve":
    """Draw the fraction of positives near each score as a smooth curve with a band.

    Returns `CalibrationCurve`, one row for each score.
    Raises `InvalidQuery` if more than two strata leave a choice, `TooNoisy` if the noise hides the curve.
    """
    from analyst.statistics.calibration_curve import calibration_curve

    return calibration_curve(*release.pair(negative, positive, "isotonic"), confidence)


def score_groups(
    queries: "Queries", groups: Groups = 10, *, epsilon: Spend, fitted: Fitted = False
) -> "Plan[Calibration]":
    """Test calibration by Algorithm 2 of the paper: the servers count score groups, paid from the reserve.

    `groups`: how many of about equal size, or their upper edges. The same query is paid once.
    Returns `Calibration`, one row for each score group.
    Raises `InvalidQuery` for fewer than three groups, `BudgetExceeded` if the reserve is too small.
    """
    if isinstance(groups, int):
        groups = (yield from queries.release()).calibration(groups).groups.upper_ends.tolist()
    return (yield from queries.score_groups(groups, epsilon, fitted))


def _section(release: "Release") -> "Section":
    from analyst import plots
    from analyst.present.section import Section
    from analyst.present.table import p_words, short

    test = release.calibration()
    low, high = test.corrected_interval()
    words = f"Observed over expected: {test.observed_over_expected:.3f}."
    if test.informative:
        words = (
            f"Hosmer-Lemeshow H = {short(test.corrected)} (95 % noise interval {short(low)} to {short(high)}; "
            f"{short(test.statistic)} before the noise's share is taken off) "
            f"over {int(test.groups.used.sum())} groups, {p_words(test.p_value)} with the noise included. Chi-square "
            f"with {test.degrees_of_freedom} degrees of freedom, which ignores the noise, would say "
            f"{short(test.chi_square_p)}. {words}"
        )
    figures = {"calibration": ("Fraction of positives against the mean score of groups", plots.calibration(test))}
    return Section("Calibration", [words], figures, {"calibration": test}, test.notes)


def _curve_section(release: "Release") -> "Section":
    from analyst import plots
    from analyst.present.section import Section

    drawn = plots.calibration_curve(release.calibration_curve())
    return Section("Prediction model", [], {"calibration-curve": ("Smooth calibration curve with a band", drawn)})


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    from analyst.present.console import as_json, confidence_of
    from fss_ecdf.campaign.errors import Problem

    found: dict[str, Any] = {"calibration": as_json(release.calibration(query.whole("groups", 10)))}
    try:
        found["smooth"] = as_json(release.calibration_curve(confidence=confidence_of(query)))
    except Problem as problem:
        found["smooth_problem"] = problem.detail
    return found


_NEEDS = DISTRIBUTION, TWO_STRATA, PROBABILITIES
CALIBRATION_CURVE = Statistic(
    calibration_curve,
    "Smooth calibration curve",
    order=88,
    needs=_NEEDS,
    shown=Shown(section=_curve_section, in_console=False),  # the view of calibration has it
)
CALIBRATION = Statistic(calibration, "Calibration", order=90, needs=_NEEDS, shown=Shown(section=_section, view=_view))
SCORE_GROUPS = Statistic(
    score_groups,
    "Calibration by Algorithm 2",
    order=95,
    needs=(DISTRIBUTION, ONLY_TWO_STRATA, PROBABILITIES, RESERVE),
    source="server",
    spends=True,
)
