"""The distribution curve, and the fraction of values at or below thresholds."""

import math
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION
from analyst.options import Confidence, Option, Smooth, Strata, texts
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.client import Client
    from analyst.options import Values
    from analyst.present.section import Section, StratumPart
    from analyst.release import Release
    from analyst.statistics.curve import Curve
    from analyst.statistics.ecdf_points import Points
    from fss_ecdf.campaign.campaign import Campaign
    from fss_ecdf.pages.local_server import Query

At = Annotated["Values | None", Option("thresholds, separated by commas; default: the whole curve", texts)]


def ecdf(
    release: "Release",
    at: At = None,
    stratum: Strata = None,
    *,
    smoothing: Smooth = "limited",
    confidence: Confidence = 0.95,
) -> "Curve | Points":
    """Count the values at or below thresholds; without thresholds, the whole curve.

    Returns `Points`, or the `Curve` without `at`.
    Raises `InvalidValue` for a threshold that cannot be read, `TooNoisy` if the noise hides how many values there are.
    """
    curve = release.curve(stratum, smoothing=smoothing)
    return curve if at is None else curve.at(at, confidence)


def _by_points(campaign: "Campaign", stratum: str, at: Any, smoothing: str, **_: Any) -> Generator[Any, Any, Any]:
    from analyst import point_queries

    thresholds = point_queries.drawn(campaign) if at is None else at
    return point_queries.some(campaign, stratum, thresholds, smoothing != "none")


def _draw(client: "Client", result: Any, options: Mapping[str, Any]) -> "Figure":
    from analyst import plots

    if not client.is_whole():
        return plots.points(result, interval=options["interval"])
    curve = client.curve(options["stratum"], smoothing=options["smoothing"])
    wanted = {name: options[name] for name in ("confidence", "interval")}
    return plots.ecdf(curve, quantiles=curve.quantile(), **wanted)


def _section(release: "Release") -> "Section | None":
    from analyst import plots
    from analyst.present.section import Section

    if len(release.campaign.strata) == 1:
        return None
    title, strata = plots.drawn_strata(release.campaign)
    curves = [release.curve(stratum) for stratum in strata]
    figures = {
        "strata": ("Distribution functions of the strata with bands", plots.ecdf(*curves)),
        "boxes": ("Median, quartiles and central 95 % of each stratum", plots.box(*curves)),
    }
    return Section(title, [], figures, {"values-in-each-stratum": _totals(release)})


def _stratum_section(release: "Release", part: "StratumPart") -> "Section":
    from analyst import plots
    from analyst.present.section import Section

    curve = release.curve(part.stratum)
    drawn = f"Distribution function of {part.name}", plots.ecdf(curve, quantiles=curve.quantile())
    return Section(part.title, [], {f"{part.key}-curve": drawn}, {}, curve.notes)


def _totals(release: "Release") -> Any:
    """How many values each stratum has, and the fraction of all that this is."""
    from analyst.estimation.estimate import Estimate, Estimates

    rows: list[Estimate] = []
    for stratum in release.campaign.strata:
        value, error = release.totals[stratum], release.curve(stratum).total_error
        fraction = min(max(value / max(release.n, 1), 0.0), 1.0)
        sampling = math.sqrt(release.n * fraction * (1 - fraction))
        rows.append(Estimate(stratum, value, error, sampling, (0, release.n)))
    return Estimates(rows, {"n": release.n, "epsilon": release.campaign.epsilon})


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    """Curves with bands; where asked, the fraction up to a threshold and the threshold of a fraction."""
    from analyst.present.console import as_json, confidence_of, curves_of, drawn, interval_of, json_numbers
    from analyst.registry import statistics

    confidence, kind, found = confidence_of(query), interval_of(query), []
    for curve in curves_of(release, query):
        rows = drawn(curve.counts.size)
        low, high = curve.band(confidence, interval=kind)
        band = [json_numbers(low[rows]), json_numbers(high[rows])]
        answer = as_json(curve, rows) | {"name": curve.stratum, "band": band}
        if query.text("at"):
            answer["point"] = as_json(curve.at([query.text("at").strip()], confidence))
        if query.text("level"):
            answer["quantile"] = as_json(curve.quantile([query.number("level", 0.5)], confidence))
        answer["summary"] = as_json(release.summary(curve.strata, confidence=confidence))
        if not statistics()["lorenz"].missing(release.campaign):
            answer["gini"] = as_json(release.lorenz(curve.strata))["about"]
        found.append(answer)
    return {"curves": found}


ECDF = Statistic(
    ecdf,
    "Distribution",
    order=10,
    report_needs=(DISTRIBUTION,),
    by_points=_by_points,
    shown=Shown(draw=_draw, section=_section, stratum_section=_stratum_section, view=_view, view_name="distribution"),
)
