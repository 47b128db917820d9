"""Several processes of one server: whichever is asked knows what the others did, and goes on where they ended."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign import confirmations
from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE, upload_rows
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.cli import server
from servers.release.noise import NoiseTree
from tests.commands import call
from tests.harness import haproxy
from tests.harness.fleet import Fleet
from tests.harness.postgres import NoPostgres
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign, values

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    try:
        haproxy.program()
        made = Fleet(tmp_path_factory.mktemp("fleet"), workers=2)
    except (NoPostgres, FileNotFoundError) as error:
        pytest.skip(str(error))
    with made:
        yield made


def published(fleet: Fleet, campaign: Campaign, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What one machine would answer: exact counts, and the noise that both servers' secrets make."""
    curve = np.cumsum(np.bincount(positions, minlength=1 << campaign.bits))
    for role in (0, 1):
        seed, covered = fleet.noise_secrets(role, campaign)
        curve = curve + NoiseTree(seed, server=role, covers=covered, mechanism=campaign.noise).curve()
    return curve


@pytest.mark.parametrize("checked", [False, True])
def test_a_campaign_from_uploads_to_answers(fleet: Fleet, checked: bool) -> None:
    campaign = new_campaign(check_keys=checked)
    positions = campaign.to_positions(values(200)).positions
    fleet.create(campaign)
    for part in np.array_split(positions, 8):  # each over a connection of its own, so to another process
        fleet.upload_values(campaign, part)
    assert fleet.seal(campaign)["count"] == 200
    fleet.wait_ready(campaign)
    right = published(fleet, campaign, positions)[: campaign.variable.grid.size]
    for role in (0, 1):
        for process in fleet.names("api"):
            with fleet.direct(role, process, fleet.servers[role].analyst) as client:
                answer = client.get(f"/v1/campaigns/{name(campaign)}/curve").json()
            assert answer["counts"] == right.tolist()


def test_what_one_process_deletes_no_other_answers(fleet: Fleet) -> None:
    campaign = new_campaign()
    fleet.create(campaign)
    fleet.upload_values(campaign, campaign.to_positions(values(20)).positions)
    fleet.seal(campaign)
    fleet.wait_ready(campaign)
    first, second = fleet.names("api")
    for process in (first, second):
        with fleet.direct(0, process, fleet.servers[0].analyst) as client:
            assert client.get(f"/v1/campaigns/{name(campaign)}/curve").status_code == 200
    peer = (fleet.home(1) / "peer.token").read_text().strip()
    shares = {"digest": to_base64url(campaign.digest), "positions": "all"}
    with fleet.direct(0, second, peer) as client:
        assert client.post(f"/v1/peer/campaigns/{name(campaign)}/shares", json=shares).status_code == 200
    with fleet.direct(0, first, fleet.servers[0].operator) as client:
        assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
    with fleet.direct(0, second, fleet.servers[0].analyst) as client:
        assert client.get(f"/v1/campaigns/{name(campaign)}/curve").json()["type"].endswith("campaign-deleted")
    with fleet.direct(0, second, peer) as client:
        refused = client.post(f"/v1/peer/campaigns/{name(campaign)}/shares", json=shares)
        assert refused.json()["type"].endswith("campaign-deleted")
    with fleet.direct(0, second, fleet.upload_tokens[campaign.id]) as client:
        refused = client.post(f"/v1/campaigns/{name(campaign)}/uploads", content=envelopes(campaign, np.arange(1))[0])
    assert refused.status_code >= 400
    assert not (fleet.home(0) / "data" / name(campaign)).exists()


def test_a_worker_that_is_killed_is_followed_by_another(fleet: Fleet) -> None:
    campaign = new_campaign(check_keys=True)
    fleet.create(campaign)
    fleet.upload_values(campaign, campaign.to_positions(values(3000)).positions)
    fleet.seal(campaign)
    for role in (0, 1):
        fleet.stop_member(role, "worker0", kill=True)
    fleet.wait_ready(campaign, seconds=180)
    for role in (0, 1):
        fleet.start_member(role, "worker0")


