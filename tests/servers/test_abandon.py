"""Abandoning a wave that cannot be sealed: by both operators, with new keys in another wave, and never a sealed one."""

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import dealer
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.campaign.contribution import TABLE, Contribution
from fss_ecdf.campaign.errors import AgreementPending, CampaignSealed, InvalidQuery
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.status import Status
from fss_ecdf.operators.next_steps import next_step, typed
from servers.storage.abandoned_waves import abandon, agree
from servers.storage.admission import NewUploads
from servers.storage.entries import set_checksum
from servers.storage.storage import Storage
from servers.storage.waves import SEALED, Wave
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import fixed
from tests.servers.rollbacks import recovery
from tests.servers.rows import row
from tests.servers.sites_tables import table_campaign
from tests.servers.test_check_faults import backup
from tests.servers.test_table_storage import SITE
from tests.servers.test_uploads import code
from tests.servers.test_wave_sets import send
from tests.servers.waves import close, until_released, wave_campaign

VALUES = np.arange(30)


def abandon_at(pair: LivePair, campaign: Campaign, role: int, wave: int = 1) -> httpx.Response:
    with pair.operator(role) as client:
        return client.post(f"/v1/campaigns/{name(campaign)}/abandon", params={"wave": wave})


def at_both(pair: LivePair, campaign: Campaign) -> dealer.ServerPair:
    urls = [f"{pair.url(role)}/v1/campaigns/{name(campaign)}" for role in (0, 1)]
    return dealer.ServerPair(urls, pair.upload_tokens[campaign.id], pair.folder / "ca.pem", digest=campaign.digest)


def freeze(storage: Storage, campaign: Campaign, number: int) -> Wave:
    storage.waves.agree(campaign.id, number)
    return storage.waves.freeze(campaign.id, number, closed=False)


def test_one_server_gives_up_what_its_operator_agreed_to_as_it_stands(storage: Storage) -> None:
    campaign = wave_campaign(count=3, pooled=[], check_keys=True)
    storage.campaigns.add(campaign, "0" * 64, [])
    assert send(storage, campaign, b"a", b"b") == []
    with pytest.raises(AgreementPending):
        abandon(storage.engine, campaign.id, 1)
    agree(storage.engine, campaign.id, 1)
    freeze(storage, campaign, 1)  # the wave went on: the agreement was about another state
    with pytest.raises(AgreementPending):
        abandon(storage.engine, campaign.id, 1)
    agree(storage.engine, campaign.id, 1)
    wave = abandon(storage.engine, campaign.id, 1)
    assert (wave.state, wave.abandoned, wave.sealed.count, wave.sealed.unmatched) == (SEALED, True, 0, 2)
    assert abandon(storage.engine, campaign.id, 1) == wave
    assert storage.campaigns.get(campaign.id).stored == 0
    assert storage.waves.excluded_count(campaign.id) == 2
    assert send(storage, campaign, b"a", wave=2) == ["upload-withdrawn"]
    assert send(storage, campaign, b"c", wave=2) == []
    assert storage.waves.get(campaign.id).number == 2


def test_tables_of_an_abandoned_wave_are_excluded_with_all_their_people(storage: Storage) -> None:
    waves = {"every": "manual", "count": 3}
    campaign = table_campaign(min_uploads=1, max_uploads=1500, check_keys=True, waves=waves)
    storage.campaigns.add(campaign, None, [])
    storage.sites.add(campaign.id, [SITE])
    of_table = Contribution(TABLE, 600, wave=1)
    one = NewUploads(campaign.id, [(b"t" * 16, b"l" * 32, b"o" * 32)], SITE.id, None, of_table, [b"share"])
    other = NewUploads(campaign.id, [row(b"k" * 16)], SITE.id, contribution=Contribution(wave=1))
    assert storage.uploads.add([one, other]) == [[], []]
    agree(storage.engine, campaign.id, 1)
    sealed = abandon(storage.engine, campaign.id, 1).sealed
    assert (sealed.count, sealed.unmatched, sealed.tables, sealed.in_tables) == (0, 601, 0, 0)
    assert storage.campaigns.get(campaign.id).stored == 0
    assert storage.uploads.by_sender(campaign.id) == {}  # its quota is free again
    assert storage.tables.in_wave(campaign.id, 1) == []
    assert storage.waves.excluded_count(campaign.id) == 601
    assert storage.waves.discard_excluded(campaign.id) == 601


