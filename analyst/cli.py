"""fss-analyst: ask about a sealed campaign. Tables by default; --json and --csv for machines, --plot for people."""

import argparse
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from analyst.options import QUARTILES, Smoothing
from campaign.errors import InvalidInput, InvalidQuery, Problem
from client import program

if TYPE_CHECKING:  # what a command needs is loaded when it is called
    from analyst.calibration import Calibration
    from analyst.client import Client
    from analyst.table import Tabular
    from campaign.spec import Campaign


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        run: Callable[[argparse.Namespace], None] = args.run
        run(args)
        return program.OK
    except (Problem, OSError) as trouble:
        return program.tell("fss-analyst", trouble)
    except ModuleNotFoundError as missing:
        return program.not_installed("fss-analyst", "analyst", missing)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fss-analyst", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ecdf = _asking(commands, "ecdf", _ecdf, "how many values are at or below thresholds; without --at, the curve")
    ecdf.add_argument("--at", type=_list, help="thresholds, separated by commas")
    _one_stratum(ecdf)
    quantile = _asking(commands, "quantile", _quantile, "which value has a given share of all values below it")
    quantile.add_argument("--levels", type=_numbers, default=list(QUARTILES), help="default: 0.05,0.25,0.5,0.75,0.95")
    _one_stratum(quantile)
    histogram = _asking(commands, "histogram", _histogram, "how many values lie in each bin")
    histogram.add_argument("--edges", type=_list, help="upper edges of the bins, separated by commas")
    histogram.add_argument("--bins", type=int, default=20, help="how many even bins, if no edges are given")
    _one_stratum(histogram)
    roc = _asking(commands, "roc", _roc, "how well the score separates two strata: ROC, AUC, precision and recall")
    _two_strata(roc)
    calibration = _asking(commands, "calibration", _calibration, "are the scores probabilities? Hosmer-Lemeshow")
    calibration.add_argument("--groups", type=int, default=10, help="how many groups of about equal size")
    calibration.add_argument("--ends", type=_numbers, help="upper ends of the groups instead, separated by commas")
    calibration.add_argument("--external", action="store_true", help="the model was not fitted to these people")
    calibration.add_argument(
        "--spend", type=float, metavar="EPSILON", help="use the paper's Algorithm 2, paid from the campaign's reserve"
    )
    _two_strata(calibration)
    compare = _asking(commands, "compare", _compare, "two strata: Kolmogorov-Smirnov distance and Mann-Whitney")
    compare.add_argument("--strata", nargs=2, metavar="NAME", help="default: the two that the campaign has")
    report = _asking(commands, "report", _report, "one self-contained page with all of it", tabular=False)
    report.add_argument("--out", type=Path, required=True, metavar="FILE.html")
    _plan_parser(commands)
    return parser


def _asking(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], help: str, *, tabular: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(run=run)
    known = os.environ.get("FSS_CAMPAIGN", "").split()
    parser.add_argument(
        "campaign",
        metavar="URL",
        nargs="?",
        default=known[0] if known else None,
        help="its address at either server; default: the first one in the environment variable FSS_CAMPAIGN",
    )
    program.add_access(parser)
    if tabular:
        parser.add_argument("--smoothing", choices=get_args(Smoothing), default="isotonic")
        parser.add_argument("--confidence", type=float, default=0.95, help="of intervals and bands")
        parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw it: .png, .svg or .pdf")
        _formats(parser)
    return parser


def _formats(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="all numbers as JSON")
    formats.add_argument("--csv", action="store_true", help="all rows as CSV")


def _one_stratum(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stratum", help="default: the campaign's first")


def _two_strata(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--negative", help="default: the first of two strata")
    parser.add_argument("--positive", help="default: the second of two strata")


def _plan_parser(commands: Any) -> None:
    help = "which epsilon, and how many parties, do I need? Asks nobody"
    parser: argparse.ArgumentParser = commands.add_parser("plan", help=help, description=help)
    parser.set_defaults(run=_plan)
    parser.add_argument("--thresholds", type=int, default=1000, help="of the grid")
    parser.add_argument("--strata", type=int, default=1)
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 10_000, 100_000], help="how many values in all")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--accuracy", type=float, help="the standard error you want, as a fraction of n, like 0.01")
    parser.add_argument("--instances", type=int, default=1, help="how many values one party may give")
    _formats(parser)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers separated by commas, got {text!r}") from None


def _client(args: argparse.Namespace) -> "Client":
    from analyst.client import Client

    token = program.token(args)
    if args.campaign is None:
        raise InvalidQuery("the campaign's address is needed, as an argument or in FSS_CAMPAIGN")
    if not token:
        raise InvalidQuery("a token is needed: --token-file FILE, or the environment variable FSS_TOKEN")
    return Client(args.campaign, token, args.ca)


def _show(args: argparse.Namespace, made: "Tabular", campaign: "Campaign | None" = None) -> None:
    """Print a result in the wanted form."""
    from analyst.table import short

    if args.json:
        print(made.to_json(), end="")
    elif args.csv:
        print(made.to_csv(), end="")
    else:
        if campaign is not None:
            print(campaign.title)
        about = {name: value for name, value in made.about().items() if name != "notes"}
        for name, value in about.items():
            print(f"  {name.replace('_', ' '):<34} {short(value)}")
        print(f"\n{made.to_text()}")
        for note in made.about().get("notes", []):
            print(f"\nnote: {note}")


