"""Two strata side by side."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION, TWO_STRATA
from analyst.options import Confidence, Smooth, named_stratum
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.client import Client
    from analyst.options import Stratum
    from analyst.present.section import Section
    from analyst.release import Release
    from analyst.statistics.compare import Comparison
    from fss_ecdf.pages.local_server import Query

First = Annotated["Stratum", named_stratum("a stratum, or several pooled; default: the first of two")]
Second = Annotated["Stratum", named_stratum("the stratum that it is compared with; default: the second of two")]


def compare(
    release: "Release",
    first: First = None,
    second: Second = None,
    *,
    smoothing: Smooth = "isotonic",
    confidence: Confidence = 0.95,
) -> "Comparison":
    """Compare two strata: distances, differences and tests that account for the noise.

    Returns `Comparison`: Kolmogorov-Smirnov and Mann-Whitney, differences of means and medians, Wasserstein distance.
    Raises `InvalidQuery` if more than two strata leave a choice, `TooNoisy` if the noise hides a stratum.
    """
    from dataclasses import replace

    from analyst.statistics import distribution
    from analyst.statistics.compare import compare

    curves = release.pair(first, second, smoothing, ("first", "second"))
    more = [
        distribution.standardised_difference(*curves, confidence),
        distribution.wasserstein(*curves, confidence),
    ]
    comparison = compare(*curves, confidence)
    return replace(comparison, rows=[*comparison.rows, *more])


def _draw(client: "Client", result: Any, options: Mapping[str, Any]) -> "Figure":  # noqa: ARG001
    from analyst import plots

    wanted = {name: options[name] for name in ("confidence", "interval")}
    return plots.ecdf(result.first, result.second, **wanted)


def _section(release: "Release") -> "Section":
    from analyst.present.section import Section
    from analyst.present.table import p_words

    comparison = release.compare()
    first, second = release.campaign.strata
    words = [f"Differences are {second} less {first}. p-values are for the population and count the noise in."]
    finding = f"{second} against {first}: {p_words(comparison.superiority.p_value)} (Mann-Whitney, noise included)."
    return Section("Comparison", words, {}, {"comparison": comparison}, comparison.metadata()["notes"], [finding])


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    from analyst.present.console import as_json, confidence_of

    strata = release.campaign.strata
    first, second = query.text("first", strata[0]), query.text("second", strata[-1])
    return {"comparison": as_json(release.compare(first, second, confidence=confidence_of(query)))}


COMPARE = Statistic(
    compare,
    "Comparison",
    order=60,
    needs=(DISTRIBUTION, TWO_STRATA),
    shown=Shown(draw=_draw, section=_section, view=_view, view_name="comparison", view_names_strata=True),
)
