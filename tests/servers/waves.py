"""What several tests of waves do."""

import sqlite3
import time
from contextlib import closing
from typing import Any

import numpy as np

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.release import ReleaseName
from servers.release.noise import NoiseTree, covers, set_secret
from servers.release.sealed_releases import together
from servers.storage.waves import UploadSet
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign


def wave_campaign(*, count: int, pooled: list[dict[str, Any]], every: str | int = "manual", **more: Any) -> Campaign:
    return new_campaign(waves={"every": every, "count": count, "pooled": pooled}, **more)


def close(pair: LivePair, campaign: Campaign, wave: int, role: int = 0) -> dict[str, Any]:
    """Both operators close a wave; the answer is that of the server that was asked last."""
    path = f"/v1/campaigns/{name(campaign)}/seal"
    with pair.operator(1 - role) as client:
        client.post(path, params={"wave": wave})
    with pair.operator(role) as client:
        response = client.post(path, params={"wave": wave})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def waves_of(pair: LivePair, campaign: Campaign, role: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = pair.ask(role, campaign, "waves")
    return answer


def until_released(
    pair: LivePair, campaign: Campaign, release: str | None, waves: int = 0, seconds: float = 60
) -> None:
    """Until both servers have a release, and the jobs of all waves up to its own are done; or have got to so many."""
    until = time.monotonic() + seconds
    for role in (0, 1):
        while True:
            found = waves_of(pair, campaign, role)
            jobs = {wave["number"]: wave.get("phase") for wave in pair.status(campaign, role)["waves"]}
            made = {r["name"]: r["at"] for r in found["releases"]}
            if release is None and len(found["waves"]) >= waves:
                break
            if release in made and all(jobs[number] in (None, "ready") for number in jobs if number <= made[release]):
                break
            assert time.monotonic() < until, (found, jobs)
            time.sleep(0.05)


def noise_of(pair: LivePair, campaign: Campaign, release: str) -> np.ndarray[Any, Any]:
    """What both servers add to a release, from what only thieves of both disks could read."""
    name = ReleaseName.parse(release)
    assert campaign.waves is not None
    epsilon = name.epsilon(campaign.waves, campaign.epsilon)
    noise = campaign.released(((epsilon, 1),)).noise
    numbers = [name.through] if name.kind == "wave" else list(range(1, name.through + 1))
    total = np.zeros(1 << campaign.bits, np.int64)
    for role in (0, 1):
        with closing(sqlite3.connect(pair.folder / f"server{role}" / "data" / "server.db")) as db:
            seed = db.execute("SELECT noise_seed FROM campaigns WHERE id = ?", (campaign.id,)).fetchone()[0]
            found = db.execute(
                "SELECT number, sealed_count, sealed_set, key_file FROM waves WHERE campaign = ?", (campaign.id,)
            )
            rows = {row[0]: row[1:] for row in found}
        sets = [UploadSet(rows[k][0], rows[k][1], 0, None, rows[k][2]) for k in numbers]
        whole = together(name, sets)
        assert whole.key_file is not None
        covered = covers(campaign.id, campaign.variable.name, whole.checksum, whole.key_file)
        total += NoiseTree(set_secret(seed, covered), server=role, covers=covered, mechanism=noise).curve()
    return total
