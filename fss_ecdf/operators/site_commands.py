"""`fss-server campaign sites`: who may send values of many parties, at both servers; what is asked, done and said.

The work is in `admitting.py`; here are the words around it.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import FailFast, Field

from fss_ecdf.campaign.campaign import Campaign, Id, to_base64url
from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import MOST_SITES, Digest, ListedChange, Message, NewSite, read
from fss_ecdf.campaign.parsing import parse_json
from fss_ecdf.cli.common import OK, UsageError, ask_yes_no, free_text_lines
from fss_ecdf.net.tokens import hash_token
from fss_ecdf.operators import joining_sheet, site_registry
from fss_ecdf.operators import servers as at_both
from fss_ecdf.operators.servers import ServerClient
from fss_ecdf.operators.site_registry import SiteRegistry


def add(args: argparse.Namespace, operator: Path) -> int:
    labels = _labels(args)
    with at_both.clients_of(operator) as remotes:
        desk = SiteRegistry.of(remotes, at_both.addresses_of(operator), args.id, args.out)
        mine = site_registry.admit(desk, labels, args.quota)
    count, where = len(mine), site_registry.server_names(remotes)
    print(f"{count} site{'s' * (count > 1)} may send up to {args.quota} uploads each, at {where}")
    print(f"  sheets with tokens are in {desk.folder}, one for each site: send each to its site only, with ca0.pem")
    print("  and ca1.pem")
    additions = {"sites": [site_registry.public(site) for site in mine]}
    _travel(remotes, desk.folder / "additions.json", desk.campaign, additions)
    return OK


def list_all(args: argparse.Namespace, operator: Path) -> int:
    with at_both.clients_of(operator) as remotes:
        found = [(r.number, site_registry.sites_at(r, args.id)) for r in remotes]
    for line in table(found):
        print(line)
    return OK


def table(found: Sequence[tuple[int, list[dict[str, Any]]]]) -> list[str]:
    """Uploads of each site at each server, and what differs between them."""
    lines = [f"{'site':<32} {'state':<16} {'uploads':>15} {'quota':>9}  label"]
    for name, both in by_site(found).items():
        uploads = "/".join(str(both[n]["uploads"]) if n in both else "-" for n, _ in found)
        missing = [n for n, _ in found if n not in both]
        states = "/".join(sorted({str(site["state"]) for site in both.values()}))
        state = f"not at server {missing[0]}" if missing else states
        quota = "/".join(sorted({str(site["quota"]) for site in both.values()}))
        lines.append(
            f"{name:<32} {state:<16} {uploads:>15} {quota:>9}  {short(str(next(iter(both.values()))['label']))}"
        )
        rejected = {site["rejected"] for site in both.values()}
        if any(rejected):
            lines.append(f"{'':<32} tables of {max(rejected)} people failed the check and do not count")
    return lines


def by_site(found: Sequence[tuple[int, list[dict[str, Any]]]]) -> dict[str, dict[int, dict[str, Any]]]:
    """What each server says of each site, in the order of labels."""
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for number, sites in found:
        for site in sites:
            rows.setdefault(site["id"], {})[number] = site
    return dict(sorted(rows.items(), key=lambda row: str(next(iter(row[1].values()))["label"])))


def change(args: argparse.Namespace, operator: Path) -> int:
    """pause, resume, revoke, quota."""
    about = dict(site_registry.CHANGES.get(args.change, {"quota": getattr(args, "uploads", None)}))
    if getattr(args, "withdraw", False):
        if not args.yes and not ask_yes_no(f"erase all that {args.site} sent, at all servers?", "erase it with --yes"):
            print("nothing was changed")
            return OK
        about["withdraw"] = True
    with at_both.clients_of(operator) as remotes:
        site = site_registry.find_site(remotes[0], args.id, args.site)
        answers = site_registry.call_all(remotes, "PATCH", f"/v1/campaigns/{args.id}/sites/{site['id']}", about)
        for remote, answer in zip(remotes, answers, strict=True):
            erased = f", {answer['erased']} uploads erased" if "withdraw" in about else ""
            print(f"server {remote.number}: {site['label']} is {answer['state']}, quota {answer['quota']}{erased}")
        path = Path(f"{joining_sheet.file_name(site['label'])}-{args.change}.json")
        campaign = site_registry.campaign_of(remotes, args.id)
        _travel(remotes, path, campaign, {"changes": [{"id": site["id"], **about}]})
    return OK


def rotate(args: argparse.Namespace, operator: Path) -> int:
    """A new token in place of one that was lost or seen by others; uploads stay with the site."""
    with at_both.clients_of(operator) as remotes:
        desk = SiteRegistry.of(remotes, at_both.addresses_of(operator), args.id, args.out)
        site = site_registry.rotate_token(desk, site_registry.find_site(remotes[0], args.id, args.site))
    where, sheet = site_registry.server_names(remotes), desk.sheet_file(site)
    print(f"{site['label']} has a new token at {where}; the old one opens nothing any more")
    print(f"  its new sheet: {sheet}")
    new = {"id": site["id"], "token": hash_token(site["token"])}
    _travel(remotes, sheet.with_name(f"{sheet.stem}-rotate.json"), desk.campaign, {"changes": [new]})
    return OK


def apply(args: argparse.Namespace, operator: Path) -> int:
    """What the other organisation's operator decided about sites: read, shown, asked about, done here."""
    given = _read(args.file)
    with at_both.clients_of(operator) as remotes:
        name = to_base64url(given.campaign)
        campaign = site_registry.campaign_of(remotes, name)
        if given.digest != campaign.digest:
            raise UsageError(f"{args.file}: it is about another campaign than {name} as it is here (digests differ)")
        labels = {str(site["id"]): str(site["label"]) for site in site_registry.sites_at(remotes[0], name)}
        for line in describe(campaign, given, labels):
            print(line)
        if not args.yes and not ask_yes_no("\ndo this at your server?", "accept it with --yes"):
            print("nothing was changed")
            return OK
        if given.sites:
            new = [site.model_dump(mode="json") for site in given.sites]
            site_registry.call_all(remotes, "POST", f"/v1/campaigns/{name}/sites", {"sites": new})
        for one in given.changes:
            about = one.model_dump(mode="json", exclude={"id"}, exclude_defaults=True)
            site_registry.call_all(remotes, "PATCH", f"/v1/campaigns/{name}/sites/{one.id}", about)
    print(f"done at {site_registry.server_names(remotes)}")
    return OK


