"""Histograms: how many values lie in each bin."""

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
    from analyst.statistics.histogram import Histogram
    from fss_ecdf.campaign.campaign import Campaign
    from fss_ecdf.pages.local_server import Query

MOST_BINS = 200
Edges = Annotated[
    "Values",
    Option("upper edges of the bins, separated by commas", texts),
    Option("how many bins of equal width, if no edges are given", int, "--bins"),
]


def histogram(
    release: "Release",
    edges: Edges = 20,
    stratum: Strata = None,
    *,
    smoothing: Smooth = "limited",
    confidence: Confidence = 0.95,
) -> "Histogram":
    """Count the values in each bin.

    `edges`: the upper edges of the bins, or how many bins of equal width.
    Returns `Histogram`, one row for each bin.
    Raises `InvalidQuery` for edges that are not increasing, `TooNoisy` if the noise hides how many values there are.
    """
    return release.curve(stratum, smoothing=smoothing).histogram(edges, confidence)


def _by_points(campaign: "Campaign", stratum: str, edges: Any, confidence: float, **_: Any) -> Generator[Any, Any, Any]:
    from analyst import point_queries

    return point_queries.histogram(campaign, stratum, edges, confidence)


def _draw(client: "Client", result: Any, options: Mapping[str, Any]) -> "Figure":
    from analyst import plots

    return plots.histogram(result, client.campaign().title, options["interval"])


def _section(release: "Release", part: "StratumPart") -> "Section":
    from analyst import plots
    from analyst.present.section import Section

    bins, key = release.histogram(stratum=part.stratum), f"{part.key}-histogram"
    drawn = f"Histogram of {part.name}", plots.histogram(bins, f"Histogram: {part.name}")
    return Section(part.title, [], {key: drawn}, {key: bins}, bins.metadata()["notes"])


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    from analyst.present.console import as_json, confidence_of, curves_of
    from fss_ecdf.campaign.errors import InvalidQuery

    bins = query.whole("bins", 20)
    if not 1 <= bins <= MOST_BINS:
        raise InvalidQuery(f"between 1 and {MOST_BINS} bins")
    each = [(c.stratum, c.histogram(bins, confidence_of(query))) for c in curves_of(release, query)]
    return {"histograms": [as_json(result) | {"name": name} for name, result in each]}


HISTOGRAM = Statistic(
    histogram,
    "Histogram",
    order=40,
    report_needs=(DISTRIBUTION,),
    by_points=_by_points,
    shown=Shown(draw=_draw, stratum_section=_section, view=_view),
)
