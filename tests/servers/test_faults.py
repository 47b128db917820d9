"""Crashes, restarts and damage: nothing acknowledged is lost, and answers never change."""

import json
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.campaign.helpers import count_above
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import answering, filled, new_campaign, values
from tests.servers.test_answers import both_noises, true_curve
from tests.servers.test_damage import truncate

pytestmark = pytest.mark.faults

SEAL_POINTS = [
    (0, "seal-frozen-there"),
    (0, "seal-frozen-both"),
    (0, "seal-named-there"),
    (0, "seal-sealed-there"),
    (0, "seal-sealed-both"),
    (1, "peer-frozen"),
    (1, "peer-named"),
    (1, "peer-sealed"),
    (0, "keys-written"),
    (1, "keys-written"),
]


@pytest.mark.parametrize(("role", "point"), SEAL_POINTS)
@pytest.mark.parametrize("again_from", [0, 1])
def test_sealing_survives_a_crash_at_every_step(tmp_path: Path, role: int, point: str, again_from: int) -> None:
    pair = LivePair(tmp_path)
    pair.configure(role, crash_at=f'"{point}"')
    with pair:
        campaign, positions = filled(pair)
        pair.agree(campaign, 1)
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
            assert pair.ask(asked, campaign, "curve")["counts"] == raw[: campaign.variable.grid.size].tolist()


def test_answers_do_not_change_after_kills_and_restarts(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = answering(pair)
        first = pair.ask(0, campaign, "curve")
        for kill in (True, False):
            for role in (0, 1):
                pair.stop(role, kill=kill)
                pair.start(role)
            pair.wait_ready(campaign)
            for role in (0, 1):
                assert pair.ask(role, campaign, "curve") == first


def test_acknowledged_uploads_survive_a_kill(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        positions = campaign.to_positions(values(200)).positions
        data = envelopes(campaign, positions)
        for role in (0, 1):
            assert pair.upload(role, campaign, data[role]).status_code == 200
            pair.stop(role, kill=True)
            pair.start(role)
            assert pair.status(campaign, role)["uploads"] == 200
        assert pair.seal(campaign)["count"] == 200


def test_an_evaluation_resumes_where_it_stopped(tmp_path: Path) -> None:
    """A damaged progress file is ignored; a good one is used."""
    with LivePair(tmp_path) as pair:
        campaign = answering(pair)
        first = pair.ask(1, campaign, "curve")
        folder = pair.folder / "server1" / "data" / name(campaign)
        for change in (lambda p: None, truncate, lambda p: p.write_bytes(b"{}\n")):
            pair.stop(1)
            for release in folder.glob("release-*"):
                release.unlink()
            change(folder / "curve")
            pair.start(1)
            pair.wait_ready(campaign)
            assert pair.ask(1, campaign, "curve") == first


def test_two_queries_for_sums_cannot_take_each_others_budget(tmp_path: Path) -> None:
    """Different queries, one at each server, at once: one is answered, one refused, and both ledgers agree."""
    with LivePair(tmp_path) as pair:
        campaign = new_campaign(strata=["no", "yes"], reserve=1.0)
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(100))
        pair.seal(campaign)
        pair.wait_ready(campaign)

        def ask(role: int) -> int:
            with pair.analyst(role) as client:
                query = count_above(campaign, 0.3 + 0.1 * role, 1.0)
                return client.post(f"/v1/campaigns/{name(campaign)}/sums", json=query).status_code

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(ask, (0, 1))) == [200, 403]
        assert [pair.ask(role, campaign, "budget")["reserve_left"] for role in (0, 1)] == [0.0, 0.0]


def test_another_set_gets_other_noise(tmp_path: Path) -> None:
    """Two servers restored from before a seal, and one more upload: the two curves must not differ by that value."""
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        for role in (0, 1):
            pair.stop(role)
        shutil.copytree(pair.folder, tmp_path / "backup")
        curves = []
        for extra in (0, 1):
            for role in (0, 1):
                pair.start(role)
            if extra:
                pair.upload_values(campaign, np.array([42]))
            pair.seal(campaign)
            pair.wait_ready(campaign)
            curves.append(np.array(pair.ask(0, campaign, "curve")["counts"]))
            for role in (0, 1):
                pair.stop(role)
                data = pair.folder / f"server{role}" / "data"
                shutil.rmtree(data)
                shutil.copytree(tmp_path / "backup" / f"server{role}" / "data", data)
        difference = np.diff(curves[1] - curves[0])
        assert np.abs(difference).max() > 1
        assert (difference != 0).sum() > 20


def test_seals_from_both_sides_at_once_agree(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        with ThreadPoolExecutor(4) as pool:
            counts = [f["count"] for f in pool.map(lambda role: pair.seal(campaign, role), [0, 1, 0, 1])]
        assert counts == [60] * 4


def test_workers_do_not_outlive_their_server(tmp_path: Path) -> None:
    with LivePair(tmp_path, workers="2") as pair:
        campaign = answering(pair)
        for kill in (True, False):
            process = pair.processes[0]
            assert process is not None
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert children
            pair.stop(0, kill=kill)
            until = time.monotonic() + 30
            while any(_running(child) for child in children):
                assert time.monotonic() < until
                time.sleep(0.1)
            pair.start(0)
            pair.wait_ready(campaign)
            for path in (pair.folder / "server0" / "data" / name(campaign)).glob("curve"):
                path.unlink()
            pair.stop(0)
            pair.start(0)
            pair.wait_ready(campaign)


def _running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_locked_database_is_a_problem_document(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        db = sqlite3.connect(pair.folder / "server0" / "data" / "server.db", isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        response = pair.upload(0, campaign, envelopes(campaign, np.arange(3))[0])
        db.execute("ROLLBACK")
        db.close()
        assert response.status_code == 503
        assert response.json()["type"].endswith("storage-busy")
        assert int(response.headers["retry-after"]) > 0
        assert pair.upload(0, campaign, envelopes(campaign, np.arange(3))[0]).status_code == 200
        assert "Traceback" not in pair.log(0)


def test_failed_background_work_is_tried_again(tmp_path: Path) -> None:
    """Rows that are not the sealed ones are never evaluated; when they are back, so is the campaign."""
    with LivePair(tmp_path) as pair:
        campaign = answering(pair)
        first = pair.ask(0, campaign, "curve")
        pair.stop(0)
        folder = pair.folder / "server0" / "data" / name(campaign)
        shutil.rmtree(folder)
        with sqlite3.connect(pair.folder / "server0" / "data" / "server.db") as db:
            row = db.execute(
                "SELECT * FROM uploads WHERE campaign = (SELECT number FROM campaigns WHERE id = ?) LIMIT 1",
                (campaign.id,),
            ).fetchone()
            db.execute("DELETE FROM uploads WHERE number = ?", (row[0],))
        db.close()
        pair.start(0)
        until = time.monotonic() + 60
        while pair.status(campaign)["phase"] != "failed":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "newest backup" in pair.status(campaign)["problem"]
        with sqlite3.connect(pair.folder / "server0" / "data" / "server.db") as db:
            db.execute(f"INSERT INTO uploads VALUES ({', '.join('?' * len(row))})", row)
        db.close()
        pair.wait_ready(campaign)
        assert pair.ask(0, campaign, "curve") == first


def test_a_graceful_stop_finishes_what_it_acknowledged(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        acknowledged, stop = [], threading.Event()

        def keep_uploading() -> None:
            seed = 0
            while not stop.is_set():
                seed += 1
                try:
                    data = envelopes(campaign, campaign.to_positions(values(20, seed)).positions)[0]
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
