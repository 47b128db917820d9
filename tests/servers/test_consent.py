"""No server seals another: closing times, operators' words, and what is left out."""

import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.cli.server import main
from servers.lifecycle.seal_messages import Frozen, Step
from servers.storage.entries import id_of
from tests.commands import call
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import filled, new_campaign, values
from tests.servers.test_bad_peers import leave_and_agree, peer_call, stored_entries
from tests.servers.test_uploads import code


def _excluded(pair: LivePair, campaign: Campaign) -> int:
    with closing(sqlite3.connect(pair.folder / "server0" / "data" / "server.db")) as db:
        return int(db.execute("SELECT COUNT(*) FROM excluded WHERE campaign = ?", (campaign.id,)).fetchone()[0])


def _confirm(pair: LivePair, campaign: Campaign) -> httpx.Response:
    with pair.operator(0) as client:
        return client.post(f"/v1/campaigns/{name(campaign)}/discard-excluded")


def test_a_peer_cannot_seal_early_or_choose_what_is_erased(pair: LivePair) -> None:
    """It could: freeze at any time, agree on any subset of min_uploads, and the rest was erased for good."""
    campaign, _ = filled(pair)
    assert code(peer_call(pair, campaign, "freeze")) == "agreement-pending"
    early = Step(1, campaign.digest, bytes(32), id_of(stored_entries(pair, campaign, 0)[0])).encode()
    assert code(peer_call(pair, campaign, "exclude", early)) == "campaign-sealed"
    assert code(peer_call(pair, campaign, "agree", early)) == "campaign-sealed"
    assert pair.status(campaign)["state"] == "open"
    # The operator agrees; the peer chooses ten of sixty. What it leaves out is kept until the operator confirms.
    assert code(pair.agree(campaign, 0)) == "agreement-pending"
    frozen = Frozen.decode(peer_call(pair, campaign, "freeze").content)
    ids = stored_entries(pair, campaign, 0)
    assert leave_and_agree(pair, campaign, frozen, ids, ids[10:])["count"] == 10
    status = pair.status(campaign)
    assert (status["sealed_uploads"], status["unmatched"], status["excluded_stored"]) == (10, 53, 53)
    assert _excluded(pair, campaign) == 53
    assert _confirm(pair, campaign).json() == {"erased": 53}
    assert _excluded(pair, campaign) == 0
    assert pair.status(campaign)["excluded_stored"] == 0


def test_nothing_can_be_confirmed_before_it_is_sealed(pair: LivePair) -> None:
    campaign, _ = filled(pair)
    assert code(_confirm(pair, campaign)) == "not-sealed"


def test_uploads_go_on_until_both_operators_agree(pair: LivePair) -> None:
    campaign, _ = filled(pair)
    assert code(pair.agree(campaign, 1)) == "agreement-pending"
    pair.upload_values(campaign, np.array([5]))
    assert [pair.status(campaign, role)["operator_agreed"] for role in (0, 1)] == [False, True]
    assert pair.agree(campaign, 0).json()["count"] == 61


@pytest.mark.faults
def test_at_closing_time_no_word_is_needed_where_the_campaign_says_so(tmp_path: Path) -> None:
    """By the accepting server's own clock; both seal by themselves. Others wait for their operators all the same."""
    started = LivePair(tmp_path)
    late = tmp_path / "late"
    late.write_text("0")
    for role in (0, 1):
        started.configure(role, clock_file=f'"{late}"')
    with started as pair:
        times = {"closes": datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)}
        itself, asked = new_campaign(**times, seal="at-closing"), new_campaign(**times)
        few = new_campaign(**times, seal="at-closing", min_uploads=30)
        for campaign in (itself, asked, few):
            pair.create(campaign)
            pair.upload_values(campaign, campaign.to_positions(values(20)).positions)
        assert code(pair.agree(itself, 1)) == "agreement-pending"
        assert code(peer_call(pair, asked, "freeze")) == "agreement-pending"
        pair.stop(0)  # server 1 has no patience left when it comes back
        late.write_text("3700")
        pair.start(0)
        pair.wait_ready(itself)
        assert [pair.status(itself, role)["sealed_uploads"] for role in (0, 1)] == [20, 20]
        assert code(peer_call(pair, asked, "freeze")) == "agreement-pending"
        assert [pair.status(asked, role)["state"] for role in (0, 1)] == ["open", "open"]
        until = time.monotonic() + 30
        while not any(e["event"] == "not-sealed-at-closing" and e["code"] == "too-few-uploads" for e in _events(pair)):
            assert time.monotonic() < until
            time.sleep(0.1)
        while [pair.status(few, role)["state"] for role in (0, 1)] != ["open", "open"]:  # each of them tries once
            assert time.monotonic() < until
            time.sleep(0.1)


