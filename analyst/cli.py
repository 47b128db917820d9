"""fss-analyst: ask about a sealed campaign. Tables by default; --json and --csv for machines, --plot for people.

Intervals come in two kinds: "noise" (the people who took part) and "population" (noise and sampling). Tables have both;
pictures draw the one that --interval names, by default the population's.
"""

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from analyst.options import QUARTILES, Smoothing
from fss_ecdf.cli import common

SMOOTHINGS = get_args(Smoothing)


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(common.normalise_argv(argv))

    def work() -> int:
        # Loaded once it is known what to do: help and mistakes are answered at once.
        run: Callable[[argparse.Namespace], None] = getattr(import_module(args.module), args.run)
        run(args)
        return common.OK

    return common.run_command("fss-analyst", "analyst", work)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fss-analyst", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shown = _asking(commands, "show", "what the campaign measures, and how privately, as TOML", tabular=False)
    shown.set_defaults(run="show_campaign")
    _asking(commands, "budget", "which epsilon the campaign may spend, and has spent", tabular=False)
    _distributions(commands)
    _scores(commands)
    _survival(commands)
    report = _asking(commands, "report", "one self-contained page with all of it", tabular=False)
    report.add_argument("--out", type=Path, metavar="FILE.html", help="the page")
    report.add_argument("--methods", action="store_true", help="only print the words for a paper's methods section")
    report.add_argument("--files", type=Path, metavar="FOLDER", help="also every figure (SVG, PNG) and table (CSV)")
    console = _asking(commands, "console", "all of it in a browser on this machine", tabular=False)
    console.set_defaults(module="analyst.present.console")
    console.add_argument("--port", type=int, default=0, help="default: one that is free")
    _plan(commands)
    return parser


def _distributions(commands: Any) -> None:
    ecdf = _asking(commands, "ecdf", "how many values are at or below thresholds; without --at, the curve")
    ecdf.add_argument("--at", type=_list, help="thresholds, separated by commas")
    quantile = _asking(commands, "quantile", "which value has a given share of all values below it")
    quantile.add_argument("--levels", type=_numbers, default=QUARTILES, help="default: 0.05,0.25,0.5,0.75,0.95")
    histogram = _asking(commands, "histogram", "how many values lie in each bin")
    histogram.add_argument("--edges", type=_list, help="upper edges of the bins, separated by commas")
    histogram.add_argument("--bins", type=int, default=20, help="how many even bins, if no edges are given")
    summary = _asking(commands, "summary", "mean, trimmed mean, median, quartiles, reference interval, Gini")
    summary.add_argument("--trim", type=float, default=0.1, help="share cut off each end for the trimmed mean")
    lorenz = _asking(commands, "lorenz", "which share of all there is the lowest share of people has; Gini")
    for one in (ecdf, quantile, histogram, summary, lorenz):
        one.add_argument(
            "--stratum", action="append", metavar="NAME", help="again for several, pooled; default: all of them"
        )
    _trend(commands)
    compare = _asking(commands, "compare", "two strata: distances, differences and tests that count the noise in")
    compare.add_argument("--strata", nargs=2, metavar="NAME", help="default: the two that the campaign has")


def _trend(commands: Any) -> None:
    trend = _asking(commands, "trend", "a campaign of waves over time: quantiles, shares and alerts, changes")
    trend.add_argument("--levels", type=_numbers, default=[0.25, 0.5, 0.75], help="default: 0.25,0.5,0.75")
    trend.add_argument("--at", help="the share at or below this value instead of quantiles")
    trend.add_argument("--limits", type=_numbers, metavar="LOW,HIGH", help="alert where that share leaves them")
    trend.add_argument("--changes", action="store_true", help="each wave against the one before it, with tests")
    trend.add_argument("--stratum", action="append", metavar="NAME", help="again for several, pooled; default: all")


