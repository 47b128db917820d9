"""fss-dealer: give a number to a campaign without showing it to anybody, and take it back."""

import argparse
import os
import sys
from pathlib import Path

from fss_ecdf.cli import common


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(common.normalise_argv(argv))

    def work() -> int:
        from dealer import commands

        code: int = getattr(commands, args.command)(args)
        return code

    try:
        code = common.run_command("fss-dealer", "dealer", work)
    except KeyboardInterrupt:
        print(
            "\nfss-dealer: interrupted; what was sent may count. Run it again to go on, or `fss-dealer withdraw`",
            file=sys.stderr,
        )
        return common.TRY_LATER
    if code == common.TRY_LATER:
        print("fss-dealer: try again later; by its receipt it goes on, and nothing counts twice", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fss-dealer", description=__doc__)
    common.add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    send = common.add_command(commands, "upload", "turn values into keys and send them to both servers")
    send.set_defaults(command="upload")
    _add_campaign(send)
    source = send.add_mutually_exclusive_group(required=True)
    source.add_argument("--value", help="one value")
    source.add_argument(
        "--file", metavar="FILE", help="CSV (also .gz), Parquet or Excel (.xlsx), or - for standard input"
    )
    send.add_argument("--column", help="the values' column, by name or number; not needed if there is but one")
    send.add_argument("--stratum", help="the category of all values")
    send.add_argument("--stratum-column", help="the column of the categories, by name or number")
    send.add_argument("--decimal", choices=(".", ","), help="how decimals are written; default: as the file looks")
    send.add_argument("--skip-missing", action="store_true", help="leave out rows that are empty, NA and the like")
    send.add_argument("--allow-clipping", action="store_true", help="send the grid's ends for values that lie off it")
    send.add_argument("--histogram", action="store_true", help="with --dry-run: draw a histogram of what would be sent")
    send.add_argument("--replace", action="store_true", help="withdraw what was sent before, then send these values")
    send.add_argument("--dry-run", action="store_true", help="show what would be sent and send nothing")
    send.add_argument("--yes", action="store_true", help="consent without being asked")
    back = common.add_command(commands, "withdraw", "take back what was sent, while the campaign is open")
    back.set_defaults(command="withdraw")
    _add_campaign(back)
    return parser


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 <= minutes <= 7 * 24 * 60:
        raise argparse.ArgumentTypeError("minutes, up to a week")
    return minutes


def _add_campaign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--campaign",
        nargs=2,
        metavar="URL",
        default=os.environ.get("FSS_CAMPAIGN_URLS", "").split(),
        help="its address at server 0 and at server 1; default: the environment variable FSS_CAMPAIGN_URLS",
    )
    parser.add_argument(
        "--digest",
        default=os.environ.get("FSS_CAMPAIGN_DIGEST") or None,
        help="the digest on your invitation; nothing is sent to another campaign; default: FSS_CAMPAIGN_DIGEST",
    )
    common.add_token(parser, common.UPLOAD_TOKEN)
    parser.add_argument(
        "--ca",
        nargs="+",
        metavar="FILE",
        default=[common.authority(0), common.authority(1)],
        help="certificate authority of both servers, or of server 0 and of server 1, if the system does not know it; "
        "default: the environment variables FSS_CA0 and FSS_CA1",
    )
    parser.add_argument(
        "--receipt",
        type=Path,
        help="one for each party; default: one for you and this campaign, in FSS_RECEIPTS or your data folder",
    )
    parser.add_argument(
        "--patience",
        type=_minutes,
        metavar="MINUTES",
        help="how long a server that is away or busy is asked again; default: 10 for a file, some seconds for a value",
    )
    parser.add_argument(
        "--previous-token-file",
        type=Path,
        metavar="FILE",
        help="the token that the receipt was made with, where the operators gave you another one since",
    )


if __name__ == "__main__":
    sys.exit(main())
