"""What `fss-server` does for an operator: setting up servers, and campaigns at both of them."""

import argparse
import hashlib
import json
import os
import secrets
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fss_ecdf.campaign.campaign import Campaign, new_id, to_base64url
from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import AgreementPending, Problem
from fss_ecdf.campaign.noise.expected_errors import asked_by_points, quantile_questions
from fss_ecdf.campaign.status import Status, StatusProblem
from fss_ecdf.cli.common import OK, REFUSED, UsageError, ask, ask_yes_no
from fss_ecdf.operators import campaign_preview, campaign_wizard, proposals, setup, site_commands, status_text
from fss_ecdf.operators import servers as at_both
from fss_ecdf.operators.next_steps import next_step, typed
from fss_ecdf.pages.party_page import party_page


def init(args: argparse.Namespace) -> int:
    if bool(args.peer_hash) != bool(args.peer_key):
        raise UsageError("--peer-hash and --peer-key belong together; the other server's init printed both")
    known = setup.PeerCredentials(args.peer_hash, args.peer_key) if args.peer_hash else None
    about = {"server": args.server, "listen": args.listen, "peer_url": args.peer_url, "url": args.url}
    server = setup.init(args.folder, known=known, **about)
    print(f"wrote {server.folder}/server.toml, operator.token, analyst.token, peer.token, identity.secret", end="")
    print(" and operator.toml" if args.url else "")
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
    print(f"then:\n  fss-server campaign create --operator-config {args.folder}/operator.toml campaign.toml")
    return OK


def _remotes(args: argparse.Namespace) -> AbstractContextManager[list[at_both.ServerClient]]:
    return at_both.clients_of(operator_file(args))


def operator_file(args: argparse.Namespace) -> Path:
    """Where both servers' addresses and tokens are named."""
    return args.operator_config or Path(os.environ.get("FSS_OPERATOR_CONFIG", "operator.toml"))


def _has_id(text: str) -> bool:
    try:
        return "id" in tomllib.loads(text)
    except ValueError:
        return False  # whoever reads the campaign says what is wrong with it


def _prepared(args: argparse.Namespace, remotes: list[at_both.ServerClient]) -> at_both.CampaignWithTokens:
    """The campaign of a file with its id, its tokens and both servers' commitments.

    All of it is on disk before a server hears of it, so that a repetition completes what failed.
    """
    text, kept = args.file.read_text(), args.file.with_suffix(".tokens.json")
    known = json.loads(kept.read_text()) if kept.exists() else {}
    given = bytes.fromhex(known["id"]) if known else new_id(secrets.token_bytes)
    campaign = Campaign.from_toml(text, id=None if _has_id(text) else given)
    if known:
        created = at_both.CampaignWithTokens(campaign, known["upload_token"], known["invitations"])
    else:
        created = at_both.CampaignWithTokens.new(campaign, args.invitations)
        tokens = {"id": campaign.id.hex(), "upload_token": created.upload_token, "invitations": created.invitations}
        setup.write_secret(kept, json.dumps(tokens))
    created = at_both.with_commitments(remotes, created, known.get("server_commitments"))
    if "server_commitments" not in known:
        kept.write_text(
            json.dumps({**json.loads(kept.read_text()), "server_commitments": at_both.commitments_of(created)})
        )
    return created


def _write_environment(args: argparse.Namespace, campaign: Campaign, token: str | None) -> Path:
    """Where the campaign lives, for programs; beside the file that it came from."""
    places, name = at_both.addresses_of(operator_file(args)), args.file.name.removesuffix(".proposal.json")
    file = Path(args.file).with_name(name)
    variables = file.with_suffix(".env")
    variables.unlink(missing_ok=True)
    setup.write_secret(variables, at_both.environment(campaign, places, token))
    return variables


