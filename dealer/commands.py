"""What `fss-dealer` does: show what would be sent, ask for consent, send it, take it back."""

import argparse
import contextlib
import io
import os
import sys
from pathlib import Path

from tqdm import tqdm

from campaign.errors import InvalidValue
from campaign.spec import Campaign, Placed, to_base64url
from campaign.wire import upload_bytes
from client import program
from dealer import records, sending
from dealer.receipt import default_path
from dealer.sites import Sites
from fss import BackendError


def _sites(args: argparse.Namespace, token: str) -> Sites:
    if not token:
        raise InvalidValue("a token is needed: --token-file FILE, or the environment variable FSS_TOKEN")
    return Sites(args.campaign, token, args.ca)


def upload(args: argparse.Namespace) -> int:
    try:
        return _upload(args)
    except BackendError as error:
        raise program.BadSettings(str(error)) from None


def _upload(args: argparse.Namespace) -> int:
    token = program.token(args)
    sites = _sites(args, "none" if args.dry_run else token)
    campaign = sites.fetch()
    placed = _records(args).place(campaign)
    _describe(campaign, placed)
    if args.dry_run:
        print("\nnothing was sent (--dry-run)")
        return program.OK
    if not args.yes and not _consent(args.csv == "-"):
        print("nothing was sent")
        return program.OK
    receipt = args.receipt or default_path(to_base64url(campaign.id), os.environ)
    with tqdm(total=placed.positions.size, unit=" values", disable=placed.positions.size < sending.BATCH) as bar:
        try:
            outcome = sending.upload(
                placed, campaign, sites, receipt=receipt, replace=args.replace, progress=bar.update
            )
        except BackendError as error:
            raise program.BadSettings(str(error)) from None
    print(f"both servers have stored {outcome.sent} values", end="")
    print(f"; {outcome.already_done} were there from before" if outcome.already_done else "")
    if not outcome.sent:
        print("the same values were sent before and were not sent again; another party's need another --receipt FILE")
    print(f"receipt: {receipt} (keep it to yourself; to take the values back: fss-dealer withdraw)")
    return program.OK


def withdraw(args: argparse.Namespace) -> int:
    sites = _sites(args, program.token(args))
    print(f"both servers have withdrawn what was sent: {sending.withdraw(sites, receipt=args.receipt)} values")
    return program.OK


def _records(args: argparse.Namespace) -> records.Records:
    if args.value is not None:
        return records.from_value(args.value, args.stratum)
    with contextlib.ExitStack() as stack:
        if args.csv == "-":
            file: io.TextIOBase = io.StringIO(sys.stdin.read())
        else:
            file = stack.enter_context(Path(args.csv).open(newline="", encoding="utf-8-sig"))
        return records.from_csv(file, args.column, args.stratum_column)  # type: ignore[arg-type]


def _describe(campaign: Campaign, placed: Placed) -> None:
    grid, n = campaign.grid, placed.positions.size
    print(f"{campaign.title}\n  question  {campaign.question}")
    print(f"  privacy   epsilon {campaign.total_epsilon:g} in all, {campaign.mechanism}, noise from both servers")
    print(f"  keys      {campaign.check_in_words}")
    print(f"  grid      {grid.size} thresholds from {grid.label(0)} to {grid.label(grid.size - 1)}", end="")
    print(f", strata {', '.join(campaign.strata)}" if len(campaign.strata) > 1 else "")
    print(f"  values    {n}, of which {placed.below} below and {placed.above} above the grid are moved to its ends")
    print(f"  to send   {upload_bytes(campaign, n)} bytes to each server ({campaign.key_type(0).key_bytes} a key)")
    if n > campaign.max_instances:
        values = "1 value" if campaign.max_instances == 1 else f"{campaign.max_instances} values"
        print(f"  note      one party is protected for {values}; these count as several parties")
    print("  once      the receipt in your data folder keeps a second upload by you on this machine from counting.")
    print("            One from another machine or account, or with another --receipt, is not noticed and counts too")


def _consent(stdin_is_data: bool) -> bool:
    if stdin_is_data:
        raise InvalidValue("standard input holds the values, so nobody can be asked: consent with --yes")
    return input("\ntake part? [y/N] ").strip().lower() in ("y", "yes")
