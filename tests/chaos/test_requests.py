"""Requests that no honest client sends: sizes, speeds, heads, tokens, ids, and all that the API describes."""

import http.client
import socket
import sqlite3
import ssl
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import parse_problem
from fss_ecdf.net.tokens import new_token
from tests.harness import attacks
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign

pytestmark = pytest.mark.faults

EXAMPLES = 25

schemathesis.serializer.alias(UPLOAD_TYPE, "application/octet-stream")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePair]:
    started = LivePair(tmp_path_factory.mktemp("requests"))
    for role in (0, 1):
        started.configure(role, limits__receive_timeout_s="2.0")
        started.configure(role, limits__body_bytes=str(1 << 16))
    with started:
        yield started


@pytest.fixture(scope="module")
def campaign(pair: LivePair) -> Campaign:
    fresh = new_campaign()
    pair.create(fresh)
    pair.upload_values(fresh, np.arange(20))
    return fresh


def state(pair: LivePair, role: int = 0) -> list[Any]:
    """Everything that a server has stored."""
    with sqlite3.connect(pair.folder / f"server{role}" / "data" / "server.db") as db:
        tables = [db.execute(f"SELECT * FROM {t} ORDER BY 1, 2").fetchall() for t in ("campaigns", "uploads", "ledger")]
    db.close()
    return tables


# The description of the API


# What an operator does on purpose; tests/servers has who may.
CHANGES = {
    ("POST", "/v1/campaigns"),
    ("POST", "/v1/campaigns/{cid}/seal"),
    ("POST", "/v1/campaigns/{cid}/discard-excluded"),
    ("DELETE", "/v1/campaigns/{cid}"),
}


def test_nothing_that_the_description_allows_breaks_a_server(pair: LivePair, campaign: Campaign) -> None:
    """Every route with random parameters, headers and bodies, with every token: no 5xx, no change of state."""
    sealed = new_campaign()
    pair.create(sealed)
    pair.upload_values(sealed, np.arange(20))
    pair.seal(sealed)
    pair.wait_ready(sealed)
    pair.ask(0, sealed, "curve")
    callers = {None: campaign, pair.servers[0].operator: campaign, pair.upload_tokens[campaign.id]: campaign}
    callers |= {pair.servers[0].analyst: sealed}
    with pair.client(0) as client:
        schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    before, tried = state(pair), 0
    for result in schema.get_all_operations():
        assert isinstance(result, schemathesis.core.result.Ok)
        operation = result.ok()
        for token, asked in callers.items():
            if token == pair.servers[0].operator and (operation.method.upper(), operation.path) in CHANGES:
                continue
            tried += _try(pair, asked, operation, token)
    assert tried > 10 * EXAMPLES
    assert state(pair) == before
    assert not [e for e in pair.events(0) if e["event"] == "internal-error"]
    with pair.client(0) as client:
        assert client.get("/readyz").status_code == 200


def _try(pair: LivePair, campaign: Campaign, operation: Any, token: str | None) -> int:
    answers = []
    with pair.client(0, token, timeout=20) as client:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            path = case.path.replace("{cid}", name(campaign))  # an id made up is a 404 and nothing more
            body = case.body if isinstance(case.body, bytes) else None
            json = None if body is not None or isinstance(case.body, schemathesis.core.NotSet) else case.body
            headers = {k: v for k, v in (case.headers or {}).items() if k.lower() != "authorization" and v.isascii()}
            if case.media_type:
                headers["Content-Type"] = case.media_type
            response = client.request(
                case.method, path, params=case.query or None, content=body, json=json, headers=headers
            )
            answers.append(response.status_code)
            assert response.status_code < 500, (path, response.text)
            if response.status_code >= 400:
                assert parse_problem(response.content) is not None, response.text

        send()
    return len(answers)


# Sizes and speeds


def raw(pair: LivePair, data: bytes, seconds: float = 10) -> bytes:
    """Send bytes over TLS and read until the server closes or nothing comes any more."""
    with (
        socket.create_connection(("127.0.0.1", pair.ports[0]), timeout=seconds) as plain,
        pair.context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        answer = b""
        try:
            secure.sendall(data)
            while chunk := secure.recv(65536):
                answer += chunk
                if b"\r\n\r\n" in answer and b"problem+json" in answer and answer.endswith(b"}"):
                    break
        except (TimeoutError, ssl.SSLError, OSError):
            pass
        return answer


def upload_head(pair: LivePair, campaign: Campaign, *more: str) -> bytes:
    token = pair.upload_tokens[campaign.id]
    lines = [f"POST /v1/campaigns/{name(campaign)}/uploads HTTP/1.1", "Host: x", f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, f"Content-Type: {UPLOAD_TYPE}", *more, "", ""]).encode()


def test_a_body_that_says_it_is_too_long_is_not_read(pair: LivePair, campaign: Campaign) -> None:
    assert b" 413 " in raw(pair, upload_head(pair, campaign, "Content-Length: 70000")).splitlines()[0]
    assert b" 413 " in raw(pair, upload_head(pair, campaign, f"Content-Length: {10**18}")).splitlines()[0]


def test_a_body_without_end_is_cut(pair: LivePair, campaign: Campaign) -> None:
    chunks = attacks.chunk(attacks.long_begin(pair, campaign, 20)) + attacks.chunk(bytes(0x1000)) * 17
    answer = raw(pair, upload_head(pair, campaign, "Transfer-Encoding: chunked") + chunks)
    assert b" 413 " in answer.splitlines()[0]