def describe(campaign: Campaign, given: "SitesFile", labels: dict[str, str]) -> list[str]:
    """What an operator agrees to: on each line what is done, then whose label it is; the campaign's texts last."""
    lines = [f"  up to {site.quota} uploads, a new site: {short(repr(site.label))}" for site in given.sites]
    for one in given.changes:
        label = short(repr(labels.get(one.id, one.id)))
        lines += [f"  becomes {one.state}: {label}"] if one.state else []
        lines += [f"  gets another token (its hash is in the file): {label}"] if one.token else []
        lines += [f"  up to {one.quota} uploads from now on: {label}"] if one.quota else []
        lines += [f"  ERASES all that it sent to your server: {label}"] if one.withdraw else []
    return [f"for the campaign {to_base64url(campaign.id)}:", *lines, *free_text_lines(campaign)]


def _labels(args: argparse.Namespace) -> list[str]:
    found = list(args.label)
    if args.csv:
        with args.csv.open(newline="", encoding="utf-8-sig") as file:
            found += [row[0].strip() for row in csv.reader(file) if row and row[0].strip()]
        found = found[1:] if found and found[0].lower() in ("label", "site", "name") else found
    site_registry.check_labels(found, args.quota)
    return found


class SitesFile(Message):
    """What one operator sends to the other: read through the types that servers use."""

    format: str
    campaign: Id
    digest: Digest
    sites: Annotated[list[NewSite], FailFast()] = Field(default_factory=list, max_length=MOST_SITES)
    changes: Annotated[list[ListedChange], FailFast()] = Field(default_factory=list, max_length=MOST_SITES)


def _read(path: Path) -> SitesFile:
    try:
        given = parse_json(path.read_bytes())
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or given.get("format") != site_registry.FORMAT:
        raise UsageError(f"{path}: this is not a file that fss-server campaign sites wrote for the other operator")
    try:
        return read(SitesFile, given)
    except InvalidQuery as problem:
        raise InvalidQuery(f"{path}: {problem.detail}") from None


def _travel(remotes: list[ServerClient], path: Path, campaign: Campaign, what: dict[str, Any]) -> None:
    """Where the other server is somebody else's, what its operator has to do."""
    if site_registry.write_peer_file(remotes, path, campaign, what):
        print(f"next: send {path} (no secret in it) to the other operator, who types")
        print(f"      fss-server campaign sites apply {path.name}")
