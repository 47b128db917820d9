"""fss-server: set up and run a server, and manage campaigns at both."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fss_ecdf.cli import common
from fss_ecdf.operators import cli as operators
from servers import cli as servers
from servers.maintenance import commands as maintenance

if TYPE_CHECKING:
    from fss_ecdf.campaign.campaign import Campaign
    from fss_ecdf.campaign.noise.expected_errors import ExpectedErrors


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(common.normalise_argv(argv))
    return common.run_command("fss-server", "server", lambda: args.run(args))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fss-server", description=__doc__)
    common.add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    operators.add_set_up(commands)
    servers.add_commands(commands)
    maintenance.add_commands(commands)
    operators.add_campaign(commands, _supported)
    operators.add_console(commands)
    return parser


def _supported(campaign: "Campaign", best: "ExpectedErrors") -> "Iterator[tuple[str, str]]":
    from fss_ecdf.cli.supported import supported

    return supported(campaign, best)


if __name__ == "__main__":
    sys.exit(main())
