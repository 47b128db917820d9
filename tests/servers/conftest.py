"""Live servers for the tests of this folder."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import Campaign, new_id
from servers.storage import admission
from servers.storage.entries import set_checksum
from servers.storage.storage import Storage
from servers.storage.waves import Wave
from tests.campaign.helpers import campaign
from tests.harness.postgres import NoPostgres, Postgres
from tests.harness.server_pair import LivePair, commitments, envelopes


def new_campaign(**changes: Any) -> Campaign:
    """Of these servers; unchecked, so that tests of other things need not wait for the check."""
    id = changes.get("id", new_id(secrets.token_bytes))
    about = {"id": id, "min_uploads": 10, "check_keys": False, "server_commitments": commitments(id)}
    return campaign(**{**about, **changes})


def values(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.round(np.random.default_rng(seed).beta(2, 5, count), 3)


@pytest.fixture(scope="module")
def sealed(pair: LivePair) -> tuple[Campaign, np.ndarray[Any, Any]]:
    """A sealed, evaluated campaign of two strata, and the positions that only the test knows."""
    spec = new_campaign(strata=["no", "yes"], reserve=1.0)
    x = values(3000)
    labels = ["yes" if flag else "no" for flag in np.random.default_rng(1).random(3000) < x]
    positions = spec.to_positions(x, labels).positions
    pair.create(spec)
    pair.upload_values(spec, positions)
    pair.seal(spec)
    pair.wait_ready(spec)
    return spec, positions


def filled(pair: LivePair, count: int = 60) -> tuple[Campaign, np.ndarray[Any, Any]]:
    """A campaign with uploads at both servers and some at one only."""
    campaign = new_campaign()
    positions = campaign.to_positions(values(count)).positions
    pair.create(campaign)
    pair.upload_values(campaign, positions)
    pair.upload(0, campaign, envelopes(campaign, np.arange(3))[0])
    pair.upload(1, campaign, envelopes(campaign, np.arange(2))[1])
    return campaign, positions


def answering(pair: LivePair) -> Campaign:
    """Such a campaign, sealed and evaluated."""
    campaign, _ = filled(pair)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return campaign


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    try:
        server = Postgres()
    except NoPostgres as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    """A new database, SQLite's; tests of another one have a fixture of this name."""
    opened = Storage(f"sqlite:///{tmp_path / 'db'}")
    yield opened
    opened.close()


def fixed(storage: Storage, **changes: object) -> tuple[Campaign, Wave, list[bytes]]:
    """A campaign whose set is fixed, and its ids."""
    campaign = new_campaign(**changes)
    storage.campaigns.add(campaign, "0" * 64, [])
    _, rows = upload_rows(envelopes(campaign, np.arange(12))[0], campaign, 0)
    assert storage.uploads.add([admission.NewUploads(campaign.id, rows)]) == [[]]
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freeze_number
    entries = b"".join(upload_id + leaf for upload_id, leaf, _ in sorted(rows))
    wave = storage.waves.commit_set(campaign.id, freeze, set_checksum(entries), [])
    return campaign, wave, sorted(upload_id for upload_id, _, _ in rows)