def test_neither_a_sealed_wave_nor_a_plain_campaign_is_abandoned(storage: Storage) -> None:
    campaign = wave_campaign(count=3, pooled=[], check_keys=False)
    storage.campaigns.add(campaign, "0" * 64, [])
    assert send(storage, campaign, b"a") == []
    number = freeze(storage, campaign, 1).freeze_number
    checksum = set_checksum(b"".join(storage.uploads.entries(campaign.id, 1)))
    storage.waves.commit_set(campaign.id, number, checksum, [], 1)
    for act in (agree, abandon):
        with pytest.raises(CampaignSealed, match="is sealed here"):
            act(storage.engine, campaign.id, 1)
    plain, _, _ = fixed(storage)
    with pytest.raises(InvalidQuery, match="create a new one"):
        agree(storage.engine, plain.id, 0)


@pytest.mark.faults
@pytest.mark.parametrize("point", ["", "abandoned-there", "peer-abandoned"])
def test_a_wave_whose_uploads_one_server_lost_is_abandoned_and_uploaded_again(tmp_path: Path, point: str) -> None:
    pair = LivePair(tmp_path)
    pair.configure(1, crash_at='"check-files-written"')  # so that server 0 waits in the check
    with pair:
        campaign = wave_campaign(count=3, pooled=[], check_keys=True, min_uploads=20)
        pair.create(campaign)
        copy = backup(pair, 1)
        receipt, placed = tmp_path / "receipt.json", Positions(VALUES, 0, 0)
        with at_both(pair, campaign) as servers:
            assert dealer.upload(placed, servers.fetch_campaign(), servers, receipt=receipt).sent == len(VALUES)
        close(pair, campaign, 1)
        assert pair.exited(1, 60) == 137
        pair.drop(1, "crash_at")
        shutil.rmtree(pair.folder / "server1" / "data")
        shutil.copytree(copy, pair.folder / "server1" / "data")
        pair.start(1)
        until = time.monotonic() + 30
        while "on_hold" not in pair.status(campaign, 1):
            assert time.monotonic() < until
            time.sleep(0.2)
        accepted = recovery(pair, 1, "accept")
        assert accepted.returncode == 0, accepted
        _until_goes_on(pair, campaign)
        states = [_wave(pair, campaign, role)["state"] for role in (0, 1)]
        assert states == ["checking", "open"]
        assert "abandon-wave" in next_step(read(Status, pair.status(campaign, 0)), typed("ID"))

        assert code(abandon_at(pair, campaign, 1)) == "agreement-pending"
        assert [_wave(pair, campaign, role)["state"] for role in (0, 1)] == states
        if point:
            crashing = 0 if point == "abandoned-there" else 1
            pair.stop(crashing)
            pair.configure(crashing, crash_at=f'"{point}"')
            pair.start(crashing)
            with suppress(httpx.TransportError):
                abandon_at(pair, campaign, 0)
            assert pair.exited(crashing, 60) == 137
            pair.drop(crashing, "crash_at")
            pair.start(crashing)
        assert abandon_at(pair, campaign, 0).status_code == 200
        assert abandon_at(pair, campaign, 1).status_code == 200
        for role, excluded in ((0, 30), (1, 0)):
            wave = _wave(pair, campaign, role)
            assert (wave["state"], wave["abandoned"], wave["uploads"], wave["unmatched"]) == (SEALED, True, 0, excluded)
            late = envelopes(campaign, VALUES, wave=1)
            assert code(pair.upload(role, campaign, late[role])) == "wave-closed"

        with at_both(pair, campaign) as servers:
            again = dealer.upload(placed, servers.fetch_campaign(), servers, receipt=receipt, replace=True)
        assert again.sent == len(VALUES)
        close(pair, campaign, 2)
        until_released(pair, campaign, "wave 2")
        assert pair.ask(0, campaign, "curve", wave=2)["n"] == len(VALUES)
        with pair.analyst(0) as client:
            assert code(client.get(f"/v1/campaigns/{name(campaign)}/curve", params={"wave": 1})) == "invalid-query"


def _wave(pair: LivePair, campaign: Campaign, role: int) -> dict[str, Any]:
    found: dict[str, Any] = pair.status(campaign, role)["waves"][0]
    return found


def _until_goes_on(pair: LivePair, campaign: Campaign) -> None:
    until = time.monotonic() + 120  # histories are compared every minute
    while any(key in pair.status(campaign, role) for role in (0, 1) for key in ("on_hold", "peer_rolled_back")):
        assert time.monotonic() < until, [pair.status(campaign, role) for role in (0, 1)]
        time.sleep(0.2)