def _events(pair: LivePair) -> list[dict[str, Any]]:
    return pair.events(0) + pair.events(1)


@pytest.mark.faults
def test_a_seal_that_failed_half_way_says_where_both_sides_are(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    pair.configure(1, crash_at='"seal-frozen-there"')
    operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
    with pair:
        campaign = new_campaign()
        pair.create(campaign)
        pair.upload_values(campaign, campaign.to_positions(values(20)).positions)
        failed = call(main, *operator, "seal", name(campaign))
        assert failed.returncode == 75
        assert "server 0: frozen; of the other server it says: no answer" in failed.stdout
        assert "the other server cannot be asked now" in failed.stdout
        pair.exited(1)
        pair.drop(1, "crash_at")
        pair.start(1)
        status = call(main, *operator, "status", name(campaign))
        said = (
            "uploads are frozen here and still taken at the other server, after a sealing that did not come to its end"
        )
        assert said in status.stdout
        assert f"or undo it: fss-server campaign unfreeze {name(campaign)}" in status.stdout
        reopened = call(main, *operator, "unfreeze", name(campaign))
        assert "uploads go on at both servers" in reopened.stdout, reopened.stderr
        pair.upload_values(campaign, np.array([3]))
        taken = call(main, *operator, "cancel-seal", name(campaign))  # server 1's was given before it died
        assert "server 1: agreement withdrawn; uploads go on" in taken.stdout
        assert code(pair.agree(campaign, 0)) == "agreement-pending"
        assert "sealed 21 uploads" in call(main, *operator, "seal", name(campaign)).stdout


def test_a_word_can_be_taken_back(pair: LivePair) -> None:
    campaign, _ = filled(pair)
    assert code(pair.agree(campaign, 0)) == "agreement-pending"
    with pair.operator(0) as client:
        assert client.delete(f"/v1/campaigns/{name(campaign)}/seal").json() == {"operator_agreed": False}
    assert code(peer_call(pair, campaign, "freeze")) == "agreement-pending"
    assert code(pair.agree(campaign, 1)) == "agreement-pending"
    assert pair.agree(campaign, 0).json()["count"] == 60
    with pair.operator(0) as client:
        assert code(client.delete(f"/v1/campaigns/{name(campaign)}/seal")) == "campaign-sealed"


def test_a_freeze_can_be_undone_but_no_sealing(pair: LivePair) -> None:
    campaign, _ = filled(pair)
    pair.agree(campaign, 0)
    assert peer_call(pair, campaign, "freeze").status_code == 200
    assert [pair.status(campaign, role)["state"] for role in (0, 1)] == ["frozen", "open"]
    with pair.operator(0) as client:
        frozen = client.delete(f"/v1/campaigns/{name(campaign)}/seal")
        assert "campaign unfreeze undoes that" in frozen.json()["detail"]
    with pair.operator(1) as client:  # whichever side asks
        assert client.post(f"/v1/campaigns/{name(campaign)}/unfreeze").json() == {"state": "open"}
    assert [pair.status(campaign, role)["state"] for role in (0, 1)] == ["open", "open"]
    assert pair.status(campaign)["operator_agreed"] is False
    pair.upload_values(campaign, np.array([7]))
    # A set that is fixed at one side is never opened again, and sealing completes it.
    pair.agree(campaign, 0)
    again = Frozen.decode(peer_call(pair, campaign, "freeze").content)
    here, there = (stored_entries(pair, campaign, role) for role in (0, 1))
    alone = [i for i in here if i not in there]
    assert leave_and_agree(pair, campaign, again, here, alone)["count"] == 61
    for role in (0, 1):
        with pair.operator(role) as client:
            refused = client.post(f"/v1/campaigns/{name(campaign)}/unfreeze")
        assert code(refused) == "campaign-sealed"
        assert "fss-server campaign seal completes it" in refused.json()["detail"]
    assert pair.agree(campaign, 1).json()["count"] == 61
