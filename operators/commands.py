"""What `fss-server` does for an operator: setting up servers, and campaigns at both of them."""

import argparse
import json
import os
import secrets
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path

from campaign.noise.outlook import asked_by_points
from campaign.spec import Campaign, new_id, to_base64url
from client.program import OK, REFUSED, BadSettings, agreed, ask
from operators import outlook, questionnaire, setup
from operators import remotes as at_both


def init(args: argparse.Namespace) -> int:
    if bool(args.peer_hash) != bool(args.peer_key):
        raise BadSettings("--peer-hash and --peer-key belong together; the other server's init printed both")
    known = setup.Introduction(args.peer_hash, args.peer_key) if args.peer_hash else None
    server = setup.init(args.folder, role=args.role, listen=args.listen, peer_url=args.peer_url, known=known)
    print(f"wrote {server.folder}/server.toml, operator.token, analyst.token, peer.token, identity.secret")
    print("\nnext: 1. give the other server's operator these two lines, for [tokens] in its server.toml:")
    print(f'     peer = "{server.peer_hash}"\n     peer_signing_key = "{server.signing_key}"')
    if not known:
        print(f"      2. put the two lines you get from there into {server.folder}/server.toml, [tokens]")
    print(f"      3. put your certificate and key into {server.folder}/cert.pem and key.pem (chmod 600),")
    print(f"         and the CA of the other server into {server.folder}/peer-ca.pem")
    print(f"      4. fss-server run --config {server.folder}/server.toml")
    return OK


def init_pair(args: argparse.Namespace) -> int:
    setup.init_pair(args.folder, tuple(args.hosts), tuple(args.ports))
    print(f"wrote two servers, a development CA and operator.toml into {args.folder}\n\nnext, in two terminals:")
    for role in (0, 1):
        print(f"  fss-server run --config {args.folder}/server{role}/server.toml")
    print(f"then:\n  fss-server campaign --operator {args.folder}/operator.toml create campaign.toml")
    return OK


def _remotes(args: argparse.Namespace) -> AbstractContextManager[list[at_both.Remote]]:
    return at_both.remotes_of(args.operator or Path(os.environ.get("FSS_OPERATOR", "operator.toml")))


def _has_id(text: str) -> bool:
    try:
        return "id" in tomllib.loads(text)
    except ValueError:
        return False  # whoever reads the campaign says what is wrong with it


def create(args: argparse.Namespace) -> int:
    text, kept = args.file.read_text(), args.file.with_suffix(".tokens.json")
    # Id and tokens are on disk before the first server hears of them, so that a repetition completes what failed.
    known = json.loads(kept.read_text()) if kept.exists() else {}
    given = bytes.fromhex(known["id"]) if known else new_id(secrets.token_bytes)
    campaign = Campaign.from_toml(text, id=None if _has_id(text) else given)
    created = at_both.Created.new(campaign, args.invitations)
    if known:
        created = at_both.Created(campaign, known["upload_token"], known["invitations"])
    else:
        tokens = {"id": campaign.id.hex(), "upload_token": created.upload_token, "invitations": created.invitations}
        setup.write_secret(kept, json.dumps(tokens))
    with _remotes(args) as remotes:
        created = at_both.pledged(remotes, created, known.get("servers"))
        if "servers" not in known:
            kept.write_text(json.dumps({**json.loads(kept.read_text()), "servers": at_both.pledges(created)}))
        at_both.create(remotes, created)
    campaign = created.campaign
    variables = args.file.with_suffix(".env")
    variables.unlink(missing_ok=True)
    setup.write_secret(variables, at_both.environment(remotes, created))  # first: nobody may read to the end
    name = to_base64url(campaign.id)
    print(f"created {campaign.title!r} at {len(remotes)} server{'s' * (len(remotes) > 1)}")
    print(f"  id      {name}\n  digest  {to_base64url(campaign.digest)}\n  epsilon {campaign.total_epsilon:g}")
    print(f"  keys    {campaign.key_type(0).key_bytes} bytes to each server, {campaign.bits} bits")
    print(f"          {campaign.check_in_words}")
    if asked_by_points(campaign):
        print(
            f"  note    2^{campaign.bits} positions are too many for whole curves: quantiles and histograms are asked"
        )
        print(
            f"          for point by point, up to {outlook.quantile_questions(campaign)} questions for five quantiles;"
        )
        print(f"          fss-server campaign check {args.file} says how long that takes")
    if created.upload_token:
        print(f"  upload token: {created.upload_token}")
    for token in created.invitations:
        print(f"  invitation: {token}")
    print(f"  tokens are kept in {kept}; repeating this command creates nothing twice")
    if len(remotes) < 2:
        print("\nthis is one server only: the other one needs the same campaign, id and token hashes")
    print(f"\nnext: . {variables}   # its addresses, for the programs of parties and analysts")
    print("      fss-dealer upload --csv FILE --column NAME\n      fss-server campaign seal $FSS_ID")
    return OK


