"""A server that lies while it runs is named afterwards, and the other one is not; keys that are gone prove nothing."""

import io
import json
import sqlite3
import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from fss import field
from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES, row_bytes
from fss_ecdf.campaign.campaign import Campaign
from servers.audit.verdict import EXIT_STATUS, HONEST, NOTHING, overall
from tests.harness.server_pair import LivePair, name
from tests.servers.audits import detail, digest_of, found, handed_over, status, wrong
from tests.servers.test_check import POSITIONS, forged, send
from tests.servers.waves import close, until_released, wave_campaign

pytestmark = pytest.mark.faults


def data_of(pair: LivePair, role: int, campaign: Campaign) -> Path:
    return pair.folder / f"server{role}" / "data" / name(campaign)


def checked_ids(pair: LivePair) -> list[bytes]:
    """In the order in which server 1's messages are."""
    with closing(sqlite3.connect(pair.folder / "server1" / "data" / "server.db")) as db:
        return [row[0] for row in db.execute("SELECT id FROM uploads WHERE wave = 1 ORDER BY id")]


def told_by_server_0(folder: Path, seconds: float = 60) -> field.Words:
    until = time.monotonic() + seconds
    while not (found := list(folder.glob("messages-*"))):
        assert time.monotonic() < until
        time.sleep(0.05)
    return np.frombuffer(found[0].read_bytes(), np.uint64, offset=32).reshape(-1, 3).T


def lie(folder: Path, theirs: field.Words, honest: int, bad: int) -> None:
    """Server 1 condemns an honest upload, and says of a bad one what makes it pass; its own sums follow its lies."""
    path = folder / "candidates-curve"
    head, body = path.read_bytes().split(b"\n", 1)
    stream = io.BytesIO(body)
    total, messages = np.load(stream), np.load(stream)
    messages[1, honest] = field.add(messages[1, honest : honest + 1], np.array([1], np.uint64))[0]
    messages[0, bad] = theirs[0, bad]
    messages[1:, bad] = field.neg(theirs[1:, bad])
    changed = io.BytesIO()
    for array in (total, messages):
        np.save(changed, array)
    about = {**json.loads(head), "sum": sha256(changed.getvalue()).hexdigest()}
    for told in folder.glob("messages-*"):
        told.unlink()
    path.write_bytes(json.dumps(about).encode() + b"\n" + changed.getvalue())


def test_a_server_that_lies_in_the_check_is_named(tmp_path: Path) -> None:
    """It has an honest upload rejected and keeps a bad one; both servers seal that set, and only an audit tells."""
    pair = LivePair(tmp_path)
    pair.configure(1, crash_at='"check-messages-saved"')
    with pair:
        campaign = wave_campaign(count=3, check_keys=True, grid=POSITIONS, pooled=[{"through": "end", "epsilon": 0.5}])
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(20))
        both = forged(campaign, "another payload")
        send(pair, campaign, both)
        close(pair, campaign, 1)
        assert pair.exited(1, 60) == 137
        ids = checked_ids(pair)
        size = row_bytes(campaign)
        starts = range(UPLOAD_HEADER_BYTES, len(both[0]), size)
        bad_ids = {both[0][start : start + UPLOAD_ID_BYTES] for start in starts}
        bad = next(place for place, upload_id in enumerate(ids) if upload_id in bad_ids)
        honest = next(place for place, upload_id in enumerate(ids) if upload_id not in bad_ids)
        theirs = told_by_server_0(data_of(pair, 0, campaign) / "wave-1")
        lie(data_of(pair, 1, campaign) / "wave-1", theirs, honest, bad)
        pair.drop(1, "crash_at")
        pair.start(1)
        until_released(pair, campaign, "wave 1")
        pair.ask(0, campaign, "curve", wave=1)
        assert pair.status(campaign)["waves"][0]["uploads"] == 20
        findings = found(handed_over(pair, campaign, tmp_path, 1), campaign)
        assert wrong(findings) == {"wave 1: check messages": 1, "wave 1: uploads that passed": 1}
        assert f"messages about 2 of {len(ids)} uploads differ" in detail(findings, "wave 1: check messages")
        assert "1 uploads passed and are not in the set" in detail(findings, "wave 1: uploads that passed")
        assert overall(found(handed_over(pair, campaign, tmp_path, 0), campaign)) == HONEST


def test_erased_keys_are_nothing_to_compare(tmp_path: Path) -> None:
    """Of a wave that is done with, nothing is left to compute from; the wave after it is audited."""
    with LivePair(tmp_path) as pair:
        campaign = wave_campaign(count=3, check_keys=True, grid=POSITIONS, pooled=[])
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(15))
        close(pair, campaign, 1)
        until_released(pair, campaign, "wave 1")
        folders = [data_of(pair, role, campaign) / "wave-1" for role in (0, 1)]
        until = time.monotonic() + 60
        while any(list(folder.glob("evidence-check-*")) for folder in folders):
            assert time.monotonic() < until
            time.sleep(0.1)
        for audited in (0, 1):
            handed = handed_over(pair, campaign, tmp_path / "one", audited)
            assert status(handed, digest_of(campaign)) == EXIT_STATUS[NOTHING]
        pair.upload_values(campaign, np.arange(15))
        close(pair, campaign, 2)
        until_released(pair, campaign, "wave 2")
        findings = found(handed_over(pair, campaign, tmp_path / "two"), campaign)
        nothing = [finding.what for finding in findings if finding.verdict == NOTHING]
        assert nothing == ["wave 1: set of uploads"]
        assert {finding.what for finding in findings if finding.numbers} >= {"wave 2: check messages"}
