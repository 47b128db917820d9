"""What `fss-server` does for an operator: setting up servers, and campaigns at both of them."""

import argparse
import hashlib
import json
import os
import secrets
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path

from campaign.spec import Campaign, new_id, to_base64url
from client.program import OK, REFUSED
from operators import remotes as at_both
from operators import setup
from web.page import party_page


def init(args: argparse.Namespace) -> int:
    made = setup.init(args.folder, role=args.role, listen=args.listen, peer_url=args.peer_url, peer_hash=args.peer_hash)
    print(f"wrote {made.folder}/server.toml, operator.token, analyst.token, peer.token")
    print(f"\nnext: 1. give the other server's operator this hash, for its tokens.peer:\n     {made.peer_hash}")
    if not args.peer_hash:
        print(f"      2. put the hash you get from there into {made.folder}/server.toml, tokens.peer")
    print(f"      3. put your certificate and key into {made.folder}/cert.pem and key.pem (chmod 600),")
    print(f"         and the CA of the other server into {made.folder}/peer-ca.pem")
    print(f"      4. fss-server run --config {made.folder}/server.toml")
    return OK


def init_pair(args: argparse.Namespace) -> int:
    setup.init_pair(args.folder, tuple(args.hosts), tuple(args.ports))
    print(f"wrote two servers, a development CA and operator.toml into {args.folder}\n\nnext, in two terminals:")
    for role in (0, 1):
        print(f"  fss-server run --config {args.folder}/server{role}/server.toml")
    print(f"then:\n  fss-server campaign --operator {args.folder}/operator.toml create campaign.toml")
    return OK


def _remotes(args: argparse.Namespace) -> AbstractContextManager[list[at_both.Remote]]:
    return at_both.remotes_of(operator_file(args))


def operator_file(args: argparse.Namespace) -> Path:
    """Where both servers' addresses and tokens are named."""
    return args.operator or Path(os.environ.get("FSS_OPERATOR", "operator.toml"))


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
    made = at_both.Created.new(campaign, args.invitations)
    if known:
        made = at_both.Created(campaign, known["upload_token"], known["invitations"])
    else:
        tokens = {"id": campaign.id.hex(), "upload_token": made.upload_token, "invitations": made.invitations}
        setup.write_secret(kept, json.dumps(tokens))
    with _remotes(args) as remotes:
        at_both.create(remotes, made)
    name = to_base64url(campaign.id)
    print(f"created {campaign.title!r} at {len(remotes)} server{'s' * (len(remotes) > 1)}")
    print(f"  id      {name}\n  digest  {to_base64url(campaign.digest)}\n  epsilon {campaign.total_epsilon:g}")
    print(f"  keys    {campaign.key_type(0).key_bytes} bytes to each server, {campaign.bits} bits")
    if made.upload_token:
        print(f"  upload token: {made.upload_token}")
    for token in made.invitations:
        print(f"  invitation: {token}")
    variables = args.file.with_suffix(".env")
    variables.unlink(missing_ok=True)
    setup.write_secret(variables, at_both.environment(remotes, made))
    print(f"  tokens are kept in {kept}; repeating this command creates nothing twice")
    if len(remotes) < 2:
        print("\nthis is one server only: the other one needs the same campaign, id and token hashes")
    print(f"\nnext: . {variables}   # its addresses, for the programs of parties and analysts")
    print("      fss-dealer upload --csv FILE --column NAME\n      fss-server campaign seal $FSS_ID")
    return OK


def list_all(args: argparse.Namespace) -> int:
    found: dict[str, dict[int, dict[str, object]]] = {}
    with _remotes(args) as remotes:
        for remote in remotes:
            for row in remote.call("GET", "/v1/campaigns").json():
                found.setdefault(row["id"], {})[remote.number] = row
    print(f"{'id':<44} {'state':<16} {'uploads':>15}  title")
    for name, rows in found.items():
        states = {str(row["state"]) for row in rows.values()}
        uploads = "/".join(str(rows[r.number]["uploads"]) if r.number in rows else "-" for r in remotes)
        missing = [r.number for r in remotes if r.number not in rows]
        state = f"not at server {missing[0]}" if missing else "/".join(sorted(states))
        print(f"{name:<44} {state:<16} {uploads:>15}  {next(iter(rows.values()))['title']}")
    return OK


def show(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        found = remotes[0].call("GET", f"/v1/campaigns/{args.id}").json()
    print(Campaign.from_dict(found["campaign"]).to_toml(), end="")
    return OK


def status(args: argparse.Namespace) -> int:
    code = OK
    with _remotes(args) as remotes:
        found = at_both.statuses(remotes, args.id)
    for status in found:
        if "problem" in status and "state" not in status:
            print(f"server {status['server']}: {status['detail']} [{status['problem']}]")
            code = REFUSED
            continue
        parts = [f"{status['state']}, {status['uploads']} uploads"]
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
        found, asked = at_both.seal(remotes, args.id)
        orphans = {asked: found["orphans"]["here"], 1 - asked: found["orphans"]["there"]}
        print(f"sealed {found['count']} uploads; left out, because only one server had them: ", end="")
        print(f"{orphans[0]} at server 0, {orphans[1]} at server 1")
        if any(orphans.values()):
            print(f"they are kept; to erase them: fss-server campaign confirm {args.id}")
        at_both.wait_until_ready(remotes, args.id, lambda line: print(f"\r{line}", end="", flush=True))
    print(f"\n\nnext: ask, for example\n  fss-analyst quantile {remotes[0].url}/v1/campaigns/{args.id}")
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


def page(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        campaign = at_both.agreed(remotes, args.id)
        servers = args.urls or [remote.url for remote in remotes]
    text = party_page(campaign, [f"{url.rstrip('/')}/v1/campaigns/{args.id}" for url in servers])
    args.out.write_text(text)
    print(f"wrote {args.out}, {len(text.encode())} bytes\n  SHA-256 {hashlib.sha256(text.encode()).hexdigest()}")
    print(f"  digest  {to_base64url(campaign.digest)}")
    print(
        "\nnext: let somebody publish it whom parties trust, with its SHA-256; not one of the two servers' operators."
    )
    print("      A party opens it with its token behind a #, as in party.html#token=TOKEN")
    return OK


def delete(args: argparse.Namespace) -> int:
    if not args.yes and input(f"erase campaign {args.id} at all servers, for good? [y/N] ").strip().lower() != "y":
        print("nothing was erased")
        return OK
    with _remotes(args) as remotes:
        for remote in remotes:
            remote.call("DELETE", f"/v1/campaigns/{args.id}")
            print(f"erased at server {remote.number}")
    return OK
