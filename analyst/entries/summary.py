"""Numbers that describe a distribution."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import DISTRIBUTION
from analyst.options import Confidence, Option, Strata
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.client import Client
    from analyst.estimation.estimate import Estimates
    from analyst.present.section import Section, StratumPart
    from analyst.release import Release

Trim = Annotated[float, Option("fraction of the values cut off at each end for the trimmed mean", float)]


def summary(
    release: "Release", stratum: Strata = None, *, trim: Trim = 0.1, confidence: Confidence = 0.95
) -> "Estimates":
    """Describe a distribution: mean, trimmed mean, median, quartiles, reference interval, Gini coefficient.

    Returns `Estimates`, one row for each number.
    Raises `InvalidQuery` if `trim` is not between 0 and 1/2, `TooNoisy` if the noise hides how many values there are.
    """
    from analyst.statistics import distribution

    return distribution.summary(release.curve(stratum, smoothing="isotonic"), trim, confidence)


def _draw(client: "Client", result: Any, options: Mapping[str, Any]) -> "Figure":  # noqa: ARG001
    from analyst import plots

    release = client.release()
    curves = [release.curve(name, smoothing="isotonic") for name in release.strata(options["stratum"])]
    return plots.box(*curves, interval=options["interval"])


def _section(release: "Release", part: "StratumPart") -> "Section":
    from analyst.present.section import Section, estimate_text

    table = release.summary(part.stratum)
    finding = f"Median of {part.name}: {estimate_text(table['median'])}."
    return Section(part.title, tables={f"{part.key}-summary": table}, findings=[finding])


SUMMARY = Statistic(
    summary,
    "Mean, summary",
    order=20,
    report_needs=(DISTRIBUTION,),
    shown=Shown(draw=_draw, stratum_section=_section, in_console=False),  # the view of the distribution has it
)
