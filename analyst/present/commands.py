"""What each command of fss-analyst does: ask, print, and draw. Loaded only once a command is known."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from analyst.client import Client
from analyst.present.terminal import show
from analyst.registry import statistics
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.cli import common

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def open_client(args: argparse.Namespace) -> Client:
    if args.campaign is None:
        raise InvalidQuery("the campaign's address is needed, as an argument or in FSS_CAMPAIGN_URLS")
    known = os.environ.get("FSS_CAMPAIGN_URLS", "").split()
    ca = args.ca or common.authority(int(args.campaign in known[1:]))
    which = {"wave": args.wave, "through": args.through, "pooled": args.pooled}
    return Client(args.campaign, common.token(args), ca, on_grid=args.on_grid, **which)


def show_campaign(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        print(client.campaign().to_toml(), end="")


def budget(args: argparse.Namespace) -> None:
    with open_client(args) as client:
        found = client.budget()
    print(f"epsilon {found.epsilon:g} for the curve and {found.reserve:g} in reserve")
    print(f"spent   {found.spent:g}\nremain  {found.remaining:g}, of the reserve {found.reserve_left:g}")


def query(args: argparse.Namespace) -> None:
    """Compute a statistic of the registry, print it and draw it."""
    statistic = statistics()[args.statistic]
    options = {name: getattr(args, name) for name in statistic.parameters}
    with open_client(args) as client:
        if statistic.spends:
            _ask_to_spend(client, options["epsilon"], args.yes)
        result = client.statistic(statistic, **options)
        show(args, result, client.campaign())
        options = {**options, "interval": args.interval}
        if statistic.shown.remarks is not None and not (args.json or args.csv):
            for remark in statistic.shown.remarks(client, result, options):
                print(f"\n{remark}")
        if statistic.spends:
            left = client.budget().reserve_left
            print(f"\nspent epsilon {options['epsilon']:g} of the reserve; {left:g} is left", file=sys.stderr)
        if args.plot is not None:
            _draw(args.plot, lambda: statistic.picture(client, result, options))


def _draw(path: Path, draw: "Callable[[], Figure]") -> None:
    """Drawing is loaded only when it is asked for: it takes longer than everything else."""
    from analyst import plots

    try:
        plots.save(draw(), path)
    except ValueError as error:
        raise InvalidQuery(f"{path}: {error}") from None
    print(f"wrote {path}", file=sys.stderr)


def _ask_to_spend(client: Client, epsilon: float, is_agreed: bool) -> None:
    question = f"spend epsilon {epsilon:g} of the {client.budget().reserve_left:g} left of the reserve, for good?"
    if not is_agreed and not common.ask_yes_no(question, "spend it with --yes"):
        raise InvalidQuery("nothing was asked and nothing was spent")


def report(args: argparse.Namespace) -> None:
    from datetime import UTC, datetime

    from analyst.present import methods_section
    from analyst.present import report as pages

    if args.out is None and not args.methods and args.files is None:
        raise InvalidQuery("name what to write: --out FILE.html, --files FOLDER or --methods")
    with open_client(args) as client:
        release = client.reported()
        waves = None if release.campaign.waves is None else client.waves()
    if args.methods:
        print(methods_section.text(release))
    if args.out is not None:
        args.out.write_text(pages.page(release, datetime.now(UTC), waves), encoding="utf-8")
        print(f"wrote {args.out}: open it in a browser")
    if args.files is not None:
        written = pages.files(release, args.files, waves)
        print(f"wrote {len(written)} figures and tables to {args.files}")