def _scores(commands: Any) -> None:
    roc = _asking(commands, "roc", "how well the score separates two strata: ROC, AUC, precision and recall")
    model = _asking(
        commands, "performance", "performance of a prediction model: Brier score, slope, sensitivity, net benefit"
    )
    model.add_argument("--threshold", type=float, default=0.5, help="who is above it is called positive")
    model.add_argument("--specificity", type=float, default=0.9, help="at which the sensitivity is told")
    decision = _asking(commands, "decision-curve", "net benefit compared with treating everybody and nobody")
    decision.add_argument("--thresholds", type=_numbers, help="separated by commas; default: 25 even ones")
    calibration = _asking(commands, "calibration", "are the scores probabilities? Hosmer-Lemeshow")
    calibration.add_argument("--groups", type=int, default=10, help="how many groups of about equal size")
    calibration.add_argument(
        "--edges", type=_numbers, help="upper edges of the score groups instead, separated by commas"
    )
    calibration.add_argument(
        "--fitted-here",
        action="store_true",
        help="the model was fitted to these people, not elsewhere",
    )
    calibration.add_argument("--smooth", action="store_true", help="a smooth curve with a band instead of groups")
    calibration.add_argument(
        "--spend", type=float, metavar="EPSILON", help="use the paper's Algorithm 2, paid from the campaign's reserve"
    )
    calibration.add_argument("--yes", action="store_true", help="spend it without being asked")
    for one in (roc, model, decision, calibration):
        one.add_argument("--negative", action="append", metavar="NAME", help="default: the first of two strata")
        one.add_argument("--positive", action="append", metavar="NAME", help="default: the second of two strata")
    areas = _asking(commands, "compare-auc", "the difference of two AUCs, of four strata")
    for which in ("first", "second"):
        areas.add_argument(
            f"--{which}", nargs=2, required=True, metavar=("NEGATIVE", "POSITIVE"), help="strata of one AUC"
        )


def _survival(commands: Any) -> None:
    survival = _asking(commands, "survival", "Kaplan-Meier curves, number at risk, median, log-rank test")
    survival.add_argument("--at", type=_numbers, help="times of the table, separated by commas")
    survival.add_argument("--horizon", type=float, help="of the restricted mean; default: the last time")
    survival.add_argument("--hazard", action="store_true", help="Nelson-Aalen's cumulative hazard instead")
    survival.add_argument("--summary", action="store_true", help="medians, restricted means, tests instead of curves")


def _asking(commands: Any, name: str, help: str, *, tabular: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = common.add_command(commands, name, help)
    parser.set_defaults(module="analyst.present.commands", run=name.replace("-", "_"))
    known = os.environ.get("FSS_CAMPAIGN_URLS", "").split()
    parser.add_argument(
        "campaign",
        metavar="URL",
        nargs="?",
        default=known[0] if known else None,
        help="its address at either server; default: the first one in the environment variable FSS_CAMPAIGN_URLS",
    )
    common.add_token(parser, common.ANALYST_TOKEN)
    parser.add_argument(
        "--ca",
        metavar="FILE",
        help="certificate authority of this server, if the system does not know it; default: the environment variable "
        "FSS_CA1 for the second address in FSS_CAMPAIGN_URLS, otherwise FSS_CA0",
    )
    parser.add_argument(
        "--on-grid", action="store_true", help="values were measured in steps of the grid: no half-step correction"
    )
    which = parser.add_mutually_exclusive_group()
    for option, what in (
        ("wave", "one wave"),
        ("through", "all waves through this one"),
        ("pooled", "what was pooled after one"),
    ):
        which.add_argument(f"--{option}", type=int, metavar="N", help=f"of a campaign of waves: {what}")
    if tabular:
        default = "limited" if name in ("ecdf", "histogram") else "isotonic"
        parser.add_argument(
            "--smoothing", choices=SMOOTHINGS, default=default, help=f"smoothing of the curve; default: {default}"
        )
        parser.add_argument("--confidence", type=float, default=0.95, help="of intervals and bands")
        parser.add_argument("--interval", choices=("noise", "population"), default="population", help="to draw")
        parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw it: .png, .svg or .pdf")
        _formats(parser)
    return parser


def _formats(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="all numbers as JSON")
    formats.add_argument("--csv", action="store_true", help="all rows as CSV")


def _plan(commands: Any) -> None:
    help = "which epsilon, and how many parties, do I need? Asks nobody"
    parser: argparse.ArgumentParser = common.add_command(commands, "plan", help)
    parser.set_defaults(module="analyst.present.plan", run="plan")
    parser.add_argument("--thresholds", type=int, default=1000, help="of the grid")
    parser.add_argument("--strata", type=int, default=1, help="how many; default: one")
    parser.add_argument(
        "--proportions", type=float, nargs="+", metavar="P", help="expected proportion of each stratum, like 0.9 0.1"
    )
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 10_000, 100_000], help="how many values in all")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0], help="of the campaign")
    parser.add_argument("--target-error", type=float, help="the standard error to reach, as a fraction of n, like 0.01")
    parser.add_argument("--values-per-person", type=int, default=1, help="the most values of one person")
    _formats(parser)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers separated by commas, got {text!r}") from None


if __name__ == "__main__":
    sys.exit(main())
