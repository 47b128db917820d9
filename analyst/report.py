"""One self-contained page about a release: a summary, how private it is, pictures, the numbers as tables, methods."""

import math
import re
from datetime import datetime
from html import escape
from pathlib import Path

from analyst import methods, plots
from analyst.release import Release
from analyst.sections import Section, sections
from analyst.table import Tabular, short
from campaign.spec import Campaign

MOST_ROWS = 30

_CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin-top: 2.4rem; border-bottom: 1px solid #ccc; }
nav a { margin-right: 1.1rem; } nav { margin: .8rem 0 1.2rem; } a { color: #00466e; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: .5rem 1.5rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: flex-start; } .tables > div { overflow-x: auto; }
svg { max-width: 100%; height: auto; display: block; margin: .6rem auto; } figure { margin: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem; margin: .8rem 0; }
caption { text-align: left; color: #555; padding: .2rem 0; }
th, td { text-align: right; padding: .15rem .6rem; border-bottom: 1px solid #e6e6e6; }
th { color: #444; font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.note { background: #fff6e5; padding: .5rem .8rem; border-left: 3px solid #d98e04; }
.privacy, .summary { background: #f2f6fa; padding: .8rem 1rem; border-left: 3px solid #00466e; }
footer { margin-top: 3rem; color: #666; font-size: .85rem; }
@media (max-width: 32rem) { .figures { grid-template-columns: 1fr; } }
"""


def page(release: Release, now: datetime) -> str:
    """The page as HTML. Everything in it is post-processing: writing it costs no privacy."""
    campaign, made = release.campaign, list(sections(release))
    title, names = escape(campaign.title), [*(s.title for s in made), "Privacy", "Methods"]
    links = " ".join(f'<a href="#s{i}">{escape(name)}</a>' for i, name in enumerate(names))
    parts = [_section(section, i) for i, section in enumerate(made)]
    privacy = f"<p>{escape(privacy_statement(campaign, release.n))}</p>"
    words = "".join(f"<p>{escape(one)}</p>" for one in methods.sentences(release))
    parts.append(f'<section id="s{len(made)}"><h2>Privacy</h2><div class="privacy">{privacy}</div></section>')
    parts.append(f'<section id="s{len(made) + 1}"><h2>Methods</h2>{words}</section>')
    when = now.strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_CSS}</style></head>\n'
        f"<body><h1>{title}</h1>\n<p>{escape(campaign.question)}</p>\n<nav aria-label='Sections'>{links}</nav>\n"
        f"{_summary(release, made)}<main>\n" + "\n".join(parts) + f"</main>\n<footer>Made {when} from the release of "
        f"campaign <code>{campaign.digest.hex()[:16]}</code>. Columns named noise are intervals for the people who "
        "took part, columns named population for those they are a sample of; pictures draw the latter.</footer>"
        "</body></html>\n"
    )


def _summary(release: Release, made: list[Section]) -> str:
    campaign = release.campaign
    first = f"{release.n:,} values, epsilon = {campaign.epsilon:g}, {campaign.grid.size} thresholds"
    told = [first, *(finding for section in made for finding in section.findings)]
    return '<div class="summary"><ul>' + "".join(f"<li>{escape(one)}</li>" for one in told) + "</ul></div>\n"


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


def _section(section: Section, number: int) -> str:
    words = "".join(f"<p>{escape(word)}</p>" for word in section.words)
    figures = "".join(_figure(f"f{number}-{name}", *made) for name, made in section.figures.items())
    tables = "".join(f"<div>{_table(name, made)}</div>" for name, made in section.tables.items())
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in section.notes)
    return (
        f'<section id="s{number}"><h2>{escape(section.title)}</h2>{words}<div class="figures">{figures}</div>'
        f'<div class="tables">{tables}</div>{notes}</section>'
    )


def _figure(key: str, caption: str, made: object) -> str:
    """An SVG that says what it is to those who listen, and whose names clash with no other's."""
    svg = plots.as_svg(made)  # type: ignore[arg-type]
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\1{key}-", svg)
    named = f'<svg role="img" aria-label="{escape(caption)}"'
    return f"<figure>{svg.replace('<svg', named, 1)}</figure>"


def _table(name: str, made: Tabular) -> str:
    """The first columns of a table; long ones are for the files."""
    columns = made.columns()
    rows = list(zip(*columns.values(), strict=True))
    if len(rows) > MOST_ROWS:
        return ""
    head = "".join(f'<th scope="col">{escape(column.replace("_", " "))}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(short(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<caption>{escape(name.replace('-', ' '))}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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
