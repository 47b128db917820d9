"""`fss-server campaign sites`: who may send values of many parties, at both servers, and how that travels.

What an operator decides is written down before a server hears of it: labels, ids and tokens in `sites.json` of a
folder (a secret), one sheet for each site beside it, and, where the other server belongs to somebody else, a file with
hashes only that its operator accepts.
"""

import argparse
import csv
import json
import secrets
from pathlib import Path
from typing import Any

from campaign.errors import Problem, UnknownSite
from campaign.files import write_durably
from campaign.spec import Campaign, to_base64url
from campaign.wire import SITE_ID_BYTES
from client.program import OK, BadSettings, agreed
from client.tokens import hash_token, new_token
from operators import remotes as at_both
from operators import sheets
from operators.remotes import Remote

FORMAT = "fss-ecdf sites 1"


def add(args: argparse.Namespace, operator: Path) -> int:
    labels = _labels(args)
    with at_both.remotes_of(operator) as remotes:
        campaign, places = _campaign(remotes, args.id), at_both.places_of(operator)
        folder = args.out or Path(f"sites-{args.id[:8]}")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = _known(folder)
        for label in labels:
            site = known.setdefault(label, _new_site(label, args.quota))
            if site["quota"] != args.quota:
                raise BadSettings(
                    f"{label!r} is in {folder / 'sites.json'} with a quota of {site['quota']}; to change it: "
                    f"fss-server campaign sites quota {args.id} {label!r} {args.quota}"
                )
        _write(folder / "sites.json", list(known.values()))
        mine = [known[label] for label in labels]
        ca = at_both.authorities(places, folder / "ca.pem")
        if ca != (folder / "ca.pem").resolve():
            (folder / "ca.pem").write_bytes(ca.read_bytes())
        for site in mine:
            text = sheets.sheet(campaign, places, site["label"], site["quota"], site["token"])
            write_durably(folder / f"{_sheet_name(site)}.md", text.encode())
        public = [_public(site) for site in mine]
        _at_every(remotes, "POST", f"/v1/campaigns/{args.id}/sites", {"sites": public})
    print(f"{len(mine)} site{'s' * (len(mine) > 1)} may send up to {args.quota} uploads each, at {_where(remotes)}")
    print(f"  sheets with tokens are in {folder}, one for each site: send each, with ca.pem, to its site only")
    _travel(remotes, folder / "additions.json", campaign, {"sites": public})
    return OK


def list_all(args: argparse.Namespace, operator: Path) -> int:
    with at_both.remotes_of(operator) as remotes:
        found = [(r.number, r.call("GET", f"/v1/campaigns/{args.id}/sites").json()) for r in remotes]
    for line in table(found):
        print(line)
    return OK


def table(found: list[tuple[int, list[dict[str, Any]]]]) -> list[str]:
    """Uploads of each site at each server, and what differs between them."""
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for number, sites in found:
        for site in sites:
            rows.setdefault(site["id"], {})[number] = site
    lines = [f"{'site':<32} {'state':<16} {'uploads':>15} {'quota':>9}  label"]
    for name, both in sorted(rows.items(), key=lambda row: str(next(iter(row[1].values()))["label"])):
        uploads = "/".join(str(both[n]["uploads"]) if n in both else "-" for n, _ in found)
        missing = [n for n, _ in found if n not in both]
        states = "/".join(sorted({str(site["state"]) for site in both.values()}))
        state = f"not at server {missing[0]}" if missing else states
        quota = "/".join(sorted({str(site["quota"]) for site in both.values()}))
        lines.append(f"{name:<32} {state:<16} {uploads:>15} {quota:>9}  {next(iter(both.values()))['label']}")
    return lines


