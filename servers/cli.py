"""fss-server: set up and run a server, and manage campaigns at both."""

import argparse
import json
import os
import secrets
import ssl
import sys
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path

import httpx

from campaign.errors import Problem
from campaign.spec import Campaign, new_id, to_base64url
from client.program import BAD_DATA, OK, REFUSED, TRY_LATER, USAGE, tell
from fss import BackendError
from operators import remotes as operator
from operators import setup
from servers import run as running
from servers.settings import BadSettings, load
from servers.storage.database import Damaged


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        code: int = args.run(args)
    except (BadSettings, BackendError) as error:
        print(f"fss-server: {error}", file=sys.stderr)
        return USAGE
    except (Problem, OSError) as trouble:
        return tell("fss-server", trouble)
    except Damaged as error:
        print(f"fss-server: {error}", file=sys.stderr)
        return BAD_DATA
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fss-server", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    init = commands.add_parser("init", help="write settings and tokens of one server")
    init.add_argument("folder", type=Path)
    init.add_argument("--role", type=int, choices=(0, 1), required=True)
    init.add_argument("--listen", default="0.0.0.0:8443", metavar="HOST:PORT")
    init.add_argument("--peer-url", required=True, metavar="https://HOST:PORT")
    init.add_argument("--peer-hash", metavar="HASH", help="the hash that the other server's init printed")
    init.set_defaults(run=_init)

    pair = commands.add_parser("init-pair", help="two local servers with a development CA")
    pair.add_argument("folder", type=Path)
    pair.add_argument("--hosts", nargs=2, default=("127.0.0.1", "127.0.0.1"), metavar=("HOST0", "HOST1"))
    pair.add_argument("--ports", type=int, nargs=2, default=(8440, 8441), metavar=("PORT0", "PORT1"))
    pair.set_defaults(run=_init_pair)

    run = commands.add_parser("run", help="serve")
    run.add_argument("--config", type=Path, required=True, metavar="FILE")
    run.set_defaults(run=_run)

    health = commands.add_parser("health", help="does the server with these settings take requests? For health checks")
    health.add_argument("--config", type=Path, required=True, metavar="FILE")
    health.set_defaults(run=_health)

    campaign = commands.add_parser("campaign", help="create, seal and watch campaigns at both servers")
    campaign.add_argument("--operator", type=Path, metavar="FILE", help="default: $FSS_OPERATOR or operator.toml")
    _campaign_commands(campaign.add_subparsers(required=True, metavar="COMMAND"))
    return parser


