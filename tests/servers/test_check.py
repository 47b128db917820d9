"""Keys of dishonest parties, at two live servers: refused, put aside, and everybody else's count exact."""

import json
import secrets
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import (
    Uploads,
    decode_uploads,
    encode_uploads,
    hash_rows,
    stored_bytes,
    upload_rows,
)
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.status import Status
from fss_ecdf.net.server_identity import Identity
from fss_ecdf.net.tokens import new_token
from fss_ecdf.operators.next_steps import next_step, typed
from servers.release.noise import NoiseTree
from tests.fss import forge
from tests.fss.attacks import ATTACKS
from tests.harness.server_pair import IDENTITIES, LivePair, envelopes, name
from tests.servers import audits
from tests.servers.conftest import new_campaign, values
from tests.servers.waves import close

Counts = np.ndarray[Any, np.dtype[np.int64]]

POSITIONS = {"kind": "linear", "values": "integer", "from": 0, "to": 63, "step": 1}


def exact_curve(pair: LivePair, campaign: Campaign) -> Counts:
    """The published curve without both servers' noise, which only a thief of both disks could subtract."""
    counts = np.array(pair.ask(0, campaign, "curve")["counts"], np.int64)
    for role in (0, 1):
        seed, covered = pair.noise_secrets(role, campaign)
        counts -= NoiseTree(seed, server=role, covers=covered, mechanism=campaign.noise).curve()[: counts.size]
    return counts


def true_curve(campaign: Campaign, positions: Counts) -> Counts:
    return np.searchsorted(np.sort(positions), np.arange(campaign.variable.grid.size), side="right")


def checked(pair: LivePair, **changes: Any) -> Campaign:
    campaign = new_campaign(check_keys=True, grid=POSITIONS, **changes)
    pair.create(campaign)
    return campaign


def forged(campaign: Campaign, attack: str, **more: Any) -> list[bytes]:
    """Envelopes of a dishonest party for both servers, under ids that they share."""
    forger = forge.Forger(campaign.variable.scheme, binder=campaign.id, **more)
    made = ATTACKS[attack](forger)
    ids = np.frombuffer(secrets.token_bytes(16 * len(made.keys)), np.uint8).reshape(-1, 16)
    hashes = [hash_rows(stored_bytes(*made.of_server(role))) for role in (0, 1)]
    each = [(made.of_server(role), hashes[1 - role]) for role in (0, 1)]
    return [
        encode_uploads(campaign, Uploads(ids, keys, other, proofs, Contribution(wave=campaign.first_wave)))
        for (keys, proofs), other in each
    ]


def send(pair: LivePair, campaign: Campaign, both: list[bytes]) -> None:
    for role in (0, 1):
        assert pair.upload(role, campaign, both[role]).json()["failures"] == []


def test_honest_uploads_pass(pair: LivePair) -> None:
    campaign = new_campaign(check_keys=True)
    positions = campaign.to_positions(values(300)).positions
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    assert pair.seal(campaign)["state"] == "checking"
    for status in pair.wait_checked(campaign):
        assert (status["state"], status["sealed_uploads"], status["rejected"]) == ("sealed", 300, 0)
    pair.wait_ready(campaign)
    assert np.array_equal(exact_curve(pair, campaign), true_curve(campaign, positions))
    again = pair.seal(campaign, role=1)
    assert (again["state"], again["count"], again["rejected"]) == ("sealed", 300, 0)
    assert pair.ask(1, campaign, "ecdf", at="0.5")["check_keys"] is True


@pytest.mark.parametrize("scheme", ["dcf", "dpf"])
def test_every_attack_is_refused(pair: LivePair, scheme: str) -> None:
    """All in one campaign, each party's keys among those of honest ones, and some at one server only."""
    campaign, bad = checked(pair, scheme=scheme), 0
    positions = np.random.default_rng(1).integers(0, 64, 200)
    for number, (attack, some) in enumerate(zip(ATTACKS, np.array_split(positions, len(ATTACKS)), strict=True)):
        pair.upload_values(campaign, some)
        both = forged(campaign, attack, seed=number)
        send(pair, campaign, both)
        bad += len(upload_rows(both[0], campaign, 0)[1])
    assert pair.upload(1, campaign, envelopes(campaign, np.arange(5))[1]).status_code == 200
    answer = pair.seal(campaign)
    assert answer["count"] == 200 + bad
    assert answer["unmatched"] == {"here": 0, "there": 5}
    for role, status in enumerate(pair.wait_checked(campaign)):
        assert (status["state"], status["sealed_uploads"], status["rejected"]) == ("sealed", 200, bad)
        assert status["excluded_stored"] == bad + 5 * role
    pair.wait_ready(campaign)
    assert np.array_equal(exact_curve(pair, campaign), true_curve(campaign, positions))
    with pair.operator(0) as client:
        assert metric(pair.metrics(0), "fss_rejected_total") >= bad
        assert client.post(f"/v1/campaigns/{name(campaign)}/discard-excluded").json() == {"erased": bad}