def test_a_body_that_never_comes_ends_in_time(pair: LivePair, campaign: Campaign) -> None:
    answer = raw(pair, upload_head(pair, campaign, "Content-Length: 1000") + b"x" * 10)
    assert b" 408 " in answer.splitlines()[0]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01 nonsense \r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/campaigns/%ff%00/../../etc HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_strange_heads(pair: LivePair, campaign: Campaign, head: bytes) -> None:
    before = state(pair)
    answer = raw(pair, head, seconds=3)
    assert not answer or answer.split(b" ", 2)[1][:1] == b"4"
    assert state(pair) == before
    assert "internal-error" not in pair.log(0)


def test_many_connections_that_say_nothing_keep_nobody_out(pair: LivePair, campaign: Campaign) -> None:
    """Slow clients hold a connection each, and nothing else."""
    held = []
    for i in range(200):
        plain = socket.create_connection(("127.0.0.1", pair.ports[0]))
        held.append(plain)
        if i % 2:
            held[-1] = pair.context.wrap_socket(plain, server_hostname="127.0.0.1")
            held[-1].send(b"GET / HTT")
    assert pair.upload(0, campaign, envelopes(campaign, np.arange(3))[0]).status_code == 200
    for connection in held:
        connection.close()


def test_head_that_drips_is_cut(pair: LivePair) -> None:
    """A request line that arrives a byte at a time does not get more time than a body."""

    def drip() -> None:
        with (
            socket.create_connection(("127.0.0.1", pair.ports[0]), timeout=30) as plain,
            pair.context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            for _ in range(100):
                secure.send(b"G")
                time.sleep(0.2)

    with pytest.raises(OSError, match=r"reset|[Bb]roken pipe|EOF"):
        drip()


# Media types, digests, ids and tokens


def test_wrong_media_types(pair: LivePair, campaign: Campaign) -> None:
    data = envelopes(campaign, np.arange(3))[0]
    token = pair.upload_tokens[campaign.id]
    for kind in ("", "text/plain", "application/json", UPLOAD_TYPE + "x", "application/octet-stream"):
        with pair.client(0, token) as client:
            path = f"/v1/campaigns/{name(campaign)}/uploads"
            assert client.post(path, content=data, headers={"Content-Type": kind}).status_code == 415, kind


def test_uploads_of_another_campaign_or_for_the_other_server(pair: LivePair, campaign: Campaign) -> None:
    other = new_campaign()
    pair.create(other)
    before = state(pair)
    foreign = envelopes(other, np.arange(3))
    assert pair.upload(0, campaign, foreign[0]).json()["type"].endswith("digest-mismatch")
    assert pair.upload(0, campaign, envelopes(campaign, np.arange(3))[1]).json()["type"].endswith("invalid-upload")
    with pair.client(0, pair.upload_tokens[other.id]) as client:
        path = f"/v1/campaigns/{name(campaign)}/uploads"
        refused = client.post(path, content=foreign[0], headers={"Content-Type": UPLOAD_TYPE})
    assert refused.status_code == 401
    assert state(pair) == before


def test_an_invitation_counts_once_at_each_server(pair: LivePair) -> None:
    """Used twice, at both servers or at one only: it never admits more than one value to the sealed set."""
    invitations = [new_token("invite") for _ in range(12)]
    invited = new_campaign(admission="invited")
    pair.create(invited, invitations=invitations)
    for token in invitations:
        data = envelopes(invited, np.arange(1))
        for role in (0, 1):
            assert pair.upload(role, invited, data[role], token).status_code == 200
    greedy = invitations[0]
    again = envelopes(invited, np.arange(1))
    for role in (0, 1):
        assert pair.upload(role, invited, again[role], greedy).json()["type"].endswith("invitation-used")
    made_up = pair.upload(0, invited, again[0], new_token("invite"))
    assert made_up.status_code == 401
    assert pair.seal(invited)["count"] == 12


def test_a_different_value_at_each_server_does_not_count(pair: LivePair) -> None:
    """An invitation used at server 0 for one upload and at server 1 for another: both are unmatched."""
    invitations = [new_token("invite") for _ in range(11)]
    invited = new_campaign(admission="invited")
    pair.create(invited, invitations=invitations)
    for token in invitations[:10]:
        data = envelopes(invited, np.arange(1))
        for role in (0, 1):
            pair.upload(role, invited, data[role], token)
    for role in (0, 1):
        assert pair.upload(role, invited, envelopes(invited, np.arange(1))[role], invitations[10]).status_code == 200
    sealed = pair.seal(invited)
    assert (sealed["count"], sealed["unmatched"]) == (10, {"here": 1, "there": 1})


def test_http_pipelining_and_early_close(pair: LivePair, campaign: Campaign) -> None:
    """Clients that ask and leave at once cost nothing but their own answer."""
    before = len([e for e in pair.events(0) if e["event"] == "internal-error"])
    for _ in range(20):
        connection = http.client.HTTPSConnection("127.0.0.1", pair.ports[0], context=pair.context, timeout=5)
        connection.request("POST", f"/v1/campaigns/{name(campaign)}/uploads", body=b"x" * 100)
        connection.close()
    with pair.client(0) as client:
        assert client.get("/readyz").status_code == 200
    assert len([e for e in pair.events(0) if e["event"] == "internal-error"]) == before
