"""A campaign at two real servers with its party's page, and how somebody uses it."""

from pathlib import Path
from typing import Any

import numpy as np
from selenium.webdriver import Chrome

from harness.live import Pair, name
from programs.server import main as fss_server
from tests.servers.conftest import new_campaign
from tests.web.visiting import DESK, Visit


class Study:
    """A campaign at both servers with its page."""

    def __init__(self, pair: Pair, folder: Path, **changes: Any) -> None:
        self.pair = pair
        self.campaign = new_campaign(
            **{"strata": ["no", "yes"], "min_uploads": 1, "unit": "%", "checked": True, **changes}
        )
        pair.create(self.campaign)
        self.token = pair.upload_tokens[self.campaign.id]
        self.file = folder / "party.html"
        operator = ["campaign", "--operator", str(pair.folder / "operator.toml")]
        assert fss_server([*operator, "page", name(self.campaign), "--out", str(self.file)]) == 0

    @property
    def link(self) -> str:
        return f"{self.file.as_uri()}#token={self.token}"

    def stored(self) -> list[int]:
        return [self.pair.status(self.campaign, role)["uploads"] for role in (0, 1)]

    def visited(self, driver: Chrome, size: tuple[int, int] = DESK) -> Visit:
        """Its page, opened with the token, when both servers have answered it."""
        visit = Visit(driver, size)
        visit.open(self.link)
        ready(visit)
        return visit

    def csv(self, rows: int, seed: int = 0) -> Path:
        rng = np.random.default_rng(seed)
        lines = [f"p{i},{x:.3f},{'yes' if x > 0.4 else 'no'}" for i, x in enumerate(rng.beta(2, 5, rows))]
        path = self.file.with_name(f"values-{rows}-{seed}.csv")
        path.write_text("\n".join(["patient,score,event", *lines]) + "\n")
        return path


def ready(visit: Visit) -> None:
    visit.wait(lambda: not visit.shown("before"), "both servers are asked")


def give_file(visit: Visit, path: Path, column: str = "1") -> None:
    visit.run("document.querySelector('input[value=file]').click()")
    visit.find("file").send_keys(str(path))
    visit.wait_shown("columns")
    visit.choose("column", column)
    visit.wait_shown("preview")


def send(visit: Visit) -> None:
    visit.click("agree")
    visit.wait(lambda: visit.find("send").is_enabled(), "it can be sent")
    visit.click("send")
