"""A disk that cannot be read fails a request, not the process."""

from pathlib import Path

from servers.storage.admission import NewUploads
from servers.storage.storage import Storage
from tests.servers.conftest import new_campaign
from tests.servers.rows import row


def test_the_database_is_read_and_not_mapped_into_memory(tmp_path: Path) -> None:
    """The system ends a process that reads a part of a mapped file which its disk cannot give (SIGBUS)."""
    path, campaign = tmp_path / "server.db", new_campaign()
    storage = Storage(f"sqlite:///{path}")
    storage.campaigns.add(campaign, "0" * 64, [])
    ids = [i.to_bytes(16, "big") for i in range(5000)]
    assert storage.uploads.add([NewUploads(campaign.id, [row(i, b"key" * 100) for i in ids])]) == [[]]
    storage.close()
    storage = Storage(f"sqlite:///{path}")
    rows = storage.uploads.rows(campaign.id, 100)
    for part in rows:
        assert part
        assert not [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path))]
    storage.close()