def metric(text: str, name: str) -> float:
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))


def test_a_rejected_id_is_not_taken_again_with_another_token(pair: LivePair) -> None:
    """It would be rejected twice; and its party can have it erased."""
    waves = {"every": "manual", "count": 2, "pooled": []}
    about = {"grid": POSITIONS, "min_uploads": 30, "admission": "invited", "max_values_per_person": 30, "waves": waves}
    campaign = new_campaign(check_keys=True, **about)
    invitations = [new_token("invite") for _ in range(3)]
    pair.create(campaign, invitations)
    bad = forged(campaign, "another payload")
    for role in (0, 1):
        assert pair.upload(role, campaign, bad[role], invitations[0]).json()["failures"] == []
    close(pair, campaign, 1)
    until = time.monotonic() + 60
    while pair.status(campaign)["waves"][0]["state"] != "sealed":
        assert time.monotonic() < until
        time.sleep(0.05)
    later = encode_uploads(campaign, replace(decode_uploads(bad[0], campaign, 0), contribution=Contribution(wave=2)))
    again = pair.upload(0, campaign, later, invitations[1])
    assert again.json()["type"].rsplit(":")[-1] == "upload-withdrawn"
    ids = b"".join(upload_id for upload_id, _, _ in upload_rows(bad[0], campaign, 0)[1])
    with pair.client(0, invitations[0]) as client:
        path = f"/v1/campaigns/{name(campaign)}/uploads/withdraw"
        assert client.post(path, content=ids).status_code == 200
    with closing(sqlite3.connect(pair.folder / "server0" / "data" / "server.db")) as db:
        assert db.execute("SELECT count(*) FROM excluded WHERE campaign = ?", (campaign.id,)).fetchone() == (0,)


def test_too_few_remain(pair: LivePair, tmp_path: Path) -> None:
    """Nothing is published of the rest, and nothing is added to it: both servers know the challenge now.

    A party that works with one of them could make a key for it that shares any function.
    """
    campaign = checked(pair, min_uploads=30)
    late = envelopes(campaign, np.arange(3))
    pair.upload_values(campaign, np.arange(20))
    assert pair.upload(0, campaign, late[0]).status_code == 200
    bad = forged(campaign, "another payload")
    send(pair, campaign, bad)
    assert pair.seal(campaign)["state"] == "checking"
    both = pair.wait_checked(campaign)
    assert [(s["state"], s["sealed_uploads"], s["rejected"], s["too_few"]) for s in both] == [
        ("sealed", 20, 30, True)
    ] * 2
    pair.wait_ready(campaign)
    assert ask_peer(pair, 0, campaign, "challenge", seed=seed(1, campaign)).json()["seed"] == seed(0, campaign)
    new, closed = envelopes(campaign, np.arange(10))[0], "campaign-sealed"
    for role, data, code in ((0, bad[0], "upload-withdrawn"), (1, late[1], closed), (0, new, closed)):
        refusal = pair.upload(role, campaign, data)
        assert (refusal.status_code, refusal.json()["type"].rsplit(":")[-1]) == (409, code)
    for what, code in (("unfreeze", "campaign-sealed"), ("seal", "too-few-uploads")):
        with pair.operator(0) as client:
            refusal = client.post(f"/v1/campaigns/{name(campaign)}/{what}")
        assert (refusal.status_code, refusal.json()["type"].rsplit(":")[-1]) == (409, code)
    with pair.analyst(0) as client:
        refusal = client.get(f"/v1/campaigns/{name(campaign)}/curve")
    assert (refusal.status_code, refusal.json()["type"].rsplit(":")[-1]) == (409, "too-few-uploads")
    with pair.operator(0) as client:
        status = client.get(f"/v1/campaigns/{name(campaign)}/status").json()
    assert "create a new campaign" in next_step(read(Status, status), typed(name(campaign)))
    # Whether the other server condemned honest uploads can be audited.
    findings = audits.found(audits.handed_over(pair, campaign, tmp_path / "audit"), campaign)
    assert len(findings) > 3
    assert audits.wrong(findings) == {}


