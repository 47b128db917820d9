"""A restore drill: every kind of campaign in every state, on both databases; what was published comes back the same."""

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.cli.server import main
from fss_ecdf.net.tokens import hash_token
from tests.campaign.helpers import count_above
from tests.commands import Done, call
from tests.harness.postgres import Postgres
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign
from tests.servers.rollbacks import config, recovery
from tests.servers.waves import close, until_released, wave_campaign

Positions = np.ndarray[Any, np.dtype[np.int64]]


def _positions(campaign: Campaign, count: int = 20) -> Positions:
    labels = None if len(campaign.strata) == 1 else [campaign.strata[i % 2] for i in range(count)]
    positions: Positions = campaign.to_positions(np.linspace(0, 1, count), labels).positions
    return positions


def _filled(pair: LivePair, campaign: Campaign, **more: Any) -> Campaign:
    pair.create(campaign, **more)
    pair.upload_values(campaign, _positions(campaign))
    return campaign


def _sealed(pair: LivePair, campaign: Campaign) -> Campaign:
    pair.seal(campaign)
    pair.wait_checked(campaign)
    pair.wait_ready(campaign)
    return campaign


def plain(pair: LivePair) -> Campaign:
    """With a sum paid from the reserve."""
    campaign = _sealed(pair, _filled(pair, new_campaign(strata=["no", "yes"], reserve=1.0)))
    with pair.analyst(0) as client:
        assert (
            client.post(f"/v1/campaigns/{name(campaign)}/sums", json=count_above(campaign, 0.5, 0.5)).status_code == 200
        )
    return campaign


def checked(pair: LivePair) -> Campaign:
    """With an upload that reached one server only, kept until the operator confirms."""
    campaign = _filled(pair, new_campaign(check_keys=True))
    pair.upload(0, campaign, envelopes(campaign, np.array([3]))[0])
    return _sealed(pair, campaign)


def points(pair: LivePair) -> Campaign:
    return _sealed(pair, _filled(pair, new_campaign(scheme="dpf")))


def invited(pair: LivePair) -> Campaign:
    campaign = new_campaign(admission="invited", max_values_per_person=20)
    pair.create(campaign, invitations=["an invitation"])
    pair.upload_tokens[campaign.id] = "an invitation"
    pair.upload_values(campaign, _positions(campaign))
    return _sealed(pair, campaign)


def sites(pair: LivePair) -> Campaign:
    campaign = new_campaign(admission="sites")
    pair.create(campaign)
    site = {"id": "a" * 32, "label": "St. Mary", "token": hash_token("of the site"), "quota": 100}
    for role in (0, 1):
        with pair.operator(role) as client:
            answer = client.post(f"/v1/campaigns/{name(campaign)}/sites", json={"sites": [site]})
            assert answer.status_code in (200, 201), answer.text
    pair.upload_tokens[campaign.id] = "of the site"
    pair.upload_values(campaign, _positions(campaign))
    return _sealed(pair, campaign)


def waves(pair: LivePair) -> Campaign:
    """Two waves that are published, pooled and erased, and one that is open."""
    campaign = wave_campaign(count=3, pooled=[{"through": 2, "epsilon": 1.0}], check_keys=True)
    pair.create(campaign)
    for wave in (1, 2):
        pair.upload_values(campaign, _positions(campaign))
        close(pair, campaign, wave)
        until_released(pair, campaign, f"wave {wave}")
    until_released(pair, campaign, "pooled 2")
    for role in (0, 1):
        pair.ask(role, campaign, "curve", wave=1)
        _until(partial(_is_erased, pair, role, campaign), 60)
    pair.upload_values(campaign, _positions(campaign))
    return campaign


def _is_erased(pair: LivePair, role: int, campaign: Campaign) -> bool:
    return not list((pair.folder / f"server{role}" / "data" / name(campaign)).glob("wave-*/keys"))


def opened(pair: LivePair) -> Campaign:
    """With a withdrawal, which must not come undone."""
    campaign = _filled(pair, new_campaign())
    for role in (0, 1):
        with pair.client(role, pair.upload_tokens[campaign.id]) as client:
            client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=b"w" * 16)
    return campaign


def frozen(pair: LivePair) -> Campaign:
    """At server 0, by a sealing that came no further."""
    campaign = _filled(pair, new_campaign())
    pair.agree(campaign, 0)
    token = (pair.folder / "server1" / "peer.token").read_text().strip()
    with pair.client(0, token) as client:
        assert client.post(f"/v1/peer/campaigns/{name(campaign)}/freeze").status_code == 200
    return campaign


def deleted(pair: LivePair) -> Campaign:
    campaign = _filled(pair, new_campaign())
    for role in (0, 1):
        with pair.operator(role) as client:
            assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
    return campaign


Made = dict[str, Campaign]
KINDS: list[Callable[[LivePair], Campaign]] = [plain, checked, points, invited, sites, waves, opened, frozen, deleted]
QUESTIONS = {"curve": {}, "ecdf": {"at": "0.1,0.5"}, "budget": {}, "waves": {}}


