"""Attacks, played to the end, and what each one gains, if it does. docs/security.md has the same in words."""

import secrets
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss import KeyBatch, dcf, field
from fss_ecdf.campaign.binary_messages import (
    ShareMessage,
    Uploads,
    decode_shares,
    encode_shares,
    encode_uploads,
    hash_rows,
    stored_bytes,
    upload_rows,
)
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.json_messages import ShareQuery
from fss_ecdf.net.tokens import new_token
from fss_ecdf.operators.setup import _Authority
from servers.release.statement import split
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import answering, new_campaign, values
from tests.servers.test_answers import both_noises, noise_tree, true_curve
from tests.servers.test_bad_peers import _reply, impostor

pytestmark = pytest.mark.faults

Sealed = tuple[Campaign, np.ndarray[Any, Any]]


def stolen_keys(pair: LivePair, role: int, campaign: Campaign) -> tuple[list[bytes], KeyBatch]:
    """Ids and keys from a server's disk."""
    with sqlite3.connect(pair.folder / f"server{role}" / "data" / "server.db") as db:
        rows = db.execute(
            "SELECT id, key FROM uploads WHERE campaign = (SELECT number FROM campaigns WHERE id = ?) ORDER BY id",
            (campaign.id,),
        ).fetchall()
    db.close()
    size = campaign.key_type(role).key_bytes
    return [row[0] for row in rows], KeyBatch.from_bytes(b"".join(row[1][:size] for row in rows), campaign.id)


def exact(pair: LivePair, campaign: Campaign) -> np.ndarray[Any, Any]:
    """The published curve without both servers' noise: what no single attacker can compute."""
    counts = np.array(pair.ask(0, campaign, "curve")["counts"])
    return np.asarray(counts - both_noises(pair, campaign)[: campaign.variable.grid.size])


# A thief with one server's disk


