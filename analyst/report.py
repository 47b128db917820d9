"""One self-contained page about a release: what was asked, how private it is, pictures, and the numbers as tables."""

import math
from collections.abc import Callable
from datetime import datetime
from html import escape

from analyst import plot
from analyst.release import Release
from analyst.table import Tabular, short
from campaign.errors import Problem
from campaign.spec import Campaign

_CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd; }
svg { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; margin: .8rem 0; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid #eee; } th { color: #555; }
.note { background: #fff6e5; padding: .5rem .8rem; border-left: 3px solid #d98e04; }
.privacy { background: #f2f6fa; padding: .8rem 1rem; border-left: 3px solid #1b3a5c; }
footer { margin-top: 3rem; color: #666; font-size: .85rem; }
"""


def page(release: Release, now: datetime) -> str:
    """The page as HTML. Everything in it is post-processing: writing it costs no privacy."""
    campaign = release.campaign
    sections = [_privacy(release), *(_distribution(release, stratum) for stratum in campaign.strata)]
    if len(campaign.strata) > 1:
        sections.insert(1, _together(release))
    if len(campaign.strata) == 2:
        sections += [_guarded("Comparison", lambda: _comparison(release)), _guarded("ROC", lambda: _roc(release))]
        grid = campaign.grid
        if grid.values == "float" and grid.all_thresholds[0] >= 0 and grid.all_thresholds[-1] <= 1:
            sections.append(_guarded("Calibration", lambda: _calibration(release)))
    title = escape(campaign.title)
    made = now.strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_CSS}</style></head>\n'
        f"<body><h1>{title}</h1>\n<p>{escape(campaign.question)}</p>\n"
        + "\n".join(sections)
        + f"\n<footer>Made {made} from the release of campaign <code>{campaign.digest.hex()[:16]}</code>. Errors are "
        "those of the noise: of the published numbers against the people who took part, not against people who did "
        "not.</footer></body></html>\n"
    )


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


def _privacy(release: Release) -> str:
    return f'<p class="privacy">{escape(privacy_statement(release.campaign, release.n))}</p>'


def _together(release: Release) -> str:
    curves = [release.curve(stratum) for stratum in release.campaign.strata[: len(plot.INKS)]]
    title = "All strata" if len(curves) == len(release.campaign.strata) else f"The first {len(curves)} strata"
    return _guarded(title, lambda: plot.as_svg(plot.ecdf(*curves)))


def _distribution(release: Release, stratum: str) -> str:
    def body() -> str:
        curve = release.curve(stratum)
        quantiles, bins = curve.quantile(), curve.histogram()
        mean = release.mean(stratum)
        name = stratum if len(release.campaign.strata) > 1 else release.campaign.title
        return (
            plot.as_svg(plot.ecdf(curve, quantiles=quantiles))
            + _table(quantiles)
            + _table(mean)
            + plot.as_svg(plot.histogram(bins, f"Histogram: {name}"))
            + _table(bins)
            + _notes(curve.notes)
        )

    title = f"Distribution: {stratum}" if len(release.campaign.strata) > 1 else "Distribution"
    return _guarded(title, body)


def _comparison(release: Release) -> str:
    made = release.compare(*release.campaign.strata)
    return _table(made) + _notes(made.about()["notes"])


def _roc(release: Release) -> str:
    made = release.roc()
    return plot.as_svg(plot.roc(made)) + plot.as_svg(plot.precision_recall(made)) + _notes(made.notes)


def _calibration(release: Release) -> str:
    made = release.calibration()
    words = (
        f"<p>Hosmer-Lemeshow H = {short(made.statistic)} over {int(made.groups.used.sum())} groups, p = "
        f"{short(made.p_value)} with the noise included. Chi-square with {made.degrees_of_freedom} degrees of freedom, "
        f"which ignores the noise, would say {short(made.chi_square_p)}. Observed over expected: "
        f"{made.observed_over_expected:.3f}.</p>"
    )
    return plot.as_svg(plot.calibration(made)) + words + _table(made) + _notes(made.notes)


def _guarded(title: str, body: Callable[[], str]) -> str:
    """A section; what the noise does not allow is said in its place."""
    try:
        inside = body()
    except Problem as problem:
        inside = _notes([problem.detail])
    return f"<h2>{escape(title)}</h2>\n{inside}"


def _notes(notes: list[str]) -> str:
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _table(made: Tabular) -> str:
    columns = made.columns()
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    rows = zip(*columns.values(), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{escape(short(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
