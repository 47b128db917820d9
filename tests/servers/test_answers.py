"""Answers over HTTPS from two real servers: exact but for the noise, the same for ever, and well described."""

import io
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from servers.release.noise import NoiseTree
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign, values

Sealed = tuple[Campaign, np.ndarray[Any, Any]]


def noise_tree(pair: LivePair, role: int, campaign: Campaign) -> NoiseTree:
    """A server's noise, from what only a thief of its disk could read."""
    seed, context = pair.noise_secrets(role, campaign)
    return NoiseTree(seed, server=role, covers=context, mechanism=campaign.noise)


def both_noises(pair: LivePair, campaign: Campaign) -> np.ndarray[Any, Any]:
    return noise_tree(pair, 0, campaign).curve() + noise_tree(pair, 1, campaign).curve()


def true_curve(campaign: Campaign, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.cumsum(np.bincount(positions, minlength=1 << campaign.bits))


def test_removing_both_noises_gives_the_exact_curve(pair: LivePair, sealed: Sealed) -> None:
    """Shares, noise and combination are all exact: nothing else is in an answer."""
    campaign, positions = sealed
    raw = true_curve(campaign, positions) + both_noises(pair, campaign)
    for role in (0, 1):
        for number, stratum in enumerate(campaign.strata):
            start = number << campaign.variable.index_bits
            base = raw[start - 1] if number else 0
            answer = pair.ask(role, campaign, "curve", stratum=stratum)
            assert answer["counts"] == (raw[start : start + campaign.variable.grid.size] - base).tolist()


def test_an_answer_describes_itself(pair: LivePair, sealed: Sealed) -> None:
    campaign, _ = sealed
    answer = pair.ask(0, campaign, "ecdf", at="0.05,0.5,0.505,2", stratum="yes")
    assert answer["digest"] == to_base64url(campaign.digest)
    assert (answer["n"], answer["epsilon"], answer["mechanism"], answer["stratum"]) == (3000, 1.0, "slice-tree", "yes")
    assert answer["thresholds"] == [0.05, 0.5, 0.505, 2.0]
    assert answer["counts"][1] == answer["counts"][2]
    variance = campaign.noise.difference_variance(np.array([128 + 5, 128 + 50]), np.array([127, 127]))
    assert answer["standard_errors"][:2] == pytest.approx(np.sqrt(2 * variance).tolist())


def test_both_servers_and_all_ways_of_asking_agree(pair: LivePair, sealed: Sealed) -> None:
    campaign, _ = sealed
    curve = pair.ask(0, campaign, "curve", stratum="no")
    picked = [0, 10, 55, 100]
    at = ",".join(str(curve["thresholds"][i]) for i in picked)
    for role in (0, 1):
        counts = pair.ask(role, campaign, "ecdf", at=at, stratum="no")["counts"]
        assert counts == [curve["counts"][i] for i in picked]


def test_curve_as_csv_and_numpy(pair: LivePair, sealed: Sealed) -> None:
    campaign, _ = sealed
    expected = pair.ask(0, campaign, "curve")
    path = f"/v1/campaigns/{name(campaign)}/curve"
    with pair.analyst(0) as client:
        csv = client.get(path, headers={"Accept": "text/csv"})
        npy = client.get(path, headers={"Accept": "application/x-npy"})
    assert csv.headers["content-type"].startswith("text/csv")
    lines = csv.text.splitlines()
    assert lines[0] == "threshold,count,standard_error"
    assert [int(line.split(",")[1]) for line in lines[1:]] == expected["counts"]
    counts = np.load(io.BytesIO(npy.content))
    assert counts[:101].tolist() == expected["counts"]
    whole = true_curve(campaign, sealed[1]) + both_noises(pair, campaign)
    assert counts.tolist() == whole[:128].tolist()  # to the end of the padding, where all is noise


def test_points_of_a_huge_domain_are_evaluated_directly(pair: LivePair) -> None:
    """2^24 thresholds: no whole curve, but any point, and the same answer from both servers."""
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": 2**24 - 1, "step": 1}
    campaign = new_campaign(grid=grid)
    positions = np.random.default_rng(3).integers(0, 2**24, 500)
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    at = [2**10, 2**23, 2**24 - 1]
    counts = [pair.ask(role, campaign, "ecdf", at=",".join(map(str, at)))["counts"] for role in (0, 1)]
    assert counts[0] == counts[1]
    noise = noise_tree(pair, 0, campaign).at(at) + noise_tree(pair, 1, campaign).at(at)
    assert (np.array(counts[0]) - noise).tolist() == [int((positions <= t).sum()) for t in at]
    with pair.analyst(0) as client:
        refused = client.get(f"/v1/campaigns/{name(campaign)}/curve")
    assert refused.status_code == 400
    assert "Ask for points" in refused.json()["detail"]


def test_the_point_function_scheme_answers_the_same_way(pair: LivePair) -> None:
    campaign = new_campaign(scheme="dpf")
    positions = campaign.to_positions(values(400, 5)).positions
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    pair.seal(campaign, role=1)
    pair.wait_ready(campaign)
    raw = true_curve(campaign, positions) + both_noises(pair, campaign)
    assert pair.ask(0, campaign, "curve")["counts"] == raw[:101].tolist()


@pytest.mark.parametrize(
    ("what", "params", "message"),
    [
        ("ecdf", {}, "at: Field required"),
        ("ecdf", {"at": "abc"}, "'abc' is not a finite number"),
        ("ecdf", {"at": "0.1,,0.2"}, "single commas"),
        ("ecdf", {"at": "nan"}, "not a finite number"),
        ("ecdf", {"at": ",".join(["0.5"] * 10_001)}, "at most 10000 values"),
        ("ecdf", {"at": "0.5", "stratum": "maybe"}, "'maybe' is not one of 'no', 'yes'"),
    ],
)
def test_bad_questions(pair: LivePair, sealed: Sealed, what: str, params: dict[str, str], message: str) -> None:
    with pair.analyst(0) as client:
        response = client.get(f"/v1/campaigns/{name(sealed[0])}/{what}", params=params)
    assert response.status_code in (400, 422)
    assert response.headers["content-type"] == "application/problem+json"
    assert message in response.json()["detail"]


def test_before_sealing_nothing_is_answered(pair: LivePair) -> None:
    campaign = new_campaign()
    pair.create(campaign)
    with pair.analyst(0) as client:
        response = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.5"})
    assert response.status_code == 409
    assert response.json()["type"].endswith("not-sealed")
