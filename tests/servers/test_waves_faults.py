"""Waves under crashes, wrong clocks, restores and a curious peer; and their keys, which go when nothing needs them."""

import shutil
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import TIME_FORMAT, Campaign, to_base64url
from fss_ecdf.net.server_identity import Identity
from tests.harness.server_pair import IDENTITIES, LivePair, envelopes, name
from tests.servers.conftest import values
from tests.servers.rollbacks import forget
from tests.servers.test_check import ask_peer
from tests.servers.waves import close, until_released, wave_campaign, waves_of

pytestmark = pytest.mark.faults

POINTS = ["seal-frozen-there", "seal-frozen-both", "seal-sealed-there", "seal-sealed-both"]


def sent(pair: LivePair, campaign: Campaign, count: int, seed: int) -> int:
    pair.upload_values(campaign, campaign.to_positions(values(count, seed)).positions)
    return count


@pytest.mark.parametrize("point", POINTS)
def test_a_wave_survives_a_crash_at_every_step_of_its_closing(tmp_path: Path, point: str) -> None:
    """Uploads that come in between are in the next wave, everybody counts once, and both servers have the same sets."""
    pair = LivePair(tmp_path)
    pair.configure(0, crash_at=f'"{point}"')
    with pair:
        campaign = wave_campaign(count=2, pooled=[{"through": "end", "epsilon": 1.0}])
        pair.create(campaign)
        total = sent(pair, campaign, 20, 1)
        with pair.operator(1) as client:
            client.post(f"/v1/campaigns/{name(campaign)}/seal", params={"wave": 1})
        with pair.operator(0) as client, pytest.raises(Exception, match=r".*"):
            client.post(f"/v1/campaigns/{name(campaign)}/seal", params={"wave": 1})
        assert pair.exited(0) == 137
        late = envelopes(campaign, np.arange(12), wave=2)  # what server 1 has open; server 0 takes it as the next one
        assert pair.upload(1, campaign, late[1]).json()["failures"] == []  # server 1 goes on taking uploads
        pair.drop(0, "crash_at")
        pair.start(0)
        assert pair.upload(0, campaign, late[0]).json()["failures"] == []
        close(pair, campaign, 1)
        close(pair, campaign, 2)
        until_released(pair, campaign, "pooled 2")
        assert pair.ask(0, campaign, "curve", pooled=2)["n"] == total + 12
        both = [[(w["uploads"], w["checksum"]) for w in pair.status(campaign, role)["waves"]] for role in (0, 1)]
        assert both[0] == both[1]
        assert pair.ask(0, campaign, "curve", wave=1) == pair.ask(1, campaign, "curve", wave=1)


def test_a_wave_closes_when_both_clocks_say_so(tmp_path: Path) -> None:
    """Server 1's clock is an hour behind: server 0 asks and is refused, and uploads go on in wave 1 at both."""
    pair = LivePair(tmp_path)
    pair.configure(1, clock_file='"clock"')
    wrong = pair.folder / "server1" / "clock"
    wrong.write_text("-3600")
    with pair:
        opens = (datetime.now(UTC) - timedelta(weeks=1, minutes=1)).strftime(TIME_FORMAT)
        campaign = wave_campaign(every="week", count=3, pooled=[], opens=opens)
        pair.create(campaign)
        sent(pair, campaign, 15, 1)
        time.sleep(5)
        assert [len(waves_of(pair, campaign, role)["waves"]) for role in (0, 1)] == [1, 1]
        with pair.operator(0) as client:
            refused = client.post(f"/v1/campaigns/{name(campaign)}/seal", params={"wave": 1})
        assert refused.json()["type"].endswith("agreement-pending")
        sent(pair, campaign, 5, 2)
        wrong.write_text("0")
        until_released(pair, campaign, "wave 1")
        assert pair.ask(1, campaign, "curve", wave=1)["n"] == 20


