"""A peer that is down, slow, lying, overtaken or somebody else: nothing is lost, and it is named."""

import http.client
import http.server
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from servers.lifecycle.id_tree import ENTRIES_AT_ONCE
from servers.lifecycle.seal_messages import Frozen, Step
from servers.rollback import HEADER
from servers.storage.entries import id_of, ids_in, set_checksum
from servers.storage.waves import FROZEN
from tests.harness.server_pair import LivePair, name
from tests.hostile import serving
from tests.servers.conftest import answering, filled
from tests.servers.rollbacks import lie

pytestmark = pytest.mark.faults


def test_a_peer_that_is_down_is_named_and_retried_later(tmp_path: Path) -> None:
    pair = LivePair(tmp_path, curve_bits="0")
    with pair:
        campaign = answering(pair)
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
    with LivePair(tmp_path) as pair:
        campaign = answering(pair)
        first = pair.ask(0, campaign, "curve")
        pair.stop(1)
        pair.stop(0)
        pair.start(0)
        until = time.monotonic() + 60
        while pair.status(campaign)["phase"] != "ready":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert pair.ask(0, campaign, "curve") == first


@contextmanager
def impostor(pair: LivePair, answer: Callable[[Any], None]) -> Iterator[None]:
    """Something else that listens at server 1's address, with its certificate."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _reply(self, 200, b"")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            answer(self)

        def log_message(self, *_: object) -> None: ...

    with serving(pair.folder / "server1", Handler, pair.ports[1]):
        yield


def _reply(handler: Any, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header(HEADER, lie(handler.headers.get(HEADER)))
    handler.end_headers()
    handler.wfile.write(body)


def test_slow_lying_and_foreign_peers(tmp_path: Path) -> None:
    pair = LivePair(tmp_path, curve_bits="0")
    with pair:
        campaign, _ = filled(pair)
        other, _ = filled(pair)
        pair.seal(campaign)
        pair.seal(other)
        pair.wait_ready(campaign)
        pair.wait_ready(other)
        pair.ask(0, campaign, "ecdf", at="0.9")  # so that server 1 has made its statement
        pair.stop(1)
        pair.stop(0)
        pair.configure(0, peer__timeout_s="3.0")
        pair.start(0)
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
        unsigned = bytes(64)
        assert problem(head + bytes(8) + unsigned) == (502, "invalid-peer-response")  # another set of uploads
        assert problem(head.replace(digest, foreign) + bytes(8) + unsigned) == (409, "digest-mismatch")
        assert problem(head + b"\xff" * 8 + unsigned) == (502, "invalid-peer-response")
        assert problem(b"nonsense") == (502, "invalid-peer-response")
        assert problem(b"<html>", 500) == (502, "invalid-peer-response")
        started = time.monotonic()
        with impostor(pair, lambda h: time.sleep(20)):
            response = ask()
        assert (response.status_code, time.monotonic() - started < 20) == (503, True)


def _drip(handler: Any) -> None:
    """An answer that never ends and never pauses long enough for a timeout of single reads."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    with suppress(OSError):
        for _ in range(160):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.25)


def test_a_dripping_peer_meets_a_deadline(tmp_path: Path) -> None:
    pair = LivePair(tmp_path, curve_bits="0", peer__timeout_s="3.0")
    with pair:
        campaign = answering(pair)
        pair.ask(0, campaign, "ecdf", at="0.9")
        pair.stop(1)
        started = time.monotonic()
        with impostor(pair, _drip), pair.analyst(0) as client:
            response = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
            taken = time.monotonic() - started
        assert (response.status_code, taken < 12) == (503, True)


@pytest.mark.parametrize(
    "reply", [b"<html>", b"[]", b"{}", b"[" * 100_000, b'{"count": 60, "checksum": 7, "unmatched": 0}']
)
def test_a_peer_that_answers_sealing_with_nonsense_seals_nothing(tmp_path: Path, reply: bytes) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.agree(campaign, 1)
        with pair.client(1, (pair.folder / "server0" / "peer.token").read_text().strip()) as client:
            listed = client.post(f"/v1/peer/campaigns/{name(campaign)}/freeze").content
        pair.stop(1)
        with (
            impostor(pair, lambda h: _reply(h, 200, listed if "/freeze" in h.path else reply)),
            pair.operator(0) as client,
        ):
            response = client.post(f"/v1/campaigns/{name(campaign)}/seal")
        assert (response.status_code, response.json()["type"].rsplit(":", 1)[1]) == (502, "invalid-peer-response")
        pair.start(1)
        assert pair.status(campaign)["state"] == "frozen"
        assert pair.seal(campaign)["count"] == 60


