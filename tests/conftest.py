"""No test leaves receipts in the data folder of whoever runs it."""

from collections.abc import Iterator

import pytest

from dealer.receipt import FOLDER_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def receipts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("receipts")))
        yield
