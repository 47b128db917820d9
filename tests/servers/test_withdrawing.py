"""Withdrawing in one server's storage: what is confirmed is so for good, and what nobody did leaves no trace."""

import pytest

from servers.storage.admission import NewUploads
from servers.storage.storage import Storage
from servers.storage.waves import UploadSet
from tests.campaign.helpers import campaign
from tests.servers.conftest import new_campaign
from tests.servers.rows import row


def test_what_is_confirmed_during_a_check_does_not_come_back_when_too_few_pass(storage: Storage) -> None:
    """Played by whoever ends TLS, with a token of its own, and server 1.

    The attacker stores its copy of a party's upload here, where the party's own request never comes; server 1 hides
    its half, so that the copy is excluded. During the check the party withdraws, is told that the upload does not
    count, and sends new keys. If the copy were back in the set after the check, the party would count twice.
    """
    spec = new_campaign(admission="invited", max_values_per_person=20, check_keys=True, min_uploads=10)
    party, attacker = "a" * 64, "b" * 64
    storage.campaigns.add(spec, None, [party, attacker])
    victim, others = b"victim__" * 2, [bytes([n]) * 16 for n in range(12)]
    assert storage.uploads.add([NewUploads(spec.id, [row(i) for i in [*others, victim]], attacker)]) == [[]]
    storage.waves.agree(spec.id)
    freeze = storage.waves.freeze(spec.id, closed=False).freeze_number
    wave = storage.waves.commit_set(spec.id, freeze, b"c" * 32, [victim])
    assert (wave.state, storage.uploads.withdraw(spec.id, [victim], party)) == ("checking", (0, []))
    final = UploadSet(2, bytes(32), 1, b"c" * 32, None)
    assert storage.waves.finish_check(spec.id, b"c" * 32, others[:10], final).state == "sealed"
    assert victim not in b"".join(storage.uploads.entries(spec.id))
    assert storage.uploads.add([NewUploads(spec.id, [row(victim)], party)]) != [[]]


def test_what_came_with_another_token_is_not_confirmed_as_withdrawn(storage: Storage) -> None:
    """A recording of a party's own upload could be stored under another token; its party must not believe it gone."""
    spec = campaign(admission="invited", max_values_per_person=5)
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