def change(args: argparse.Namespace, operator: Path) -> int:
    """pause, resume, revoke, quota."""
    kinds: dict[str, dict[str, Any]] = {
        "pause": {"state": "paused"},
        "resume": {"state": "active"},
        "revoke": {"state": "revoked"},
        "quota": {"quota": getattr(args, "uploads", None)},
    }
    about = kinds[args.change]
    if getattr(args, "withdraw", False):
        if not args.yes and not agreed(f"erase all that {args.site} sent, at all servers?", "erase it with --yes"):
            print("nothing was changed")
            return OK
        about["withdraw"] = True
    with at_both.remotes_of(operator) as remotes:
        site = _found(remotes[0], args.id, args.site)
        answers = _at_every(remotes, "PATCH", f"/v1/campaigns/{args.id}/sites/{site['id']}", about)
        for remote, answer in zip(remotes, answers, strict=True):
            erased = f", {answer['erased']} uploads erased" if "withdraw" in about else ""
            print(f"server {remote.number}: {site['label']} is {answer['state']}, quota {answer['quota']}{erased}")
        path = Path(f"{sheets.file_name(site['label'])}-{args.change}.json")
        _travel(remotes, path, _campaign(remotes, args.id), {"changes": [{"id": site["id"], **about}]})
    return OK


def rotate(args: argparse.Namespace, operator: Path) -> int:
    """A new token in place of one that was lost or seen by others; uploads stay with the site."""
    folder = args.out or Path(f"sites-{args.id[:8]}")
    with at_both.remotes_of(operator) as remotes:
        campaign, places = _campaign(remotes, args.id), at_both.places_of(operator)
        about = _found(remotes[0], args.id, args.site)
        site = {"id": about["id"], "label": about["label"], "quota": about["quota"], "token": new_token("site")}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = {**_known(folder), site["label"]: site}
        _write(folder / "sites.json", list(known.values()))
        text = sheets.sheet(campaign, places, site["label"], site["quota"], site["token"])
        write_durably(folder / f"{_sheet_name(site)}.md", text.encode())
        new = {"token": hash_token(site["token"])}
        _at_every(remotes, "PATCH", f"/v1/campaigns/{args.id}/sites/{site['id']}", new)
        print(f"{site['label']} has a new token at {_where(remotes)}; the old one opens nothing any more")
        print(f"  its new sheet: {folder / _sheet_name(site)}.md")
        path = folder / f"{_sheet_name(site)}-rotate.json"
        _travel(remotes, path, campaign, {"changes": [{"id": site["id"], **new}]})
    return OK


def accept(args: argparse.Namespace, operator: Path) -> int:
    """What the other organisation's operator decided about sites: read, shown, asked about, done here."""
    given = _read(args.file)
    with at_both.remotes_of(operator) as remotes:
        name = str(given["campaign"])
        campaign = _campaign(remotes, name)
        if given["digest"] != to_base64url(campaign.digest):
            raise BadSettings(f"{args.file}: it is about another campaign than {name} as it is here (digests differ)")
        labels = {s["id"]: s["label"] for s in remotes[0].call("GET", f"/v1/campaigns/{name}/sites").json()}
        for line in in_words(campaign, given, labels):
            print(line)
        if not args.yes and not agreed("\ndo this at your server?", "accept it with --yes"):
            print("nothing was changed")
            return OK
        if given.get("sites"):
            _at_every(remotes, "POST", f"/v1/campaigns/{name}/sites", {"sites": given["sites"]})
        for one in given.get("changes", ()):
            about = {key: value for key, value in one.items() if key != "id"}
            _at_every(remotes, "PATCH", f"/v1/campaigns/{name}/sites/{one['id']}", about)
    print(f"done at {_where(remotes)}")
    return OK


def in_words(campaign: Campaign, given: dict[str, Any], labels: dict[str, str]) -> list[str]:
    lines = [f"for the campaign {campaign.title!r}:"]
    lines += [f"  new site {s['label']!r} may send up to {s['quota']} uploads" for s in given.get("sites", ())]
    for one in given.get("changes", ()):
        label = repr(labels.get(one["id"], one["id"]))
        lines += [f"  {label} becomes {one['state']}"] if "state" in one else []
        lines += [f"  {label} gets another token (its hash is in the file)"] if "token" in one else []
        lines += [f"  {label} may send up to {one['quota']} uploads"] if "quota" in one else []
        lines += [f"  ERASES all that {label} sent to your server"] if one.get("withdraw") else []
    return lines


