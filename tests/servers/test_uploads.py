"""Uploads over HTTPS: admission, retries, conflicts, limits, and what every refusal says."""

from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.sealed_uploads import seal_upload
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign, values
from tests.servers.rows import first_only, with_id


def make(pair: LivePair, **changes: Any) -> Campaign:
    campaign = new_campaign(**changes)
    pair.create(campaign, invitations=changes.pop("invitations", ()))
    return campaign


def some(campaign: Campaign, count: int = 5, seed: int = 0) -> tuple[bytes, bytes]:
    return envelopes(campaign, campaign.to_positions(values(count, seed)).positions)


def code(response: Any) -> str:
    assert response.headers["content-type"] == "application/problem+json", response.text
    return str(response.json()["type"]).rsplit(":", 1)[1]


def test_a_byte_identical_retry_is_harmless(pair: LivePair) -> None:
    campaign = make(pair)
    data = some(campaign)
    for _ in range(3):
        assert pair.upload(0, campaign, data[0]).json()["failures"] == []
    assert pair.status(campaign)["uploads"] == 5


def test_the_same_id_with_other_bytes_is_refused_alone(pair: LivePair) -> None:
    campaign = make(pair)
    first, second = some(campaign, 3)[0], some(campaign, 3, seed=9)[0]
    assert pair.upload(0, campaign, first).status_code == 200
    # the first upload's id in front of another key; the other two are new
    mixed = with_id(second, first)
    response = pair.upload(0, campaign, mixed)
    assert response.status_code == 200
    failures = response.json()["failures"]
    assert [f["code"] for f in failures] == ["upload-conflict"]
    assert pair.status(campaign)["uploads"] == 5
    alone = with_id(first_only(second, campaign), first)
    response = pair.upload(0, campaign, alone)
    assert response.status_code == 409
    assert code(response) == "upload-conflict"


def test_full_closed_and_not_yet_open(pair: LivePair) -> None:
    full = make(pair, min_uploads=1, max_uploads=4)
    assert pair.upload(0, full, some(full, 3)[0]).status_code == 200
    response = pair.upload(0, full, some(full, 2, seed=2)[0])
    assert (response.status_code, code(response)) == (409, "campaign-full")
    assert pair.upload(0, full, some(full, 1, seed=3)[0]).status_code == 200
    closed = make(pair, closes="2020-01-01T00:00:00Z")
    assert code(pair.upload(0, closed, some(closed)[0])) == "campaign-closed"
    early = make(pair, opens="2090-01-01T00:00:00Z")
    assert code(pair.upload(0, early, some(early)[0])) == "not-yet-open"


def test_sealed_campaigns_take_nothing_more(pair: LivePair) -> None:
    campaign = make(pair)
    data = some(campaign, 20)
    for role in (0, 1):
        pair.upload(role, campaign, data[role])
    pair.seal(campaign)
    for role in (0, 1):
        assert code(pair.upload(role, campaign, some(campaign)[role])) == "campaign-sealed"
        # what is stored is still acknowledged, to a party whose first answer was lost
        assert pair.upload(role, campaign, data[role]).json()["failures"] == []


def test_an_invitation_is_good_for_one_party(pair: LivePair) -> None:
    campaign = new_campaign(admission="invited", max_values_per_person=2)
    pair.create(campaign, invitations=["invitation one", "invitation two"])
    one = some(campaign, 2)[0]
    assert pair.upload(0, campaign, one, "invitation one").json()["failures"] == []
    assert pair.upload(0, campaign, one, "invitation one").json()["failures"] == []
    response = pair.upload(0, campaign, some(campaign, 1, seed=4)[0], "invitation one")
    assert (response.status_code, code(response)) == (403, "invitation-used")
    assert pair.upload(0, campaign, some(campaign, 2, seed=5)[0], "invitation two").status_code == 200
    assert code(pair.upload(0, campaign, some(campaign, 3, seed=6)[0], "invitation two")) == "invitation-used"
    assert pair.upload(0, campaign, one, "no invitation").status_code == 401
    assert pair.status(campaign)["uploads"] == 4


def test_an_invitation_of_another_campaign_is_none(pair: LivePair) -> None:
    first, second = new_campaign(admission="invited"), new_campaign(admission="invited")
    pair.create(first, invitations=["only for the first"])
    pair.create(second, invitations=["only for the second"])
    assert pair.upload(0, second, some(second, 1)[0], "only for the first").status_code == 401


@pytest.mark.parametrize(
    ("change", "status", "expected"),
    [
        (lambda d: d[:-1], 400, "invalid-upload"),
        (lambda d: d + b"\0", 400, "invalid-upload"),
        (lambda d: b"", 400, "invalid-upload"),
        (lambda d: d[:8] + bytes(32) + d[40:], 409, "digest-mismatch"),
        (lambda d: d[:5] + b"\1" + d[6:], 400, "invalid-upload"),
        (lambda d: d[:-8] + b"\xff" * 8, 400, "invalid-upload"),
    ],
)
def test_malformed_uploads_store_nothing(pair: LivePair, change: Any, status: int, expected: str) -> None:
    campaign = make(pair)
    response = pair.upload(0, campaign, change(some(campaign)[0]))
    assert (response.status_code, code(response)) == (status, expected)
    assert pair.status(campaign)["uploads"] == 0


