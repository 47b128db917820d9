"""Waves in one server's storage: what closing a wave does to uploads, and what nobody can make it do."""

from datetime import UTC, datetime

import pytest

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.errors import (
    AgreementPending,
    BudgetExceeded,
    CampaignSealed,
    InvalidPeerResponse,
    NotReady,
    NotSealed,
    UploadUndecided,
)
from fss_ecdf.campaign.release import ReleaseName
from servers.lifecycle.wave_schedule import is_due
from servers.release.sealed_releases import find, releases, together
from servers.storage.admission import NewUploads
from servers.storage.entries import ids_in, set_checksum
from servers.storage.key_files import split_ids
from servers.storage.storage import Storage
from servers.storage.waves import UploadSet
from tests.campaign.helpers import campaign
from tests.servers.rows import checksum_of, row

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WAVE_1, POOLED = ReleaseName("wave", 1), ReleaseName("pooled", 2)


def made(storage: Storage, **changes: object) -> Campaign:
    waves = {"every": "manual", "count": 3, "pooled": [{"through": 2, "epsilon": 0.5}]}
    spec = campaign(**{"waves": waves, "min_uploads": 2, "server_commitments": None, **changes})
    storage.campaigns.add(spec, "0" * 64, [])
    return spec


def send(storage: Storage, spec: Campaign, *names: bytes, wave: int = 1) -> list[str]:
    (failures,) = storage.uploads.add(
        [NewUploads(spec.id, [row(name * 16) for name in names], contribution=Contribution(wave=wave))]
    )
    assert isinstance(failures, list), failures
    return [problem.code for _, problem in failures]


def send_refused(storage: Storage, spec: Campaign, name: bytes, wave: int) -> str:
    (refused,) = storage.uploads.add([NewUploads(spec.id, [row(name * 16)], contribution=Contribution(wave=wave))])
    assert not isinstance(refused, list)
    return refused.code


def closed(storage: Storage, spec: Campaign, number: int, *agreed: bytes) -> None:
    """A wave closes with what both servers are said to have."""
    storage.waves.agree(spec.id, number)
    freeze = storage.waves.freeze(spec.id, number, closed=False).freeze_number
    ids = [name * 16 for name in sorted(agreed)]
    here = split_ids(ids_in(b"".join(storage.uploads.entries(spec.id, number))))
    storage.waves.commit_set(spec.id, freeze, checksum_of(ids), [i for i in here if i not in ids], number)


def names_in(storage: Storage, spec: Campaign, wave: int) -> bytes:
    return ids_in(b"".join(storage.uploads.entries(spec.id, wave)))[::16]


def test_an_upload_stays_in_the_wave_it_was_made_for(storage: Storage) -> None:
    """It would meet a second challenge elsewhere. What the other server does not have of it is excluded, for good."""
    spec = made(storage)
    send(storage, spec, b"a", b"b", b"c")
    closed(storage, spec, 1, b"a", b"b")
    assert (names_in(storage, spec, 1), names_in(storage, spec, 2)) == (b"ab", b"")
    assert (storage.waves.excluded_count(spec.id), storage.campaigns.get(spec.id).stored) == (1, 2)
    send(storage, spec, b"d", b"e", wave=2)
    storage.waves.agree(spec.id, 2)
    freeze = storage.waves.freeze(spec.id, 2, closed=False).freeze_number
    for name in (b"a", b"c"):
        with pytest.raises(InvalidPeerResponse):
            storage.waves.propose_exclusion(spec.id, freeze, bytes(32), [name * 16], 2)
        with pytest.raises(InvalidPeerResponse):
            storage.waves.commit_set(spec.id, freeze, bytes(32), [name * 16], 2)
    closed(storage, spec, 2, b"d", b"e")
    assert storage.waves.all(spec.id)[1].sealed.count == 2
    # The same id again, now that its wave is over: the same bytes are acknowledged, others refused; nothing moves.
    assert send(storage, spec, b"a") == []
    assert send(storage, spec, b"c") == ["upload-withdrawn"]
    (failures,) = storage.uploads.add(
        [NewUploads(spec.id, [row(b"a" * 16, b"other")], contribution=Contribution(wave=3))]
    )
    assert isinstance(failures, list)
    assert [problem.code for _, problem in failures] == ["upload-conflict"]
    assert (names_in(storage, spec, 1), names_in(storage, spec, 2), names_in(storage, spec, 3)) == (b"ab", b"de", b"")