def _campaign_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    create = commands.add_parser("create", help="from a TOML file")
    create.add_argument("file", type=Path)
    create.add_argument("--invitations", type=int, default=0, metavar="N")
    create.set_defaults(run=_create)
    commands.add_parser("list", help="all campaigns").set_defaults(run=_list)
    for name, what, run in (
        ("show", "a campaign's description", _show),
        ("status", "where it stands on both servers", _status),
        ("seal", "fix the set of uploads and evaluate", _seal),
        ("confirm", "erase the uploads that sealing left out", _confirm),
        ("export", "description and curve, as files", _export),
        ("delete", "erase keys and noise; the id is never used again", _delete),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("id")
        command.set_defaults(run=run)
        if name == "export":
            command.add_argument("--out", type=Path, required=True, metavar="FOLDER")
            command.add_argument("--analyst-token-file", type=Path, required=True)
        if name == "delete":
            command.add_argument("--yes", action="store_true", help="do not ask")


def _init(args: argparse.Namespace) -> int:
    made = setup.init(args.folder, role=args.role, listen=args.listen, peer_url=args.peer_url, peer_hash=args.peer_hash)
    print(f"wrote {made.folder}/server.toml, operator.token, analyst.token, peer.token")
    print(f"\nnext: 1. give the other server's operator this hash, for its tokens.peer:\n     {made.peer_hash}")
    if not args.peer_hash:
        print(f"      2. put the hash you get from there into {made.folder}/server.toml, tokens.peer")
    print(f"      3. put your certificate and key into {made.folder}/cert.pem and key.pem (chmod 600),")
    print(f"         and the CA of the other server into {made.folder}/peer-ca.pem")
    print(f"      4. fss-server run --config {made.folder}/server.toml")
    return OK


def _init_pair(args: argparse.Namespace) -> int:
    setup.init_pair(args.folder, tuple(args.hosts), tuple(args.ports))
    print(f"wrote two servers, a development CA and operator.toml into {args.folder}\n\nnext, in two terminals:")
    for role in (0, 1):
        print(f"  fss-server run --config {args.folder}/server{role}/server.toml")
    print(f"then:\n  fss-server campaign --operator {args.folder}/operator.toml create campaign.toml")
    return OK


def _run(args: argparse.Namespace) -> int:
    running.run(load(args.config))
    return OK


def _health(args: argparse.Namespace) -> int:
    """From the same machine, so the certificate's name is not checked: nothing secret is said."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    settings = load(args.config)
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104
    try:
        with httpx.Client(verify=context, timeout=5, trust_env=False) as client:
            answer = client.get(f"https://{host}:{settings.port}/readyz")
    except httpx.HTTPError as error:
        print(f"fss-server: no answer ({type(error).__name__})", file=sys.stderr)
        return TRY_LATER
    print(answer.json().get("status", answer.status_code))
    return OK if answer.status_code == 200 else TRY_LATER


def _remotes(args: argparse.Namespace) -> AbstractContextManager[list[operator.Remote]]:
    return operator.remotes_of(args.operator or Path(os.environ.get("FSS_OPERATOR", "operator.toml")))


def _has_id(text: str) -> bool:
    try:
        return "id" in tomllib.loads(text)
    except ValueError:
        return False  # whoever reads the campaign says what is wrong with it


def _create(args: argparse.Namespace) -> int:
    text, kept = args.file.read_text(), args.file.with_suffix(".tokens.json")
    # Id and tokens are on disk before the first server hears of them, so that a repetition completes what failed.
    known = json.loads(kept.read_text()) if kept.exists() else {}
    given = bytes.fromhex(known["id"]) if known else new_id(secrets.token_bytes)
    campaign = Campaign.from_toml(text, id=None if _has_id(text) else given)
    made = operator.Created.new(campaign, args.invitations)
    if known:
        made = operator.Created(campaign, known["upload_token"], known["invitations"])
    else:
        tokens = {"id": campaign.id.hex(), "upload_token": made.upload_token, "invitations": made.invitations}
        setup.write_secret(kept, json.dumps(tokens))
    with _remotes(args) as remotes:
        operator.create(remotes, made)
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
    setup.write_secret(variables, operator.environment(remotes, made))
    print(f"  tokens are kept in {kept}; repeating this command creates nothing twice")
    if len(remotes) < 2:
        print("\nthis is one server only: the other one needs the same campaign, id and token hashes")
    print(f"\nnext: . {variables}   # its addresses, for the programs of parties and analysts")
    print("      fss-dealer upload --csv FILE --column NAME\n      fss-server campaign seal $FSS_ID")
    return OK


def _list(args: argparse.Namespace) -> int:
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


def _show(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        found = remotes[0].call("GET", f"/v1/campaigns/{args.id}").json()
    print(Campaign.from_dict(found["campaign"]).to_toml(), end="")
    return OK


def _status(args: argparse.Namespace) -> int:
    code = OK
    with _remotes(args) as remotes:
        found = operator.statuses(remotes, args.id)
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


def _seal(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        found, asked = operator.seal(remotes, args.id)
        orphans = {asked: found["orphans"]["here"], 1 - asked: found["orphans"]["there"]}
        print(f"sealed {found['count']} uploads; left out, because only one server had them: ", end="")
        print(f"{orphans[0]} at server 0, {orphans[1]} at server 1")
        if any(orphans.values()):
            print(f"they are kept; to erase them: fss-server campaign confirm {args.id}")
        operator.wait_until_ready(remotes, args.id, lambda line: print(f"\r{line}", end="", flush=True))
    print(f"\n\nnext: ask, for example\n  fss-analyst quantile {remotes[0].url}/v1/campaigns/{args.id}")
    return OK


def _confirm(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        for remote in remotes:
            erased = remote.call("POST", f"/v1/campaigns/{args.id}/confirm").json()["erased"]
            print(f"server {remote.number}: {erased} uploads that were left out are erased")
    return OK


def _export(args: argparse.Namespace) -> int:
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


def _delete(args: argparse.Namespace) -> int:
    if not args.yes and input(f"erase campaign {args.id} at all servers, for good? [y/N] ").strip().lower() != "y":
        print("nothing was erased")
        return OK
    with _remotes(args) as remotes:
        for remote in remotes:
            remote.call("DELETE", f"/v1/campaigns/{args.id}")
            print(f"erased at server {remote.number}")
    return OK


if __name__ == "__main__":
    sys.exit(main())
