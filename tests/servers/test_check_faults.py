"""The check of keys under crashes, restores and a server with another secret: one challenge, one end."""

import json
import shutil
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair, name
from tests.servers.rollbacks import forget
from tests.servers.test_check import ask_peer, checked, exact_curve, forged, seed, send, true_curve

pytestmark = pytest.mark.faults

POINTS = [
    "check-files-written",
    "check-seeds-exchanged",
    "check-messages-saved",
    "check-decided",
    "check-settled",
    "keys-written",
]
HONEST = np.arange(25)


def filled(pair: LivePair, **changes: object) -> Campaign:
    campaign = checked(pair, **changes)
    pair.upload_values(campaign, HONEST)
    send(pair, campaign, forged(campaign, "another payload"))
    return campaign


def sealed_rightly(pair: LivePair, campaign: Campaign) -> None:
    for status in pair.wait_checked(campaign):
        assert (status["state"], status["sealed_uploads"], status["rejected"]) == ("sealed", HONEST.size, 30)
    pair.wait_ready(campaign)
    assert np.array_equal(exact_curve(pair, campaign), true_curve(campaign, HONEST))
    assert pair.ask(0, campaign, "curve") == pair.ask(1, campaign, "curve")


def revive_both(pair: LivePair, seconds: float = 90) -> None:
    """Each server crashes once, in either order, and is started again without its hook."""
    until, alive = time.monotonic() + seconds, {0, 1}
    while alive:
        assert time.monotonic() < until, alive
        for role in sorted(alive):
            process = pair.processes[role]
            if process is not None and process.poll() is not None:
                assert pair.exited(role) == 137
                pair.drop(role, "crash_at")
                pair.start(role)
                alive.remove(role)
        time.sleep(0.05)


@pytest.mark.parametrize("point", POINTS)
def test_the_check_survives_a_crash_at_every_step(tmp_path: Path, point: str) -> None:
    """Of both servers at the same step, whichever comes to it first."""
    pair = LivePair(tmp_path)
    for role in (0, 1):
        pair.configure(role, crash_at=f'"{point}"')
    with pair:
        campaign = filled(pair)
        pair.seal(campaign)
        revive_both(pair)
        sealed_rightly(pair, campaign)


@pytest.mark.parametrize("point", ["check-decided", "check-settled"])
def test_too_few_that_passed_survive_a_crash(tmp_path: Path, point: str) -> None:
    pair = LivePair(tmp_path)
    pair.configure(1, crash_at=f'"{point}"')
    with pair:
        campaign = filled(pair, min_uploads=40)
        pair.seal(campaign)
        assert pair.exited(1, 60) == 137
        pair.drop(1, "crash_at")
        pair.start(1)
        both = pair.wait_checked(campaign)
        assert [(s["state"], s["uploads"], s["rejected"]) for s in both] == [("sealed", HONEST.size, 30)] * 2
        assert [s["too_few"] for s in both] == [True, True]


def restored(pair: LivePair, role: int, copy: Path) -> None:
    pair.stop(role)
    shutil.rmtree(pair.folder / f"server{role}" / "data")
    shutil.copytree(copy, pair.folder / f"server{role}" / "data")
    forget(pair, 1 - role)
    pair.start(role)


def backup(pair: LivePair, role: int) -> Path:
    copy = pair.folder / f"backup{role}"
    pair.stop(role)
    shutil.copytree(pair.folder / f"server{role}" / "data", copy)
    pair.start(role)
    return copy


def messages(pair: LivePair, campaign: Campaign, checksum: str, count: int) -> bytes:
    answer = ask_peer(pair, 0, campaign, "messages", checksum=checksum, start=0, stop=count)
    assert answer.status_code == 200, answer.text
    return bytes(answer.content)


