"""The bounded part of the copies; `make chaos` takes many more. And damage that must be named."""

from pathlib import Path

import pytest

from servers.storage.database import Damaged
from servers.storage.storage import Storage
from tests.chaos.durability import KINDS, try_copies
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign

pytestmark = pytest.mark.faults


def test_servers_start_on_copies(tmp_path: Path) -> None:
    outcomes = try_copies(tmp_path, 3 * len(KINDS), seed=1)
    assert outcomes["instant: ready"] == 3
    assert outcomes["torn: ready"] == 3
    assert outcomes.total() == 3 * len(KINDS)


@pytest.mark.parametrize("damage", [lambda data: data[:2000], lambda data: data[:4096] + bytes(len(data) - 4096)])
def test_a_damaged_database_is_named_at_the_start(tmp_path: Path, damage: "object") -> None:
    path = tmp_path / "server.db"
    store = Storage(f"sqlite:///{path}")
    store.campaigns.add(new_campaign(), "0" * 64, [])
    store.close()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(Damaged, match=r"server.db is damaged .*; restore this server"):
        Storage(f"sqlite:///{path}")


def test_a_server_with_a_damaged_database_ends_with_one_line(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    data = pair.folder / "server0" / "data"
    (data / "server.db").write_bytes(b"not a database" * 1000)
    pair.start(0, wait=False)
    assert pair.exited(0) == 65
    assert all(line.startswith("{") for line in pair.log(0).splitlines())
    (why,) = (event["why"] for event in pair.events(0) if event["event"] == "not-started")
    assert why.startswith("the database ")
