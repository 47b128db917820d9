"""One self-contained page about a release: a summary, how private it is, pictures, the numbers as tables, methods.

What stands on it is collected by `sections.py`; `report.html` says how it looks.
"""

import math
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analyst import plots
from analyst.estimation.estimate import Estimates
from analyst.point_queries import PointRelease
from analyst.present import methods_section
from analyst.present.report_sections import sections
from analyst.present.section import Section
from analyst.present.table import Tabular, p_words, plain, short
from analyst.release import Release
from analyst.statistics.trend import Trend
from fss_ecdf.campaign.campaign import Campaign

MOST_ROWS = 30
# Columns that are places of the grid, not measured: shown as they are.
EXACT = {"above", "up_to", "threshold", "level", "time", "score_up_to", "statistic", "arm", "used"}


def page(release: Release | PointRelease, now: datetime, trend: Trend | None = None) -> str:
    """The page as HTML. Everything in it is post-processing: writing it costs no privacy."""
    campaign, collected = release.campaign, sections(release, trend)
    pages = Environment(loader=PackageLoader("analyst.present", ""), autoescape=True, undefined=StrictUndefined)
    return pages.get_template("report.html").render(
        title=campaign.title,
        question=campaign.question,
        summary=list(_summary(release, collected)),
        sections=collected,
        figure=_figure,
        zip=zip,
        table=page_table,
        privacy=privacy_statement(campaign, release.n),
        methods=methods_section.sentences(release),
        made=now.strftime("%Y-%m-%d %H:%M UTC"),
        digest=campaign.digest.hex()[:16],
    )


def _summary(release: Release | PointRelease, collected: list[Section]) -> Iterator[str]:
    campaign = release.campaign
    yield f"{release.n:,} values, epsilon = {campaign.epsilon:g}, {campaign.variable.summary}"
    yield f"keys {campaign.key_check_text}"
    for section in collected:
        yield from section.findings


def privacy_statement(campaign: Campaign, n: int) -> str:
    """What is promised, in plain words."""
    total, each = campaign.total_epsilon, campaign.max_values_per_person
    values = "its value" if each == 1 else f"up to {each} of its values"
    return (
        f"{n:,} values went into this page. Each left its owner only as two keys, one for each of two servers; a "
        "single key looks random. Each server added noise of its own before anything left it. The promise: had any one "
        f"party given other numbers for {values}, every result here would have been almost as likely. However much "
        f"somebody knows already, their odds for or against anything about that party change by a factor of at most "
        f"{math.exp(total):.3g} (epsilon = {total:g}; the number of values is public"
        + (f", of which {campaign.reserve:g} is kept for further questions" if campaign.reserve else "")
        + "). This holds towards everybody who reads this, and towards either server; it does not hold against both "
        "servers working together."
    )


def _figure(key: str, caption: str, figure: object) -> Markup:
    """An SVG that says what it is to those who listen, and whose names clash with no other's."""
    svg = plots.as_svg(figure)  # type: ignore[arg-type]
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\1{key}-", svg)
    wide, high = figure.get_size_inches()  # type: ignore[attr-defined]
    square = Markup(' class="square"') if wide == high else ""
    named = Markup('<svg role="img" aria-label="{}"{}').format(caption, square)
    return Markup(svg.replace("<svg", named, 1))  # noqa: S704  # made by matplotlib, which escapes its texts


def page_table(table: Tabular) -> dict[str, list[str]]:
    """Columns as a page shows them, both ends of an interval in one; nothing of a table that is long, for the files."""
    columns = {name: [plain(value) for value in values] for name, values in table.columns().items()}
    if any(len(values) > MOST_ROWS for values in columns.values()):
        return {}
    digits, cells = _row_digits(columns) if isinstance(table, Estimates) else None, dict[str, list[str]]()
    for name, values in columns.items():
        kind = name.removesuffix("_lower")
        if kind != name:
            ends = columns[f"{kind}_upper"]
            decimals = digits or [_digits([*values, *ends])] * len(values)
            cells[kind] = [_ends(*row) for row in zip(values, ends, decimals, strict=True)]
        elif name == "p_value":
            cells["p"] = ["" if p is None else p_words(p).removeprefix("p ").removeprefix("= ") for p in values]
        elif not name.endswith("_upper"):
            decimals = digits or [None if name in EXACT else _digits(values)] * len(values)
            cells[name.replace("_", " ")] = [_cell(*row) for row in zip(values, decimals, strict=True)]
    return cells


def _digits(values: list[Any]) -> int | None:
    """As many decimals as give the largest number of a column three digits; no number, if it has others than these."""
    known = [v for v in values if v is not None]
    if not all(isinstance(v, float) for v in known) or not any(known):
        return None
    return min(max(2 - math.floor(math.log10(0.9999 * max(map(abs, known)))), 0), 6)


def _row_digits(columns: dict[str, list[Any]]) -> list[int | None]:
    """The same for rows that differ in kind."""
    ends = [name for name in columns if name == "value" or name.endswith(("_lower", "_upper"))]
    return [_digits(list(row)) for row in zip(*(columns[name] for name in ends), strict=True)]


def _cell(value: Any, digits: int | None) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) and digits is not None else short(value)


def _ends(low: Any, high: Any, digits: int | None) -> str:
    if low is None:
        return ""
    return f"from {_cell(low, digits)} on" if high is None else f"{_cell(low, digits)} to {_cell(high, digits)}"


def files(release: Release | PointRelease, folder: Path, trend: Trend | None = None) -> list[Path]:
    """Every figure as SVG and PNG, every table as CSV, and the words of a methods section."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "methods.txt"]
    written[0].write_text(methods_section.text(release) + "\n", encoding="utf-8")
    for section in sections(release, trend):
        for name, (_, figure) in section.figures.items():
            for ending in ("svg", "png"):
                written.append(folder / f"{name}.{ending}")
                plots.save(figure, written[-1])
        for name, table in section.tables.items():
            written.append(folder / f"{name}.csv")
            written[-1].write_text(table.to_csv(), encoding="utf-8")
    return written
