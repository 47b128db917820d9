"""fss-analyst: ask about a sealed campaign. Tables by default; --json and --csv for machines, --plot for people.

Intervals come in two kinds: "noise" (the people who took part) and "population" (noise and sampling). Tables have both;
pictures draw the one that --interval names, by default the population's.
"""

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Any

from analyst.options import Option, options_of
from analyst.registry import Statistic, statistics
from fss_ecdf.cli import common


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
    shown = _asking(commands, "show", "what the campaign measures, and how privately, as TOML")
    shown.set_defaults(run="show_campaign")
    _asking(commands, "budget", "which epsilon the campaign may spend, and has spent")
    for statistic in statistics().values():
        _add_statistic(commands, statistic)
    report = _asking(commands, "report", "one self-contained page with all of it")
    report.add_argument("--out", type=Path, metavar="FILE.html", help="the page")
    report.add_argument("--methods", action="store_true", help="only print the words for a paper's methods section")
    report.add_argument("--files", type=Path, metavar="FOLDER", help="also every figure (SVG, PNG) and table (CSV)")
    console = _asking(commands, "console", "all of it in a browser on this machine")
    console.set_defaults(module="analyst.present.console")
    console.add_argument("--port", type=int, default=0, help="default: one that is free")
    _plan(commands)
    return parser


def _add_statistic(commands: Any, statistic: Statistic) -> None:
    """The command of a statistic: its parameters are options."""
    parser = _asking(commands, statistic.name, statistic.help)
    parser.set_defaults(run="query", statistic=statistic.method)
    for parameter, option in options_of(statistic.compute):
        parser.add_argument(option.flag or f"--{parameter.name.replace('_', '-')}", **_argument(parameter, option))
    if statistic.spends:
        parser.add_argument("--yes", action="store_true", help="spend it without being asked")
    parser.add_argument("--interval", choices=("noise", "population"), default="population", help="to draw")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw it: .png, .svg or .pdf")
    _formats(parser)


def _argument(parameter: Parameter, option: Option) -> dict[str, Any]:
    """What argparse is told of an option."""
    default, about = parameter.default, {"dest": parameter.name, "help": option.help, **option.more}
    if default is Parameter.empty:
        return {**about, "required": True, **({"type": option.read} if option.read else {})}
    if default is False:
        return {**about, "action": "store_true"}
    if default is not None:
        about["help"] += f"; default: {_typed(default)}"
    return {**about, "default": default, **({"type": option.read} if option.read else {})}


def _typed(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _asking(commands: Any, name: str, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = common.add_command(commands, name, help)
    parser.set_defaults(module="analyst.present.commands", run=name)
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


if __name__ == "__main__":
    sys.exit(main())