@pytest.mark.parametrize("checked", [False, True])
def test_a_worker_that_is_stopped_and_wakes_up_changes_nothing(fleet: Fleet, checked: bool) -> None:
    """For longer than a lease, in the middle of its work; the others have finished it by then."""
    campaign = new_campaign(check_keys=checked)
    positions = campaign.to_positions(values(6000)).positions
    fleet.create(campaign)
    fleet.upload_values(campaign, positions)
    fleet.seal(campaign)
    stopped = [fleet.members[role]["worker0"] for role in (0, 1)]
    for process in stopped:
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
    try:
        fleet.wait_ready(campaign, seconds=180)
        before = [fleet.noise_secrets(role, campaign) for role in (0, 1)]
        answer = fleet.ask(0, campaign, "curve")["counts"]
    finally:
        for process in stopped:
            assert process is not None
            os.kill(process.pid, signal.SIGCONT)
    time.sleep(3)
    fleet.wait_ready(campaign)
    assert [fleet.noise_secrets(role, campaign) for role in (0, 1)] == before
    assert answer == published(fleet, campaign, positions)[: campaign.variable.grid.size].tolist()
    for role in (0, 1):
        for api in fleet.names("api"):
            with fleet.direct(role, api, fleet.servers[role].analyst) as client:
                assert client.get(f"/v1/campaigns/{name(campaign)}/curve").json()["counts"] == answer
        left = {path.name.split("-")[0] for path in (fleet.home(role) / "data" / name(campaign)).iterdir()}
        assert left <= {"keys", "curve", "noised", "release", "evidence", "messages", "table"}, left


def test_an_upload_survives_the_process_that_took_it(fleet: Fleet) -> None:
    campaign = new_campaign()
    positions = campaign.to_positions(values(30)).positions
    fleet.create(campaign)
    fleet.upload_values(campaign, positions[:10])
    fleet.stop_member(0, "api0", kill=True)
    until = time.monotonic() + 30
    for data in (envelopes(campaign, positions[10:]),):
        for role in (0, 1):
            while not _taken(fleet, role, campaign, data[role]):
                assert time.monotonic() < until
    fleet.start_member(0, "api0")
    assert len(fleet.ids(0, campaign)) == len(fleet.ids(1, campaign)) == 30


def _taken(fleet: Fleet, role: int, campaign: Campaign, data: bytes) -> bool:
    import httpx

    try:
        return fleet.upload(role, campaign, data).status_code == 200
    except httpx.HTTPError:
        return False


def _asked(fleet: Fleet, process: str, campaign: Campaign, path: str, content: bytes) -> dict[str, Any]:
    """What one process of server 0 answers a party."""
    with fleet.direct(0, process, fleet.upload_tokens[campaign.id]) as client:
        url = f"/v1/campaigns/{name(campaign)}/uploads{path}"
        found: dict[str, Any] = client.post(url, content=content, headers={"Content-Type": UPLOAD_TYPE}).json()
    return found


def test_every_process_signs_the_same(fleet: Fleet) -> None:
    """What one process has stored or withdrawn, another confirms when it is asked again, byte for byte."""
    campaign = new_campaign()
    fleet.create(campaign)
    plain, token = envelopes(campaign, np.arange(5))[0], fleet.upload_tokens[campaign.id]
    rows = upload_rows(plain, campaign, 0)[1]
    ids, leaves = (b"".join(row[i] for row in rows) for i in (0, 1))
    for path, content, message in (
        ("", seal_upload(campaign, 0, plain, token), confirmations.stored(campaign.digest, 0, 0, leaves)),
        ("/withdraw", ids, confirmations.withdrawn(campaign.digest, 0, ids)),
    ):
        signed = {_asked(fleet, process, campaign, path, content)["signature"] for process in fleet.names("api")}
        assert len(signed) == 1
        assert confirmations.is_confirmed(campaign, 0, message, signed.pop())


def test_what_one_process_confirms_as_withdrawn_no_other_stores(fleet: Fleet) -> None:
    """At the same moment, many times: a confirmed withdrawal is not followed by a signature that it is stored."""
    campaign = new_campaign()
    fleet.create(campaign)
    first, second = fleet.names("api")
    token = fleet.upload_tokens[campaign.id]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            plain = envelopes(campaign, np.arange(3))[0]
            body, ids = (
                seal_upload(campaign, 0, plain, token),
                b"".join(r[0] for r in upload_rows(plain, campaign, 0)[1]),
            )
            sent = pool.submit(_asked, fleet, first, campaign, "", body)
            withdrawn = pool.submit(_asked, fleet, second, campaign, "/withdraw", ids).result()
            assert confirmations.is_confirmed(
                campaign, 0, confirmations.withdrawn(campaign.digest, 0, ids), withdrawn["signature"]
            )
            assert ("signature" in sent.result()) == (withdrawn["withdrawn"] == 3)  # stored before it was withdrawn
            for process in (first, second):
                assert _asked(fleet, process, campaign, "", body)["type"].endswith("upload-withdrawn")
    assert not fleet.ids(0, campaign)


def test_several_processes_on_sqlite_are_refused(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    for command in ("api", "worker"):
        done = call(server.main, command, "--config", str(pair.folder / "server0" / "server.toml"))
        assert (done.returncode, "several processes need PostgreSQL" in done.stderr) == (65, True)
