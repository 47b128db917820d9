"""JSON bodies that are too large, or large and wrong: refused early, told briefly, read beside the event loop."""

import asyncio
import json
import secrets
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.net.tokens import hash_token
from servers.api.requests import SUMS_BODY, parsed
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign
from tests.servers.readers import refuse, where

Sealed = tuple[Campaign, np.ndarray[Any, Any]]

# However much is wrong, an answer fits on a page.
BRIEF = 4096


def post(pair: LivePair, path: str, body: bytes, operator: bool = False) -> Any:
    with pair.operator(0) if operator else pair.analyst(0) as client:
        return client.post(path, content=body)


def sums_path(campaign: Campaign) -> str:
    return f"/v1/campaigns/{name(campaign)}/sums"


def test_thirty_megabytes_of_numbers_are_not_even_read(pair: LivePair, sealed: Sealed) -> None:
    body = b'{"epsilon": 0.5, "weights": [[' + b"1," * 15_000_000 + b"1]]}"
    refused = post(pair, sums_path(sealed[0]), body)
    assert refused.status_code == 413
    assert str(SUMS_BODY) in refused.json()["detail"]
    assert pair.ask(0, sealed[0], "budget")["spent"] <= sealed[0].epsilon


@pytest.mark.parametrize("count", [1000, 3000, 100_000])
def test_many_unknown_fields_get_a_brief_answer(pair: LivePair, sealed: Sealed, count: int) -> None:
    fields = json.dumps({f"field{i}": i for i in range(count)}).encode()
    for path, operator in ((sums_path(sealed[0]), False), ("/v1/campaigns", True)):
        refused = post(pair, path, fields, operator)
        assert refused.status_code in (400, 413)
        assert len(refused.content) < BRIEF


def test_at_most_ten_errors_are_listed(pair: LivePair, sealed: Sealed) -> None:
    refused = post(pair, sums_path(sealed[0]), json.dumps({f"field{i}": i for i in range(50)}).encode())
    detail = refused.json()["detail"]
    assert detail.count(";") == 10
    assert detail.endswith("and 42 more")  # 50 unknown fields and two that are missing


def test_of_a_long_list_the_first_error_is_told(pair: LivePair) -> None:
    fields = new_campaign(admission="invited").model_dump(mode="json", by_alias=True)
    body = {"campaign": fields, "invitations": ["nonsense"] * 200_000}
    refused = post(pair, "/v1/campaigns", json.dumps(body).encode(), operator=True)
    assert refused.status_code == 400
    assert len(refused.content) < BRIEF
    assert "invitations.0" in refused.json()["detail"]
    listed = {"kind": "explicit", "at": ["a", *[[] for _ in range(100_000)]]}
    refused = post(
        pair,
        "/v1/campaigns",
        json.dumps({"campaign": {**fields, "variables": [{"name": "x", "grid": listed}]}}).encode(),
        operator=True,
    )
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:fss-ecdf:problem:invalid-campaign")
    assert len(refused.content) < BRIEF


def test_long_names_are_not_echoed(pair: LivePair, sealed: Sealed) -> None:
    long = "n" * 40_000
    fields = new_campaign().model_dump(mode="json", by_alias=True)
    answers = [
        post(pair, sums_path(sealed[0]), json.dumps({long: 1}).encode()),
        post(pair, "/v1/campaigns", json.dumps({"campaign": {**fields, long: 1}}).encode(), operator=True),
        post(pair, "/v1/campaigns", json.dumps({"campaign": {**fields, "seal": long}}).encode(), operator=True),
    ]
    with pair.analyst(0) as client:
        path = f"/v1/campaigns/{name(sealed[0])}/ecdf"
        answers += [client.get(path, params={"at": "0.5", "stratum": long}), client.get(path, params={"at": long})]
    for answer in answers:
        assert answer.status_code in (400, 422)
        assert len(answer.content) < 1000
        assert "n" * 100 not in answer.text


def test_a_stratum_that_does_not_exist_does_not_list_thousands(pair: LivePair) -> None:
    campaign = new_campaign(strata=[f"stratum {i} {'x' * 150}" for i in range(500)])
    with pytest.raises(ValueError, match=r"'nowhere' is not one of 'stratum 0 .*, and 490 more") as caught:
        campaign.stratum("nowhere")
    assert len(str(caught.value)) < 1000


def test_a_large_campaign_is_read_in_a_process_of_its_own(pair: LivePair) -> None:
    """And comes back whole, as do the problems of one that is wrong."""
    invited = new_campaign(admission="invited", title="Many invitations")
    fields = invited.model_dump(mode="json", by_alias=True)
    hashes = [hash_token(secrets.token_hex(8)) for _ in range(20_000)]
    body = {"campaign": fields, "invitations": hashes}
    assert len(json.dumps(body)) > 1 << 20
    pair.plant(0, invited.id)
    created = post(pair, "/v1/campaigns", json.dumps(body).encode(), operator=True)
    assert created.status_code == 201, created.text
    wrong = post(pair, "/v1/campaigns", json.dumps({**body, "campaign": {**fields, "epsilon": -1}}).encode(), True)
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:fss-ecdf:problem:invalid-campaign")
    assert wrong.json()["detail"].startswith("epsilon: ")


def test_small_bodies_are_read_at_once_and_large_ones_beside_the_loop() -> None:
    async def run(size: int) -> tuple[int, int]:
        return await parsed(where, bytes(size))

    here = where(b"")
    assert asyncio.run(run(1000)) == here
    process, thread = asyncio.run(run(100_000))
    assert process == here[0]
    assert thread != here[1]
    assert asyncio.run(run(2_000_000))[0] != here[0]
    for size in (10, 100_000, 2_000_000):
        with pytest.raises(InvalidCampaign, match=f"^{size} bytes"):
            asyncio.run(parsed(refuse, bytes(size)))