def test_a_restore_between_waves_brings_the_same_wave_again(tmp_path: Path) -> None:
    """Server 0 is put back to before wave 1 closed, and more is uploaded: wave 1 stays what server 1 has sealed."""
    with LivePair(tmp_path) as pair:
        campaign = wave_campaign(count=3, pooled=[{"through": 2, "epsilon": 1.0}], check_keys=True)
        pair.create(campaign)
        sent(pair, campaign, 20, 1)
        copy, data = tmp_path / "copy", pair.folder / "server0" / "data"
        pair.stop(0)
        shutil.copytree(data, copy)
        pair.start(0)
        close(pair, campaign, 1)
        until_released(pair, campaign, "wave 1")
        first = pair.ask(0, campaign, "curve", wave=1)
        pair.stop(0)
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        forget(pair, 1)
        pair.start(0)
        sent(pair, campaign, 11, 2)  # in wave 1 at server 0, in wave 2 at server 1
        close(pair, campaign, 1)
        until_released(pair, campaign, "wave 1")
        assert pair.ask(0, campaign, "curve", wave=1) == first
        close(pair, campaign, 2)
        until_released(pair, campaign, "pooled 2")
        assert pair.ask(1, campaign, "curve", wave=2)["n"] == 11
        assert pair.ask(0, campaign, "curve", pooled=2)["n"] == 31


def test_an_open_wave_s_challenge_is_told_to_nobody(pair: LivePair) -> None:
    """What a server, and parties who work with it, know after wave 1 says nothing about the challenge of wave 2."""
    campaign = wave_campaign(count=2, pooled=[], check_keys=True)
    pair.create(campaign)
    sent(pair, campaign, 15, 1)
    close(pair, campaign, 1)
    until_released(pair, campaign, "wave 1")
    identity = Identity(IDENTITIES[1], 1)
    seeds = {wave: to_base64url(identity.check_seed(campaign, wave)) for wave in (1, 2)}

    def asked(wave: int, seed: str) -> str:
        answer = ask_peer(pair, 0, campaign, f"challenge?wave={wave}", seed=seed).json()
        return str(answer.get("type", "told")).rpartition(":")[2]

    assert asked(1, seeds[1]) == "told"
    assert asked(1, seeds[2]) == "challenge-mismatch"
    assert asked(2, seeds[2]) == "not-ready"  # uploads are taken
    assert asked(2, seeds[1]) == "not-ready"
    close(pair, campaign, 2)
    assert asked(2, seeds[1]) == "challenge-mismatch"  # what is known of wave 1 does not open wave 2


def test_keys_go_after_the_last_release_and_answers_stay(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = wave_campaign(count=3, pooled=[{"through": 2, "epsilon": 1.0}], check_keys=True)
        pair.create(campaign)
        first = envelopes(campaign, np.arange(15))
        for role in (0, 1):
            pair.upload(role, campaign, first[role])
        close(pair, campaign, 1)
        until_released(pair, campaign, "wave 1")
        time.sleep(6)
        assert _key_bytes(pair, campaign, 1) > 15 * 100  # the pool will need them
        sent(pair, campaign, 12, 2)
        close(pair, campaign, 2)
        until_released(pair, campaign, "pooled 2")
        before = pair.ask(0, campaign, "curve", wave=1), pair.ask(1, campaign, "curve", pooled=2)
        until = time.monotonic() + 40
        while any(_key_bytes(pair, campaign, wave, role) for wave in (1, 2) for role in (0, 1)):
            assert time.monotonic() < until
            time.sleep(0.2)
        for role in (0, 1):
            folder = pair.folder / f"server{role}" / "data" / name(campaign)
            assert not [path for path in folder.rglob("*") if path.name in ("keys", "curve", "proofs", "candidates")]
            pair.stop(role)
            pair.start(role)
        assert pair.upload(0, campaign, first[0]).json()["failures"] == []  # a retry is answered like the first
        other = first[0][:-8] + bytes(8)
        assert "upload-conflict" in pair.upload(0, campaign, other).text
        assert (pair.ask(0, campaign, "curve", wave=1), pair.ask(1, campaign, "curve", pooled=2)) == before
        until_released(pair, campaign, "pooled 2")
        sent(pair, campaign, 10, 3)
        assert close(pair, campaign, 3)["count"] == 10


def _key_bytes(pair: LivePair, campaign: Campaign, wave: int, role: int = 0) -> int:
    """How many bytes of keys a server has of a wave; hashes in their place do not count."""
    with closing(sqlite3.connect(pair.folder / f"server{role}" / "data" / "server.db")) as db:
        query = (
            "SELECT sum(length(key)) FROM uploads u JOIN campaigns c ON c.number = u.campaign "
            "WHERE c.id = ? AND wave = ? AND length(key) > 32"
        )
        return int(db.execute(query, (campaign.id, wave)).fetchone()[0] or 0)
