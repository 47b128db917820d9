"""A browser for the tests of this folder."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.web.chromium import chromium
from tests.web.probing import Probe


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def probe(driver: Chrome) -> Probe:
    return Probe(driver)
