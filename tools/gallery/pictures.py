"""What the gallery shows: a picture, what is to be seen on it, the command that makes it, and the study it is about."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE, IMAGES = ROOT / "docs" / "gallery.md", ROOT / "docs" / "images" / "gallery"
MOST_BYTES = 1_500_000

RISK, SURVIVAL, WAVES, SITES, OPEN, ALONE = "risk-score", "survival", "waves", "sites", "open", "alone"


@dataclass(frozen=True)
class Picture:
    """`command` is what somebody types. `screen` names how a page is looked at; without one, the command draws."""

    name: str
    title: str
    about: str
    study: str
    command: str
    screen: str = ""


PICTURES = (
    Picture(
        "curve",
        "The whole distribution, with a band",
        "Which share of those with an event had a score of at most x. The band holds the whole curve with 95 %.",
        RISK,
        "fss-analyst ecdf --stratum event --plot curve.png",
    ),
    Picture(
        "quantiles",
        "Quantiles",
        "Median, quartiles and central 95 % of both groups; the thick part is the interval of the median.",
        RISK,
        "fss-analyst summary --stratum 'no event' --stratum event --plot quantiles.png",
    ),
    Picture(
        "roc",
        "ROC curve",
        "How well the score tells apart those who had an event, with a region that holds the curve, and the area.",
        RISK,
        "fss-analyst roc --plot roc.png",
    ),
    Picture(
        "calibration",
        "Calibration",
        "Are the scores probabilities? What was observed against what was said, in ten groups.",
        RISK,
        "fss-analyst calibration --plot calibration.png",
    ),
    Picture(
        "decision",
        "Decision curve",
        "Does acting on the score do more good than treating all or none?",
        RISK,
        "fss-analyst decision-curve --plot decision.png",
    ),
    Picture(
        "survival",
        "Survival",
        "Kaplan-Meier curves of two arms of a trial, with bands and the number at risk.",
        SURVIVAL,
        "fss-analyst survival --plot survival.png",
    ),
    Picture(
        "trend",
        "A trend",
        "Quantiles of waiting times, wave by wave, while parties go on joining; in the fifth wave something happened.",
        WAVES,
        "fss-analyst trend --plot trend.png",
    ),
    Picture(
        "communication",
        "Bytes on the wire",
        "What a party sends and gets in all, against the number of questions: ours, and two other protocols.",
        ALONE,
        "python -m bench communication --quick --out .",
    ),
    Picture(
        "analyst-console",
        "The analyst's console",
        "All of it in a browser on the own machine; the point on the curve is dragged.",
        RISK,
        "fss-analyst console",
        "analyst",
    ),
    Picture(
        "operator-console",
        "The operator's console",
        "Both servers, a campaign, and its sites with their uploads and quotas.",
        SITES,
        "fss-server console",
        "operator",
    ),
    Picture(
        "party",
        "The party's page",
        "One file, no program to install: what would be sent is drawn on the party's own device first.",
        OPEN,
        "fss-server campaign party-page $FSS_CAMPAIGN_ID --out party.html",
        "party",
    ),
)


def page() -> str:
    """The page of the site, whole."""
    parts = [HEAD]
    for picture in PICTURES:
        parts += [
            f"## {picture.title}\n\n{picture.about}\n",
            f"![{picture.title}](images/gallery/{picture.name}.png)\n",
        ]
        parts.append(f"    {picture.command}\n")
    return "\n".join(parts)


HEAD = """# Gallery

Pictures that the system makes, each with its command. `make gallery` makes all of them again, from two live servers and
simulated people: 2000 patients of `docs/examples/risk-scores.csv`, 2000 of `docs/examples/survival.csv` and 2000 in
each wave, at epsilon = 1. Only colours are thinned out, so that the files are small. `docs/tutorial.md` leads up to
such commands.
"""
