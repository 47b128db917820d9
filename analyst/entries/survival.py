"""Survival: Kaplan-Meier curves, medians, restricted means and tests."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from analyst.needs import SURVIVAL
from analyst.options import Confidence, Option, Smooth, numbers
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.client import Client
    from analyst.estimation.estimate import Estimates
    from analyst.options import Values
    from analyst.present.section import Section
    from analyst.release import Release
    from analyst.statistics.survival_tables import Survival
    from fss_ecdf.pages.local_server import Query

Times = Annotated["Values | None", Option("times of the table, separated by commas; default: even ones", numbers)]
Horizon = Annotated["float | None", Option("end of the restricted mean; default: the last time", float)]
Hazard = Annotated[bool, Option("print the Nelson-Aalen cumulative hazard instead of survival")]


def survival(
    release: "Release",
    at: Times = None,
    *,
    smoothing: Smooth = "isotonic",
    confidence: Confidence = 0.95,
    hazard: Hazard = False,
) -> "Survival":
    """Estimate survival of every arm: Kaplan-Meier curves, number at risk, median, log-rank test.

    Returns `Survival`, one row for each arm and time.
    Raises `InvalidQuery` if the campaign is about a distribution, `TooNoisy` if the noise hides an arm.
    """
    from analyst.statistics import survival_tables

    return survival_tables.survival(release.arms(smoothing), at, confidence, hazard)


def survival_summary(
    release: "Release", horizon: Horizon = None, *, smoothing: Smooth = "isotonic", confidence: Confidence = 0.95
) -> "Estimates":
    """Summarise survival: medians, restricted means, survival at the horizon, and log-rank tests.

    Returns `Estimates`, one row for each number.
    Raises `InvalidQuery` if the campaign is about a distribution, `TooNoisy` if the noise hides an arm.
    """
    from analyst.statistics import survival_tables

    return survival_tables.summary(release.arms(smoothing), horizon, confidence)


def _draw_summary(client: "Client", result: Any, options: Mapping[str, Any]) -> "Figure":  # noqa: ARG001
    from analyst import plots

    curves = client.survival(smoothing=options["smoothing"], confidence=options["confidence"])
    return plots.survival(curves, options["interval"])


def _remarks(client: "Client", result: Any, options: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG001
    from analyst.present.table import p_words
    from analyst.statistics.survival import log_rank

    first, *others = result.arms
    for arm in others:
        yield f"log-rank, {arm.name} against {first.name}: {p_words(log_rank(first, arm)[1])} (noise included)"


def _section(release: "Release") -> "Section":
    from analyst import plots
    from analyst.present.section import Section, estimate_text
    from analyst.present.table import p_words

    curves, summary = release.survival(), release.survival_summary()
    figures = {"survival": ("Kaplan-Meier curves with bands and the number at risk", plots.survival(curves))}
    tables = {"summary": summary, "survival": curves, "hazard": release.survival(hazard=True)}
    findings = [f"{row.name}: {estimate_text(row)}." for row in summary.rows if row.name.startswith("median")]
    findings += [f"{row.name}: {p_words(row.p_value)}." for row in summary.rows if row.p_value is not None]
    return Section("Survival", [], figures, tables, curves.notes, findings)


def _view(release: "Release", query: "Query") -> dict[str, Any]:
    from analyst.present.console import as_json, confidence_of, interval_of

    confidence, kind = confidence_of(query), interval_of(query)
    curves = release.survival(confidence=confidence)
    return {
        "table": as_json(curves),
        "summary": as_json(release.survival_summary(confidence=confidence)),
        "arms": [_arm(arm, kind, confidence) for arm in curves.arms],
    }


def _arm(arm: Any, kind: str, confidence: float) -> dict[str, Any]:
    """A whole curve with its band, from time 0 on."""
    from analyst.present.console import json_numbers

    at, low, high = arm.band(kind, confidence)
    end = arm.last + 1
    return {
        "name": arm.name,
        "columns": {"time": json_numbers(arm.times[:end]), "survival": json_numbers(arm.survival[:end])},
        "band": [json_numbers(arm.times[at]), json_numbers(low), json_numbers(high)],
    }


SURVIVAL_CURVES = Statistic(
    survival,
    "Survival",
    order=5,
    needs=(SURVIVAL,),
    shown=Shown(remarks=_remarks, section=_section, view=_view),
)
SURVIVAL_SUMMARY = Statistic(
    survival_summary,
    "Survival summary",
    order=6,
    needs=(SURVIVAL,),
    shown=Shown(draw=_draw_summary, in_report=False, in_console=False),  # both have it with the curves
)
