"""How all programs ask a server: what is tried again and when, what is not, and what is said of it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fss_ecdf.campaign.errors import (
    InvalidInput,
    InvalidPeerResponse,
    NotSealed,
    PeerUnavailable,
    Problem,
    TooManyRequests,
)
from fss_ecdf.net import https
from fss_ecdf.net.https import ONCE, RetryPolicy, ServerEndpoint

AWAY = httpx.ConnectError("nobody there")
GATEWAY = httpx.Response(502, text="<html>bad gateway</html>")
DONE = httpx.Response(200, content=b"ok")
REFUSED = httpx.Response(409, json=NotSealed("not sealed").document())


def busy(retry_after: str | None = None) -> httpx.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return httpx.Response(429, json=TooManyRequests("busy").document(), headers=headers)


def waits(patience: RetryPolicy, *came: https.Came) -> list[float]:
    """The seconds before each further request, until it has succeeded."""
    loop = ServerEndpoint("server 0", patience, "server 0: ").retries()
    assert next(loop) == 0.0
    seconds = [loop.send(one) for one in came[:-1]]
    with pytest.raises(StopIteration) as done:
        loop.send(came[-1])
    assert done.value.value is came[-1]
    return seconds


def test_a_server_that_is_away_is_asked_again_ever_more_rarely() -> None:
    assert waits(RetryPolicy(8), *[AWAY] * 7, DONE) == [0.5, 1, 2, 4, 8, 16, 20]
    assert waits(RetryPolicy(3), GATEWAY, AWAY, DONE) == [1, 1]


def test_a_busy_server_s_word_is_kept_within_reason() -> None:
    asked = ("0", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "5", "3600")
    for patience in (RetryPolicy(2), RetryPolicy(1, busy_s=1e9)):
        assert [waits(patience, busy(after), DONE) for after in asked] == [[0.5], [1.0], [1.0], [1.0], [5.0], [20.0]]
    assert waits(RetryPolicy(2), busy(), DONE) == [1.0]


def test_a_busy_server_has_its_own_patience_where_there_is_one() -> None:
    assert waits(RetryPolicy(1, busy_s=1e9), *[busy("2")] * 50, DONE) == [2.0] * 50
    assert waits(RetryPolicy(2, busy_s=1e9), busy("2"), AWAY, busy("2"), DONE) == [2.0, 0.5, 2.0]
    with pytest.raises(TooManyRequests):
        waits(RetryPolicy(9, busy_s=1.0), busy("2"), DONE)


@pytest.mark.parametrize(
    ("came", "kind", "words"),
    [
        (AWAY, PeerUnavailable, r"server 0 cannot be reached \(ConnectError\)"),
        (GATEWAY, InvalidPeerResponse, "server 0 answered 502, which is no answer of this protocol"),
        (busy(), TooManyRequests, "server 0: busy"),
    ],
)
def test_at_the_end_there_is_one_clear_problem(came: https.Came, kind: type[Problem], words: str) -> None:
    for patience in (ONCE, RetryPolicy(3)):
        with pytest.raises(kind, match=words):
            waits(patience, *[came] * patience.attempts)
    assert len(waits(RetryPolicy(3), came, came, DONE)) == 2


@pytest.mark.parametrize(
    ("came", "kind", "words"),
    [
        (REFUSED, NotSealed, "server 0: not sealed"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), InvalidInput, "certificate that is not"),
    ],
)
def test_what_would_not_change_is_not_tried_again(came: https.Came, kind: type[Problem], words: str) -> None:
    with pytest.raises(kind, match=words):
        waits(RetryPolicy(6, busy_s=1e9), came, DONE)


def answers() -> httpx.MockTransport:
    """Away, busy, gone to the gateway, then done: the caller notices nothing."""
    came: Iterator[https.Came] = iter([AWAY, busy("0"), GATEWAY, DONE])

    def answer(request: httpx.Request) -> httpx.Response:
        one = next(came)
        if isinstance(one, httpx.HTTPError):
            raise one
        return httpx.Response(one.status_code, headers=one.headers, content=one.content)

    return httpx.MockTransport(answer)


def test_both_kinds_of_clients_go_through_the_same_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "FIRST_WAIT_S", 0.001)
    server = ServerEndpoint("server 0", RetryPolicy(4))
    with httpx.Client(transport=answers()) as client:
        assert server.ask(client, "GET", "https://server", most=1000).content == b"ok"

    async def go() -> bytes:
        async with httpx.AsyncClient(transport=answers()) as client:
            return (await server.ask_async(client, "GET", "https://server", most=1000)).content

    assert asyncio.run(go()) == b"ok"
    with httpx.Client(transport=answers()) as client, pytest.raises(PeerUnavailable):
        ServerEndpoint("server 0", ONCE).ask(client, "GET", "https://server", most=1000)


def test_what_cannot_be_trusted_or_sent_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    wrong.write_text("not a certificate")
    with pytest.raises(InvalidInput, match="not a certificate authority in PEM"):
        https.trust(wrong)
    with pytest.raises(InvalidInput, match="no such file"):
        https.trust(tmp_path / "none.pem")
    for token in ("t\u00f6ken", "two\nlines"):
        with pytest.raises(InvalidInput, match="one line of ASCII"):
            https.options(token, None, 1.0)
