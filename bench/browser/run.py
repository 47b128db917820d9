"""python -m bench browser: a party's page in Chromium sends a file of many rows to two real servers.

Browser and both servers share this machine's cores, so seconds depend on what else runs on them; processor time does
not. The page's longest pause is seen from inside it: the longest time between two turns of a timer that should ring
every 20 ms.
"""

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from bench import output
from bench.browser.cpu import Watched
from bench.output import Result, print_table, write_json
from bench.system.uploading import new_campaign
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.pages.party_page import party_page
from tests.harness.browser import chromium, trusting
from tests.harness.server_pair import LivePair, name

_WATCH = """
let last = performance.now();
window.longest = 0;
setInterval(() => {
  const now = performance.now();
  window.longest = Math.max(window.longest, now - last);
  last = now;
}, 20);
"""


def main(argv: list[str]) -> int:
    parser = output.parser("browser", __doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--unchecked", action="store_true", help="keys without proofs")
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    with tempfile.TemporaryDirectory() as folder, _started(Path(folder)) as pair, chromium([trusting(pair)]) as driver:
        campaign = new_campaign(args.bits, check_keys=not args.unchecked)
        pair.create(campaign)
        results = _Run(pair, driver, campaign, Path(folder)).send(args.rows, args.seed)
    print_table(results)
    write_json(args.json, results, args.seed, rows=args.rows, bits=args.bits)
    return 0


@contextmanager
def _started(folder: Path) -> Iterator[LivePair]:
    """Two servers; on a busy machine their start may take a while, and is not measured."""
    pair = LivePair(folder)
    try:
        for role in (0, 1):
            pair.start(role, wait=False)
        for role in (0, 1):
            pair.wait(role, 180)
        yield pair
    finally:
        for role in (0, 1):
            pair.stop(role)


class _Run:
    """One page that sends one file."""

    def __init__(self, pair: LivePair, driver: Chrome, campaign: Campaign, folder: Path) -> None:
        self._pair, self._driver, self._campaign, self._folder = pair, driver, campaign, folder

    def send(self, rows: int, seed: int) -> list[Result]:
        page = party_page(self._campaign, [f"{self._pair.url(r)}/v1/campaigns/{name(self._campaign)}" for r in (0, 1)])
        (self._folder / "party.html").write_text(page)
        values = np.random.default_rng(seed).integers(0, 1 << self._campaign.bits, rows)
        (self._folder / "values.csv").write_text("value\n" + "\n".join(map(str, values)) + "\n")
        token = self._pair.upload_tokens[self._campaign.id]
        self._driver.get(f"{(self._folder / 'party.html').as_uri()}#token={token}")
        self._wait(lambda: self._state() == "study", "both servers are asked")
        self._driver.execute_script(_WATCH)
        preview = self._timed(lambda: self._give(self._folder / "values.csv"), "review")
        watched = Watched(self._programs())
        sending = self._timed(self._agree, "done")
        spent = watched.spent()
        stored = [self._pair.status(self._campaign, role)["uploads"] for role in (0, 1)]
        if stored != [rows, rows]:
            raise RuntimeError(f"the servers have stored {stored}, not {rows} each")
        pause = float(self._driver.execute_script("return window.longest")) / 1000
        digest = hashlib.sha256(page.encode()).hexdigest()[:16]
        what = f"{rows} keys of {self._campaign.bits} bits{' with proofs' * self._campaign.check_keys} to both"
        return [
            Result("browser_page_kb", len(page.encode()) / 1000, f"the page, one file (SHA-256 {digest}...)"),
            Result("browser_preview_s", preview, f"reading {rows} rows, placing them, drawing their histogram"),
            Result.at_most("browser_send_s", sending, 60, what),
            Result("browser_cpu_s", spent.all, "processor time of it, browser and both servers together"),
            Result(
                "browser_busiest_s", spent.busiest, "of the thread that worked most: no number of cores does it faster"
            ),
            Result("browser_send_to_cpu", sending / (spent.all / 2), "seconds, against two cores that do nothing else"),
            Result("browser_rows_per_s", rows / sending, "the same as a rate"),
            Result.at_most("browser_pause_s", pause, 1, "the longest time in which the page did not react"),
        ]

    def _programs(self) -> list[int]:
        servers = [process.pid for process in self._pair.processes if process is not None]
        return [self._driver.service.process.pid, *servers]

    def _shown(self, id: str) -> bool:
        return self._driver.find_element(By.ID, id).is_displayed()

    def _wait(self, until: Callable[[], Any], what: str, seconds: float = 600) -> None:
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                raise RuntimeError(f"{what}: {self._driver.find_element(By.TAG_NAME, 'body').text}")
            time.sleep(0.05)

    def _timed(self, act: Callable[[], None], until: str) -> float:
        start = time.monotonic()
        act()
        self._wait(lambda: self._state() == until, until)
        return time.monotonic() - start

    def _give(self, path: Path) -> None:
        self._click("begin-file")
        self._driver.find_element(By.ID, "file").send_keys(str(path))
        self._wait(lambda: self._driver.find_elements(By.ID, "column-0"), "the columns are shown")
        for id in ("column-0", "review-button"):
            self._click(id)

    def _agree(self) -> None:
        for id in ("agree", "send"):
            self._click(id)

    def _click(self, id: str) -> None:
        self._driver.execute_script("document.getElementById(arguments[0]).click()", id)

    def _state(self) -> str:
        return str(self._driver.execute_script("return document.body.dataset.state"))