def create(args: argparse.Namespace) -> int:
    kept = args.file.with_suffix(".tokens.json")
    with _remotes(args) as remotes:
        created = _prepared(args, remotes)
        at_both.create(remotes, created)
    campaign = created.campaign
    variables = _write_environment(args, campaign, created.upload_token)  # first: nobody may read to the end
    name = to_base64url(campaign.id)
    print(f"created {campaign.title!r} at {len(remotes)} server{'s' * (len(remotes) > 1)}")
    print(f"  id      {name}\n  digest  {to_base64url(campaign.digest)}\n  epsilon {campaign.total_epsilon:g}")
    print(f"  keys    {campaign.key_type(0).key_bytes} bytes to each server, {campaign.bits} bits")
    print(f"          {campaign.key_check_text}")
    if asked_by_points(campaign):
        print(
            f"  note    2^{campaign.bits} positions are too many for whole curves: quantiles and histograms are asked"
        )
        print(f"          point by point: up to {quantile_questions(campaign)} queries for quantiles;")
        print(f"          fss-server campaign preview {args.file} says how long that takes")
    if created.upload_token:
        print(f"  upload token: {created.upload_token}")
    for token in created.invitations:
        print(f"  invitation: {token}")
    print(f"  tokens are kept in {kept}; repeating this command creates nothing twice")
    if len(remotes) < 2:
        print("\nthis is one server only: the other one needs the same campaign, id and token hashes")
        if not args.file.with_suffix(".proposal.json").exists():
            print(f"(fss-server campaign propose {args.file} writes them for its operator)")
    print(f"\nnext: . {variables}   # its addresses, for the programs of parties and analysts")
    if campaign.admission == "sites":
        print(
            "      fss-server campaign sites add $FSS_CAMPAIGN_ID LABEL ... --quota N   # writes an invitation for each"
        )
    else:
        print("      fss-dealer upload --file FILE --column NAME")
    print("      fss-server campaign seal $FSS_CAMPAIGN_ID")
    return OK


def propose(args: argparse.Namespace) -> int:
    path = args.file.with_suffix(".proposal.json")
    with _remotes(args) as remotes:
        created = _prepared(args, remotes)
    proposals.write_proposal(path, created, at_both.addresses_of(operator_file(args)))
    for line in proposals.describe(proposals.read_proposal(path)):
        print(line)
    print(f"\nwrote {path}: no secret is in it. Nothing is created yet")
    print("\nnext: 1. send it to the operator of the other server, who reads it and types")
    print(f"         fss-server campaign accept {path.name}")
    print(f"      2. when that is done: fss-server campaign create {args.file}")
    return OK


def accept(args: argparse.Namespace) -> int:
    proposal = proposals.read_proposal(args.file)
    with _remotes(args) as remotes:
        for remote in remotes:
            if remote.url.rstrip("/") != proposal.addresses[remote.number].rstrip("/"):
                raise UsageError(
                    f"{args.file}: it says that server {remote.number} is at {proposal.addresses[remote.number]}, "
                    f"but yours is at {remote.url}; ask the proposer to correct [peer] in the operator file"
                )
        for line in proposals.describe(proposal):
            print(line)
        question = f"\ncreate it at your server, with epsilon {proposal.campaign.total_epsilon:g} in all?"
        if not args.yes and not ask_yes_no(question, "accept it with --yes"):
            print("nothing was created")
            return OK
        for remote in remotes:
            remote.call("POST", "/v1/campaigns", json=proposal.body())
    variables = _write_environment(args, proposal.campaign, None)
    print(f"created at server {', '.join(str(remote.number) for remote in remotes)}; addresses are in {variables}")
    print("\nnext: tell the proposer, whose server needs it too (campaign create), then")
    print(f"      fss-server campaign status {to_base64url(proposal.campaign.id)}")
    return OK


def draft(args: argparse.Namespace) -> int:
    if args.file.exists():
        raise UsageError(f"{args.file} exists already; a campaign's file is never overwritten")
    args.file.write_text(campaign_wizard.ask_campaign(ask), encoding="utf-8")
    print(f"wrote {args.file}\n\nnext: fss-server campaign preview {args.file}    # what it will be able to answer")
    print(f"      fss-server campaign create {args.file}")
    return OK


