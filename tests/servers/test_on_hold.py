"""Two live servers, one of which gets an old database: it does nothing until its operator decides."""

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from servers.maintenance.diagnostics import WRONG, examine
from tests.campaign.helpers import count_above
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign
from tests.servers.rollbacks import config, recovery


def _problem(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["type"]).rsplit(":", 1)[1]


@pytest.mark.faults
def test_a_server_with_an_old_database_does_nothing_until_its_operator_decides(tmp_path: Path) -> None:
    made = LivePair(tmp_path)
    made.expose()
    with made as pair:
        campaign, later = new_campaign(strata=["no", "yes"], reserve=1.0), new_campaign()
        for one in (campaign, later):
            pair.create(one)
            labels = ["no", "yes"] * 10 if one is campaign else None
            pair.upload_values(one, one.to_positions(np.linspace(0, 1, 20), labels).positions)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        data, old, new = pair.folder / "server0" / "data", tmp_path / "old", tmp_path / "new"
        published = pair.ask(0, campaign, "curve")
        pair.stop(0)
        shutil.copytree(data, old)
        pair.start(0)
        pair.wait_ready(campaign)
        question = count_above(campaign, 0.5, 0.5)
        path = f"/v1/campaigns/{name(campaign)}"
        with pair.analyst(0) as client:
            assert client.post(f"{path}/sums", json=question).status_code == 200, "spent from the reserve"
        pair.stop(0)
        data.rename(new)
        shutil.copytree(old, data)
        pair.start(0)

        assert "the other server has seen" in pair.status(later, 0)["on_hold"]
        with pair.analyst(0) as client:  # the expense is forgotten here, and no other one takes its place
            assert _problem(client.post(f"{path}/sums", json={**question, "epsilon": 0.7})) == (503, "on-hold")
            assert _problem(client.get(f"{path}/curve")) == (503, "on-hold")
            assert client.get(f"{path}/budget").json()["spent"] == 1.0
        assert pair.agree(later, 1).status_code in (409, 503)
        assert _problem(pair.agree(later, 0)) == (503, "on-hold")
        assert _problem(pair.upload(0, later, envelopes(later, np.array([1]))[0])) == (503, "on-hold")
        assert pair.status(later, 0)["state"] == "open"
        assert "does not have" in pair.status(later, 1)["peer_rolled_back"]
        with pair.operator(0) as client:
            assert client.get("/readyz").json() == {"status": "on hold"}
        assert "\nfss_on_hold 1.0" in pair.metrics(0)
        assert "\nfss_peer_rolled_back 1.0" in pair.metrics(1)
        said = {finding.what: finding for finding in examine(config(pair), datetime.now(UTC))}
        assert said["history"].verdict == WRONG
        assert [event["event"] for event in pair.events(0)].count("on-hold") == 1
        shown = recovery(pair, 0, "show")
        assert shown.returncode == 77
        assert "on hold since" in shown.stdout

        accepted = recovery(pair, 0, "accept")
        assert accepted.returncode == 0, accepted.stderr
        assert recovery(pair, 0, "accept").returncode != 0, "there is nothing to decide any more"
        assert recovery(pair, 0, "show").returncode == 0
        _until_well(pair, later)
        pair.wait_ready(campaign)
        assert pair.ask(0, campaign, "curve") == published
        pair.seal(later)
        pair.wait_ready(later)
        assert pair.ask(1, later, "curve")["n"] == 20

        # The database that was there before comes back: older than the decision, so noticed once more.
        pair.stop(0)
        shutil.rmtree(data)
        new.rename(data)
        pair.start(0)
        assert "the other server has seen 1." in pair.status(later, 0)["on_hold"]
        refused = recovery(pair, 0, "accept")
        assert refused.returncode == 77
        assert "would be a second release about the same people" in refused.stderr


def _until_well(pair: LivePair, campaign: Any) -> None:
    """Other processes look again after a second."""
    until = time.monotonic() + 30
    while "on_hold" in pair.status(campaign, 0) or "peer_rolled_back" in pair.status(campaign, 1):
        assert time.monotonic() < until
        time.sleep(0.1)