def test_the_keys_on_one_disk_say_nothing_about_values(pair: LivePair) -> None:
    """Half of the parties hold 0, half the largest value. From one server's keys, nobody can tell which."""
    campaign, n = new_campaign(), 4000
    truth = np.random.default_rng(5).integers(0, 2, n)
    pair.create(campaign)
    ids = {}
    for value in (0, 1):
        some = envelopes(campaign, np.full(int((truth == value).sum()), 100 * value))
        for role in (0, 1):
            assert pair.upload(role, campaign, some[role]).status_code == 200
        ids.update({upload_id: value for upload_id, _, _ in upload_rows(some[0], campaign, 0)[1]})
    order, keys = stolen_keys(pair, 0, campaign)
    secret = np.array([ids[i] for i in order])
    share = dcf.at_point(keys, 50)  # of 1 for those at 0, of 0 for the others
    rows = np.frombuffer(keys.to_bytes(), np.uint8).reshape(n, -1)[:, 8:]
    guesses = [share & np.uint64(1), share > np.uint64(field.P // 2), *(rows[:, ::3].T & 1)]
    # Each guess is a fair coin; with 5 standard deviations, the chance that any of these strays is below 1e-4.
    for guess in guesses:
        assert abs((guess == secret).mean() - 0.5) < 5 * 0.5 / np.sqrt(n)


def test_a_thief_of_one_disk_removes_one_of_two_noises(pair: LivePair, sealed: Sealed) -> None:
    """He gains a factor of the square root of two in the standard error, and no exact count."""
    campaign, positions = sealed
    size = campaign.variable.grid.size
    published = np.array(pair.ask(0, campaign, "curve")["counts"])
    cleaned = published - noise_tree(pair, 0, campaign).curve()[:size]
    left = cleaned - true_curve(campaign, positions)[:size]
    assert left.tolist() == noise_tree(pair, 1, campaign).curve()[:size].tolist()
    assert (left != 0).mean() > 0.5


# A curious server


def peer_shares(pair: LivePair, campaign: Campaign, positions: list[int] | None) -> np.ndarray[Any, Any]:
    """What server 1 gets of server 0."""
    token = (pair.folder / "server1" / "peer.token").read_text().strip()
    query = ShareQuery(digest=campaign.digest, positions="all" if positions is None else positions)
    with pair.client(0, token) as client:
        answer = client.post(f"/v1/peer/campaigns/{name(campaign)}/shares", content=query.to_json())
    assert answer.status_code == 200, answer.text
    count = 1 << campaign.bits if positions is None else len(positions)
    return decode_shares(split(answer.content)[0], campaign, 0, count).elements


def test_a_curious_server_that_asks_again_or_elsewhere_gets_the_same_shares(pair: LivePair, sealed: Sealed) -> None:
    campaign, positions = sealed
    everything = peer_shares(pair, campaign, None)
    for at in ([5], [5, 5, 5, 90], list(range(256)), [255, 0]):
        for _ in range(5):
            assert peer_shares(pair, campaign, at).tolist() == everything[at].tolist()
    assert pair.ask(0, campaign, "budget")["spent"] == pytest.approx(campaign.epsilon)
    # With its own keys it has the exact counts under server 0's noise, at all positions: what every analyst may have.
    own = dcf.sum_over_domain(stolen_keys(pair, 1, campaign)[1])
    seen = field.decode(field.add(everything, own))
    noise = noise_tree(pair, 0, campaign).curve()
    assert (seen - true_curve(campaign, positions)).tolist() == noise.tolist()


# An analyst


def test_a_million_questions_average_nothing_away(pair: LivePair, sealed: Sealed) -> None:
    """Every point of the grid ten thousand times, at both servers."""
    campaign, positions = sealed
    curve = pair.ask(0, campaign, "curve", stratum="no")
    repeats, questions = 70, 143
    asked, expected = curve["thresholds"] * repeats, curve["counts"] * repeats
    assert len(asked) * questions > 10**6
    sums = np.zeros(len(asked))
    for number in range(questions):
        counts = pair.ask(number % 2, campaign, "ecdf", at=",".join(map(str, asked)), stratum="no")["counts"]
        assert counts == expected
        sums += counts
    average = sums[:101] / questions
    error = average - true_curve(campaign, positions)[:101]
    assert error.tolist() == both_noises(pair, campaign)[:101].tolist()
    for role in (0, 1):
        assert pair.ask(role, campaign, "budget")["spent"] == pytest.approx(campaign.epsilon)


# Parties


def test_a_party_that_uploads_twice(pair: LivePair) -> None:
    """In an open campaign it counts twice: the bound is its promise. With invitations it is refused."""
    opened, invited = new_campaign(), new_campaign(admission="invited")
    invitations = [new_token("invite") for _ in range(20)]
    pair.create(opened)
    pair.create(invited, invitations=invitations)
    for _ in range(2):
        pair.upload_values(opened, np.full(10, 3))
    for token in invitations:
        data = envelopes(invited, np.array([3]))
        assert all(pair.upload(role, invited, data[role], token).status_code == 200 for role in (0, 1))
    again = envelopes(invited, np.array([3]))
    for role in (0, 1):
        assert pair.upload(role, invited, again[role], invitations[0]).json()["type"].endswith("invitation-used")
    assert pair.seal(opened)["count"] == 20
    assert pair.seal(invited)["count"] == 20


def test_a_party_that_uploads_to_one_server_only_changes_nothing(pair: LivePair) -> None:
    campaign = new_campaign()
    positions = campaign.to_positions(values(50)).positions
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    for role in (0, 1):
        pair.upload(role, campaign, envelopes(campaign, np.zeros(30, np.int64))[role])
    assert pair.seal(campaign)["unmatched"] == {"here": 30, "there": 30}
    pair.wait_ready(campaign)
    assert exact(pair, campaign).tolist() == true_curve(campaign, positions)[:101].tolist()


def forged(campaign: Campaign, keys: tuple[KeyBatch, KeyBatch]) -> tuple[bytes, bytes]:
    ids = np.frombuffer(secrets.token_bytes(16 * len(keys[0])), np.uint8).reshape(-1, 16)
    hashes = [hash_rows(stored_bytes(batch, None)) for batch in keys]
    first, second = (encode_uploads(campaign, Uploads(ids, keys[b], hashes[1 - b])) for b in (0, 1))
    return first, second


def test_a_malformed_key_adds_what_its_party_likes(pair: LivePair) -> None:
    """This attack succeeds: a payload of 500 instead of 1, and keys that share no comparison at all."""
    heavy, wild = new_campaign(), new_campaign()
    positions = heavy.to_positions(values(50)).positions
    for campaign in (heavy, wild):
        pair.create(campaign)
        pair.upload_values(campaign, positions)
    rand = np.random.default_rng(1).bytes(32)
    more = dcf.gen([20], bits=heavy.bits, binder=heavy.id, rand=rand, beta=500)
    one, other = dcf.gen([20], bits=wild.bits, binder=wild.id, rand=rand)
    words = other.words.copy()
    words[-4:] = (words[-4:] + np.uint64(10**12)) % np.uint64(field.P)  # server 1's last corrections alone
    for campaign, keys in ((heavy, more), (wild, (one, KeyBatch(other.type, words)))):
        for role, data in enumerate(forged(campaign, keys)):
            assert pair.upload(role, campaign, data).json()["failures"] == []
        assert pair.seal(campaign)["count"] == 51
        pair.wait_ready(campaign)
    added = exact(pair, heavy) - true_curve(heavy, positions)[:101]
    assert added.tolist() == [0] * 20 + [500] * 81
    spoiled = exact(pair, wild) - true_curve(wild, positions)[:101]
    assert np.abs(spoiled).max() > 10**9


# Servers that are not who they say, or do not do what they should


def test_a_certificate_of_the_wrong_organisation(tmp_path: Path) -> None:
    """The same authority has signed it, but for another name: server 0 does not talk to it."""
    pair, authority = LivePair(tmp_path, curve_bits="0"), _Authority()
    (pair.folder / "server0" / "peer-ca.pem").write_bytes(authority.certificate_pem)
    folder = pair.folder / "server1"
    certificate, key = authority.issue("127.0.0.1")
    (folder / "cert.pem").write_bytes(certificate)
    (folder / "key.pem").write_bytes(key)
    pair.context.load_verify_locations(cadata=authority.certificate_pem.decode())
    with pair:
        campaign = answering(pair)
        pair.stop(1)
        certificate, key = authority.issue("other.example")
        (folder / "cert.pem").write_bytes(certificate)
        (folder / "key.pem").write_bytes(key)
        with impostor(pair, lambda h: _reply(h, 200, b"")), pair.analyst(0) as client:
            response = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
        assert response.json()["type"].endswith("peer-unavailable")
        assert "ConnectError" in response.json()["detail"]
        # As a client it needs the token; a certificate alone opens nothing.
        with pair.client(0, new_token("peer")) as client:
            assert client.post(f"/v1/peer/campaigns/{name(campaign)}/shares").status_code == 401


def test_shares_that_the_server_did_not_sign_are_refused(tmp_path: Path) -> None:
    """Whoever has server 1's certificate and token, but not its identity, cannot answer for it; it can: test_audit."""
    pair = LivePair(tmp_path, curve_bits="0")
    with pair:
        campaign = answering(pair)
        pair.ask(0, campaign, "ecdf", at="0.5")
        true_share = pair_share(pair, campaign)
        pair.stop(1)
        lie = ShareMessage(
            1, true_share.key_set, true_share.uploads, field.add(true_share.elements, np.array([7], np.uint64))
        )
        body = encode_shares(campaign, lie) + bytes(64)
        with impostor(pair, lambda h: _reply(h, 200, body)), pair.analyst(0) as client:
            answer = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
        assert answer.status_code == 502
        assert "not signed" in answer.json()["detail"]


def pair_share(pair: LivePair, campaign: Campaign) -> ShareMessage:
    """What server 1 honestly answers for the threshold 0.3."""
    token = (pair.folder / "server0" / "peer.token").read_text().strip()
    query = ShareQuery(digest=campaign.digest, positions=[30])
    with pair.client(1, token) as client:
        answer = client.post(f"/v1/peer/campaigns/{name(campaign)}/shares", content=query.to_json())
    return decode_shares(split(answer.content)[0], campaign, 1, 1)
