"""Live servers for all tests, quickly; and no test leaves receipts in the data folder of whoever runs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from dealer.receipt import FOLDER_VARIABLE
from tests.harness.server_pair import LivePair

# A slow machine is no wrong answer.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

if TYPE_CHECKING:  # it loads all of a server
    from tests.harness.fork_server import Forked, ForkServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with live servers first: processes that share the tests end together when the short ones come last."""
    items.sort(key=lambda item: not hasattr(getattr(item, "module", None), "Pair"))


@pytest.fixture(scope="session", autouse=True)
def receipts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("receipts")))
        yield


class _Late:
    """A nursery that exists from the first server on."""

    def __init__(self) -> None:
        self._nursery: ForkServer | None = None

    def start(self, config: Path, log: Path) -> "Forked":
        from tests.harness.fork_server import ForkServer

        self._nursery = self._nursery or ForkServer()
        return self._nursery.start(config, log)

    def close(self) -> None:
        if self._nursery is not None:
            self._nursery.close()


@pytest.fixture(scope="session", autouse=True)
def nursery() -> Iterator[None]:
    late = _Late()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LivePair, "nursery", late)
        yield
    late.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePair]:
    """Two servers for all tests of a module."""
    made = LivePair(tmp_path_factory.mktemp("live"))
    made.expose()
    with made as started:
        yield started
