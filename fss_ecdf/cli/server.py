"""fss-server: set up and run a server, and manage campaigns at both."""

import argparse
import sys

from fss_ecdf.cli import common
from fss_ecdf.operators import cli as operators
from servers import cli as servers
from servers.maintenance import commands as maintenance


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
    operators.add_campaign(commands)
    operators.add_console(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
