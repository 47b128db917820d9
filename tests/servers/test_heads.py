"""Requests whose head, address or trailer never ends: a bounded buffer, a clear answer, and nobody else notices."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from servers.api.header_limits import HEAD_BYTES
from tests.harness.server_pair import LivePair

MEGABYTE = 1 << 20

# What a client may never finish. Every one is followed by as many letters as the server takes.
ENDLESS = {
    "address": b"GET /v1/campaigns/",
    "query": b"GET /healthz?at=",
    "name of a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
    "value of a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ",
    "head of a second request": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nX-Long: ",
    "trailer": b"POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Long: ",
    "head after a body that nobody read": b"POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    b"GET /healthz HTTP/1.1\r\nX-Long: ",
}


@pytest.fixture(scope="module", params=["httptools", "h11"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePair]:
    """A server for each parser; uvicorn takes h11 where httptools cannot be imported."""
    folder, environment = tmp_path_factory.mktemp("heads"), pytest.MonkeyPatch()
    if request.param == "h11":
        # It leaves a mark, so that the tests know which parser they tried.
        missing = f"open({str(folder / 'missed')!r}, 'w').close()\nraise ImportError\n"
        (folder / "httptools.py").write_text(missing)
        environment.setenv("PYTHONPATH", str(folder))
    pair = LivePair(folder)
    pair.nursery = None  # a program of its own, which reads modules in this environment
    pair.start(0)
    environment.undo()
    assert (folder / "missed").exists() == (request.param == "h11")
    yield pair
    pair.stop(0)


def connect(pair: LivePair) -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", pair.ports[0]), timeout=20)
    return pair.context.wrap_socket(raw, server_hostname="127.0.0.1")


def resident(pair: LivePair) -> int:
    """The server's memory, in bytes."""
    process = pair.processes[0]
    assert process is not None
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


def pour_until_cut(pair: LivePair, connection: ssl.SSLSocket) -> int:
    """By how much the server's memory grew until it ended the connection."""
    before, grown = resident(pair), 0
    with suppress(OSError):
        while grown < 64 * MEGABYTE:
            connection.sendall(b"x" * MEGABYTE)
            time.sleep(0.01)  # a hundred megabytes until it is cut off are enough to tell
            grown = max(grown, resident(pair) - before)
    return grown


def received(connection: ssl.SSLSocket) -> bytes:
    parts = []
    with suppress(OSError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def answer(connection: ssl.SSLSocket) -> bytes:
    """One answer, to its end: all of them are JSON objects."""
    text = connection.recv(65536)
    while not text.endswith(b"}"):
        text += connection.recv(65536)
    return text


@pytest.mark.parametrize("begin", ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_is_cut_off_and_takes_no_memory(served: LivePair, begin: bytes) -> None:
    with served.client(0) as bystander, closing(connect(served)) as connection:
        connection.sendall(begin)
        assert pour_until_cut(served, connection) < 16 * MEGABYTE
        assert bystander.get("/healthz").status_code == 200


def test_a_head_that_is_too_large_is_told_so(served: LivePair) -> None:
    with closing(connect(served)) as connection:
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "
        connection.sendall(head + b"x" * (HEAD_BYTES - len(head)))
        told = received(connection)
    assert told.startswith(b"HTTP/1.1 431 ")
    problem = httpx.Response(431, content=told.split(b"\r\n\r\n", 1)[1]).json()
    assert problem["type"] == "urn:fss-ecdf:problem:headers-too-large"
    assert str(HEAD_BYTES) in problem["detail"]
    assert "Traceback" not in served.log(0)


def test_heads_up_to_the_bound_are_answered_one_after_another(served: LivePair) -> None:
    """Also over one connection, with bodies between them, and all at once."""
    long = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "
    long += b"x" * (HEAD_BYTES - len(long) - 100) + b"\r\n\r\n"
    unread = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + b"b" * 300_000
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with closing(connect(served)) as connection:
        for request, status in ((long, b"200"), (unread, b"405"), (long, b"200"), (unread, b"405")):
            connection.sendall(request)
            assert answer(connection).startswith(b"HTTP/1.1 " + status)
        connection.sendall(long[:-2] + b"Connection: close\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 200")
    short = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with closing(connect(served)) as connection:
        connection.sendall(short * 3000 + last)
        assert received(connection).count(b'{"status":"ok"}') == 3001


def test_a_chunked_body_of_tiny_pieces_is_taken(served: LivePair) -> None:
    """Most of its bytes are framing; they bring a body all the same."""
    token = served.servers[0].operator

    def crumbs() -> Iterator[bytes]:
        for _ in range(30_000):
            yield b" "
        yield b"{}"

    with served.client(0, token) as client:
        answer = client.post("/v1/campaigns", content=crumbs())
    assert answer.status_code == 400
    assert "campaign: Field required" in answer.json()["detail"]
