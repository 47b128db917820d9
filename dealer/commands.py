"""What `fss-dealer` does: show what would be sent, ask for consent, send it, take it back."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from dealer import input_rows, upload_client
from dealer.histogram import histogram
from dealer.receipt import default_path
from dealer.servers import NO_DIGEST, ServerPair
from fss import BackendError
from fss.table import SEED_BYTES
from fss_ecdf.campaign.campaign import Campaign, Positions, to_base64url
from fss_ecdf.campaign.errors import DigestNeeded, InvalidValue, Problem
from fss_ecdf.campaign.sealed_uploads import sealed_bytes, sealed_table_bytes
from fss_ecdf.campaign.tables import plan_upload, table_shape
from fss_ecdf.cli import common

FILE_MINUTES = 10.0  # somebody who sends a file need not sit beside it
SAY_AGAIN_S = 30.0


def _sites(args: argparse.Namespace, token: str) -> ServerPair:
    old = args.previous_token_file.read_text().strip() if args.previous_token_file else None
    minutes = args.patience if args.patience is not None else FILE_MINUTES if getattr(args, "file", None) else None
    seconds = None if minutes is None else 60 * minutes
    said = _Waiting()
    return ServerPair(
        args.campaign, token, args.ca, digest=args.digest, receipt_token=old, patience_s=seconds, waiting=said
    )


class _Waiting:
    """Says what is waited for: when it begins or changes, and then now and then."""

    def __init__(self) -> None:
        self._said, self._at = "", -SAY_AGAIN_S

    def __call__(self, problem: Problem, left_s: float) -> None:
        now = time.monotonic()
        if problem.detail == self._said and now - self._at < SAY_AGAIN_S:
            return
        self._said, self._at = problem.detail, now
        print(f"fss-dealer: {problem.detail}; trying again, for {max(1, round(left_s))} s yet", file=sys.stderr)


def upload(args: argparse.Namespace) -> int:
    try:
        return _upload(args)
    except BackendError as error:
        raise common.UsageError(str(error)) from None


def _upload(args: argparse.Namespace) -> int:
    _check_options(args)
    if args.digest is None and not args.dry_run:
        raise DigestNeeded(NO_DIGEST)
    sites = _sites(args, "none" if args.dry_run else common.token(args))
    campaign = sites.fetch_campaign()
    found = _records(args, campaign)
    placed = found.to_positions(campaign)
    _describe(campaign, placed, found.notes, sites)
    if args.histogram:
        print(f"\n{histogram(campaign, placed)}")
    input_rows.check_clipping(campaign, placed, args.allow_clipping)
    if args.dry_run:
        print("\nnothing was sent (--dry-run)")
        return common.OK
    if not args.yes and not _consent(args.file == "-", campaign.epsilon_for_party(sites.wave)):
        print("nothing was sent")
        return common.OK
    receipt = args.receipt or default_path(to_base64url(campaign.id), os.environ)
    with tqdm(total=placed.positions.size, unit=" values", disable=placed.positions.size < upload_client.BATCH) as bar:
        try:
            outcome = upload_client.upload(
                placed, campaign, sites, receipt=receipt, replace=args.replace, progress=bar.update
            )
        except BackendError as error:
            raise common.UsageError(str(error)) from None
    tables = "" if not outcome.tables else " in one table" if outcome.tables == 1 else f" in {outcome.tables} tables"
    print(f"both servers have stored {outcome.sent} values{tables}", end="")
    print(f"; {outcome.already_sent} were there from before" if outcome.already_sent else "")
    if not outcome.sent:
        print("the same values were sent before and were not sent again; another party's need another --receipt FILE")
    print(f"receipt: {receipt} (keep it to yourself; to take the values back: fss-dealer withdraw)")
    return common.OK


def withdraw(args: argparse.Namespace) -> int:
    sites = _sites(args, common.token(args))
    print(f"both servers have withdrawn what was sent: {upload_client.withdraw(sites, receipt=args.receipt)} values")
    return common.OK


def _records(args: argparse.Namespace, campaign: Campaign) -> input_rows.InputRows:
    if args.value is not None:
        return input_rows.from_value(args.value, args.stratum)
    data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    options = input_rows.Options(args.column, args.stratum, args.stratum_column, args.skip_missing, args.decimal)
    return input_rows.from_file(data, options, campaign.variable)


def _check_options(args: argparse.Namespace) -> None:
    """What would be left without effect is a mistake."""
    of_files = {
        "--column": args.column,
        "--stratum-column": args.stratum_column,
        "--skip-missing": args.skip_missing,
        "--decimal": args.decimal,
    }
    for name, given in of_files.items():
        if given and args.value is not None:
            raise common.UsageError(f"{name} is for files: it goes with --csv, not with --value")
    if args.stratum is not None and args.stratum_column is not None:
        raise common.UsageError("--stratum is the category of all values, --stratum-column that of each: give one")
    if args.histogram and not args.dry_run:
        raise common.UsageError("--histogram shows what would be sent: it goes with --dry-run")


def _privacy(campaign: Campaign, wave: int) -> None:
    mechanism = campaign.variable.mechanism
    print(f"  privacy   epsilon {campaign.epsilon_for_party(wave):g} in all, {mechanism}, noise of both servers")
    if campaign.waves is None:
        return
    pooled = campaign.waves.pooled_from(wave)
    print(f"            of it {campaign.epsilon:g} for your wave, number {wave} or the next", end="")
    print(f", {pooled:g} for what is pooled later" if pooled else "", end="")
    print(f", {campaign.reserve:g} kept for further statistics" if campaign.reserve else "")
    print(f"  waves     {campaign.waves.describe()}")
    print(f"            a wave with fewer than {campaign.min_uploads} uploads is released with the next")


def _describe(campaign: Campaign, placed: Positions, notes: Sequence[str], sites: ServerPair) -> None:
    """Numbers first, words of others last: what a person consents to cannot be pushed aside by a text."""
    n = placed.positions.size
    _privacy(campaign, sites.wave)
    print(f"  uploads   at least {campaign.min_uploads} before anything is published")
    print(f"  keys      {campaign.key_check_text}")
    print(f"  digest    {to_base64url(campaign.digest)}   # ", end="")
    print("the same as on your invitation?" if sites.digest is None else "as you gave it")
    print(f"  variable  {campaign.variable.summary}", end="")
    print(f", {len(campaign.strata)} strata" if len(campaign.strata) > 1 else "")
    told = [f"{placed.missing} missing"] if campaign.variable.missing else []
    if not campaign.variable.is_categorical:
        told.append(f"{placed.below} below and {placed.above} above the grid, which are moved to its ends")
    print(f"  values    {n}" + (f", of which {' and '.join(told)}" if told else ""))
    for note in notes:
        print(f"  file      {note}")
    print("\n".join(_to_send(campaign, n)))
    if n > campaign.max_values_per_person:
        values = "1 value" if campaign.max_values_per_person == 1 else f"{campaign.max_values_per_person} values"
        print(f"  note      one party is protected for {values}; these count as several parties")
    print("  once      the receipt in your data folder keeps a second upload by you on this machine from counting.")
    print("            One from another machine or account, or with another --receipt, is not noticed and counts too")
    print("\n".join(common.free_text_lines(campaign)))


def _to_send(campaign: Campaign, n: int) -> list[str]:
    """Keys or tables, how many bytes, and by which rule."""
    plan, keys = plan_upload(campaign, n), sealed_bytes(campaign, n)
    if plan.each is None:
        lines = [f"  to send   {keys} bytes to each server ({campaign.key_type(0).key_bytes} a key)"]
        if campaign.tables:
            lines.append(f"            as keys: for {n} values they are smaller than a table of their counts")
        return lines
    sizes = [sealed_table_bytes(campaign, size) for size in (table_shape(campaign, plan.each).bytes, SEED_BYTES)]
    what = "one table of their counts" if plan.tables == 1 else f"{plan.tables} tables of their counts, of each"
    return [
        f"  to send   {what}: {sizes[0]} bytes to one server, {sizes[1]} to the other",
        f"            as a table: {n} keys would be {keys} bytes to each server. The servers check that it holds",
        f"            the counts of exactly {n} values and learn nothing else of it",
    ]


def _consent(stdin_is_data: bool, epsilon: float) -> bool:
    if stdin_is_data:
        raise InvalidValue("standard input holds the values, so nobody can be asked: consent with --yes")
    return common.ask_yes_no(f"\ntake part, with epsilon {epsilon:g} in all?", "consent with --yes")