def test_a_server_takes_uploads_for_its_open_wave_and_the_next(storage: Storage) -> None:
    """Its peer may have closed the open one already; parties choose the later of both servers' open waves."""
    spec = made(storage)
    assert send(storage, spec, b"a") == []
    assert send(storage, spec, b"b", wave=2) == []
    assert send_refused(storage, spec, b"c", 3) == "wave-not-open"
    closed(storage, spec, 1, b"a")
    assert (names_in(storage, spec, 1), names_in(storage, spec, 2)) == (b"a", b"b")
    assert send_refused(storage, spec, b"c", 1) == "wave-closed"
    assert send(storage, spec, b"c", wave=3) == []
    closed(storage, spec, 2, b"b")
    closed(storage, spec, 3, b"c")
    for wave, code in ((1, "wave-closed"), (2, "wave-closed"), (3, "campaign-sealed")):
        assert send_refused(storage, spec, b"d", wave) == code
    assert [wave.sealed.count for wave in storage.waves.all(spec.id)] == [1, 1, 1]


def test_a_server_confirms_that_an_upload_does_not_count_when_that_is_so_for_good(storage: Storage) -> None:
    """A party that was late makes new keys only then: else one server that lies has a person counted twice."""
    spec, missing = made(storage), b"m" * 16
    send(storage, spec, b"a", b"b", b"c")
    storage.waves.agree(spec.id, 1)
    freeze = storage.waves.freeze(spec.id, 1, closed=False).freeze_number
    with pytest.raises(UploadUndecided):
        storage.uploads.withdraw(spec.id, [b"c" * 16], None)
    assert storage.uploads.withdraw(spec.id, [missing], None) == (0, [])  # it can come into no set any more
    storage.waves.commit_set(spec.id, freeze, checksum_of([b"a" * 16, b"b" * 16]), [b"c" * 16], 1)
    assert storage.uploads.withdraw(spec.id, [b"c" * 16], None) == (0, [])
    assert storage.uploads.withdraw(spec.id, [b"c" * 16], None) == (0, [])  # again
    with pytest.raises(CampaignSealed):
        storage.uploads.withdraw(spec.id, [b"a" * 16, b"c" * 16], None)
    closed(storage, spec, 2)
    closed(storage, spec, 3)
    assert storage.uploads.withdraw(spec.id, [missing, b"c" * 16], None) == (0, [])
    with pytest.raises(CampaignSealed):
        storage.uploads.withdraw(spec.id, [b"b" * 16], None)
    assert storage.waves.excluded_count(spec.id) == 0


def test_the_next_wave_is_open_in_the_moment_in_which_one_freezes(storage: Storage) -> None:
    spec = made(storage)
    send(storage, spec, b"a", b"b")
    storage.waves.agree(spec.id, 1)
    storage.waves.freeze(spec.id, 1, closed=False)
    assert send(storage, spec, b"c", wave=2) == []
    assert [(wave.number, wave.state) for wave in storage.waves.all(spec.id)] == [(1, "frozen"), (2, "open")]
    assert (names_in(storage, spec, 1), names_in(storage, spec, 2)) == (b"ab", b"c")
    with pytest.raises(CampaignSealed):
        storage.waves.unfreeze(spec.id, 1)


def test_waves_are_sealed_in_their_order_and_none_is_closed_for_a_peer(storage: Storage) -> None:
    spec = made(storage)
    with pytest.raises(AgreementPending):
        storage.waves.freeze(spec.id, 1, closed=False)
    with pytest.raises(NotSealed):
        storage.waves.freeze(spec.id, 2, closed=True)
    storage.waves.freeze(spec.id, 1, closed=True)
    with pytest.raises(NotReady):
        storage.waves.freeze(spec.id, 2, closed=True)


def test_withdrawing_reaches_the_open_wave_and_the_next_only(storage: Storage) -> None:
    spec = made(storage)
    send(storage, spec, b"a", b"b")
    closed(storage, spec, 1, b"a", b"b")
    send(storage, spec, b"c", b"d", wave=2)
    send(storage, spec, b"e", wave=3)
    assert storage.uploads.withdraw(spec.id, [b"e" * 16], None) == (1, [])
    with pytest.raises(CampaignSealed):
        storage.uploads.withdraw(spec.id, [b"a" * 16, b"c" * 16], None)
    assert storage.uploads.withdraw(spec.id, [b"c" * 16], None) == (1, [])
    assert send(storage, spec, b"c", wave=2) == ["upload-withdrawn"]


