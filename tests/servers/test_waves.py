"""A campaign that reports as it runs, on live servers: waves close without a gap, each upload is in one of them."""

import io
import json
import time
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyst.cli import main as analyst_main
from analyst.client import Client
from dealer.cli import main as dealer_main
from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import TIME_FORMAT, Campaign
from fss_ecdf.cli.server import main as server_main
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign, values
from tests.servers.waves import close, noise_of, until_released, wave_campaign, waves_of


def counts(campaign: Campaign, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.cumsum(np.bincount(positions, minlength=1 << campaign.bits))


def ask_curve(pair: LivePair, campaign: Campaign, role: int, **which: int) -> dict[str, Any]:
    answer: dict[str, Any] = pair.ask(role, campaign, "curve", **which)
    return answer


def test_waves_pools_and_running_sums(pair: LivePair) -> None:
    """Every answer is the truth plus exactly the noise that is bound to its release, on both servers alike."""
    campaign = wave_campaign(
        count=3, pooled=[{"through": 2, "epsilon": 0.5}, {"through": "end", "epsilon": 2.0}], check_keys=True
    )
    pair.create(campaign)
    truth = []
    for number in (1, 2, 3):
        positions = campaign.to_positions(values(40 + number, seed=number)).positions
        pair.upload_values(campaign, positions)
        truth.append(counts(campaign, positions))
        closed = close(pair, campaign, number)
        assert (closed["count"], closed["state"]) == (40 + number, "checking")
        assert (pair.status(campaign)["state"] == "open") == (number < 3)
    until_released(pair, campaign, "pooled 3")
    parts = {f"wave {k}": truth[k - 1] for k in (1, 2, 3)} | {"pooled 2": sum(truth[:2]), "pooled 3": sum(truth)}
    assert [r["name"] for r in waves_of(pair, campaign)["releases"]] == [
        "wave 1", "wave 2", "pooled 2", "wave 3", "pooled 3",
    ]  # fmt: skip
    size = campaign.variable.grid.size
    noise = {release: noise_of(pair, campaign, release) for release in parts}
    for release, exact in parts.items():
        kind, at = release.split()
        for role in (0, 1):
            answer = ask_curve(pair, campaign, role, **{kind: int(at)})
            assert answer["counts"] == (exact + noise[release])[:size].tolist(), release
            assert answer["releases"] == [release]
    # 1/0.5^2 + 1 > 1 + 1 + 1 and 1/2^2 < all: the running curve takes the better way
    assert ask_curve(pair, campaign, 0, through=2)["releases"] == ["wave 1", "wave 2"]
    assert ask_curve(pair, campaign, 1)["releases"] == ["pooled 3"]
    two = ask_curve(pair, campaign, 1, through=2)
    assert two["counts"] == (truth[0] + truth[1] + noise["wave 1"] + noise["wave 2"])[:size].tolist()
    one = np.array(ask_curve(pair, campaign, 1, wave=1)["standard_errors"])
    assert two["n"] == 41 + 42
    np.testing.assert_allclose(two["standard_errors"], np.sqrt(2) * one)
    with analyst_of(pair, campaign) as client:
        trend = client.waves()
        assert trend.cumulative(2).n == 41 + 42
        np.testing.assert_array_equal(trend.cumulative(2).counts["all"], two["counts"])
        assert client.release().campaign.epsilon == 2.0
    with analyst_of(pair, campaign, through=2) as client:
        np.testing.assert_allclose(
            client.release().campaign.noise.variance(np.arange(size)), 2 * campaign.noise.variance(np.arange(size))
        )
    told = json.loads(command(pair, campaign, "trend-fraction", "--at", "0.3", "--limits", "0,0.01", "--json"))
    assert told["wave"] == [1, 2, 3]
    assert [type(outside) for outside in told["outside"]] == [bool, bool, bool]
    assert "change_of_median" in command(pair, campaign, "trend-changes")
    assert json.loads(command(pair, campaign, "quantile", "--pooled", "3", "--json"))["epsilon"] == 2.0
    for wave in waves_of(pair, campaign, role=1)["waves"]:
        consent = {1: 3.5, 2: 3.5, 3: 3.0}[wave["number"]]
        assert (wave["state"], wave["consented"], wave["spent"]) == ("sealed", consent, consent)


def analyst_of(pair: LivePair, campaign: Campaign, **which: Any) -> Client:
    ca = pair.folder / "ca.pem"
    return Client(f"{pair.url(0)}/v1/campaigns/{name(campaign)}", pair.servers[0].analyst, ca, **which)


def command(pair: LivePair, campaign: Campaign, *words: str) -> str:
    """What fss-analyst prints."""
    url, token = f"{pair.url(0)}/v1/campaigns/{name(campaign)}", pair.folder / "server0" / "analyst.token"
    out = io.StringIO()
    with redirect_stdout(out):
        options = "--token-file", str(token), "--ca", str(pair.folder / "ca.pem")
        assert analyst_main([words[0], url, *words[1:], *options]) == 0
    return out.getvalue()


def test_a_small_wave_is_released_with_the_next(pair: LivePair) -> None:
    campaign = wave_campaign(count=3, pooled=[])
    pair.create(campaign)
    for number, count in ((1, 4), (2, 0), (3, 9)):
        if count:
            pair.upload_values(campaign, campaign.to_positions(values(count, seed=number)).positions)
        close(pair, campaign, number)
    until_released(pair, campaign, "wave 3")
    assert [(r["name"], r["waves"], r["uploads"]) for r in waves_of(pair, campaign)["releases"]] == [
        ("wave 3", [1, 2, 3], 13)
    ]
    assert ask_curve(pair, campaign, 0, wave=3)["n"] == 13
    with pair.analyst(0) as client:
        refused = client.get(f"/v1/campaigns/{name(campaign)}/curve", params={"wave": 1})
        assert refused.json()["type"].endswith("invalid-query")
        assert "part of wave 3" in refused.json()["detail"]
        for wrong in ({"wave": 1, "through": 2}, {"wave": 4}, {"wave": 0}):
            assert client.get(f"/v1/campaigns/{name(campaign)}/curve", params=wrong).status_code == 400
        absent = client.get(f"/v1/campaigns/{name(campaign)}/curve", params={"pooled": 2})
        assert absent.json()["type"].endswith("not-sealed")


def test_uploads_on_their_way_are_in_one_wave_or_excluded(pair: LivePair) -> None:
    """What has reached one server only when its wave closes is excluded there, and refused at the other: for good."""
    campaign = wave_campaign(count=3, pooled=[{"through": "end", "epsilon": 1.0}])
    pair.create(campaign)
    pair.upload_values(campaign, campaign.to_positions(values(20)).positions)
    late = campaign.to_positions(values(12, seed=5)).positions
    here, there = envelopes(campaign, late)
    assert pair.upload(0, campaign, here).json()["failures"] == []
    assert close(pair, campaign, 1)["unmatched"] == {"here": 12, "there": 0}
    refused = pair.upload(1, campaign, there)
    assert (refused.status_code, refused.json()["type"].rsplit(":", 1)[1]) == (409, "wave-closed")
    assert pair.upload(0, campaign, here).json()["type"].endswith("upload-withdrawn")
    for role in (0, 1):  # both confirm that they do not count
        with pair.client(role, pair.upload_tokens[campaign.id]) as client:
            path = f"/v1/campaigns/{name(campaign)}/uploads/withdraw"
            answer = client.post(path, content=_ids(campaign, here)).json()
            assert (answer["withdrawn"], answer["failures"]) == (0, [])
    again = envelopes(campaign, late, wave=2)
    ahead = envelopes(campaign, late[:4], wave=3)  # the other server has closed wave 2 already, say
    for role in (0, 1):
        assert pair.upload(role, campaign, again[role]).json()["failures"] == []
        assert pair.upload(role, campaign, ahead[role]).json()["failures"] == []
    assert close(pair, campaign, 2, role=1)["count"] == 12
    pair.upload_values(campaign, campaign.to_positions(values(10, seed=6)).positions)
    assert close(pair, campaign, 3)["count"] == 14
    until_released(pair, campaign, "pooled 3")
    assert ask_curve(pair, campaign, 0, pooled=3)["n"] == 46
    refused = pair.upload(0, campaign, envelopes(campaign, late, wave=3)[0])
    assert refused.json()["type"].endswith("campaign-sealed")


@pytest.mark.faults
def test_no_upload_is_refused_while_waves_close(pair: LivePair) -> None:
    campaign = wave_campaign(count=8, pooled=[{"through": "end", "epsilon": 1.0}])
    pair.create(campaign)
    sent = 0
    for number in range(1, 9):
        for _ in range(3):
            pair.upload_values(campaign, np.arange(5))
            sent += 5
        close(pair, campaign, number, role=number % 2)
    until_released(pair, campaign, "pooled 8")
    assert ask_curve(pair, campaign, 1, pooled=8)["n"] == sent
    assert sum(wave["uploads"] for wave in waves_of(pair, campaign)["waves"]) == sent


@pytest.mark.faults
def test_a_wave_closes_by_its_number_of_uploads(pair: LivePair) -> None:
    campaign = wave_campaign(every=25, count=2, pooled=[])
    pair.create(campaign)
    pair.upload_values(campaign, np.arange(24))
    with pair.operator(0) as client:  # not before, whoever asks
        refused = client.post(f"/v1/campaigns/{name(campaign)}/seal", params={"wave": 1})
        assert refused.json()["type"].endswith("agreement-pending")
    pair.upload_values(campaign, np.arange(3))
    until_released(pair, campaign, "wave 1")
    assert waves_of(pair, campaign)["waves"][0]["uploads"] == 27


@pytest.mark.faults
def test_waves_close_at_their_time_and_what_was_missed_is_made_up(pair: LivePair) -> None:
    """It opened three weeks ago: wave 1 is overdue, and so are 2 and 3, which hold nobody; wave 4 stays open."""
    opens = (datetime.now(UTC) - timedelta(weeks=3, hours=1)).strftime(TIME_FORMAT)
    campaign = wave_campaign(every="week", count=5, pooled=[{"through": 3, "epsilon": 1.0}], opens=opens)
    pair.create(campaign)
    until_released(pair, campaign, None, waves=4)
    pair.upload_values(campaign, np.arange(30))
    wanted, until = ["sealed", "sealed", "sealed", "open"], time.monotonic() + 60
    # Wave 4 opens when 3 is frozen.
    while (states := [wave["state"] for wave in waves_of(pair, campaign)["waves"]]) != wanted:
        assert time.monotonic() < until, states
        time.sleep(0.1)
    assert pair.status(campaign)["waves"][3]["uploads"] == 30
    assert waves_of(pair, campaign)["releases"] == []


def test_withdrawing_ends_with_the_wave(pair: LivePair) -> None:
    campaign = wave_campaign(count=2, pooled=[])
    pair.create(campaign)
    first, second = envelopes(campaign, np.arange(12)), envelopes(campaign, np.arange(11), wave=2)
    for role in (0, 1):
        pair.upload(role, campaign, first[role])
    close(pair, campaign, 1)
    for role in (0, 1):
        pair.upload(role, campaign, second[role])
    ids = {which: _ids(campaign, data[0]) for which, data in (("first", first), ("second", second))}
    with pair.client(0, pair.upload_tokens[campaign.id]) as client:
        path = f"/v1/campaigns/{name(campaign)}/uploads/withdraw"
        assert client.post(path, content=ids["first"][:16]).json()["type"].endswith("campaign-sealed")
        assert client.post(path, content=ids["second"][:16]).json()["withdrawn"] == 1
    assert close(pair, campaign, 2)["count"] == 10


def _ids(campaign: Campaign, data: bytes) -> bytes:
    return b"".join(upload_id for upload_id, _, _ in upload_rows(data, campaign, 0)[1])


def test_operators_name_the_wave_they_close(pair: LivePair) -> None:
    """Asking twice closes no second wave."""
    campaign = wave_campaign(count=3, pooled=[])
    pair.create(campaign)
    pair.upload_values(campaign, np.arange(10))
    with pair.operator(0) as client:
        assert client.post(f"/v1/campaigns/{name(campaign)}/seal").status_code == 400
    close(pair, campaign, 1)
    close(pair, campaign, 1)
    assert [wave["state"] for wave in waves_of(pair, campaign)["waves"]] == ["sealed", "open"]
    plain = new_campaign()
    pair.create(plain)
    with pair.operator(0) as client:
        assert client.post(f"/v1/campaigns/{name(plain)}/seal", params={"wave": 1}).status_code == 400
        assert client.post(f"/v1/campaigns/{name(campaign)}/unfreeze").status_code == 409


def test_parties_and_operators_are_told_what_a_wave_costs(pair: LivePair, capsys: pytest.CaptureFixture[str]) -> None:
    """A party of wave 1 consents to the pool after it, too; one of wave 2 to the last one only."""
    campaign = wave_campaign(
        count=2, pooled=[{"through": 1, "epsilon": 0.5}, {"through": "end", "epsilon": 0.25}], min_uploads=1
    )
    pair.create(campaign)
    urls = [f"{pair.url(role)}/v1/campaigns/{name(campaign)}" for role in (0, 1)]
    dry = ["upload", "--campaign", *urls, "--ca", str(pair.folder / "ca.pem"), "--value", "0.5", "--dry-run"]
    operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
    assert dealer_main(dry) == 0
    assert "epsilon 1.75 in all" in (said := capsys.readouterr().out)
    assert "of it 1 for your wave, number 1 or the next, 0.75 for what is pooled later" in said
    assert "pooled once more after wave 1 at epsilon 0.5, 2 at epsilon 0.25" in said
    pair.upload_values(campaign, np.arange(10))
    assert server_main([*operator, "seal", name(campaign)]) == 0
    assert "wave 1: sealed 10 uploads" in capsys.readouterr().out
    assert dealer_main(dry) == 0
    assert "epsilon 1.25 in all" in capsys.readouterr().out
    assert server_main([*operator, "status", name(campaign)]) == 0
    said = capsys.readouterr().out
    assert "wave 2 is the newest; whoever joins it consents to epsilon 1.25 in all" in said
    assert "wave 1: sealed, 10 uploads, ready 100 %" in said
    assert f"to close wave 2, by both operators: fss-server campaign seal {name(campaign)} --wave 2" in said
