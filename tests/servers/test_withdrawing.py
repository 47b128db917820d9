"""Withdrawing in one server's storage: what is confirmed is so for good, and what nobody did leaves no trace."""

import pytest

from servers.lifecycle.admission import NewUploads
from servers.storage.storage import Storage
from servers.storage.waves import UploadSet
from tests.campaign.helpers import campaign
from tests.servers.conftest import fixed
from tests.servers.rows import row


def test_an_id_that_is_withdrawn_during_the_check_is_remembered_if_the_wave_is_open_again(storage: Storage) -> None:
    """Both copies of an upload may be on their way for longer than the check takes, while its party sends new keys."""
    spec, wave, ids = fixed(storage, checked=True, min_uploads=10)
    assert (wave.state, wave.set is not None) == ("checking", True)
    on_its_way = b"late" * 4
    assert storage.uploads.withdraw(spec.id, [on_its_way], None) == (0, [])
    assert wave.set is not None
    final = UploadSet(2, bytes(32), 0, wave.set.checksum, None)
    assert storage.waves.settle(spec.id, wave.set.checksum, ids[:10], final).state == "open"
    (failures,) = storage.uploads.add([NewUploads(spec.id, [row(on_its_way)])])
    assert isinstance(failures, list)
    assert [problem.code for _, problem in failures] == ["upload-withdrawn"]


def test_what_came_with_another_token_is_not_confirmed_as_withdrawn(storage: Storage) -> None:
    """A recording of a party's own upload could be stored under another token; its party must not believe it gone."""
    spec = campaign(admission="invited", max_instances=5)
    storage.campaigns.add(spec, None, ["a" * 64, "b" * 64])
    names = [bytes([n]) * 16 for n in range(3)]
    assert storage.uploads.add([NewUploads(spec.id, [row(names[0])], "a" * 64)]) == [[]]
    assert storage.uploads.add([NewUploads(spec.id, [row(names[1])], "b" * 64)]) == [[]]
    assert storage.uploads.withdraw(spec.id, names, "b" * 64) == (1, [names[0]])
    assert storage.uploads.withdraw(spec.id, names, "b" * 64) == (0, [names[0]])
    assert storage.uploads.withdraw(spec.id, names[:1], "a" * 64) == (1, [])


@pytest.mark.parametrize("ids", [[], [b"x" * 16]])
def test_a_withdrawal_that_does_nothing_does_not_grow_the_history(storage: Storage, ids: list[bytes]) -> None:
    """Anybody with a token may ask for it, as often as they like, and rows of the history are never erased."""
    spec = campaign()
    storage.campaigns.add(spec, "0" * 64, [])
    storage.uploads.withdraw(spec.id, [b"x" * 16], None)
    before = storage.history.newest()
    assert storage.uploads.withdraw(spec.id, ids, None) == (0, [])
    assert storage.history.newest() == before