def test_each_wave_pays_and_no_wave_pays_more_than_its_parties_agreed_to(storage: Storage) -> None:
    spec = made(storage)
    limits = {number: spec.epsilon_for_party(number) for number in (1, 2, 3)}
    assert limits == {1: 1.5, 2: 1.5, 3: 1.0}
    storage.ledger.spend(spec.id, "wave 1", 1.0, {1: 1.5}, NOW)
    storage.ledger.spend(spec.id, "wave 1", 1.0, {1: 1.5}, NOW)  # once
    # Another release of the same parties at a wave's epsilon: refused whole, wave 2 pays nothing for it.
    with pytest.raises(BudgetExceeded):
        storage.ledger.spend(spec.id, "wave 2", 1.0, {2: 1.5, 1: 1.5}, NOW)
    assert storage.ledger.spent(spec.id) == {1: 1.0}
    storage.ledger.spend(spec.id, "pooled 2", 0.5, {1: 1.5, 2: 1.5}, NOW)
    assert storage.ledger.spent(spec.id) == {1: 1.5, 2: 0.5}
    storage.ledger.spend(spec.id, "wave 2", 1.0, {2: 1.5}, NOW)  # what others have spent is not this wave's
    assert storage.ledger.spent(spec.id) == {1: 1.5, 2: 1.5}
    with pytest.raises(BudgetExceeded):
        storage.ledger.spend(spec.id, "pooled 3", 0.1, {1: 1.5}, NOW)


def test_the_noise_of_a_release_is_bound_to_all_its_waves_and_its_name() -> None:
    """Whatever changes in any wave, after a restore say, the composite is another and meets other noise."""
    sets = [UploadSet(3, bytes([k]) * 32, 0, None, bytes([k + 100]) * 32) for k in (1, 2)]
    whole = together(POOLED, sets)
    others = [
        together(ReleaseName("wave", 2), sets),
        together(POOLED, sets[::-1]),
        together(POOLED, sets[:1]),
        together(POOLED, [sets[0], UploadSet(3, bytes(32), 0, None, sets[1].key_file)]),
    ]
    assert len({whole.checksum, *(other.checksum for other in others)}) == 5
    changed = together(POOLED, [sets[0], UploadSet(3, sets[1].checksum, 0, None, bytes(32))])
    assert (changed.checksum, changed.key_file) != (whole.checksum, whole.key_file)
    assert together(POOLED, [sets[0], UploadSet(3, bytes(32), 0, None, None)]).key_file is None


def test_releases_wait_for_earlier_waves(storage: Storage) -> None:
    spec = made(storage, check_keys=True)
    send(storage, spec, b"a", b"b")
    closed(storage, spec, 1, b"a", b"b")
    assert storage.waves.get(spec.id, 1).state == "checking"
    entry = storage.campaigns.get(spec.id)
    with pytest.raises(NotSealed):
        find(releases(entry, storage.waves.all(spec.id)), WAVE_1)
    checked = set_checksum(b"".join(storage.uploads.entries(spec.id, 1)))
    final = UploadSet(2, checked, 0, None, bytes(32))
    storage.waves.finish_check(spec.id, checked, [], final, 1)
    assert list(releases(entry, storage.waves.all(spec.id))) == [WAVE_1]


def test_rejected_keys_never_come_back_and_a_wave_that_shrank_stays_closed(storage: Storage) -> None:
    """A key is checked by one challenge only: what was checked in one wave is never moved into another."""
    spec = made(storage, check_keys=True)
    send(storage, spec, b"a", b"b", b"c")
    closed(storage, spec, 1, b"a", b"b", b"c")
    checked = set_checksum(b"".join(storage.uploads.entries(spec.id, 1)))
    final = UploadSet(1, checksum_of([b"a" * 16]), 0, None, bytes(32))
    settled = storage.waves.finish_check(spec.id, checked, [b"b" * 16, b"c" * 16], final, 1)
    assert (settled.state, settled.sealed.count, settled.rejected) == ("sealed", 1, 2)
    assert (names_in(storage, spec, 1), names_in(storage, spec, 2)) == (b"a", b"")
    assert send(storage, spec, b"b") == ["upload-withdrawn"]
    assert releases(storage.campaigns.get(spec.id), storage.waves.all(spec.id)) == {}


def test_a_wave_is_due_by_this_server_s_own_clock_and_uploads(storage: Storage) -> None:
    timed = made(storage, waves={"every": "week", "count": 3}, opens="2026-03-01T00:00:00Z", id=b"1" * 32)
    assert not is_due(storage, timed, 1, datetime(2026, 3, 7, 23, 59, 59, tzinfo=UTC))
    assert is_due(storage, timed, 1, datetime(2026, 3, 8, tzinfo=UTC))
    assert not is_due(storage, timed, 2, datetime(2026, 3, 8, tzinfo=UTC))
    counted = made(storage, waves={"every": 2, "count": 3}, id=b"2" * 32)
    send(storage, counted, b"a")
    assert not is_due(storage, counted, 1, NOW)
    send(storage, counted, b"b", wave=2)  # parties choose it once the other server has closed the first
    assert is_due(storage, counted, 1, NOW)
    send(storage, counted, b"c")
    assert is_due(storage, counted, 1, NOW)
    assert not is_due(storage, counted, 2, NOW)
    assert not is_due(storage, made(storage), 1, NOW)