def asked(pair: LivePair, role: int, made: Made) -> dict[tuple[str, ...], bytes]:
    """Every answer, as bytes."""
    found: dict[tuple[str, ...], bytes] = {}
    with pair.analyst(role) as client:
        for kind, campaign in made.items():
            for release in [{"wave": 1}, {"wave": 2}, {"through": 2}, {"pooled": 2}] if kind == "waves" else [{}]:
                for what, more in QUESTIONS.items():
                    path = f"/v1/campaigns/{name(campaign)}/{what}"
                    for accept in ("application/json", "application/x-npy", "text/csv"):
                        answer = client.get(path, params={**more, **release}, headers={"Accept": accept})
                        found[kind, what, str(release), accept] = _shown(answer)
            if kind == "plain":
                found[kind, "sums"] = client.post(
                    f"/v1/campaigns/{name(campaign)}/sums", json=count_above(campaign, 0.5, 0.5)
                ).content
    return found


def _shown(answer: httpx.Response) -> bytes:
    return str(answer.status_code).encode() + b"\n" + answer.content


def stands(pair: LivePair, made: Made) -> dict[str, Any]:
    """What does not depend on when it is asked."""
    names = ["state", "uploads", "sealed_uploads", "unmatched", "excluded_stored", "rejected", "checksum"]
    names += ["operator_agreed", "freeze_number", "sites"]
    found = {}
    for kind, campaign in made.items():
        status = pair.status(campaign)
        found[kind] = {key: status[key] for key in names if key in status} or status["type"]
    return found


def _until(reached: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.1)


def run(*args: str) -> Done:
    return call(main, *args)


@pytest.fixture
def databases(request: pytest.FixtureRequest) -> Postgres | None:
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


def drill(
    folder: Path, server: Postgres | None, kinds: list[Callable[[LivePair], Campaign]], *, checking: bool
) -> None:
    pair, backup = LivePair(folder), folder / "backup"
    for role in (0, 1):
        _new_database(pair, role, server)
    with pair:
        made = {kind.__name__: kind(pair) for kind in kinds}
        before = [asked(pair, role, made) for role in (0, 1)]
        stood = stands(pair, made)
        assert {answer[:3] for (_, *what), answer in before[0].items() if what[0] == "curve"} >= {b"200"}
        if checking:
            made["checking"] = _in_check(pair)
        done = run("backup", "--config", str(config(pair)), str(backup))
        assert done.returncode == 0, done.stderr
        pair.stop(0)
        if checking:
            pair.drop(1, "crash_at")
            pair.start(1)

        shutil.rmtree(pair.folder / "server0" / "data")  # the machine is lost, and with it
        _new_database(pair, 0, server)
        looked = run("restore", "--check", "--config", str(config(pair)), str(backup))
        assert looked.returncode == 0, looked.stderr
        assert not (pair.folder / "server0" / "data").exists()
        done = run("restore", "--config", str(config(pair)), str(backup))
        assert done.returncode == 0, done.stderr
        assert "on hold" not in done.stdout
        pair.start(0)
        assert recovery(pair, 0, "show").returncode == 0

        if checking:
            both = pair.wait_checked(made["checking"])
            assert [(status["state"], status["sealed_uploads"]) for status in both] == [("sealed", 20)] * 2
            del made["checking"]
        _wait_ready(pair, made)
        assert stands(pair, made) == stood
        for role in (0, 1):
            after = asked(pair, role, made)
            assert [key for key in after if after[key] != before[role][key]] == []
        _go_on(pair, made)


def _new_database(pair: LivePair, role: int, server: Postgres | None) -> None:
    if server is not None:
        pair.drop(role, "database")
        pair.configure(role, database=f'"{server.database()}"')


def _wait_ready(pair: LivePair, made: Made) -> None:
    for kind, campaign in made.items():
        if kind == "waves":
            until_released(pair, campaign, "pooled 2")
        elif kind not in ("opened", "frozen", "deleted"):
            pair.wait_ready(campaign)


def _in_check(pair: LivePair) -> Campaign:
    """Server 1 ends in the middle of it."""
    pair.stop(1)
    pair.configure(1, crash_at='"check-seeds-exchanged"')
    pair.start(1)
    campaign = _filled(pair, new_campaign(check_keys=True))
    pair.seal(campaign)
    assert pair.exited(1) == 137
    assert pair.status(campaign)["state"] == "checking"
    return campaign


def _go_on(pair: LivePair, made: Made) -> None:
    """What was open or frozen is sealed, a withdrawal stays, and the next wave closes."""
    if "opened" in made:
        campaign = made["opened"]
        again = envelopes(campaign, np.array([1]))[0]
        start = UPLOAD_HEADER_BYTES
        refused = pair.upload(0, campaign, again[:start] + b"w" * 16 + again[start + 16 :])
        assert refused.json()["type"].endswith("upload-withdrawn")
        _sealed(pair, campaign)
    if "frozen" in made:
        _sealed(pair, made["frozen"])
    if "waves" in made:
        close(pair, made["waves"], 3)
        until_released(pair, made["waves"], "wave 3")


@pytest.mark.parametrize("databases", ["sqlite", pytest.param("postgres", marks=pytest.mark.faults)], indirect=True)
def test_a_short_drill(databases: Postgres | None, tmp_path: Path) -> None:
    drill(tmp_path, databases, [plain, opened], checking=False)


@pytest.mark.faults
@pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
def test_every_kind_of_campaign_in_every_state_comes_back(databases: Postgres | None, tmp_path: Path) -> None:
    drill(tmp_path, databases, KINDS, checking=True)