def test_media_type_and_size(pair: LivePair) -> None:
    campaign = make(pair)
    path = f"/v1/campaigns/{name(campaign)}/uploads"
    with pair.client(0, pair.upload_tokens[campaign.id]) as client:
        wrong = client.post(path, content=some(campaign)[0], headers={"Content-Type": "application/json"})
        assert (wrong.status_code, code(wrong)) == (415, "unsupported-media-type")

        def endless(begin: bytes) -> Any:
            yield begin
            for _ in range(500):
                yield bytes(1 << 16)

        begun = seal_upload(campaign, 0, some(campaign)[0], pair.upload_tokens[campaign.id])
        for begin, refused in ((begun, (413, "body-too-large")), (bytes(100), (400, "invalid-upload"))):
            large = client.post(path, content=endless(begin), headers={"Content-Type": UPLOAD_TYPE})
            assert (large.status_code, code(large)) == refused


def test_too_many_uploads_are_told_when_to_come_back(tmp_path: Any) -> None:
    with LivePair(tmp_path, limits__uploads_per_s="20") as limited:
        campaign = make(limited)
        answers = [limited.upload(0, campaign, some(campaign, 20, seed)[0]) for seed in range(6)]
        assert {r.status_code for r in answers} == {200, 429}
        refused = next(r for r in answers if r.status_code == 429)
        assert code(refused) == "too-many-requests"
        assert int(refused.headers["retry-after"]) >= 1
        stored = 20 * sum(r.status_code == 200 for r in answers)
        assert limited.status(campaign)["uploads"] == stored


def test_many_single_uploads_at_once_are_all_stored(pair: LivePair) -> None:
    from concurrent.futures import ThreadPoolExecutor

    campaign = make(pair)
    singles = [some(campaign, 1, seed)[0] for seed in range(60)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda data: pair.upload(0, campaign, data), singles))
    assert all(r.json()["failures"] == [] for r in answers)
    assert pair.status(campaign)["uploads"] == 60


def test_a_campaign_on_one_server_only_is_noticed(pair: LivePair) -> None:
    campaign = new_campaign()
    pair.create(campaign, roles=[0])
    status = pair.status(campaign)
    assert status["peer"]["problem"] == "unknown-campaign"
    with pair.operator(0) as client:
        response = client.post(f"/v1/campaigns/{name(campaign)}/seal")
    assert (response.status_code, code(response)) == (404, "unknown-campaign")
    assert "the other server" in response.json()["detail"]


def test_only_uploads_that_reached_both_servers_count(pair: LivePair) -> None:
    campaign = make(pair)
    both, only_0, only_1 = some(campaign, 30), some(campaign, 4, 7), some(campaign, 2, 8)
    for role in (0, 1):
        pair.upload(role, campaign, both[role])
    pair.upload(0, campaign, only_0[0])
    pair.upload(1, campaign, only_1[1])
    sealed = pair.seal(campaign)
    assert sealed["count"] == 30
    assert sealed["unmatched"] == {"here": 4, "there": 2}
    assert pair.seal(campaign, role=1)["count"] == 30
    pair.wait_ready(campaign)
    assert pair.ask(0, campaign, "ecdf", at="1")["n"] == 30


def test_too_few_uploads_leave_the_campaign_open(pair: LivePair) -> None:
    campaign = make(pair, min_uploads=50)
    data = some(campaign, 20)
    for role in (0, 1):
        pair.upload(role, campaign, data[role])
    assert code(pair.agree(campaign, 1)) == "agreement-pending"
    response = pair.agree(campaign, 0)
    assert (response.status_code, code(response)) == (409, "too-few-uploads")
    more = some(campaign, 40, seed=11)
    for role in (0, 1):
        assert pair.upload(role, campaign, more[role]).status_code == 200
    assert pair.seal(campaign)["count"] == 60


def test_deleting_erases_and_leaves_a_tombstone(pair: LivePair) -> None:
    campaign = make(pair)
    pair.upload_values(campaign, np.arange(20))
    pair.seal(campaign)
    pair.wait_ready(campaign)
    folder = pair.folder / "server0" / "data" / name(campaign)
    assert (folder / "keys").exists()
    for role in (0, 1):
        with pair.operator(role) as client:
            assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
    assert not folder.exists()
    with pair.operator(0) as client:
        gone = client.get(f"/v1/campaigns/{name(campaign)}")
        assert (gone.status_code, code(gone)) == (410, "campaign-deleted")
        body = {"campaign": campaign.model_dump(mode="json", by_alias=True), "upload_token": "0" * 64}
        again = client.post("/v1/campaigns", json=body)
        assert (again.status_code, code(again)) == (410, "campaign-deleted")
