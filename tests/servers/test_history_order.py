"""The history on PostgreSQL, where several processes write at once: what is shown covers everything before it."""

import threading

from servers.storage import history
from servers.storage.database import Transaction
from servers.storage.storage import Storage
from tests.campaign.helpers import campaign
from tests.harness.postgres import Postgres


def test_no_row_is_added_behind_one_that_was_shown(postgres: Postgres) -> None:
    """A smaller number that is committed later would be missing in an older copy in which the shown row is not."""
    storage, other = Storage(url := postgres.database()), Storage(url)
    specs = campaign(id=bytes([1]) * 32), campaign(id=bytes([2]) * 32)
    for spec in specs:
        storage.campaigns.add(spec, "0" * 64, [])
    before, shown = storage.history.newest().number, list[int]()

    def withdraw() -> None:
        other.uploads.withdraw(specs[1].id, [b"x" * 16], None)
        shown.append(other.history.newest().number)

    second = threading.Thread(target=withdraw)
    with Transaction(storage.engine, specs[0].id) as db:
        history.advance(db)
        second.start()
        second.join(0.5)  # it waits, or has come first
        assert shown == []
    second.join()
    assert shown == [before + 2]
    storage.close()
    other.close()
