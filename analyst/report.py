"""One self-contained page about a release: what was asked, how private it is, pictures, and the numbers as tables.

What stands on it is collected here; `report.html` says how it looks.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from analyst import plot
from analyst.release import Release
from analyst.table import Columns, Tabular, short
from campaign.errors import Problem
from campaign.spec import Campaign


@dataclass(frozen=True)
class Part:
    """A picture, a table, a warning or a sentence."""

    kind: Literal["svg", "table", "note", "text"]
    content: Any


@dataclass(frozen=True)
class Section:
    title: str
    parts: list[Part]


def page(release: Release, now: datetime) -> str:
    """The page as HTML. Everything in it is post-processing: writing it costs no privacy."""
    campaign = release.campaign
    pages = Environment(loader=PackageLoader("analyst", ""), autoescape=True, undefined=StrictUndefined)
    pages.filters["short"] = short
    return pages.get_template("report.html").render(
        title=campaign.title,
        question=campaign.question,
        privacy=privacy_statement(campaign, release.n),
        sections=list(_sections(release)),
        rows=lambda columns: zip(*columns.values(), strict=True),
        made=now.strftime("%Y-%m-%d %H:%M UTC"),
        digest=campaign.digest.hex()[:16],
    )


def _sections(release: Release) -> Iterator[Section]:
    strata, grid = release.campaign.strata, release.campaign.grid
    if len(strata) > 1:
        yield _together(release)
    for stratum in strata:
        yield _distribution(release, stratum)
    if len(strata) == 2:
        yield _guarded("Comparison", lambda: _comparison(release))
        yield _guarded("ROC", lambda: _roc(release))
        if grid.values == "float" and grid.all_thresholds[0] >= 0 and grid.all_thresholds[-1] <= 1:
            yield _guarded("Calibration", lambda: _calibration(release))


def privacy_statement(campaign: Campaign, n: int) -> str:
    """What is promised, in plain words."""
    total, each = campaign.total_epsilon, campaign.max_instances
    values = "its value" if each == 1 else f"up to {each} of its values"
    return (
        f"{n:,} values went into this page. Each left its owner only as two keys, one for each of two servers; a "
        "single key looks random. Each server added noise of its own before anything left it. The promise: had any one "
        f"party given other numbers for {values}, every result here would have been almost as likely. However much "
        f"somebody knows already, their odds for or against anything about that party change by a factor of at most "
        f"{math.exp(total):.3g} (epsilon = {total:g}"
        + (f", of which {campaign.reserve:g} is kept for further questions" if campaign.reserve else "")
        + "). This holds towards everybody who reads this, and towards either server; it does not hold against both "
        "servers working together."
    )


def _together(release: Release) -> Section:
    curves = [release.curve(stratum) for stratum in release.campaign.strata[: len(plot.INKS)]]
    title = "All strata" if len(curves) == len(release.campaign.strata) else f"The first {len(curves)} strata"
    return _guarded(title, lambda: [_picture(plot.ecdf(*curves))])


def _distribution(release: Release, stratum: str) -> Section:
    def parts() -> list[Part]:
        curve = release.curve(stratum)
        quantiles, bins = curve.quantile(), curve.histogram()
        name = stratum if len(release.campaign.strata) > 1 else release.campaign.title
        return [
            _picture(plot.ecdf(curve, quantiles=quantiles)),
            _table(quantiles),
            _table(release.mean(stratum)),
            _picture(plot.histogram(bins, f"Histogram: {name}")),
            _table(bins),
            *_notes(curve.notes),
        ]

    return _guarded(f"Distribution: {stratum}" if len(release.campaign.strata) > 1 else "Distribution", parts)


def _comparison(release: Release) -> list[Part]:
    compared = release.compare(*release.campaign.strata)
    return [_table(compared), *_notes(compared.about()["notes"])]


def _roc(release: Release) -> list[Part]:
    roc = release.roc()
    return [_picture(plot.roc(roc)), _picture(plot.precision_recall(roc)), *_notes(roc.notes)]


def _calibration(release: Release) -> list[Part]:
    made = release.calibration()
    words = (
        f"Hosmer-Lemeshow H = {short(made.statistic)} over {int(made.groups.used.sum())} groups, p = "
        f"{short(made.p_value)} with the noise included. Chi-square with {made.degrees_of_freedom} degrees of freedom, "
        f"which ignores the noise, would say {short(made.chi_square_p)}. Observed over expected: "
        f"{made.observed_over_expected:.3f}."
    )
    return [_picture(plot.calibration(made)), Part("text", words), _table(made), *_notes(made.notes)]


def _guarded(title: str, parts: Callable[[], list[Part]]) -> Section:
    """A section; what the noise does not allow is said in its place."""
    try:
        return Section(title, parts())
    except Problem as problem:
        return Section(title, _notes([problem.detail]))


def _picture(figure: Any) -> Part:
    return Part("svg", plot.as_svg(figure))


def _notes(notes: list[str]) -> list[Part]:
    return [Part("note", note) for note in notes]


def _table(result: Tabular) -> Part:
    columns: Columns = result.columns()
    return Part("table", columns)