def preview(args: argparse.Namespace) -> int:
    text = args.file.read_text()
    campaign = Campaign.from_toml(text, id=None if _has_id(text) else bytes(32))
    for line in campaign_preview.lines(campaign, args.n, args.supported, args.proportions):
        print(line)
    return OK


def list_all(args: argparse.Namespace) -> int:
    campaigns: dict[str, dict[int, dict[str, object]]] = {}
    with _remotes(args) as remotes:
        for remote in remotes:
            for row in remote.json("GET", "/v1/campaigns"):
                campaigns.setdefault(row["id"], {})[remote.number] = row
    print(f"{'id':<44} {'state':<16} {'uploads':>15}  title")
    for name, rows in campaigns.items():
        states = {str(row["state"]) for row in rows.values()}
        uploads = "/".join(str(rows[r.number]["uploads"]) if r.number in rows else "-" for r in remotes)
        missing = [r.number for r in remotes if r.number not in rows]
        state = f"not at server {missing[0]}" if missing else "/".join(sorted(states))
        print(f"{name:<44} {state:<16} {uploads:>15}  {short(str(next(iter(rows.values()))['title']))}")
    return OK


def show(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        campaign = remotes[0].campaign(args.id)
    print(campaign.to_toml(), end="")
    return OK


def status(args: argparse.Namespace) -> int:
    code = OK
    with _remotes(args) as remotes:
        both = at_both.statuses(remotes, args.id)
    for status in both:
        if isinstance(status, StatusProblem):
            print(f"server {status.server}: {status.detail} [{status.problem}]")
            code = REFUSED
            continue
        parts = [f"{status.state}, {status.uploads} uploads"]
        parts += [] if status.check_keys else ["keys not checked"]
        if status.rejected:
            parts.append(f"{status.rejected} rejected")
        parts += ["HPKE KEY LOST, uploads are refused: see fss-server doctor"] if status.hpke_key_lost else []
        if status.sealed_uploads is not None:
            parts.append(f"{status.sealed_uploads} sealed, {status.unmatched} unmatched, {status.phase}")
            parts.append(f"{100 * (status.progress or 0):.0f} %")
        print(f"server {status.server}: {', '.join(parts)}")
        for line in status_text.lines(status):
            print(line)
        if isinstance(status.peer, StatusProblem):
            print(f"  it says of the other server: {status.peer.detail} [{status.peer.problem}]")
            code = REFUSED
    known = [status for status in both if isinstance(status, Status)]
    sites = [(s.server, [site.model_dump() for site in s.sites]) for s in known if s.sites is not None]
    for line in site_commands.table(sites) if sites else ():
        print(line)
    _print_next(both, args.id)
    return code


def _print_next(both: list[Status | StatusProblem], campaign_id: str) -> None:
    known = [status for status in both if isinstance(status, Status)]
    if known:
        print(f"\nnext: {next_step(known[0], typed(campaign_id))}")


def seal(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        wave = args.wave or at_both.open_wave(remotes, args.id)
        answer, asked = _sealed(remotes, args.id, wave)
        unmatched = {asked: answer["unmatched"]["here"], 1 - asked: answer["unmatched"]["there"]}
        verb = "checking" if answer["state"] == "checking" else "sealed"
        print(
            f"{status_text.of(wave)}{verb} {answer['count']} uploads; excluded, because only one server had them: ",
            end="",
        )
        print(f"{unmatched[0]} at server 0, {unmatched[1]} at server 1")
        ready = at_both.wait_until_ready(remotes, args.id, status_text.show_progress, wave)
        print(f"\nsealed {ready.uploads} uploads, rejected {ready.rejected} whose keys failed the check")
        if any(unmatched.values()) or ready.rejected:
            print(f"excluded uploads are kept; to erase them: fss-server campaign discard-excluded {args.id}")
    print(f"\nnext: ask, for example\n  fss-analyst quantile {remotes[0].url}/v1/campaigns/{args.id}")
    return OK


def _sealed(remotes: list[at_both.ServerClient], campaign_id: str, wave: int | None) -> tuple[dict[str, Any], int]:
    """Where it fails half-way: what state both sides are in, and what to type."""
    try:
        return at_both.seal(remotes, campaign_id, wave)
    except AgreementPending:
        raise
    except Problem:
        both = at_both.statuses(remotes, campaign_id)
        for status in both:
            if isinstance(status, Status):
                there = status.peer.state if isinstance(status.peer, Status) else "no answer"
                print(f"server {status.server}: {status.state}; of the other server it says: {there}")
        _print_next(both, campaign_id)
        raise


def unfreeze(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        remotes[0].call("POST", f"/v1/campaigns/{args.id}/unfreeze")
    print("uploads go on at both servers; sealing needs the agreement of both operators again")
    return OK


def cancel_seal(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        for remote in remotes:
            remote.call("DELETE", f"/v1/campaigns/{args.id}/seal")
            print(f"server {remote.number}: agreement withdrawn; uploads go on")
    return OK


def abandon_wave(args: argparse.Namespace) -> int:
    question = (
        f"abandon wave {args.wave} at both servers? Nothing of it is ever released; its parties must upload again"
    )
    if not args.yes and not ask_yes_no(question, "abandon it with --yes"):
        print("nothing was changed")
        return OK
    with _remotes(args) as remotes:
        excluded, server = at_both.abandon_wave(remotes, args.id, args.wave)
    print(f"wave {args.wave} is abandoned; server {server} had {excluded} uploads of it, which are excluded")
    print("\nnext: tell its parties to run fss-dealer upload --replace: they send new keys for the open wave")
    return OK


def change_sites(args: argparse.Namespace) -> int:
    code: int = getattr(site_commands, args.action)(args, operator_file(args))
    return code


def discard_excluded(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        for remote in remotes:
            erased = remote.json("POST", f"/v1/campaigns/{args.id}/discard-excluded")["erased"]
            print(f"server {remote.number}: {erased} uploads that were left out are erased")
    return OK


def export(args: argparse.Namespace) -> int:
    token = args.analyst_token_file.read_text().strip()
    headers = {"Accept": "text/csv", "Authorization": f"Bearer {token}"}
    with _remotes(args) as remotes:
        campaign = remotes[0].campaign(args.id)
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "campaign.toml").write_text(campaign.to_toml())
        kinds = {} if campaign.variable.is_categorical else {"curve": "csv"}
        kinds |= {"counts": "json"} if campaign.variable.cells else {}
        for number, stratum in enumerate(campaign.strata):
            about: dict[str, Any] = {"params": {"stratum": stratum}, "headers": headers}
            for kind, form in kinds.items():
                path, most = f"/v1/campaigns/{args.id}/{kind}", 300 * (campaign.variable.size + 10)
                text = remotes[0].call("GET", path, most=most, **about).text
                (args.out / f"{kind}-{number}.{form}").write_text(text)
    print(f"wrote campaign.toml and the {' and '.join(kinds)} of {len(campaign.strata)} strata into {args.out}")
    return OK


def write_party_page(args: argparse.Namespace) -> int:
    with _remotes(args) as remotes:
        campaign = at_both.agreed(remotes, args.id)
        servers = args.urls or [remote.url for remote in remotes]
    urls = [f"{url.rstrip('/')}/v1/campaigns/{args.id}" for url in servers]
    text = party_page(campaign, urls, organiser=args.organiser, contact=args.contact)
    args.out.write_text(text)
    print(f"wrote {args.out}, {len(text.encode())} bytes\n  SHA-256 {hashlib.sha256(text.encode()).hexdigest()}")
    print(f"  digest  {to_base64url(campaign.digest)}")
    print("\nnext: let somebody whom parties trust publish it with its SHA-256; not an operator of one of the servers.")
    print("      A party opens it with its token behind a #, as in party.html#token=TOKEN")
    return OK


def delete(args: argparse.Namespace) -> int:
    if not args.yes and not ask_yes_no(f"erase campaign {args.id} at all servers, for good?", "erase it with --yes"):
        print("nothing was erased")
        return OK
    with _remotes(args) as remotes:
        for remote in remotes:
            remote.call("DELETE", f"/v1/campaigns/{args.id}")
            print(f"erased at server {remote.number}")
    return OK
