"""One self-contained page about a release: a summary, how private it is, pictures, the numbers as tables, methods.

What stands on it is collected by `sections.py`; `report.html` says how it looks.
"""

import math
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analyst import methods, plots
from analyst.release import Release
from analyst.sections import Section, sections
from analyst.table import Tabular, short
from campaign.spec import Campaign

MOST_ROWS = 30


def page(release: Release, now: datetime) -> str:
    """The page as HTML. Everything in it is post-processing: writing it costs no privacy."""
    campaign, collected = release.campaign, list(sections(release))
    pages = Environment(loader=PackageLoader("analyst", ""), autoescape=True, undefined=StrictUndefined)
    pages.filters["short"] = short
    return pages.get_template("report.html").render(
        title=campaign.title,
        question=campaign.question,
        summary=list(_summary(release, collected)),
        sections=collected,
        figure=_figure,
        rows=_rows,
        privacy=privacy_statement(campaign, release.n),
        methods=methods.sentences(release),
        made=now.strftime("%Y-%m-%d %H:%M UTC"),
        digest=campaign.digest.hex()[:16],
    )


def _summary(release: Release, collected: list[Section]) -> Iterator[str]:
    campaign = release.campaign
    yield f"{release.n:,} values, epsilon = {campaign.epsilon:g}, {campaign.grid.size} thresholds"
    for section in collected:
        yield from section.findings


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


def _figure(key: str, caption: str, figure: object) -> Markup:
    """An SVG that says what it is to those who listen, and whose names clash with no other's."""
    svg = plots.as_svg(figure)  # type: ignore[arg-type]
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\1{key}-", svg)
    named = Markup('<svg role="img" aria-label="{}"').format(caption)
    return Markup(svg.replace("<svg", named, 1))  # noqa: S704  # made by matplotlib, which escapes its texts


def _rows(table: Tabular) -> list[tuple[object, ...]]:
    """Of a table that is short enough for a page; long ones are for the files."""
    cells = list(zip(*table.columns().values(), strict=True))
    return cells if len(cells) <= MOST_ROWS else []


def files(release: Release, folder: Path) -> list[Path]:
    """Every figure as SVG and PNG, every table as CSV, and the words of a methods section."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "methods.txt"]
    written[0].write_text(methods.text(release) + "\n", encoding="utf-8")
    for section in sections(release):
        for name, (_, made) in section.figures.items():
            for ending in ("svg", "png"):
                written.append(folder / f"{name}.{ending}")
                plots.save(made, written[-1])
        for name, table in section.tables.items():
            written.append(folder / f"{name}.csv")
            written[-1].write_text(table.to_csv(), encoding="utf-8")
    return written
