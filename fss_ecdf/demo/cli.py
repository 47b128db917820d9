"""fss-ecdf: what is installed, and a demonstration of it.

programs:
  fss-dealer   upload values to a campaign, as a party or a site
  fss-server   set up and run a server, and manage campaigns on both servers
  fss-analyst  query a sealed campaign, draw, and write a report

Each of them has --help.
"""

import argparse
import sys
from pathlib import Path

from fss_ecdf.cli import common


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def work() -> int:
        from fss_ecdf.demo import run  # needs what all roles need; --help does not

        return run.run(args)

    try:
        return common.run_command("fss-ecdf", "all", work)
    except KeyboardInterrupt:
        print("\nfss-ecdf: interrupted", file=sys.stderr)
        return common.TRY_LATER


def _parser() -> argparse.ArgumentParser:
    about, programs = (__doc__ or "").split("\n", 1)
    parser = argparse.ArgumentParser(
        prog="fss-ecdf", description=about, epilog=programs, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = common.add_command(commands, "demo", "run two servers and forty simulated hospitals on this machine")
    demo.add_argument("--out", type=Path, default=Path("demo-output"), help="the folder to write; default: demo-output")
    demo.add_argument("--hospitals", type=int, default=40, help="default: 40")
    demo.add_argument("--patients", type=int, help="of all hospitals, at least 1000; default: 20 000")
    demo.add_argument("--waves", action="store_true", help="simulate a year of weekly waiting times instead")
    demo.add_argument("--weeks", type=int, default=52, help="how many weeks the year of --waves has; default: 52")
    demo.add_argument("--seed", type=int, default=1, help="of the simulated patients; default: 1")
    demo.add_argument("--keep", action="store_true", help="leave the servers running and print commands to try")
    return parser


if __name__ == "__main__":
    sys.exit(main())