def test_proofs_are_required(pair: LivePair) -> None:
    campaign = checked(pair)
    bare = new_campaign(id=campaign.id, grid=POSITIONS)
    data = bytearray(envelopes(bare, np.arange(2))[0])
    data[8:40] = campaign.digest
    answer = pair.upload(0, campaign, bytes(data))
    assert answer.status_code == 400
    assert "proofs of this campaign have 176 bytes, the upload says 0" in answer.json()["detail"]


def ask_peer(pair: LivePair, role: int, campaign: Campaign, what: str, **message: Any) -> Any:
    """What the other server may ask of one, with its token."""
    token = (pair.folder / f"server{1 - role}" / "peer.token").read_text().strip()
    with pair.client(role, token) as client:
        body = {"digest": to_base64url(campaign.digest), **message}
        return client.post(f"/v1/peer/campaigns/{name(campaign)}/{what}", content=json.dumps(body))


def seed(role: int, campaign: Campaign) -> str:
    return to_base64url(Identity(IDENTITIES[role], role).check_seed(campaign))


def test_a_server_tells_its_part_of_one_challenge_only(pair: LivePair) -> None:
    """Played by server 1: it asks too early, with another seed, with server 0's own, and for another set."""
    campaign = checked(pair)
    pair.upload_values(campaign, np.arange(20))
    early = ask_peer(pair, 0, campaign, "challenge", seed=seed(1, campaign))
    assert (early.status_code, early.json()["type"].rsplit(":")[-1]) == (503, "not-ready")
    pair.seal(campaign)
    for wrong in (to_base64url(bytes(32)), seed(0, campaign)):
        answer = ask_peer(pair, 0, campaign, "challenge", seed=wrong)
        assert (answer.status_code, answer.json()["type"].rsplit(":")[-1]) == (409, "challenge-mismatch")
        assert "seed" not in answer.json()
    assert ask_peer(pair, 0, campaign, "challenge", seed=seed(1, campaign)).json()["seed"] == seed(0, campaign)
    pair.wait_checked(campaign)
    about = {"start": 0, "stop": 20}
    other = ask_peer(pair, 0, campaign, "messages", checksum=to_base64url(bytes(32)), **about)
    assert other.status_code == 503
    checksum = pair.status(campaign)["checksum"]
    told = [ask_peer(pair, 0, campaign, "messages", checksum=checksum, **about).content for _ in range(2)]
    assert told[0] == told[1]
    assert len(told[0]) == 24 * 20 + 64  # with its signature


def test_a_campaign_needs_the_servers_own_commitments(pair: LivePair) -> None:
    campaign = new_campaign(check_keys=True)
    fields = campaign.model_dump(mode="json", by_alias=True)
    with pair.operator(0) as client:
        answer = client.post("/v1/campaigns", json={"campaign": fields, "upload_token": "0" * 64})
        assert (answer.status_code, "server 0 made no commitment" in answer.json()["detail"]) == (422, True)
    for role in (0, 1):
        pair.plant(role, campaign.id)
    for change, message in (
        (None, "no commitments"),
        (list(reversed(fields["server_commitments"])), "server_commitments.0: this is not the commitment of server 0"),
        (
            [fields["server_commitments"][0], {**fields["server_commitments"][1], "signing_key": "A" * 43}],
            "server_commitments.1: not the signing key",
        ),
    ):
        with pair.operator(0) as client:
            body = {"campaign": {**fields, "server_commitments": change}, "upload_token": "0" * 64}
            answer = client.post("/v1/campaigns", json=body)
        assert answer.status_code == 422
        assert message in answer.json()["detail"]
    with pair.operator(1) as client:
        assert client.get(f"/v1/commitments/{name(campaign)}").json() == {
            "server_commitments": fields["server_commitments"]
        }


def test_a_domain_that_is_too_large_says_so() -> None:
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": (1 << 21) - 1, "step": 1}
    with pytest.raises(ValueError, match=r"checked up to 20 bits; grid and strata need 21\. Say check_keys = false"):
        new_campaign(check_keys=True, grid=grid)
    assert new_campaign(check_keys=False, grid=grid).bits == 21