def new(args: argparse.Namespace) -> int:
    if args.file.exists():
        raise BadSettings(f"{args.file} exists already; a campaign's file is never overwritten")
    args.file.write_text(questionnaire.written(ask), encoding="utf-8")
    print(f"wrote {args.file}\n\nnext: fss-server campaign check {args.file}    # what it will be able to answer")
    print(f"      fss-server campaign create {args.file}")
    return OK


def check(args: argparse.Namespace) -> int:
    text = args.file.read_text()
    campaign = Campaign.from_toml(text, id=None if _has_id(text) else bytes(32))
    for line in outlook.lines(campaign, args.n or [campaign.min_uploads, 10 * campaign.min_uploads]):
        print(line)
    return OK


def list_all(args: argparse.Namespace) -> int:
    campaigns: dict[str, dict[int, dict[str, object]]] = {}
    with _remotes(args) as remotes:
        for remote in remotes:
            for row in remote.call("GET", "/v1/campaigns").json():
                campaigns.setdefault(row["id"], {})[remote.number] = row
    print(f"{'id':<44} {'state':<16} {'uploads':>15}  title")
    for name, rows in campaigns.items():
        states = {str(row["state"]) for row in rows.values()}
        uploads = "/".join(str(rows[r.number]["uploads"]) if r.number in rows else "-" for r in remotes)
        missing = [r.number for r in remotes if r.number not in rows]
        state = f"not at server {missing[0]}" if missing else "/".join(sorted(states))
        print(f"{name:<44} {state:<16} {uploads:>15}  {next(iter(rows.values()))['title']}")
    return OK


def show(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        answer = remotes[0].call("GET", f"/v1/campaigns/{args.id}").json()
    print(Campaign.from_dict(answer["campaign"]).to_toml(), end="")
    return OK


def status(args: argparse.Namespace) -> int:
    code = OK
    with _remotes(args) as remotes:
        both = at_both.statuses(remotes, args.id)
    for status in both:
        if "problem" in status and "state" not in status:
            print(f"server {status['server']}: {status['detail']} [{status['problem']}]")
            code = REFUSED
            continue
        parts = [f"{status['state']}, {status['uploads']} uploads"]
        if not status["checked"]:
            parts.append("keys not checked")
        if status["rejected"]:
            parts.append(f"{status['rejected']} rejected")
        if "count" in status:
            parts.append(f"{status['count']} sealed, {status['orphans']} orphans, {status['phase']}")
            parts.append(f"{100 * status['progress']:.0f} %")
        print(f"server {status['server']}: {', '.join(parts)}")
        peer = status["peer"]
        if "problem" in peer and "state" not in peer:
            print(f"  it says of the other server: {peer['detail']} [{peer['problem']}]")
            code = REFUSED
    return code


def seal(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        answer, asked = at_both.seal(remotes, args.id)
        orphans = {asked: answer["orphans"]["here"], 1 - asked: answer["orphans"]["there"]}
        verb = "checking" if answer["state"] == "checking" else "sealed"
        print(f"{verb} {answer['count']} uploads; left out, because only one server had them: ", end="")
        print(f"{orphans[0]} at server 0, {orphans[1]} at server 1")
        ready = at_both.wait_until_ready(remotes, args.id, lambda line: print(f"\r{line:<78}", end="", flush=True))
        print(f"\nsealed {ready['count']} uploads, rejected {ready['rejected']} whose keys were not well made")
        if any(orphans.values()) or ready["rejected"]:
            print(f"what was left out is kept; to erase it: fss-server campaign confirm {args.id}")
    print(f"\nnext: ask, for example\n  fss-analyst quantile {remotes[0].url}/v1/campaigns/{args.id}")
    return OK


def confirm(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        for remote in remotes:
            erased = remote.call("POST", f"/v1/campaigns/{args.id}/confirm").json()["erased"]
            print(f"server {remote.number}: {erased} uploads that were left out are erased")
    return OK


def export(args: argparse.Namespace) -> int:
    token = args.analyst_token_file.read_text().strip()
    headers = {"Accept": "text/csv", "Authorization": f"Bearer {token}"}
    with _remotes(args) as remotes:
        campaign = Campaign.from_dict(remotes[0].call("GET", f"/v1/campaigns/{args.id}").json()["campaign"])
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "campaign.toml").write_text(campaign.to_toml())
        for number, stratum in enumerate(campaign.strata):
            path = f"/v1/campaigns/{args.id}/curve"
            text = remotes[0].call("GET", path, params={"stratum": stratum}, headers=headers).text
            (args.out / f"curve-{number}.csv").write_text(text)
    print(f"wrote campaign.toml and {len(campaign.strata)} curve(s) into {args.out}")
    return OK


def delete(args: argparse.Namespace) -> int:
    if not args.yes and not agreed(f"erase campaign {args.id} at all servers, for good?", "erase it with --yes"):
        print("nothing was erased")
        return OK
    with _remotes(args) as remotes:
        for remote in remotes:
            remote.call("DELETE", f"/v1/campaigns/{args.id}")
            print(f"erased at server {remote.number}")
    return OK
