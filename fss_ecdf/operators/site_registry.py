"""Sites at both servers, without a word to anybody: the work behind `fss-server campaign sites` and the console.

What an operator decides is written down before a server hears of it: labels, ids and tokens in `sites.json` of a
folder (a secret), one sheet for each site beside it, and, where the other server belongs to somebody else, a file with
hashes only that its operator accepts.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidQuery, Problem, UnknownSite
from fss_ecdf.campaign.files import write_durably
from fss_ecdf.campaign.json_messages import SITE_ID_BYTES, SiteSummary, read
from fss_ecdf.campaign.text import check_text
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.tokens import hash_token, new_token
from fss_ecdf.operators import joining_sheet
from fss_ecdf.operators.servers import ServerAddress, ServerClient

FORMAT = "fss-ecdf sites 1"
CHANGES: dict[str, dict[str, Any]] = {
    "pause": {"state": "paused"},
    "resume": {"state": "active"},
    "revoke": {"state": "revoked"},
}

Site = dict[str, Any]  # id, label, quota and token, as `sites.json` has it


@dataclass(frozen=True)
class SiteRegistry:
    """What deciding about a campaign's sites takes: servers, everybody's addresses, the campaign, a folder."""

    remotes: list[ServerClient]
    places: list[ServerAddress]
    campaign: Campaign
    folder: Path

    @staticmethod
    def of(
        remotes: list[ServerClient], places: list[ServerAddress], campaign_id: str, folder: Path | None
    ) -> "SiteRegistry":
        made = campaign_of(remotes, campaign_id)
        return SiteRegistry(remotes, places, made, folder or Path(f"sites-{to_base64url(made.id)[:8]}"))

    @property
    def path(self) -> str:
        """Of the sites, at a server."""
        return f"/v1/campaigns/{to_base64url(self.campaign.id)}/sites"

    def sheet_file(self, site: Site) -> Path:
        return self.folder / f"{_sheet_name(site)}.md"

    def sheet(self, site: Site) -> str:
        return joining_sheet.render(self.campaign, self.places, site["label"], site["quota"], site["token"])


def admit(desk: SiteRegistry, labels: Sequence[str], quota: int) -> list[Site]:
    """New sites, or those of the folder again: sheets first, then the servers. Repeating it changes nothing."""
    check_labels(labels, quota)
    desk.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = _known(desk.folder)
    for label in labels:
        site = known.setdefault(label, _new_site(label, quota))
        if site["quota"] != quota:
            raise UsageError(
                f"{label!r} is in {desk.folder / 'sites.json'} with a quota of {site['quota']}; to change it: "
                f"fss-server campaign sites set-quota {to_base64url(desk.campaign.id)} {label!r} {quota}"
            )
    _write(desk.folder / "sites.json", list(known.values()))
    mine = [known[label] for label in labels]
    for place in desk.places:
        if place.ca is not None:
            (desk.folder / joining_sheet.authority_name(place)).write_bytes(place.ca.read_bytes())
    for site in mine:
        write_durably(desk.sheet_file(site), desk.sheet(site).encode())
    call_all(desk.remotes, "POST", desk.path, {"sites": [public(site) for site in mine]})
    return mine


def check_labels(labels: Sequence[str], quota: int) -> None:
    if not labels:
        raise UsageError("no site is named: give labels, or --csv FILE with a label in the first column")
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise UsageError(f"{twice[0]!r} is named twice; every site has a label of its own")
    for label in labels:
        try:
            check_text(label)
        except ValueError as error:
            raise UsageError(f"the label {short(repr(label))}: {error}") from None
    if quota < 1:
        raise UsageError(f"a quota of {quota}: a site sends one upload or more")


def rotate_token(desk: SiteRegistry, about: dict[str, Any]) -> Site:
    """A site, as a server describes it, with another token: on its sheet first, then at the servers."""
    site = {"id": about["id"], "label": about["label"], "quota": about["quota"], "token": new_token("site")}
    desk.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(desk.folder / "sites.json", list({**_known(desk.folder), site["label"]: site}.values()))
    write_durably(desk.sheet_file(site), desk.sheet(site).encode())
    call_all(desk.remotes, "PATCH", f"{desk.path}/{site['id']}", {"token": hash_token(site["token"])})
    return site


def public(site: Site) -> Site:
    """What servers and the other operator get: a hash in place of the token."""
    return {**site, "token": hash_token(site["token"])}


def campaign_of(remotes: list[ServerClient], campaign_id: str) -> Campaign:
    return remotes[0].campaign(campaign_id)


def sites_at(remote: ServerClient, campaign_id: str) -> list[dict[str, Any]]:
    """What a server says of its sites, checked: ids become part of addresses at the other server."""
    found = remote.json("GET", f"/v1/campaigns/{campaign_id}/sites")
    try:
        return [read(SiteSummary, site).model_dump() for site in found]
    except (InvalidQuery, TypeError) as error:
        raise InvalidPeerResponse(f"server {remote.number} did not send a list of sites ({error})") from None


def find_site(remote: ServerClient, campaign_id: str, wanted: str) -> dict[str, Any]:
    """A site by its label or its id."""
    sites = sites_at(remote, campaign_id)
    matches = [site for site in sites if wanted in (site["label"], site["id"])]
    if len(matches) != 1:
        known = ", ".join(repr(site["label"]) for site in sites[:10]) or "none"
        what = "no site" if not matches else f"{len(matches)} sites, so name it by its id:"
        raise UnknownSite(f"{what} {wanted!r}; there are {known}")
    return matches[0]


def call_all(remotes: list[ServerClient], method: str, path: str, body: dict[str, Any]) -> list[Any]:
    answers = []
    for remote in remotes:
        try:
            answers.append(remote.json(method, path, json=body))
        except Problem as problem:
            done = ", ".join(str(r.number) for r in remotes[: len(answers)])
            where = f"; done at server {done} only: do the same again" if answers else ""
            raise type(problem)(f"{problem.detail}{where}") from None
    return answers


def server_names(remotes: list[ServerClient]) -> str:
    return "both servers" if len(remotes) > 1 else f"server {remotes[0].number}"


def write_peer_file(remotes: list[ServerClient], path: Path, campaign: Campaign, what: dict[str, Any]) -> Path | None:
    """A file for the operator of the other server, where that is somebody else: hashes, ids and labels; no secret."""
    if len(remotes) > 1:
        return None
    about = {"format": FORMAT, "campaign": to_base64url(campaign.id), "digest": to_base64url(campaign.digest)}
    _write(path, {**about, **what})
    return path


def _new_site(label: str, quota: int) -> Site:
    return {"id": secrets.token_hex(SITE_ID_BYTES), "label": label, "quota": quota, "token": new_token("site")}


def _sheet_name(site: Site) -> str:
    """Labels may differ in what file names leave out; ids never do."""
    return f"{joining_sheet.file_name(site['label'])}-{site['id'][:6]}"


def _known(folder: Path) -> dict[str, Site]:
    path = folder / "sites.json"
    return {site["label"]: site for site in json.loads(path.read_text())} if path.exists() else {}


def _write(path: Path, content: Any) -> None:
    write_durably(path, json.dumps(content, indent=1, ensure_ascii=False).encode())
