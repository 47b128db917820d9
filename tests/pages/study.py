"""A campaign at two real servers with its party's page, and how somebody uses it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from selenium.webdriver import Chrome

from fss_ecdf.cli.server import main as fss_server
from tests.harness.server_pair import LivePair, name
from tests.pages.visiting import DESK, Visit
from tests.servers.conftest import new_campaign


class Study:
    """A campaign at both servers with its page."""

    def __init__(
        self,
        pair: LivePair,
        folder: Path,
        invitations: Sequence[str] = (),
        *,
        organiser: str = "",
        contact: str = "",
        **changes: Any,
    ) -> None:
        self.pair = pair
        self.campaign = new_campaign(
            **{"strata": ["no", "yes"], "min_uploads": 1, "unit": "%", "check_keys": True, **changes}
        )
        pair.create(self.campaign, invitations)
        self.token = pair.upload_tokens[self.campaign.id]
        self.file = folder / "party.html"
        operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
        people = ["--organiser", organiser, "--contact", contact] if organiser else []
        assert fss_server([*operator, "party-page", name(self.campaign), "--out", str(self.file), *people]) == 0

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
    visit.wait_state("study")


def type_value(visit: Visit, value: str, stratum: int | None = 1) -> None:
    """From the first screen, or from that of the value, to the review."""
    if visit.state() == "study":
        visit.click("begin")
    visit.run("document.getElementById('value').value = ''")
    visit.find("value").send_keys(value)
    if stratum is not None:
        visit.click(f"stratum-{stratum}")
    visit.click("review-button")


def choose_file(visit: Visit, path: Path) -> None:
    if visit.state() == "study":
        visit.click("begin-file")
    visit.wait_state("enter")
    visit.find("file").send_keys(str(path))
    visit.wait_shown("file-read")


def give_file(visit: Visit, path: Path, column: int = 1, groups: int = 2) -> None:
    choose_file(visit, path)
    visit.click(f"column-{column}")
    visit.click(f"group-column-{groups}")
    visit.click("review-button")
    visit.wait_state("review")


def counts(visit: Visit) -> list[str]:
    """Rows read, without a value, off the scale, to be sent."""
    cells = visit.run("return [...document.querySelectorAll('#counts td')].map((cell) => cell.textContent)")
    return list(cells[:4])


def send(visit: Visit) -> None:
    visit.wait_state("review")
    visit.click("agree")
    visit.click("send")