def test_a_restored_server_checks_with_the_same_challenge(tmp_path: Path) -> None:
    """Server 0 is restored to before the sealing; the key meets the same challenge again, and nothing new is told."""
    with LivePair(tmp_path) as pair:
        campaign = checked(pair)
        pair.upload_values(campaign, HONEST)
        copy = backup(pair, 0)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        checksum = pair.status(campaign)["checksum"]
        first = messages(pair, campaign, checksum, HONEST.size)
        restored(pair, 0, copy)
        assert pair.status(campaign)["state"] == "open"
        pair.seal(campaign)
        pair.wait_checked(campaign)
        pair.wait_ready(campaign)
        assert messages(pair, campaign, checksum, HONEST.size) == first
        assert np.array_equal(exact_curve(pair, campaign), true_curve(campaign, HONEST))


def test_a_server_that_lost_its_secret_refuses(tmp_path: Path) -> None:
    """With another one it would answer a second challenge about the same keys; the campaign's commitment forbids it."""
    with LivePair(tmp_path) as pair:
        campaign = checked(pair)
        pair.upload_values(campaign, HONEST)
        path = pair.folder / "server0" / "identity.secret"
        old = path.read_text()
        pair.stop(0)
        path.write_text("ab" * 32)
        pair.start(0)
        pair.seal(campaign)
        told = ask_peer(pair, 0, campaign, "challenge", seed=seed(1, campaign))
        assert (told.status_code, told.json()["type"].rsplit(":")[-1]) == (409, "challenge-mismatch")
        while pair.status(campaign).get("phase") != "failed":
            time.sleep(0.05)
        assert "restore its identity file" in pair.status(campaign)["problem"]
        assert pair.status(campaign, 1)["state"] == "checking"
        pair.stop(0)
        path.write_text(old)
        pair.start(0)
        pair.wait_checked(campaign)
        pair.wait_ready(campaign)
        assert np.array_equal(exact_curve(pair, campaign), true_curve(campaign, HONEST))


def test_damaged_proofs_condemn_nobody(tmp_path: Path) -> None:
    """The files are made again from the database where they are not what was written."""
    pair = LivePair(tmp_path)
    pair.configure(0, crash_at='"check-files-written"')
    with pair:
        campaign = filled(pair)
        pair.seal(campaign)
        assert pair.exited(0, 60) == 137
        proofs = pair.folder / "server0" / "data" / name(campaign) / "proofs"
        data = bytearray(proofs.read_bytes())
        data[1000] ^= 1
        proofs.write_bytes(bytes(data))
        pair.drop(0, "crash_at")
        pair.start(0)
        sealed_rightly(pair, campaign)


def test_a_server_that_lies_about_keys_erases_nothing_for_good(tmp_path: Path) -> None:
    """Server 1 sends a message that condemns somebody: server 0 keeps the upload until its operator confirms."""
    with LivePair(tmp_path) as pair:
        campaign = checked(pair, min_uploads=5)
        pair.upload_values(campaign, HONEST)
        pair.configure(1, crash_at='"check-messages-saved"')
        pair.stop(1)
        pair.start(1)
        pair.seal(campaign)
        assert pair.exited(1, 60) == 137
        folder = pair.folder / "server1" / "data" / name(campaign)
        curve = folder / "candidates-curve"
        head, body = curve.read_bytes().split(b"\n", 1)
        assert json.loads(head)["done"] == [0]
        wrong = bytearray(body)
        wrong[-24 * 5] ^= 1  # the last of three rows of messages
        about = {**json.loads(head), "sum": sha256(bytes(wrong)).hexdigest()}
        for told in folder.glob("messages-*"):
            told.unlink()
        curve.write_bytes(json.dumps(about).encode() + b"\n" + bytes(wrong))
        pair.drop(1, "crash_at")
        pair.start(1)
        both = pair.wait_checked(campaign)
        assert [(s["state"], s["sealed_uploads"], s["rejected"], s["excluded_stored"]) for s in both] == [
            ("sealed", 24, 1, 1)
        ] * 2
