"""What each command of fss-analyst does: ask, print, and draw. Loaded only once a command is known."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from analyst import point_queries
from analyst.client import Client
from analyst.present.table import p_words, short
from analyst.present.terminal import show
from analyst.statistics.calibration import Calibration
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.cli import common


def open_client(args: argparse.Namespace) -> Client:
    if args.campaign is None:
        raise InvalidQuery("the campaign's address is needed, as an argument or in FSS_CAMPAIGN_URLS")
    known = os.environ.get("FSS_CAMPAIGN_URLS", "").split()
    ca = args.ca or common.authority(int(args.campaign in known[1:]))
    which = {"wave": args.wave, "through": args.through, "pooled": args.pooled}
    return Client(args.campaign, common.token(args), ca, on_grid=args.on_grid, **which)


def _draw(args: argparse.Namespace, draw: Callable[[Any], Any]) -> None:
    """Drawing is loaded only when it is asked for: it takes longer than everything else."""
    if args.plot is not None:
        from analyst import plots

        try:
            plots.save(draw(plots), args.plot)
        except ValueError as error:
            raise InvalidQuery(f"{args.plot}: {error}") from None
        print(f"wrote {args.plot}", file=sys.stderr)


def show_campaign(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        print(client.campaign().to_toml(), end="")


def budget(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        found = client.budget()
    print(f"epsilon {found.epsilon:g} for the curve and {found.reserve:g} in reserve")
    print(f"spent   {found.spent:g}\nremain  {found.remaining:g}")


def ecdf(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        if not client.is_whole():
            at = args.at or point_queries.drawn(client.campaign())
            few = client.ecdf(at, args.stratum, smoothing=args.smoothing)
            show(args, few, client.campaign())
            _draw(args, lambda plots: plots.points(few, interval=args.interval))
            return
        curve = client.curve(args.stratum, smoothing=args.smoothing)
        show(args, curve if args.at is None else curve.at(args.at), client.campaign())
        more = {"confidence": args.confidence, "interval": args.interval}
        _draw(args, lambda plots: plots.ecdf(curve, quantiles=curve.quantile(), **more))


def quantile(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        about = {"smoothing": args.smoothing, "confidence": args.confidence}
        quantiles = client.quantile(args.levels, args.stratum, **about)
        show(args, quantiles, client.campaign())
        if not client.is_whole():
            _draw(args, lambda plots: plots.quantiles(quantiles, args.interval))
            return
        curve = client.curve(args.stratum, smoothing=args.smoothing)
        if not (args.json or args.csv):
            mean = curve.mean_estimate(args.confidence)
            low, high = mean.interval("population", args.confidence)
            told = f"{args.confidence:.0%} population interval {short(low)} to {short(high)}"
            print(f"\nmean {short(mean.value)}, {told}")
        more = {"confidence": args.confidence, "interval": args.interval}
        _draw(args, lambda plots: plots.ecdf(curve, quantiles=quantiles, **more))


def histogram(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        edges = args.edges or args.bins
        bars = client.histogram(edges, args.stratum, smoothing=args.smoothing, confidence=args.confidence)
        show(args, bars, client.campaign())
        _draw(args, lambda plots: plots.histogram(bars, client.campaign().title, args.interval))


def compare(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        strata = args.strata or client.campaign().strata
        if len(strata) != 2:
            raise InvalidQuery("name two with --strata: this campaign has " + ", ".join(map(repr, strata)))
        first, second = strata
        comparison = client.compare(first, second, smoothing=args.smoothing, confidence=args.confidence)
        show(args, comparison, client.campaign())
        curves = [client.curve(name, smoothing=args.smoothing) for name in (first, second)]
        _draw(args, lambda plots: plots.ecdf(*curves, confidence=args.confidence, interval=args.interval))


def roc(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        curves = client.roc(args.negative, args.positive, smoothing=args.smoothing)
        show(args, curves, client.campaign())
        _draw(args, lambda plots: plots.roc(curves, args.confidence, args.interval))


def compare_auc(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        areas = client.compare_auc(tuple(args.first), tuple(args.second), confidence=args.confidence)
        show(args, areas, client.campaign())
        _draw(args, lambda plots: plots.forest(areas, args.interval))


def calibration(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        if args.smooth:
            curve = client.calibration_curve(args.negative, args.positive, confidence=args.confidence)
            show(args, curve, client.campaign())
            _draw(args, lambda plots: plots.calibration_curve(curve, args.interval))
            return
        fitted = args.fitted_here
        result = (
            _spent(client, args)
            if args.spend is not None
            else client.calibration(args.edges or args.groups, args.negative, args.positive, fitted=fitted)
        )
        show(args, result, client.campaign())
        if args.spend is not None:
            left = client.budget().remaining
            spent = f"spent epsilon {args.spend:g} (delta {result.groups.delta:.1e}) of the reserve"
            print(f"\n{spent}; {left:g} remain", file=sys.stderr)
        _draw(args, lambda plots: plots.calibration(result, args.interval))


def _spent(client: Client, args: argparse.Namespace) -> Calibration:
    """Algorithm 2: the servers know the first stratum as negative and the second as positive."""
    strata = list(client.campaign().strata)
    if [*(args.negative or strata[:1]), *(args.positive or strata[-1:])] != strata:
        raise InvalidQuery(f"with --spend the strata are {', '.join(map(repr, strata))}, negative and positive")
    ends = args.edges or client.calibration(args.groups).groups.upper_ends.tolist()
    left = client.budget().remaining
    question = f"spend epsilon {args.spend:g} of the {left:g} that remain, for good?"
    if not args.yes and not common.ask_yes_no(question, "spend it with --yes"):
        raise InvalidQuery("nothing was asked and nothing was spent")
    return client.groups(ends, args.spend, fitted=args.fitted_here)


def summary(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        statistics = client.summary(args.stratum, trim=args.trim, confidence=args.confidence)
        show(args, statistics, client.campaign())
        chosen = client.release().strata(args.stratum)
        curves = [client.curve(name, smoothing=args.smoothing) for name in chosen]
        _draw(args, lambda plots: plots.box(*curves, interval=args.interval))


def lorenz(args: argparse.Namespace) -> None:
    from analyst.statistics.distribution import Lorenz

    with open_client(args) as client:
        shares = Lorenz(client.curve(args.stratum, smoothing=args.smoothing))
        show(args, shares, client.campaign())
        _draw(args, lambda plots: plots.lorenz(shares, interval=args.interval))


def performance(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        scores = client.performance(args.negative, args.positive, confidence=args.confidence)
        show(args, scores.performance(args.threshold, args.specificity), client.campaign())
        _draw(args, lambda plots: plots.decision_curve(scores.decision_curve(), args.interval))


def decision_curve(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        benefits = client.performance(args.negative, args.positive, confidence=args.confidence).decision_curve(
            args.thresholds
        )
        show(args, benefits, client.campaign())
        _draw(args, lambda plots: plots.decision_curve(benefits, args.interval))


def survival(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        more = {"smoothing": args.smoothing, "confidence": args.confidence}
        curves = client.survival(args.at, hazard=args.hazard, **more)
        table = client.survival_summary(args.horizon, **more) if args.summary else curves
        show(args, table, client.campaign())
        if not (args.summary or args.json or args.csv):
            from analyst.statistics.survival import log_rank

            for arm in curves.arms[1:]:
                told = p_words(log_rank(curves.arms[0], arm)[1])
                print(f"\nlog-rank, {arm.name} against {curves.arms[0].name}: {told} (noise included)")
        _draw(args, lambda plots: plots.survival(curves, args.interval))


def trend(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        found = client.trend()
    about: dict[str, Any] = {"confidence": args.confidence}
    if args.limits is not None and args.at is None:
        raise InvalidQuery("limits are of a share: name the value with --at")
    if args.changes:
        show(args, found.changes(args.stratum, **about), found.campaign)
    elif args.at is not None:
        limits = None if args.limits is None else (args.limits[0], args.limits[-1])
        told = found.fractions(args.at, args.stratum, limits=limits, interval=args.interval, **about)
        show(args, told, found.campaign)
        for wave in told.alerts:
            print(f"alert: the share of wave {wave} is outside its limits", file=sys.stderr)
        _draw(args, lambda plots: plots.fractions(told, args.interval))
    else:
        quantiles = found.quantiles(args.levels, args.stratum, **about)
        show(args, quantiles, found.campaign)
        _draw(args, lambda plots: plots.over_time(quantiles, args.interval))


def report(args: argparse.Namespace) -> None:
    from datetime import UTC, datetime

    from analyst.present import methods_section
    from analyst.present import report as pages

    if args.out is None and not args.methods and args.files is None:
        raise InvalidQuery("name what to write: --out FILE.html, --files FOLDER or --methods")
    with open_client(args) as client:
        release = client.reported()
        waves = None if release.campaign.waves is None else client.trend()
    if args.methods:
        print(methods_section.text(release))
    if args.out is not None:
        args.out.write_text(pages.page(release, datetime.now(UTC), waves), encoding="utf-8")
        print(f"wrote {args.out}: open it in a browser")
    if args.files is not None:
        written = pages.files(release, args.files, waves)
        print(f"wrote {len(written)} figures and tables to {args.files}")
