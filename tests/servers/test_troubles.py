"""What does not go on is said: in status, in the log, and as numbers that can be watched."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.status import Status
from fss_ecdf.operators.next_steps import next_step, typed
from servers.lifecycle.overseer import Overseer
from servers.storage.jobs import FAILED, READY, Job
from servers.storage.storage import Storage
from servers.storage.troubles import FAILS, FROZEN, NOT_SEALED, WAITS
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import filled, fixed, new_campaign


def kinds(storage: Storage) -> list[str]:
    return [one.kind for one in storage.troubles.all()]


def test_a_wave_that_stays_frozen_is_trouble_until_it_is_fixed_or_open(storage: Storage) -> None:
    campaign = new_campaign()
    storage.campaigns.add(campaign, "0" * 64, [])
    assert storage.troubles.look(100.0) == []
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freeze_number
    assert [one.kind for one in storage.troubles.look(100.0)] == [FROZEN]
    assert storage.troubles.look(200.0) == []
    assert [one.since for one in storage.troubles.all(campaign.id)] == [100.0]
    storage.waves.unfreeze(campaign.id, freeze)
    storage.troubles.look(300.0)
    assert kinds(storage) == []


def test_a_job_is_in_trouble_until_it_is_done_however_often_it_is_tried(storage: Storage) -> None:
    campaign, _, _ = fixed(storage)
    for phase, problem, expected in (
        (FAILED, "the disk is full", [FAILS]),
        ("waiting", None, [FAILS]),  # it is tried again
        (WAITS, None, [FAILS, WAITS]),
        (FAILED, "it is still full", [FAILS, WAITS]),
        (READY, None, []),
    ):
        assert storage.jobs.take("me", now=9.0, until=9.0) is not None
        assert storage.jobs.note(Job(campaign.id, 0, phase, 0.0, problem), "me", 0.0)
        storage.troubles.look(100.0)
        assert sorted(kinds(storage)) == sorted(expected), phase
        if problem:
            assert problem in [one.detail for one in storage.troubles.all()]


def test_why_a_wave_was_not_sealed_is_kept_until_it_is(storage: Storage) -> None:
    campaign, _, _ = fixed(storage)
    storage.troubles.note(campaign.id, 0, "the other server does not answer", 1.0)
    storage.troubles.note(campaign.id, 0, "its clock is wrong\0", 2.0)
    assert [(one.kind, one.since, one.detail) for one in storage.troubles.all()] == [
        (NOT_SEALED, 1.0, "its clock is wrong")
    ]
    storage.troubles.look(3.0)
    assert kinds(storage) == []


def test_trouble_is_logged_once_and_so_is_its_end(storage: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    campaign, _, _ = fixed(storage)
    overseer = Overseer(storage)
    assert storage.jobs.take("me", now=9.0, until=9.0) is not None
    for phase, problem in ((FAILED, "the disk is full"), (FAILED, "the disk is full"), (READY, None)):
        assert storage.jobs.note(Job(campaign.id, 0, phase, 0.0, problem), "me", 0.0)
        overseer.look()
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(one["event"], one["of"]) for one in said] == [("trouble", FAILS), ("trouble-over", FAILS)]
    assert said[0]["detail"] == "the disk is full"


def samples(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_states_and_troubles_are_numbers(pair: LivePair) -> None:
    """Of what has not happened yet, too: an alert compares with what was before."""
    filled(pair)
    found = samples(pair.metrics(0))
    assert found["fss_waves", "open"] >= 1
    assert (found["fss_jobs", "failed"], found["fss_excluded", ""]) == (0, 0)
    assert found["fss_trouble_seconds", "frozen"] == 0
    assert ("fss_refusals_total", "storage-full") in found
    assert ("fss_refusals_total", "on-hold") in found


def test_what_a_sealing_excludes_is_logged_by_both_servers(pair: LivePair) -> None:
    campaign, _ = filled(pair)
    pair.seal(campaign)
    for role, unmatched in ((0, 3), (1, 2)):
        fixed_here = [one for one in pair.events(role) if one["event"] == "set-fixed"]
        (said,) = [one for one in fixed_here if one["campaign"] == name(campaign)]
        assert (said["count"], said["unmatched"], said["wave"]) == (60, unmatched, 0)


def test_status_says_why_a_job_failed(tmp_path: Path) -> None:
    """Keys in the database that are not those which were sealed, as after a fault of the disk."""
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        pair.stop(0)
        pair.start(0)
        with closing(sqlite3.connect(pair.folder / "server0" / "data" / "server.db", timeout=20)) as db:
            db.execute("CREATE TRIGGER damage AFTER INSERT ON jobs BEGIN UPDATE uploads SET key = x'00'; END")
            db.commit()
        pair.seal(campaign)
        status = _until(pair, campaign)
        (trouble,) = [one for one in status["troubles"] if one["what"] == FAILS]
        assert trouble["detail"]
        assert trouble["since"].endswith("Z")
        assert trouble["detail"][:40] in next_step(read(Status, {**status, "peer": status}), typed(name(campaign)))
        assert [one["of"] for one in pair.events(0) if one["event"] == "trouble"] == [FAILS]
        assert next(one["problem"] for one in pair.events(0) if one["event"] == "prepare-failed") == trouble["detail"]


def _until(pair: LivePair, campaign: Any) -> dict[str, Any]:
    until = time.monotonic() + 60
    while True:
        status = pair.status(campaign)
        if status.get("troubles") and status.get("phase") == "failed":
            return status
        assert time.monotonic() < until, status
        time.sleep(0.1)
