"""Quantiles: the values below which given fractions lie."""

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION
from analyst.options import QUARTILES, Confidence, Option, Smooth, Strata, numbers
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.client import Client
    from analyst.options import Values
    from analyst.present.section import Section, StratumPart
    from analyst.release import Release
    from analyst.statistics.quantile import Quantiles
    from fss_ecdf.campaign.campaign import Campaign

Levels = Annotated["Values", Option("fractions, separated by commas", numbers)]


def quantile(
    release: "Release",
    levels: Levels = QUARTILES,
    stratum: Strata = None,
    *,
    smoothing: Smooth = "isotonic",
    confidence: Confidence = 0.95,
) -> "Quantiles":
    """Find the value at or below which each fraction of all values lies.

    Returns `Quantiles`, one row for each level.
    Raises `InvalidQuery` for a level that is not between 0 and 1, `TooNoisy` if the noise hides how many values there
    are.
    """
    return release.curve(stratum, smoothing=smoothing).quantile(levels, confidence)


def _by_points(
    campaign: "Campaign", stratum: str, levels: Any, confidence: float, **_: Any
) -> Generator[Any, Any, Any]:
    from analyst import point_queries

    return point_queries.quantiles(campaign, stratum, levels, confidence)


def _draw(client: "Client", result: Any, options: Mapping[str, Any]) -> "Figure":
    from analyst import plots

    if not client.is_whole():
        return plots.quantiles(result, options["interval"])
    curve = client.curve(options["stratum"], smoothing=options["smoothing"])
    return plots.ecdf(curve, quantiles=result, confidence=options["confidence"], interval=options["interval"])


def _mean(client: "Client", result: Any, options: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG001
    from analyst.present.table import short

    if client.is_whole():
        confidence = options["confidence"]
        mean = client.curve(options["stratum"], smoothing=options["smoothing"]).mean_estimate(confidence)
        low, high = mean.interval("population", confidence)
        yield f"mean {short(mean.value)}, {confidence:.0%} population interval {short(low)} to {short(high)}"


def _section(release: "Release", part: "StratumPart") -> "Section":
    from analyst.present.section import Section

    return Section(part.title, tables={f"{part.key}-quantiles": release.quantile(stratum=part.stratum)})


QUANTILE = Statistic(
    quantile,
    "Quantiles",
    order=30,
    report_needs=(DISTRIBUTION,),
    by_points=_by_points,
    shown=Shown(draw=_draw, remarks=_mean, stratum_section=_section, in_console=False),  # the distribution has one
)
