"""No server seals another: closing times, operators' words, and what is left out."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from campaign.spec import Campaign
from client.tokens import new_token
from harness.live import Pair, envelopes, name
from servers.lifecycle.seal import Listed, encode_set
from tests.servers.conftest import filled, new_campaign, values
from tests.servers.test_bad_peers import peer_call
from tests.servers.test_uploads import code


def _left_out(pair: Pair, campaign: Campaign) -> int:
    with closing(sqlite3.connect(pair.folder / "server0" / "data" / "server.db")) as db:
        return int(db.execute("SELECT COUNT(*) FROM left_out WHERE campaign = ?", (campaign.id,)).fetchone()[0])


def _confirm(pair: Pair, campaign: Campaign) -> httpx.Response:
    with pair.operator(0) as client:
        return client.post(f"/v1/campaigns/{name(campaign)}/confirm")


def test_a_peer_cannot_seal_early_or_choose_what_is_erased(pair: Pair) -> None:
    """It could: freeze at any time, agree on any subset of min_uploads, and the rest was erased for good."""
    campaign, _ = filled(pair)
    assert code(peer_call(pair, campaign, "freeze")) == "seal-not-agreed"
    assert code(peer_call(pair, campaign, "agree", encode_set(campaign, 1, bytes(16 * 10)))) != "internal"
    assert pair.status(campaign)["state"] == "open"
    # The operator agrees; the peer chooses ten of sixty. What it leaves out is kept until the operator confirms.
    assert code(pair.agree(campaign, 0)) == "seal-not-agreed"
    listed = Listed.decode(peer_call(pair, campaign, "freeze").content)
    few = encode_set(campaign, listed.freeze, listed.ids[: 16 * 10])
    assert peer_call(pair, campaign, "agree", few).status_code == 200
    status = pair.status(campaign)
    assert (status["count"], status["orphans"], status["kept"]) == (10, 53, 53)
    assert _left_out(pair, campaign) == 53
    assert _confirm(pair, campaign).json() == {"erased": 53}
    assert _left_out(pair, campaign) == 0
    assert pair.status(campaign)["kept"] == 0


def test_nothing_can_be_confirmed_before_it_is_sealed(pair: Pair) -> None:
    campaign, _ = filled(pair)
    assert code(_confirm(pair, campaign)) == "not-sealed"


def test_uploads_go_on_until_both_operators_agree(pair: Pair) -> None:
    campaign, _ = filled(pair)
    assert code(pair.agree(campaign, 1)) == "seal-not-agreed"
    pair.upload_values(campaign, np.array([5]))
    assert [pair.status(campaign, role)["agreed"] for role in (0, 1)] == [False, True]
    assert pair.agree(campaign, 0).json()["count"] == 61


@pytest.mark.faults
def test_at_closing_time_no_word_is_needed(tmp_path: Path) -> None:
    """By the accepting server's own clock."""
    started = Pair(tmp_path)
    late = tmp_path / "late"
    late.write_text("0")
    started.configure(0, clock_file=f'"{late}"')
    with started as pair:
        campaign = new_campaign(closes=datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1))
        pair.create(campaign)
        pair.upload_values(campaign, campaign.place(values(20)).positions)
        assert code(pair.agree(campaign, 1)) == "seal-not-agreed"
        late.write_text("3700")
        assert pair.agree(campaign, 1).json()["count"] == 20


def test_withdrawing_is_no_weapon(pair: Pair) -> None:
    """Thousands of random ids at once, the ids of others, and a full table of withdrawn ids."""
    campaign = new_campaign(admission="invited", max_uploads=30, min_uploads=1)
    victim, attacker = new_token("invite"), new_token("invite")
    pair.create(campaign, invitations=[victim, attacker])
    data, late = envelopes(campaign, np.array([3]))[0], envelopes(campaign, np.array([4]))[0]
    assert pair.upload(0, campaign, data, victim).status_code == 200

    def withdraw(token: str, ids: bytes) -> httpx.Response:
        with pair.client(0, token) as client:
            return client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=ids)

    rng = np.random.default_rng(3)
    assert code(withdraw(attacker, rng.bytes(16 * 1001))) == "body-too-large"
    # Other people's uploads: neither one that is stored nor one that is on its way.
    assert withdraw(attacker, data[48:64] + late[48:64]).json() == {"withdrawn": 0, "failures": []}
    assert pair.upload(0, campaign, data, victim).json() == {"failures": []}
    # One id many times is one id; random ones are remembered up to a bound of this token alone.
    assert withdraw(attacker, late[48:64] * 1000).json() == {"withdrawn": 0, "failures": []}
    assert withdraw(attacker, rng.bytes(16 * 1000)).json()["failures"] == []
    full = withdraw(attacker, rng.bytes(16 * 50)).json()["failures"]
    assert len(full) == 50
    assert {f["code"] for f in full} == {"campaign-full"}
    # What is stored can always be withdrawn, and does not come back.
    assert withdraw(victim, data[48:64]).json() == {"withdrawn": 1, "failures": []}
    assert code(pair.upload(0, campaign, data, victim)) == "upload-withdrawn"
    assert pair.upload(0, campaign, late, victim).json() == {"failures": []}


def test_uploading_and_withdrawing_for_ever_ends(pair: Pair) -> None:
    """Ids that were withdrawn must be remembered; an invitation can be refilled ten times."""
    campaign, token = new_campaign(admission="invited", min_uploads=1), new_token("invite")
    pair.create(campaign, invitations=[token])
    answers = []
    for _ in range(11):
        data = envelopes(campaign, np.array([3]))[0]
        answers.append(pair.upload(0, campaign, data, token))
        with pair.client(0, token) as client:
            client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=data[48:64])
    assert [r.status_code for r in answers[:10]] == [200] * 10
    assert code(answers[10]) == "invitation-spent"
