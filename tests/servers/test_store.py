"""The store on its own: a full disk, budgets, rates, and noise at very small rates."""

import os
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from fss_ecdf.campaign.errors import BudgetExceeded, StorageFull, TooManyRequests
from servers.api.limits import Rate
from servers.storage.admission import NewUploads
from servers.storage.key_files import Folder
from servers.storage.storage import Storage
from tests.servers.conftest import new_campaign
from tests.servers.rows import row

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_full_disk_stores_nothing_and_says_so(tmp_path: Path) -> None:
    store = Storage(f"sqlite:///{tmp_path / 'db'}")
    campaign = new_campaign()
    store.campaigns.add(campaign, "0" * 64, [])

    def limit_pages(connection: sa.PoolProxiedConnection, *_: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA max_page_count = 60")
        cursor.close()

    sa.event.listen(store.engine, "checkout", limit_pages)
    rows = [row(i.to_bytes(16, "big"), bytes(2000)) for i in range(400)]
    with pytest.raises(StorageFull, match="full; nothing was stored"):
        store.uploads.add([NewUploads(campaign.id, rows)])
    assert store.campaigns.get(campaign.id).stored == 0
    assert list(store.uploads.entries(campaign.id)) == []
    assert store.uploads.add([NewUploads(campaign.id, rows[:5])]) == [[]]
    assert store.campaigns.get(campaign.id).stored == 5
    store.close()


def test_an_expense_is_recorded_once_and_never_beyond_the_limit(tmp_path: Path) -> None:
    store = Storage(f"sqlite:///{tmp_path / 'db'}")
    campaign = new_campaign().id
    store.ledger.spend(campaign, "curve", 1.0, {0: 1.5}, NOW)
    store.ledger.spend(campaign, "curve", 1.0, {0: 1.5}, NOW)
    assert store.ledger.spent(campaign) == {0: 1.0}
    with pytest.raises(BudgetExceeded, match="would exceed"):
        store.ledger.spend(campaign, "groups a", 0.6, {0: 1.5}, NOW)
    store.ledger.spend(campaign, "groups b", 0.5, {0: 1.5}, NOW)
    assert store.ledger.spent(campaign) == {0: 1.5}
    store.close()


def test_the_rate_lets_bursts_through_and_recovers() -> None:
    now = 0.0
    rate = Rate(200, lambda: now)  # half of it for one sender
    rate.take(80, "a")
    with pytest.raises(TooManyRequests) as caught:
        rate.take(50, "a")
    assert caught.value.retry_after == 1
    now = 0.5
    rate.take(50, "a")
    now = 10.0
    rate.take(1000, "a")  # larger than a second's worth, from a full bucket
    with pytest.raises(TooManyRequests):
        rate.take(1, "a")


def test_messages_are_told_part_by_part_without_reading_the_rest(tmp_path: Path) -> None:
    """Of 10^8 keys they are 2.4 GB, in 1500 parts."""
    folder, messages = Folder(tmp_path, bytes(32)), os.urandom(24 << 18)
    folder.make()
    assert folder.some_messages(b"s" * 32, 0, 24) is None
    folder.save_messages(b"s" * 32, messages)
    assert folder.some_messages(b"s" * 32, 0, 24) == messages[:24]
    tracemalloc.start()
    assert folder.some_messages(b"s" * 32, 4800, 48000) == messages[4800:48000]
    assert tracemalloc.get_traced_memory()[1] < len(messages) / 10
    tracemalloc.stop()
    for start, stop in ((24, 0), (1 << 70, 1 << 80), (len(messages), len(messages) + 24)):
        assert folder.some_messages(b"s" * 32, start, stop) == b""
    assert folder.some_messages(b"s" * 32, len(messages) - 24, 1 << 80) == messages[-24:]
    (path,) = folder.path.glob("messages-*")
    kept = path.read_bytes()
    path.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    assert folder.some_messages(b"s" * 32, 0, 24) is None
    folder.save_messages(b"s" * 32, messages)
    assert folder.some_messages(b"s" * 32, 0, 24) == messages[:24]
