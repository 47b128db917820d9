"""fss-server: set up and run a server, and manage campaigns at both."""

import argparse
import sys

import operators.cli
import servers.care
import servers.cli
from client import program


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(program.words(argv))
    return program.guarded("fss-server", "server", lambda: args.run(args))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fss-server", description=__doc__)
    program.add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    operators.cli.add_set_up(commands)
    servers.cli.add_commands(commands)
    servers.care.add_commands(commands)
    operators.cli.add_campaign(commands)
    operators.cli.add_console(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
