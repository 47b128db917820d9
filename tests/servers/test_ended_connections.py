"""PostgreSQL ends connections that wait in the pool, as a failover does: who notices, and who is told to come again."""

from collections.abc import Iterator

import psycopg
import pytest

from fss_ecdf.campaign.errors import StorageBusy
from servers.storage.admission import NewUploads
from servers.storage.storage import Storage
from tests.harness.postgres import Postgres
from tests.servers.conftest import new_campaign
from tests.servers.rows import row

_OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = %s"
_END_OTHERS = f"SELECT pg_terminate_backend(pid, 5000) {_OTHERS}"


@pytest.fixture
def storage(postgres: Postgres) -> Iterator[Storage]:
    opened = Storage(postgres.database())
    yield opened
    opened.close()


def end_connections(storage: Storage) -> None:
    """Those of the pool, of which there are three at least."""
    for pooled in [storage.engine.connect() for _ in range(3)]:
        pooled.close()
    url = storage.engine.url.set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as db:
        assert len(db.execute(_END_OTHERS, (url.database,)).fetchall()) >= 3


def test_an_upload_is_stored_on_a_new_connection(storage: Storage) -> None:
    campaign = new_campaign()
    storage.campaigns.add(campaign, "0" * 64, [])
    for id in range(3):
        end_connections(storage)
        assert storage.uploads.add([NewUploads(campaign.id, [row(bytes([id] * 16), b"key")])]) == [[]]
    assert storage.uploads.counts()[campaign.id] == 3


def test_other_writes_are_not_repeated_on_what_may_be_another_database(storage: Storage) -> None:
    """Whether the new one was rolled back is looked at before a request, so another request must come."""
    campaign = new_campaign()
    storage.campaigns.add(campaign, "0" * 64, [])
    end_connections(storage)
    with pytest.raises(StorageBusy):
        storage.waves.agree(campaign.id)
    storage.waves.agree(campaign.id)
