"""A server that is restored from an old backup and sealed again with other content gives no difference away."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair, envelopes
from tests.servers.conftest import new_campaign, values
from tests.servers.rollbacks import forget
from tests.servers.rows import with_id
from tests.servers.test_answers import both_noises, noise_tree, true_curve

pytestmark = pytest.mark.faults

Counts = np.ndarray[Any, np.dtype[np.int64]]

VICTIM = 37


def _backup(pair: LivePair) -> Path:
    """A cold copy of both servers' data."""
    copy = pair.folder / "backup"
    for role in (0, 1):
        pair.stop(role)
        shutil.copytree(pair.folder / f"server{role}" / "data", copy / str(role))
        pair.start(role)
    return copy


def _restore(pair: LivePair, copy: Path, roles: tuple[int, ...]) -> None:
    for role in roles:
        pair.stop(role)
        shutil.rmtree(pair.folder / f"server{role}" / "data")
        shutil.copytree(copy / str(role), pair.folder / f"server{role}" / "data")
    for role in roles:
        forget(pair, 1 - role)  # an honest server would notice
        pair.start(role)


def _published(pair: LivePair, campaign: Campaign) -> Counts:
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return np.array(pair.ask(0, campaign, "curve")["counts"])


def _noise(pair: LivePair, role: int, campaign: Campaign) -> Counts:
    return noise_tree(pair, role, campaign).curve()[: campaign.variable.grid.size]


def test_another_key_under_a_victims_id_meets_other_noise(tmp_path: Path) -> None:
    """Played by server 1 and whoever has the upload token: server 0 is restored, and another key gets the victim's id.

    Server 1 knows its own noise and takes it off. With server 0's noise bound to the ids alone, what was left of the
    difference of the two releases was 1 below the victim's value and 0 from there on.
    """
    with LivePair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        pair.upload_values(campaign, campaign.to_positions(values(40)).positions)
        copy = _backup(pair)
        victim, other = envelopes(campaign, np.array([VICTIM])), envelopes(campaign, np.array([0]))
        for role in (0, 1):
            assert pair.upload(role, campaign, victim[role]).status_code == 200
        first = _published(pair, campaign) - _noise(pair, 1, campaign)
        before = _noise(pair, 0, campaign)

        _restore(pair, copy, (0, 1))
        for role in (0, 1):
            exchanged = with_id(other[role], victim[role])
            assert pair.upload(role, campaign, exchanged).status_code == 200
        second = _published(pair, campaign) - _noise(pair, 1, campaign)
        after = _noise(pair, 0, campaign)

        assert (before != after).mean() > 0.5
        step = np.where(np.arange(campaign.variable.grid.size) < VICTIM, 1, 0)
        assert (second - first).tolist() == (step + after - before).tolist()


def test_the_same_content_after_a_restore_gives_the_same_answers(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = new_campaign()
        positions = campaign.to_positions(values(40)).positions
        pair.create(campaign)
        pair.upload_values(campaign, positions)
        copy = _backup(pair)
        first = _published(pair, campaign)
        _restore(pair, copy, (0,))
        second = _published(pair, campaign)
        assert first.tolist() == second.tolist()
        exact = first - both_noises(pair, campaign)[: campaign.variable.grid.size]
        assert exact.tolist() == true_curve(campaign, positions)[: campaign.variable.grid.size].tolist()
