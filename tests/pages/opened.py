"""An analyst's console with its page in the browser, and what its tables are compared with."""

import time
from typing import Any

import numpy as np
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from analyst.client import Client
from analyst.present.console import routes
from analyst.present.table import plain
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import Console
from tests.harness.server_pair import LivePair, name
from tests.pages.visiting import Visit


def fill(pair: LivePair, made: Campaign, positions: np.ndarray[Any, Any]) -> None:
    pair.create(made)
    pair.upload_values(made, positions)
    pair.seal(made)
    pair.wait_ready(made)


class Opened:
    """A console with its page in the browser, and a client of its own to compare with."""

    def __init__(self, pair: LivePair, driver: Chrome, made: Campaign) -> None:
        self.token = pair.servers[0].analyst
        about = f"{pair.url(0)}/v1/campaigns/{name(made)}", self.token, pair.folder / "ca.pem"
        self.inside, self.client = Client(*about), Client(*about)
        self.console = Console(console_page("analyst"), routes(self.inside))
        self.console.start()
        self.visit = Visit(driver)
        self.visit.open(self.console.link)
        self.settle("distribution" if made.kind == "distribution" else "survival")

    def close(self) -> None:
        self.console.close()
        for client in (self.inside, self.client):
            client.__exit__(None, None, None)

    def settle(self, view: str) -> None:
        script = (
            "return document.querySelector(`[data-view=${arguments[0]}][aria-current]`)"
            " && document.querySelector('#pictures > *') && !document.querySelector('#pictures.busy')"
        )
        time.sleep(0.3)  # of a slider's patience
        self.visit.wait(lambda: self.visit.run(script, view), f"the view {view} is drawn")
        assert not self.visit.shown("problem"), self.visit.text("problem")

    def show(self, view: str) -> None:
        self.visit.driver.find_element(By.CSS_SELECTOR, f"[data-view={view}]").click()
        self.settle(view)

    def table(self, title: str) -> dict[str, list[Any]]:
        """The columns of a table, each number as exactly as the page has it."""
        script = """
          const details = [...document.querySelectorAll("#pictures details")].find((d) => d.querySelector("summary").textContent === arguments[0]);
          const names = [...details.querySelectorAll("th")].map((th) => th.textContent);
          const rows = [...details.querySelectorAll("tbody tr")].map((tr) => [...tr.children].map((td) => td.dataset.value === undefined ? td.textContent : Number(td.dataset.value)));
          return [names, rows];"""  # noqa: E501
        names, rows = self.visit.run(script, title)
        return {n: [row[i] for row in rows] for i, n in enumerate(names)}


def same(shown: list[Any], expected: Any) -> None:
    """Cells of a page and values of the API; what is not a number is an empty cell."""
    wanted = ["" if (v := plain(x)) is None else v for x in expected]
    wanted = [str(w).lower() if isinstance(w, bool) else w for w in wanted]
    assert shown == wanted


def same_table(shown: dict[str, list[Any]], made: Any) -> None:
    columns = made.columns()
    assert list(shown) == [column.replace("_", " ") for column in columns]
    for column, cells in columns.items():
        same(shown[column.replace("_", " ")], cells)