def test_a_peer_that_lists_more_than_it_has_is_not_listened_to(tmp_path: Path) -> None:
    """Part after part, each in order and behind the last one: without an end."""
    asked: list[str] = []

    def answer(handler: Any) -> None:
        asked.append(handler.path)
        if "/freeze" in handler.path:
            _reply(handler, 200, Frozen(FROZEN, 1, campaign.digest, 70).encode())
        else:
            first = len(asked) * ENTRIES_AT_ONCE
            entries = (i.to_bytes(16, "big") + bytes(32) for i in range(first, first + ENTRIES_AT_ONCE))
            _reply(handler, 200, b"".join(entries))

    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.agree(campaign, 1)
        pair.stop(1)
        with impostor(pair, answer), pair.operator(0) as client:
            response = client.post(f"/v1/campaigns/{name(campaign)}/seal")
        assert (response.status_code, response.json()["type"].rsplit(":", 1)[1]) == (502, "invalid-peer-response")
        assert [path.rsplit("/", 1)[1] for path in asked] == ["freeze?wave=0", "ids?wave=0"]
        pair.start(1)


def test_a_peer_with_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    pair, stranger = LivePair(tmp_path, curve_bits="0"), LivePair(tmp_path / "stranger")
    with pair:
        campaign = answering(pair)
        pair.stop(1)
        for file in ("cert.pem", "key.pem"):
            shutil.copy(stranger.folder / "server1" / file, pair.folder / "server1" / file)
        with impostor(pair, lambda h: _reply(h, 200, b"")), pair.analyst(0) as client:
            response = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
        assert response.status_code == 503
        assert "ConnectError" in response.json()["detail"]


def peer_call(pair: LivePair, campaign: Campaign, what: str, body: bytes = b"") -> httpx.Response:
    """A request that server 1's operator could send to server 0."""
    token = (pair.folder / "server1" / "peer.token").read_text().strip()
    with pair.client(0, token) as client:
        return client.post(f"/v1/peer/campaigns/{name(campaign)}/{what}", content=body)


def stored_entries(pair: LivePair, campaign: Campaign, role: int) -> list[bytes]:
    stored = "SELECT u.id, u.leaf FROM uploads u JOIN campaigns c ON c.number = u.campaign WHERE c.id = ? ORDER BY u.id"
    with closing(sqlite3.connect(pair.folder / f"server{role}" / "data" / "server.db")) as db:
        return [b"".join(row) for row in db.execute(stored, (campaign.id,))]


def leave_and_agree(
    pair: LivePair, campaign: Campaign, frozen: Frozen, entries: Sequence[bytes], leave: Sequence[bytes]
) -> dict[str, Any]:
    """What server 1 could say to server 0: leave these out, and seal the rest."""
    rest = set_checksum(b"".join(entry for entry in entries if entry not in set(leave)))
    if leave:
        step = Step(frozen.freeze, campaign.digest, rest, ids_in(b"".join(leave)))
        assert peer_call(pair, campaign, "exclude", step.encode()).json() == {"named": len(leave)}
    reply: dict[str, Any] = peer_call(
        pair, campaign, "agree", Step(frozen.freeze, campaign.digest, rest).encode()
    ).json()
    return reply


def test_a_malicious_peer_cannot_seal_fewer_than_promised(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.agree(campaign, 0)
        frozen = Frozen.decode(peer_call(pair, campaign, "freeze").content)
        entries = stored_entries(pair, campaign, 0)
        for kept in (0, 1):
            assert leave_and_agree(pair, campaign, frozen, entries, entries[kept:])["type"].endswith("too-few-uploads")
        assert pair.status(campaign)["uploads"] == 63


def test_a_seal_that_was_overtaken_cannot_erase_later_uploads(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.agree(campaign, 0)
        old = Frozen.decode(peer_call(pair, campaign, "freeze").content)
        entries = stored_entries(pair, campaign, 0)
        stale = Step(old.freeze, campaign.digest, set_checksum(b"".join(entries)), id_of(entries[0]))
        assert peer_call(pair, campaign, "unfreeze", Step(old.freeze, campaign.digest).encode()).status_code == 200
        pair.upload_values(campaign, np.array([7]))
        assert peer_call(pair, campaign, "freeze").json()["type"].endswith("agreement-pending")
        pair.agree(campaign, 0)
        new = Frozen.decode(peer_call(pair, campaign, "freeze").content)
        assert new.freeze == old.freeze + 1
        for what in ("exclude", "agree", "unfreeze"):
            refused = peer_call(pair, campaign, what, stale.encode())
            assert refused.json()["type"].endswith("campaign-sealed")
        assert pair.seal(campaign)["count"] == 61
