"""fss-server: set up and run a server, and manage campaigns at both."""

import argparse
import sys

import operators.cli
import servers.cli
from campaign.errors import Problem
from client import program


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        code: int = args.run(args)
    except program.BadSettings as error:
        print(f"fss-server: {error}", file=sys.stderr)
        return program.USAGE
    except (Problem, OSError) as trouble:
        return program.tell("fss-server", trouble)
    except ModuleNotFoundError as missing:
        return program.not_installed("fss-server", "server", missing)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fss-server", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    operators.cli.add_set_up(commands)
    servers.cli.add_commands(commands)
    operators.cli.add_campaign(commands)
    operators.cli.add_console(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
