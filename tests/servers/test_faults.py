"""Crashes, restarts and bad peers: nothing acknowledged is lost, answers never change, errors say whose fault it is."""

import http.server
import json
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from campaign.spec import Campaign
from tests.live import Pair, envelopes, name
from tests.servers.conftest import new_campaign, values
from tests.servers.test_answers import both_noises, true_curve

SEAL_POINTS = [
    (0, "seal-frozen-here"),
    (0, "seal-frozen-both"),
    (0, "seal-sealed-there"),
    (0, "seal-sealed-both"),
    (1, "peer-frozen"),
    (1, "peer-sealed"),
    (0, "keys-written"),
    (1, "keys-written"),
]


def filled(pair: Pair, count: int = 60) -> tuple[Campaign, np.ndarray[Any, Any]]:
    """A campaign with uploads at both servers and some at one only."""
    campaign = new_campaign()
    positions = campaign.place(values(count)).positions
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    pair.upload(0, campaign, envelopes(campaign, np.arange(3))[0])
    pair.upload(1, campaign, envelopes(campaign, np.arange(2))[1])
    return campaign, positions


@pytest.mark.parametrize(("role", "point"), SEAL_POINTS)
@pytest.mark.parametrize("again_from", [0, 1])
def test_sealing_survives_a_crash_at_every_step(tmp_path: Path, role: int, point: str, again_from: int) -> None:
    pair = Pair(tmp_path)
    pair.configure(role, crash_at=f'"{point}"')
    with pair:
        campaign, positions = filled(pair)
        with pair.operator(0) as client, suppress(httpx.HTTPError):
            client.post(f"/v1/campaigns/{name(campaign)}/seal")
        assert pair.exited(role) == 137
        pair.drop(role, "crash_at")
        pair.start(role)
        assert pair.seal(campaign, role=again_from)["count"] == 60
        assert pair.seal(campaign, role=1 - again_from)["count"] == 60
        pair.wait_ready(campaign)
        raw = true_curve(campaign, positions) + both_noises(pair, campaign)
        for asked in (0, 1):
            assert pair.ask(asked, campaign, "curve")["counts"] == raw[: campaign.grid.size].tolist()


