"""Points before there is a curve: bounded, and given up when nobody waits for them."""

import asyncio
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from fss import KeyBatch, dcf
from fss_ecdf.campaign.errors import NotReady
from servers.compute import shares
from tests.campaign.helpers import count_above
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import answering, new_campaign
from tests.servers.test_uploads import code


def test_an_evaluation_ends_when_whoever_asked_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MIN_SLICE", 100)
    monkeypatch.setattr(shares, "SLICE_WORK", 1)
    keys, _ = dcf.gen(np.arange(1000) % 256, bits=8, binder=bytes(32), rand=np.random.default_rng(1).bytes(32 * 1000))
    points, asked = np.array([3, 200]), 0

    async def gone() -> bool:
        nonlocal asked
        asked += 1
        return asked > 4

    async def here() -> bool:
        return False

    whole = asyncio.run(shares.share_at(keys, points, here))
    assert whole.open_for_noise().tolist() == dcf.sum_at_points(keys, points).tolist()
    with pytest.raises(NotReady, match="has gone"):
        asyncio.run(shares.share_at(keys, points, gone))
    assert asked == 5


@pytest.mark.faults
def test_points_times_keys_are_bounded(tmp_path: Path) -> None:
    """By the stricter server, whichever is asked: no retry helps."""
    pair = LivePair(tmp_path, curve_bits="0")
    pair.configure(1, limits__point_evaluations="1200")
    with pair:
        campaign = answering(pair)
        few, many = (",".join(map(str, np.arange(1, n + 1) / 100)) for n in (20, 21))
        for role in (0, 1):
            assert len(pair.ask(role, campaign, "ecdf", at=few)["counts"]) == 20
            with pair.analyst(role) as client:
                refused = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": many})
            assert (code(refused), "at most 20 points" in refused.json()["detail"]) == ("invalid-query", True)


@pytest.mark.faults
def test_what_the_other_server_never_answers_is_an_invalid_query(tmp_path: Path) -> None:
    """Servers with different curve_bits: both refuse curves and groups, answer points, and pay for nothing else."""
    pair = LivePair(tmp_path)
    pair.configure(1, curve_bits="0")
    with pair:
        campaign = new_campaign(strata=["no", "yes"], reserve=1.0, check_keys=False)
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(60))
        pair.seal(campaign)
        pair.wait_ready(campaign)
        path = f"/v1/campaigns/{name(campaign)}"
        for role in (0, 1):
            assert len(pair.ask(role, campaign, "ecdf", at="0.1,0.2", stratum="no")["counts"]) == 2
            with pair.analyst(role) as client:
                refused = [client.get(f"{path}/curve", params={"stratum": "no"})]
                refused.append(client.post(f"{path}/sums", json=count_above(campaign, 0.5, 0.5)))
                assert [code(answer) for answer in refused] == ["invalid-query"] * 2
                assert "up to 2^0" in refused[0].json()["detail"]
            assert pair.ask(role, campaign, "budget")["spent"] == campaign.epsilon


@pytest.mark.faults
def test_no_other_keys_are_answered_with_the_same_noise(tmp_path: Path) -> None:
    """A key file that another process replaced: with the noise of the sealed set, the difference would be exact."""
    with LivePair(tmp_path, curve_bits="0") as pair:
        campaign = answering(pair)
        path = pair.folder / "server0" / "data" / name(campaign) / "keys"
        right = pair.ask(0, campaign, "ecdf", at="0.1,0.2")["counts"]
        keys = KeyBatch.open(path, campaign.key_type(0).binder)
        keys.take(np.arange(len(keys) - 1)).save(tmp_path / "others")
        (tmp_path / "others").replace(path)
        with pair.analyst(0) as client:
            url = f"/v1/campaigns/{name(campaign)}/ecdf?at=0.1,0.2"
            assert code(client.get(url)) == "not-ready"
            until = time.monotonic() + 30
            while (answer := client.get(url)).status_code != 200:
                assert time.monotonic() < until
                time.sleep(0.1)
        assert answer.json()["counts"] == right


@pytest.mark.faults
def test_what_needs_a_curve_that_never_comes_is_refused_and_not_paid(tmp_path: Path) -> None:
    with LivePair(tmp_path, curve_bits="0") as pair:
        campaign = new_campaign(scheme="dpf", strata=["no", "yes"], reserve=1.0)
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(20))
        pair.seal(campaign)
        pair.wait_ready(campaign)
        path = f"/v1/campaigns/{name(campaign)}"
        for role in (0, 1):
            with pair.analyst(role) as client:
                query = count_above(campaign, 0.3, 1.0)
                for refused in (
                    client.get(f"{path}/ecdf", params={"at": "0.5"}),
                    client.get(f"{path}/curve"),
                    client.post(f"{path}/sums", json=query),
                ):
                    assert (refused.status_code, code(refused)) == (400, "invalid-query")
        assert [pair.ask(role, campaign, "budget")["spent"] for role in (0, 1)] == [0.0, 0.0]


@pytest.mark.faults
def test_a_question_that_nobody_waits_for_is_given_up_at_both_servers(tmp_path: Path) -> None:
    """40 000 keys at 6500 points are some seconds of work; the asker leaves after half of one."""
    with LivePair(tmp_path, curve_bits="0", limits__point_evaluations="1000000000") as pair:
        grid = {"kind": "linear", "values": "integer", "from": 0, "to": 65535, "step": 1}
        campaign = new_campaign(grid=grid)
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(40_000))
        pair.seal(campaign)
        pair.wait_ready(campaign)
        pair.ask(0, campaign, "ecdf", at="5")  # so that statements have been exchanged
        at = ",".join(map(str, range(0, 65536, 10)))
        patience = httpx.Timeout(60, read=0.5)
        with pair.client(0, pair.servers[0].analyst, patience) as client, pytest.raises(httpx.ReadTimeout):
            client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": at})
        until = time.monotonic() + 30
        wanted = [(0, "/v1/campaigns/{cid}/ecdf"), (1, "/v1/peer/campaigns/{cid}/shares")]
        while wanted:
            role, route = wanted[0]
            ended = [e for e in pair.events(role) if e["event"] == "request" and e["route"] == route]
            if len(ended) > 1:
                assert [e["status"] for e in ended] == [200, 503]
                wanted.pop(0)
            assert time.monotonic() < until
            time.sleep(0.1)
