"""A browser for the tests of this folder, an analyst's console of one sealed campaign, and an operator's."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.operators.console import Watch
from fss_ecdf.operators.console_actions import Servers
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import Console
from tests.harness.server_pair import LivePair
from tests.pages.chromium import chromium
from tests.pages.opened import Opened, fill
from tests.pages.probing import Probe
from tests.servers.conftest import new_campaign, values


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads: Path) -> Iterator[Chrome]:
    with chromium(downloads=downloads) as started:
        yield started


@pytest.fixture(scope="module")
def probe(driver: Chrome) -> Probe:
    return Probe(driver)


@pytest.fixture(scope="module")
def scores(pair: LivePair) -> Campaign:
    made = new_campaign(strata=["no", "yes"], reserve=1.0, unit="probability")
    x = values(4000)
    labels = ["yes" if flag else "no" for flag in np.random.default_rng(1).random(4000) < x]
    fill(pair, made, made.to_positions(x, labels).positions)
    return made


@pytest.fixture(scope="module")
def opened(pair: LivePair, driver: Chrome, scores: Campaign) -> Iterator[Opened]:
    made = Opened(pair, driver, scores)
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("console")


@pytest.fixture(scope="module")
def watch(pair: LivePair, folder: Path) -> Iterator[Watch]:
    with Servers.of(pair.folder / "operator.toml") as servers:
        yield Watch(servers, folder, time.time)


@pytest.fixture(scope="module")
def console(watch: Watch) -> Iterator[Console]:
    made = Console(console_page("operator"), watch.routes())
    made.start()
    yield made
    made.close()
