"""Requests that try to keep others out, and honest ones meanwhile: for tests and the load benchmark."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES, UPLOAD_TYPE, upload_bytes
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.sealed_uploads import seal_upload, sealed_bytes
from tests.harness.server_pair import LivePair, envelopes, name, sealed_envelopes

CHUNKED = "Transfer-Encoding: chunked"
MINE, OTHERS = "127.0.0.1", "127.0.0.2"  # where attacks come from, and honest requests


def connect(pair: LivePair, role: int = 0, source: str = MINE, room: int | None = None) -> ssl.SSLSocket:
    """A connection, if wanted with little room for answers that are not read."""
    raw = socket.socket()
    raw.settimeout(60)
    if room is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    raw.bind((source, 0))
    raw.connect(("127.0.0.1", pair.ports[role]))
    return pair.context.wrap_socket(raw, server_hostname="127.0.0.1")


def upload_head(pair: LivePair, campaign: Campaign, length: str, token: str | None = None) -> bytes:
    """The head of an upload; `length` is the header about its length."""
    given = pair.upload_tokens[campaign.id] if token is None else token
    lines = [f"POST /v1/campaigns/{name(campaign)}/uploads HTTP/1.1", "Host: x", f"Authorization: Bearer {given}"]
    return "\r\n".join([*lines, f"Content-Type: {UPLOAD_TYPE}", length, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def answer(connection: ssl.SSLSocket) -> tuple[int, bytes]:
    """Status and body of the one answer that comes; all that have a length are read to their end."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = connection.recv(65536)
        if not part:
            return 0, b""
        text += part
    head, _, body = text.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(1 << 20)
    return int(head.split(b" ", 2)[1]), body


@contextmanager
def stalled(
    pair: LivePair, campaign: Campaign, length: str, rows: int = 10_000, count: int = 4, token: str | None = None
) -> Iterator[list[ssl.SSLSocket]]:
    """Uploads that begin and never go on: their envelope's header and the first key."""
    begin = long_begin(pair, campaign, rows)
    begin = chunk(begin) if length == CHUNKED else begin
    held: list[ssl.SSLSocket] = []
    try:
        for _ in range(count):
            held.append(connect(pair))
            held[-1].sendall(upload_head(pair, campaign, length, token) + begin)
        time.sleep(0.2)
        yield held
    finally:
        for connection in held:
            connection.close()


def long_begin(pair: LivePair, campaign: Campaign, rows: int, token: str | None = None) -> bytes:
    """How so many uploads begin as they travel: the header and the first one."""
    plain = _with_count(envelopes(campaign, np.arange(2))[0], rows)
    return seal_upload(campaign, 0, plain, token or pair.upload_tokens[campaign.id])[: sealed_bytes(campaign, 1)]


def numbered(campaign: Campaign, rows: int) -> bytes:
    """An envelope of so many uploads with the ids 0, 1 and so on, all with one new key: cheap to make."""
    one = envelopes(campaign, np.arange(1))[0]
    table = np.tile(np.frombuffer(one, np.uint8)[UPLOAD_HEADER_BYTES:], (rows, 1))
    table[:, :UPLOAD_ID_BYTES] = 0
    table[:, :8] = np.arange(rows, dtype="<u8")[:, None].view(np.uint8).reshape(rows, 8)
    made = _with_count(one, rows)[:UPLOAD_HEADER_BYTES] + table.tobytes()
    assert len(made) == upload_bytes(campaign, rows)
    return made


def announced(campaign: Campaign, rows: int) -> str:
    """The header about the length of so many uploads."""
    return f"Content-Length: {sealed_bytes(campaign, rows)}"


def _with_count(envelope: bytes, rows: int) -> bytes:
    """Another number of keys, and of people."""
    return envelope[:44] + rows.to_bytes(4, "little") + rows.to_bytes(8, "little") + envelope[56:]


def send(pair: LivePair, campaign: Campaign, envelope: bytes, source: str = MINE) -> tuple[int, int]:
    """Status and length of the answer to an upload; 0 where the server ended the connection."""
    return _send_sealed(pair, campaign, seal_upload(campaign, 0, envelope, pair.upload_tokens[campaign.id]), source)


def _send_sealed(pair: LivePair, campaign: Campaign, data: bytes, source: str = MINE) -> tuple[int, int]:
    with closing(connect(pair, source=source)) as connection, suppress(OSError):
        with suppress(OSError):  # the answer may be there although not all was sent
            connection.sendall(upload_head(pair, campaign, f"Content-Length: {len(data)}") + data)
        status, body = answer(connection)
        return status, len(body)
    return 0, 0


def resident_mb(pair: LivePair, role: int = 0) -> float:
    """What a server's process has in memory."""
    process = pair.processes[role]
    assert process is not None
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


@dataclass
class Honest:
    """What honest clients saw while something went on: statuses and the longest waits, in seconds."""

    statuses: set[int] = field(default_factory=set)
    healthz_max_s: float = 0.0
    upload_max_s: float = 0.0
    memory_mb: float = 0.0


def watch(pair: LivePair, campaign: Campaign, count: int = 100, source: str = OTHERS, pause: float = 0.01) -> Honest:
    """So many /healthz and as many uploads of one value, one after another over kept connections, each timed."""
    seen = Honest()
    token, path = pair.upload_tokens[campaign.id], f"/v1/campaigns/{name(campaign)}/uploads"
    bodies = [sealed_envelopes(campaign, np.array([i % 10]), token)[0] for i in range(count)]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": UPLOAD_TYPE}
    transport = httpx.HTTPTransport(verify=pair.context, local_address=source)
    with httpx.Client(base_url=pair.url(0), transport=transport, timeout=60) as client:
        for body in bodies:
            started = time.perf_counter()
            seen.statuses.add(client.get("/healthz").status_code)
            between = time.perf_counter()
            seen.statuses.add(client.post(path, content=body, headers=headers).status_code)
            ended = time.perf_counter()
            seen.healthz_max_s = max(seen.healthz_max_s, between - started)
            seen.upload_max_s = max(seen.upload_max_s, ended - between)
            seen.memory_mb = max(seen.memory_mb, resident_mb(pair))
            time.sleep(pause)
    return seen


@contextmanager
def flood(pair: LivePair, campaign: Campaign, bodies: Sequence[bytes]) -> Iterator[list[tuple[int, int]]]:
    """These uploads, each from a connection of its own, again and again until the block ends; answers so far."""
    answers: list[tuple[int, int]] = []
    stop = threading.Event()

    def work(data: bytes) -> None:
        while not stop.is_set():
            answers.append(_send_sealed(pair, campaign, data))

    token = pair.upload_tokens[campaign.id]
    sealed = [seal_upload(campaign, 0, body, token) for body in bodies]
    threads = [threading.Thread(target=work, args=(data,)) for data in sealed]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()