def _draw(args: argparse.Namespace, draw: Callable[[Any], Any]) -> None:
    """Drawing is loaded only when it is asked for: it takes longer than everything else."""
    if args.plot is not None:
        from analyst import plot

        try:
            plot.save(draw(plot), args.plot)
        except ValueError as error:
            raise InvalidQuery(f"{args.plot}: {error}") from None
        print(f"wrote {args.plot}", file=sys.stderr)


def _ecdf(args: argparse.Namespace) -> None:
    with _client(args) as client:
        if args.at is not None:
            _show(args, client.ecdf(args.at, args.stratum, smoothing=args.smoothing), client.campaign())
        else:
            _show(args, client.curve(args.stratum, smoothing=args.smoothing), client.campaign())
        if args.plot is not None:
            curve = client.curve(args.stratum, smoothing=args.smoothing)
            _draw(args, lambda plot: plot.ecdf(curve, quantiles=curve.quantile(), confidence=args.confidence))


def _quantile(args: argparse.Namespace) -> None:
    from analyst.table import short

    with _client(args) as client:
        curve = client.curve(args.stratum, smoothing=args.smoothing)
        made = curve.quantile(args.levels, args.confidence)
        _show(args, made, client.campaign())
        if not (args.json or args.csv):
            mean = client.mean(args.stratum)
            print(f"\nmean {short(mean.value)}, give or take {short(mean.standard_error)} (one standard error)")
        _draw(args, lambda plot: plot.ecdf(curve, quantiles=made, confidence=args.confidence))


def _histogram(args: argparse.Namespace) -> None:
    with _client(args) as client:
        made = client.histogram(args.edges or args.bins, args.stratum, smoothing=args.smoothing)
        _show(args, made, client.campaign())
        _draw(args, lambda plot: plot.histogram(made))


def _roc(args: argparse.Namespace) -> None:
    with _client(args) as client:
        made = client.roc(args.negative, args.positive, smoothing=args.smoothing)
        _show(args, made, client.campaign())
        _draw(args, lambda plot: plot.roc(made, args.confidence))


def _calibration(args: argparse.Namespace) -> None:
    with _client(args) as client:
        fitted = not args.external
        made = (
            _spent(client, args)
            if args.spend is not None
            else client.calibration(args.ends or args.groups, args.negative, args.positive, fitted=fitted)
        )
        _show(args, made, client.campaign())
        if args.spend is not None:
            left = client.budget().remaining
            print(f"\nspent epsilon {args.spend:g} of the reserve; {left:g} remain", file=sys.stderr)
        _draw(args, lambda plot: plot.calibration(made))


def _spent(client: "Client", args: argparse.Namespace) -> "Calibration":
    """Algorithm 2: the servers know the first stratum as negative and the second as positive."""
    strata = list(client.campaign().strata)
    if [args.negative or strata[0], args.positive or strata[-1]] != strata:
        raise InvalidQuery(f"with --spend the strata are {', '.join(map(repr, strata))}, negative and positive")
    ends = args.ends or client.calibration(args.groups).groups.upper_ends.tolist()
    return client.groups(ends, args.spend, fitted=not args.external)


def _compare(args: argparse.Namespace) -> None:
    with _client(args) as client:
        strata = args.strata or client.campaign().strata
        if len(strata) != 2:
            raise InvalidQuery("name two with --strata: this campaign has " + ", ".join(map(repr, strata)))
        first, second = strata
        made = client.compare(first, second, smoothing=args.smoothing, confidence=args.confidence)
        _show(args, made, client.campaign())
        curves = [client.curve(name, smoothing=args.smoothing) for name in (first, second)]
        _draw(args, lambda plot: plot.ecdf(*curves, confidence=args.confidence))


def _report(args: argparse.Namespace) -> None:
    from analyst import report

    with _client(args) as client:
        text = report.page(client.release(), datetime.now(UTC))
    args.out.write_text(text, encoding="utf-8")
    print(f"wrote {args.out}: open it in a browser")


def _plan(args: argparse.Namespace) -> None:
    from analyst.plan import Plan
    from campaign.noise import planning

    _show(args, Plan(args))
    if args.json or args.csv:
        return
    print("\npoint error: one standard error of the curve at a threshold, as a fraction of n")
    print("band 95: the whole curve is within this fraction of n of the truth, with probability 95 %")
    print("quantile steps: standard error of a quantile in steps of the grid, for values spread evenly over it")
    if args.accuracy is not None:
        more = {"thresholds": args.thresholds, "strata": args.strata, "instances": args.instances}
        for n in args.n:
            try:
                needed = f"{planning.epsilon_for(args.accuracy, n=n, **more):.2g}"
            except InvalidInput:
                needed = "more than any campaign may have"
            print(f"for a point error of {args.accuracy:g} with n = {n}: epsilon {needed}")


if __name__ == "__main__":
    sys.exit(main())
