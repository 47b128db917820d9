"""Queries for weighted sums over HTTPS from two real servers: exact but for the noise, paid once, the same for ever."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.json_messages import PeerSumsQuery
from fss_ecdf.campaign.noise.sums import MAX_SUMS, MAX_WEIGHT, SumQuery, read_sums
from servers.release.noise import Prf
from servers.release.sum_noise import purpose, sum_noise
from servers.release.sum_queries import used_positions
from tests.campaign.helpers import count_above, group_sums
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign, values
from tests.servers.waves import close, until_released, wave_campaign, waves_of

Array = np.ndarray[Any, Any]


def ask(pair: LivePair, role: int, campaign: Campaign, query: dict[str, Any], **release: int) -> httpx.Response:
    with pair.analyst(role) as client:
        return client.post(f"/v1/campaigns/{name(campaign)}/sums", json=query, params=release)


def ask_as_peer(pair: LivePair, role: int, campaign: Campaign, query: dict[str, Any]) -> httpx.Response:
    """What the other server gets of this one."""
    token = (pair.folder / f"server{1 - role}" / "peer.token").read_text().strip()
    with pair.client(role, token) as client:
        content = PeerSumsQuery(digest=campaign.digest, **query).to_json()
        return client.post(f"/v1/peer/campaigns/{name(campaign)}/sums", content=content)


def left(pair: LivePair, campaign: Campaign, **release: int) -> list[float]:
    return [pair.ask(role, campaign, "budget", **release)["reserve_left"] for role in (0, 1)]


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["type"].rpartition(":")[2]


def filled(pair: LivePair, reserve: float = 2.0, **more: Any) -> tuple[Campaign, Array]:
    campaign = new_campaign(strata=["no", "yes"], reserve=reserve, **more)
    positions = campaign.to_positions(values(300), ["no", "yes", "yes"] * 100).positions
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return campaign, positions


def noise_of(pair: LivePair, campaign: Campaign, query: SumQuery) -> Array:
    """What both servers add, from what only thieves of both disks could read."""
    total = np.zeros(len(query.units), np.int64)
    for role in (0, 1):
        seed, covered = pair.noise_secrets(role, campaign)
        total += sum_noise(query, Prf(seed, role, covered, purpose(query).encode()))
    return total


@pytest.fixture(scope="module")
def sealed(pair: LivePair) -> tuple[Campaign, Array]:
    return filled(pair)


def test_without_both_noises_the_sums_are_exact(pair: LivePair, sealed: tuple[Campaign, Array]) -> None:
    campaign, positions = sealed
    rows = np.random.default_rng(4).integers(-1000, 1000, (3, 202))
    asked = {"weights": rows.tolist(), "units": [1, 50, 2000], "epsilon": 0.25}
    before = left(pair, campaign)
    first = ask(pair, 0, campaign, asked)
    assert first.status_code == 200, first.text
    answer, query = first.json(), read_sums(rows, 0.25, cells=202, units=[1, 50, 2000])
    cells = np.bincount(positions, minlength=1 << campaign.bits)[used_positions(campaign)]
    assert (np.array(answer["sums"]) - noise_of(pair, campaign, query)).tolist() == (rows @ cells).tolist()
    assert answer["standard_errors"] == pytest.approx(query.errors.tolist())
    assert (answer["n"], answer["release"], answer["epsilon"]) == (300, "curve", 0.25)
    assert (answer["sensitivity"], answer["exact"]) == (float(query.sensitivity.value), True)
    assert answer["digest"] == to_base64url(campaign.digest)
    assert 0 < answer["delta"] == query.delta < 1e-28
    for role in (0, 1, 0):
        assert ask(pair, role, campaign, asked).json() == answer
    assert left(pair, campaign) == pytest.approx([x - 0.25 for x in before])
    # With the curve, which both servers have before they compute sums.
    spent = [pair.ask(role, campaign, "budget")["spent"] for role in (0, 1)]
    assert spent == pytest.approx([1.0 + 2.0 - left(pair, campaign)[0]] * 2)


def test_algorithm_2_is_such_a_query(pair: LivePair, sealed: tuple[Campaign, Array]) -> None:
    campaign, positions = sealed
    answer = ask(pair, 1, campaign, group_sums(campaign, [0.2, 0.4, 1.0], 0.25)).json()
    assert answer["sensitivity"] == 4.0
    cell = np.bincount(positions, minlength=256)
    both, scores = cell[:101] + cell[128:229], np.arange(101) / 100
    table = np.array(answer["sums"]).reshape(4, 3) / [[1], [1], [1000], [1000]]
    errors = np.array(answer["standard_errors"]).reshape(4, 3) / [[1], [1], [1000], [1000]]
    for i, g in enumerate((slice(0, 21), slice(21, 41), slice(41, 101))):
        true = [cell[:101][g].sum(), cell[128:229][g].sum(), both[g] @ (1 - scores[g]), both[g] @ scores[g]]
        assert (np.abs(table[:, i] - true) < 8 * errors[:, i]).all()
    # O - E is not exact: each of them has noise of its own.
    exact = [cell[128:229][g].sum() - both[g] @ scores[g] for g in (slice(0, 21), slice(21, 41), slice(41, 101))]
    assert np.abs(table[1] - table[3] - exact).max() > 0.5


@pytest.mark.parametrize(
    ("changes", "status", "kind", "message"),
    [
        ({"weights": [[1] * 202]}, 400, "invalid-query", "all weights of sum 0 are equal"),
        ({"weights": [[0, 1] * 101, [3] * 202]}, 400, "invalid-query", "all weights of sum 1 are equal"),
        ({"weights": [[0, 1] * 64]}, 400, "invalid-query", "a sum has 202 weights, one for each cell, got 128"),
        ({"weights": [[0, 1] * 128]}, 400, "invalid-query", "a sum has 202 weights, one for each cell, got 256"),
        ({"weights": []}, 400, "invalid-query", "weights: List should have at least 1 item"),
        ({"weights": [[0, 1] * 101] * (MAX_SUMS + 1)}, 400, "invalid-query", f"1 to {MAX_SUMS} sums"),
        ({"weights": [[0, MAX_WEIGHT + 1] * 101]}, 400, "invalid-query", "weights are whole numbers from"),
        ({"weights": [[0, 2**80] * 101]}, 400, "invalid-query", "weights"),
        ({"weights": [[0, 0.5] * 101]}, 400, "invalid-query", "valid integer"),
        ({"units": [1, 2]}, 400, "invalid-query", "units are 1 whole numbers"),
        ({"units": [0]}, 400, "invalid-query", "units are 1 whole numbers"),
        (
            {"weights": [[0, 1] * 101] * 65, "units": list(range(1, 66))},
            400,
            "invalid-query",
            "at most 64 different units, got 65",
        ),
        ({"epsilon": 0.001}, 400, "invalid-query", "epsilon"),
        ({"epsilon": 20.5}, 400, "invalid-query", "epsilon"),
        ({"release": "curve"}, 400, "invalid-query", "release"),
        ({"epsilon": 19.0}, 403, "budget-exceeded", "epsilon 19 would exceed the campaign's reserve, 2: "),
    ],
)
def test_queries_that_are_refused_cost_nothing(
    pair: LivePair,
    sealed: tuple[Campaign, Array],
    changes: dict[str, Any],
    status: int,
    kind: str,
    message: str,
) -> None:
    campaign, _ = sealed
    before = left(pair, campaign)
    for role in (0, 1):
        refused = ask(pair, role, campaign, {"weights": [[0, 1] * 101], "epsilon": 0.1, **changes})
        assert code(refused) == (status, kind)
        assert message in refused.json()["detail"]
        assert len(refused.content) < 4096
    assert left(pair, campaign) == before


def test_a_release_that_is_not_there(pair: LivePair, sealed: tuple[Campaign, Array]) -> None:
    refused = ask(pair, 0, sealed[0], count_above(sealed[0], 0.5, 0.1), wave=1)
    assert code(refused) == (400, "invalid-query")
    assert "has no waves" in refused.json()["detail"]


def test_a_person_with_many_values_has_as_much_more_noise(pair: LivePair) -> None:
    campaign, _ = filled(pair, max_values_per_person=50)
    query = count_above(campaign, 0.5, 0.4)
    refused = ask(pair, 0, campaign, query)
    assert code(refused) == (400, "invalid-query")
    assert "at least 0.01 for each of the 50 values" in refused.json()["detail"]
    assert left(pair, campaign) == [2.0, 2.0]
    answer = ask(pair, 0, campaign, {**query, "epsilon": 1.0}).json()
    assert answer["standard_errors"] == pytest.approx([2 * 50], rel=1e-3)


@pytest.mark.parametrize("first", [0, 1])
def test_a_query_that_one_server_has_paid_for_is_completed(pair: LivePair, first: int) -> None:
    """By asking it again, at either server; neither pays twice."""
    campaign, _ = filled(pair, reserve=1.0)
    query = count_above(campaign, 0.5, 1.0)
    assert ask_as_peer(pair, first, campaign, query).status_code == 200
    assert left(pair, campaign)[first] == 0.0
    assert left(pair, campaign)[1 - first] == 1.0
    if first == 0:  # which always pays first: another query cannot take the other server's part
        assert code(ask(pair, 1, campaign, count_above(campaign, 0.6, 1.0))) == (403, "budget-exceeded")
    answers = [ask(pair, role, campaign, query) for role in (1 - first, first)]
    assert answers[0].status_code == 200, answers[0].text
    assert answers[0].json() == answers[1].json()
    assert left(pair, campaign) == [0.0, 0.0]


def test_many_at_once_never_overspend(pair: LivePair) -> None:
    """Twelve queries of 0.3, two of each, from a reserve of 1: three are paid, each once, on both servers."""
    campaign, _ = filled(pair, reserve=1.0)
    start = threading.Barrier(12)

    def one(number: int) -> httpx.Response:
        start.wait()
        return ask(pair, number % 2, campaign, count_above(campaign, 0.1 * (number // 2 + 1), 0.3))

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(one, range(12)))
    assert {response.status_code for response in found} <= {200, 403}
    for a, b in zip(found[::2], found[1::2], strict=True):
        assert a.status_code == b.status_code
        assert a.status_code == 403 or a.json() == b.json()
    assert sum(response.status_code == 200 for response in found) == 6
    assert left(pair, campaign) == pytest.approx([0.1, 0.1])


def test_a_long_query_is_read_beside_others(pair: LivePair) -> None:
    """Two megabytes of weights are read in a process of their own."""
    campaign, _ = filled(pair)
    rows = np.random.default_rng(2).integers(0, 100, (4000, 202))
    answer = ask(pair, 0, campaign, {"weights": rows.tolist(), "units": [1] * 4000, "epsilon": 1.0})
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["sums"]) == 4000
    true = max(int(np.abs(rows - column[:, np.newaxis]).sum(axis=0).max()) for column in rows.T)
    assert (answer.json()["sensitivity"], answer.json()["exact"]) == (true, True)


def test_a_restart_changes_no_result(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        query = count_above(campaign, 0.5, 0.5)
        first = ask(pair, 0, campaign, query).json()
        for role in (0, 1):
            pair.stop(role)
            pair.start(role)
        pair.wait_ready(campaign)
        assert ask(pair, 1, campaign, query).json() == first
        assert left(pair, campaign) == [1.5, 1.5]


def test_waves_pay_from_their_reserve_for_every_release_they_are_in(pair: LivePair) -> None:
    pooled: list[dict[str, Any]] = [{"through": 2, "epsilon": 0.5}]
    campaign = wave_campaign(count=3, pooled=pooled, strata=["no", "yes"], reserve=1.0, epsilon=1.0)
    assert campaign.epsilon_for_party(1) == 2.5
    pair.create(campaign)
    positions = []
    for number in (1, 2):
        some = campaign.to_positions(values(40, seed=number), ["no", "yes"] * 20).positions
        positions.append(some)
        pair.upload_values(campaign, some)
        close(pair, campaign, number)
    until_released(pair, campaign, "pooled 2")
    query = count_above(campaign, 0.5, 0.6)
    without = ask(pair, 0, campaign, query)
    assert code(without) == (400, "invalid-query")
    assert "name a wave or a pool" in without.json()["detail"]
    answers = {str(release): ask(pair, 0, campaign, query, **release).json() for release in ({"wave": 1}, {"wave": 2})}
    assert [answer["release"] for answer in answers.values()] == ["wave 1", "wave 2"]
    assert left(pair, campaign, wave=1) == left(pair, campaign, pooled=2) == pytest.approx([0.4, 0.4])
    # The pool has both waves: neither has 0.6 left, though its own release costs 0.5 and is not spent yet.
    assert code(ask(pair, 1, campaign, query, pooled=2)) == (403, "budget-exceeded")
    less = count_above(campaign, 0.5, 0.4)
    pool = ask(pair, 1, campaign, less, pooled=2)
    assert pool.status_code == 200, pool.text
    assert pool.json()["n"] == 80
    above = sum(int((campaign.strata_and_indices(some)[1] > 50).sum()) for some in positions)
    assert abs(pool.json()["sums"][0] - above) < 10 * pool.json()["standard_errors"][0]
    assert left(pair, campaign) == [0.0, 0.0]
    assert code(ask(pair, 0, campaign, count_above(campaign, 0.5, 0.01), wave=2)) == (403, "budget-exceeded")
    # Nothing of it was taken from what the releases cost.
    assert pair.ask(0, campaign, "curve", pooled=2)["n"] == 80
    assert pair.ask(1, campaign, "curve", wave=1)["n"] == 40
    assert ask(pair, 1, campaign, query, wave=2).json() == answers[str({"wave": 2})]
    spent = {wave["number"]: (wave["consented"], wave["spent"]) for wave in waves_of(pair, campaign)["waves"]}
    assert spent[1] == pytest.approx((2.5, 2.5))
    assert spent[2][1] <= 2.5
