"""A curious server asks for more of a campaign of waves than analysts ever get."""

from pathlib import Path
from typing import Any

import httpx

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.json_messages import PeerSumsQuery, ShareQuery
from tests.campaign.helpers import count_above
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import values
from tests.servers.waves import close, until_released, wave_campaign, waves_of


def asked(pair: LivePair, campaign: Campaign, what: str, content: str) -> httpx.Response:
    """What server 1 gets of server 0."""
    token = (pair.folder / "server1" / "peer.token").read_text().strip()
    with pair.client(0, token) as client:
        return client.post(f"/v1/peer/campaigns/{name(campaign)}/{what}", content=content)


def filled(pair: LivePair, waves: int, **more: Any) -> Campaign:
    pooled: list[dict[str, Any]] = [{"through": 2, "epsilon": 0.5}, {"through": "end", "epsilon": 1.0}]
    campaign = wave_campaign(count=3, pooled=pooled, strata=["no", "yes"], **more)
    pair.create(campaign)
    for number in range(1, waves + 1):
        pair.upload_values(campaign, campaign.to_positions(values(40, seed=number), ["no", "yes"] * 20).positions)
        close(pair, campaign, number)
        until_released(pair, campaign, f"wave {number}")
    return campaign


def test_no_point_of_a_release_is_answered_from_keys(tmp_path: Path) -> None:
    """While a pool is not evaluated: one wave's keys under its noise, and later all under the same, would show the
    other waves' counts exactly."""
    with LivePair(tmp_path, curve_bits="0") as pair:
        campaign = filled(pair, 2)
        query = ShareQuery(digest=campaign.digest, positions=[3, 5]).to_json()
        for release in ("wave=1", "wave=2", "pooled=2"):
            answer = asked(pair, campaign, f"shares?{release}", query)
            assert answer.status_code == 400, answer.text
            assert answer.json()["type"].endswith(":invalid-query")
        assert {wave["spent"] for wave in waves_of(pair, campaign)["waves"]} == {0.0}


def test_no_sums_are_paid_with_what_is_to_be_pooled(pair: LivePair) -> None:
    campaign = filled(pair, 3)
    query = PeerSumsQuery(digest=campaign.digest, **count_above(campaign, 0.5, 0.5)).to_json()
    for release in ("wave=1", "wave=2", "wave=3", "pooled=2", "pooled=3"):
        answer = asked(pair, campaign, f"sums?{release}", query)
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:fss-ecdf:problem:budget-exceeded")
    until_released(pair, campaign, "pooled 3")
    for at in (2, 3):
        assert pair.ask(0, campaign, "curve", pooled=at)["n"] == 40 * at