def _labels(args: argparse.Namespace) -> list[str]:
    found = list(args.label)
    if args.csv:
        with args.csv.open(newline="", encoding="utf-8-sig") as file:
            found += [row[0].strip() for row in csv.reader(file) if row and row[0].strip()]
        found = found[1:] if found and found[0].lower() in ("label", "site", "name") else found
    if not found:
        raise BadSettings("no site is named: give labels, or --csv FILE with a label in the first column")
    twice = sorted({label for label in found if found.count(label) > 1})
    if twice:
        raise BadSettings(f"{twice[0]!r} is named twice; every site has a label of its own")
    if args.quota < 1:
        raise BadSettings(f"--quota {args.quota}: a site sends one upload or more")
    return found


def _new_site(label: str, quota: int) -> dict[str, Any]:
    return {"id": secrets.token_hex(SITE_ID_BYTES), "label": label, "quota": quota, "token": new_token("site")}


def _public(site: dict[str, Any]) -> dict[str, Any]:
    return {**site, "token": hash_token(site["token"])}


def _sheet_name(site: dict[str, Any]) -> str:
    """Labels may differ in what file names leave out; ids never do."""
    return f"{sheets.file_name(site['label'])}-{site['id'][:6]}"


def _known(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "sites.json"
    return {site["label"]: site for site in json.loads(path.read_text())} if path.exists() else {}


def _write(path: Path, content: Any) -> None:
    write_durably(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text())
    except ValueError:
        given = None
    if not isinstance(given, dict) or given.get("format") != FORMAT or not {"campaign", "digest"} <= given.keys():
        raise BadSettings(f"{path}: this is not a file that fss-server campaign sites wrote for the other operator")
    return given


def _campaign(remotes: list[Remote], name: str) -> Campaign:
    return Campaign.from_dict(remotes[0].call("GET", f"/v1/campaigns/{name}").json()["campaign"])


def _found(remote: Remote, name: str, wanted: str) -> dict[str, Any]:
    """A site by its label or its id."""
    sites: list[dict[str, Any]] = remote.call("GET", f"/v1/campaigns/{name}/sites").json()
    matches = [site for site in sites if wanted in (site["label"], site["id"])]
    if len(matches) != 1:
        known = ", ".join(repr(site["label"]) for site in sites[:10]) or "none"
        what = "no site" if not matches else f"{len(matches)} sites, so name it by its id:"
        raise UnknownSite(f"{what} {wanted!r}; there are {known}")
    return matches[0]


def _at_every(remotes: list[Remote], method: str, path: str, body: dict[str, Any]) -> list[Any]:
    answers = []
    for remote in remotes:
        try:
            answers.append(remote.call(method, path, json=body).json())
        except Problem as problem:
            done = ", ".join(str(r.number) for r in remotes[: len(answers)])
            where = f"; done at server {done} only: type the same again" if answers else ""
            raise type(problem)(f"{problem.detail}{where}") from None
    return answers


def _where(remotes: list[Remote]) -> str:
    return "both servers" if len(remotes) > 1 else f"server {remotes[0].number}"


def _travel(remotes: list[Remote], path: Path, campaign: Campaign, what: dict[str, Any]) -> None:
    """For the operator of the other server, where that is somebody else: hashes, ids and labels; no secret."""
    if len(remotes) > 1:
        return
    about = {"format": FORMAT, "campaign": to_base64url(campaign.id), "digest": to_base64url(campaign.digest)}
    _write(path, {**about, **what})
    print(f"next: send {path} (no secret in it) to the other operator, who types")
    print(f"      fss-server campaign sites accept {path.name}")