def test_answers_do_not_change_after_kills_and_restarts(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        first = pair.ask(0, campaign, "curve")
        for kill in (True, False):
            for role in (0, 1):
                pair.stop(role, kill=kill)
                pair.start(role)
            pair.wait_ready(campaign)
            for role in (0, 1):
                assert pair.ask(role, campaign, "curve") == first


def test_acknowledged_uploads_survive_a_kill(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        positions = campaign.place(values(200)).positions
        data = envelopes(campaign, positions)
        for role in (0, 1):
            assert pair.upload(role, campaign, data[role]).status_code == 200
            pair.stop(role, kill=True)
            pair.start(role)
            assert pair.status(campaign, role)["uploads"] == 200
        assert pair.seal(campaign)["count"] == 200


def test_a_damaged_or_missing_key_file_is_made_again(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        first = pair.ask(0, campaign, "curve")
        folder = pair.folder / "server0" / "data" / name(campaign)
        for damage in (_flip_byte, Path.unlink, _truncate):
            pair.stop(0)
            damage(folder / "keys")
            for other in ("curve", "release.npy"):
                (folder / other).unlink(missing_ok=True)
            pair.start(0)
            pair.wait_ready(campaign)
            assert pair.ask(0, campaign, "curve") == first
        assert any(e["event"] == "key-file-damaged" for e in pair.events(0))


def _flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_an_evaluation_resumes_where_it_stopped(tmp_path: Path) -> None:
    """A damaged progress file is ignored; a good one is used."""
    with Pair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        first = pair.ask(1, campaign, "curve")
        folder = pair.folder / "server1" / "data" / name(campaign)
        for change in (lambda p: None, _truncate, lambda p: p.write_bytes(b"{}\n")):
            pair.stop(1)
            (folder / "release.npy").unlink(missing_ok=True)
            change(folder / "curve")
            pair.start(1)
            pair.wait_ready(campaign)
            assert pair.ask(1, campaign, "curve") == first


def test_a_peer_that_is_down_is_named_and_retried_later(tmp_path: Path) -> None:
    pair = Pair(tmp_path, curve_bits="0")
    with pair:
        campaign, _ = filled(pair)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        first = pair.ask(0, campaign, "ecdf", at="0.3,0.6")
        pair.stop(1)
        with pair.analyst(0) as client:
            response = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
        assert response.status_code == 503
        assert response.json()["type"].endswith("peer-unavailable")
        assert int(response.headers["retry-after"]) > 0
        assert pair.status(campaign)["peer"]["problem"] == "peer-unavailable"
        pair.start(1)
        assert pair.ask(0, campaign, "ecdf", at="0.3,0.6") == first


def test_a_published_curve_needs_the_peer_no_more(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        first = pair.ask(0, campaign, "curve")
        pair.stop(1)
        pair.stop(0)
        pair.start(0)
        while pair.status(campaign)["phase"] != "ready":
            time.sleep(0.05)
        assert pair.ask(0, campaign, "curve") == first


@contextmanager
def impostor(pair: Pair, answer: Callable[[Any], None]) -> Iterator[None]:
    """Something else that listens at server 1's address, with its certificate."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            answer(self)

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", pair.ports[1]), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.folder / "server1" / "cert.pem", pair.folder / "server1" / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _reply(handler: Any, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_slow_lying_and_foreign_peers(tmp_path: Path) -> None:
    pair = Pair(tmp_path, curve_bits="0", peer__timeout_s="1.0")
    with pair:
        campaign, _ = filled(pair)
        other, _ = filled(pair)
        pair.seal(campaign)
        pair.seal(other)
        pair.wait_ready(campaign)
        pair.wait_ready(other)
        pair.stop(1)
        path = f"/v1/campaigns/{name(campaign)}/ecdf"

        def ask() -> Any:
            with pair.analyst(0) as client:
                return client.get(path, params={"at": "0.3"})

        def problem(body: bytes, status: int = 200) -> tuple[int, str]:
            with impostor(pair, lambda h: _reply(h, status, body)):
                response = ask()
            return response.status_code, str(response.json()["type"]).rsplit(":", 1)[1]

        digest, foreign = campaign.digest, other.digest
        head = b"FSSS\1\1\0\0" + digest + bytes(32) + (60).to_bytes(8, "little") + (1).to_bytes(8, "little")
        assert problem(head + bytes(8)) == (502, "peer-mismatch")  # another set of uploads
        assert problem(head.replace(digest, foreign) + bytes(8)) == (409, "digest-mismatch")
        assert problem(head + b"\xff" * 8) == (502, "peer-mismatch")
        assert problem(b"nonsense") == (502, "peer-mismatch")
        assert problem(b"<html>", 500) == (502, "peer-mismatch")
        started = time.monotonic()
        with impostor(pair, lambda h: time.sleep(3)):
            response = ask()
        assert (response.status_code, time.monotonic() - started < 3) == (503, True)


def test_a_peer_with_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    pair, stranger = Pair(tmp_path, curve_bits="0"), Pair(tmp_path / "stranger")
    with pair:
        campaign, _ = filled(pair)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        pair.stop(1)
        for file in ("cert.pem", "key.pem"):
            shutil.copy(stranger.folder / "server1" / file, pair.folder / "server1" / file)
        with impostor(pair, lambda h: _reply(h, 200, b"")), pair.analyst(0) as client:
            response = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
        assert response.status_code == 503
        assert "ConnectError" in response.json()["detail"]


def test_a_graceful_stop_finishes_what_it_acknowledged(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        acknowledged, stop = [], threading.Event()

        def keep_uploading() -> None:
            seed = 0
            while not stop.is_set():
                seed += 1
                try:
                    data = envelopes(campaign, campaign.place(values(20, seed)).positions)[0]
                    if pair.upload(0, campaign, data).status_code == 200:
                        acknowledged.append(20)
                except Exception:
                    return

        threads = [threading.Thread(target=keep_uploading) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        pair.stop(0)
        stop.set()
        for thread in threads:
            thread.join()
        pair.start(0)
        assert acknowledged
        assert pair.status(campaign)["uploads"] >= sum(acknowledged)
        assert json.dumps(pair.events(0)[-1])
