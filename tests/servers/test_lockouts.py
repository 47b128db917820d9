"""Nobody keeps others out: uploads that stall, bodies that are rejected unread, shares of tokens and addresses."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import TooManyRequests
from fss_ecdf.campaign.sealed_uploads import seal_upload, sealed_bytes
from fss_ecdf.net.tokens import hash_token, new_token
from servers import settings
from servers.api.limits import GRACE_S, UNCOUNTED, Held, Limits, Rate, address_key
from tests.harness import attacks
from tests.harness.attacks import CHUNKED, MINE, OTHERS
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign

ROWS = 2000  # of a request here
SHARE = UNCOUNTED  # of an address and of a token, beyond what is not counted


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePair]:
    limits = {"rows_per_request": ROWS, "connections_per_address": 20}
    limits |= {"bytes_per_address": SHARE, "bytes_per_token": 4 * SHARE, "bytes_in_flight": 1 << 20}
    started = LivePair(tmp_path_factory.mktemp("lockouts"))
    for limit, value in limits.items():
        for role in (0, 1):
            started.configure(role, **{f"limits__{limit}": str(value)})
    with started:
        yield started


def make(pair: LivePair, **changes: Any) -> Campaign:
    campaign = new_campaign(**changes)
    pair.create(campaign)
    return campaign


def begun(pair: LivePair, head: bytes, begin: bytes) -> tuple[int, str]:
    """Status and code of the answer to a request of which nothing more is sent."""
    with closing(attacks.connect(pair, source="127.0.0.3")) as connection:
        connection.sendall(head + begin)
        status, body = attacks.answer(connection)
    return status, str(json.loads(body)["type"]).rpartition(":")[2]


# Four uploads that stall, with any token, of any campaign


@pytest.mark.parametrize("is_chunked", [False, True])
def test_uploads_that_stall_keep_nobody_out(pair: LivePair, is_chunked: bool) -> None:
    campaign = make(pair)
    length = CHUNKED if is_chunked else attacks.announced(campaign, ROWS)
    with attacks.stalled(pair, campaign, length, rows=ROWS, count=8):
        for source in (MINE, OTHERS):
            assert attacks.watch(pair, campaign, 5, source).statuses == {200}
        many = envelopes(campaign, np.arange(1000) % 10)[0]
        assert attacks.send(pair, campaign, many, OTHERS)[0] == 200


# Rejected before the body is read


def test_what_the_head_tells_is_rejected_at_once(pair: LivePair) -> None:
    campaign, length = make(pair), f"Content-Length: {100_000}"
    head = attacks.upload_head(pair, campaign, length)
    unknown = head.replace(name(campaign).encode(), name(new_campaign()).encode())
    cases = [
        (unknown, (404, "unknown-campaign")),
        (attacks.upload_head(pair, campaign, length, "wrong"), (401, "not-authenticated")),
        (attacks.upload_head(pair, campaign, length, pair.servers[0].analyst), (403, "not-authorised")),
        (head.replace(UPLOAD_TYPE.encode(), b"text/plain"), (415, "unsupported-media-type")),
        (attacks.upload_head(pair, campaign, f"Content-Length: {1 << 30}"), (413, "body-too-large")),
    ]
    for request, expected in cases:
        assert begun(pair, request, b"") == expected


@pytest.mark.parametrize("is_chunked", [False, True])
def test_what_the_first_bytes_tell_is_rejected_before_the_rest(pair: LivePair, is_chunked: bool) -> None:
    sealed, full = make(pair), make(pair, min_uploads=1, max_uploads=ROWS)
    pair.upload_values(sealed, np.arange(20))
    pair.seal(sealed)
    assert pair.upload(0, full, envelopes(full, np.arange(1))[0]).status_code == 200
    times = {"closed": {"closes": "2020-01-01T00:00:00Z"}, "early": {"opens": "2090-01-01T00:00:00Z"}}
    cases = [
        (sealed, ROWS, "campaign-sealed"),
        (full, ROWS, "campaign-full"),
        (make(pair, **times["closed"]), ROWS, "campaign-closed"),
        (make(pair, **times["early"]), ROWS, "not-yet-open"),
        (make(pair), ROWS + 1, "too-many-rows"),
        (make(pair), 0, "invalid-upload"),
    ]
    for campaign, rows, code in cases:
        begin = attacks.long_begin(pair, campaign, rows)
        head = attacks.upload_head(pair, campaign, CHUNKED if is_chunked else attacks.announced(campaign, rows or ROWS))
        assert begun(pair, head, attacks.chunk(begin) if is_chunked else begin)[1] == code
        assert pair.status(campaign)["uploads"] in (0, 1, 20)


def test_a_site_that_is_paused_or_full_is_told_before_the_rest(pair: LivePair) -> None:
    campaign, token = make(pair, admission="sites"), new_token("site")
    site = {"id": "0" * 32, "label": "one", "token": hash_token(token), "quota": 10}
    path = f"/v1/campaigns/{name(campaign)}/sites"
    begin = attacks.long_begin(pair, campaign, ROWS, token)
    head = attacks.upload_head(pair, campaign, attacks.announced(campaign, ROWS), token)
    with pair.operator(0) as client:
        assert client.post(path, json={"sites": [site]}).status_code == 200
        assert begun(pair, head, begin) == (403, "site-quota-exceeded")
        assert client.patch(f"{path}/{'0' * 32}", json={"state": "paused"}).status_code == 200
        assert begun(pair, head, begin) == (403, "site-paused")


def test_a_long_retry_is_acknowledged_after_sealing(pair: LivePair) -> None:
    """It has to be read although the campaign takes nothing new: its first id is stored."""
    campaign = make(pair)
    both = envelopes(campaign, np.arange(1000) % 10)
    stored = [pair.upload(role, campaign, both[role]) for role in (0, 1)]
    assert [response.status_code for response in stored] == [200, 200]
    pair.seal(campaign)
    with closing(attacks.connect(pair)) as connection:
        data = seal_upload(campaign, 0, both[0], pair.upload_tokens[campaign.id])
        first = sealed_bytes(campaign, 1)
        connection.sendall(attacks.upload_head(pair, campaign, f"Content-Length: {len(data)}") + data[:first])
        time.sleep(0.1)  # so that it is judged by its first bytes
        connection.sendall(data[first:])
        assert attacks.answer(connection) == (200, stored[0].content)


# One line where all fail alike


def test_a_request_that_fails_whole_for_one_reason_gets_one_line(pair: LivePair) -> None:
    campaign = make(pair)
    first, second = (attacks.numbered(campaign, 500) for _ in range(2))
    assert pair.upload(0, campaign, first).status_code == 200
    refused = pair.upload(0, campaign, second)
    problem = refused.json()
    assert (refused.status_code, problem["type"].rpartition(":")[2], problem["count"]) == (409, "upload-conflict", 500)
    assert "failures" not in problem
    assert len(refused.content) < 300
    some = pair.upload(0, campaign, attacks.numbered(campaign, 600))
    assert some.status_code == 200
    failures = some.json()["failures"]
    assert len({failure["id"] for failure in failures}) == len(failures) == 500
    assert pair.status(campaign)["uploads"] == 600


# Shares


def test_an_address_has_its_share_and_no_more(pair: LivePair) -> None:
    """It holds what it sent until it is answered; others are not refused, and small requests never are."""
    campaign = make(pair)
    plain = envelopes(campaign, np.arange(1000) % 10)[0]
    many = seal_upload(campaign, 0, plain, pair.upload_tokens[campaign.id])
    assert len(many) > UNCOUNTED + SHARE
    head = attacks.upload_head(pair, campaign, f"Content-Length: {len(many)}")
    with closing(attacks.connect(pair)) as slow:
        slow.sendall(head + many[:-1])
        time.sleep(0.3)
        assert attacks.send(pair, campaign, plain, MINE)[0] == 429
        assert attacks.watch(pair, campaign, 3, MINE).statuses == {200}
        with closing(attacks.connect(pair, source=OTHERS)) as other:  # the token's share is not its address's
            body = many[: UNCOUNTED + 1000]
            other.sendall(head + body)
            time.sleep(0.3)
            slow.sendall(many[-1:])
            assert attacks.answer(slow)[0] == 200
            other.sendall(many[len(body) :])
            assert attacks.answer(other)[0] == 200
        assert attacks.send(pair, campaign, plain, MINE)[0] == 200  # let go


def test_bytes_are_held_by_token_address_and_in_all() -> None:
    limits = Limits(settings.Limits(bytes_in_flight=500_000, bytes_per_token=300_000, bytes_per_address=200_000))
    first = Held(limits, "token", "one")
    first.count(UNCOUNTED)
    assert not limits.held
    first.count(UNCOUNTED + 400_000)  # alone, one may have more than a share
    for token, address, refused in (("other", "one", "this address"), ("token", "two", "this token")):
        with pytest.raises(TooManyRequests, match=refused):
            Held(limits, token, address).count(UNCOUNTED + 1)
    with pytest.raises(TooManyRequests, match="the server"):
        Held(limits, "other", "two").count(UNCOUNTED + 100_001)
    Held(limits, "other", "two").count(UNCOUNTED + 100_000)
    first.release()
    Held(limits, "token", "one").count(UNCOUNTED + 200_000)


def test_what_is_let_go_leaves_nothing_behind() -> None:
    limits = Limits(settings.Limits())
    some = [Held(limits, f"token {i}", f"address {i % 3}") for i in range(10)]
    for held in some:
        held.count(UNCOUNTED + 1000)
        held.count(UNCOUNTED + 3000)
    assert sum(limits.held.values()) == 3 * 10 * 3000
    for held in some:
        held.release()
        held.release()
    assert not limits.held


def test_one_sender_takes_half_of_the_uploads_a_second() -> None:
    now = [0.0]
    rate = Rate(100, lambda: now[0])
    rate.take(50, "token", "one")
    for keys in (("token", "two"), ("other", "one")):
        with pytest.raises(TooManyRequests):
            rate.take(1, *keys)
    rate.take(50, "other", "two")
    with pytest.raises(TooManyRequests):
        rate.take(1, "third", "three")
    now[0] = 1.0
    rate.take(50, "token", "one")


def test_buckets_that_are_full_again_are_forgotten() -> None:
    now = [0.0]
    rate = Rate(10**9, lambda: now[0])
    for i in range(30_000):
        now[0] += 0.001
        rate.take(1, f"token {i}", "one")
    assert len(rate._buckets) <= 20_000


def test_addresses_of_one_customer_are_one() -> None:
    assert address_key("192.0.2.7") == "192.0.2.7"
    assert address_key("2001:db8::1") == address_key("2001:db8::ffff:1") != address_key("2001:db8:0:1::1")
    assert address_key("::ffff:192.0.2.7") == "192.0.2.7"
    assert address_key("fe80::1%eth0") == address_key("fe80::2")
    assert address_key("no:address") == "no:address"


def test_a_body_has_a_deadline_and_a_least_rate() -> None:
    limits = Limits(settings.Limits(receive_timeout_s=60.0, body_bytes_per_s=1000))
    assert limits.body_until(0) == GRACE_S
    assert limits.body_until(20_000) == GRACE_S + 20
    assert limits.body_until(10**9) == 60


def test_an_address_has_so_many_connections(pair: LivePair) -> None:
    campaign = make(pair)
    held = [attacks.connect(pair) for _ in range(20)]
    try:
        with closing(attacks.connect(pair)) as one_more:
            status, body = attacks.answer(one_more)
        assert (status, json.loads(body)["type"].rpartition(":")[2]) == (429, "too-many-requests")
        assert attacks.watch(pair, campaign, 2, OTHERS).statuses == {200}
    finally:
        for connection in held:
            connection.close()
    until = time.monotonic() + 10
    while attacks.send(pair, campaign, envelopes(campaign, np.arange(1))[0])[0] != 200:
        assert time.monotonic() < until
