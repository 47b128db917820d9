"""A party's page in any engine, walked from state to state; every transition that was made is remembered."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.harness.engines import Tab
from tests.harness.server_pair import ROOT

Move = tuple[str, str, str]

# Each mutation has the value before it; what the page was doing before the script ran is in the first of them.
_WATCH = """
window.moves = [];
const made = (text) => text && window.moves.push(text.split(" "));
made(document.body.dataset.move);
new MutationObserver((records) => {
  records.slice(1).forEach((record) => made(record.oldValue));
  made(document.body.dataset.move);
}).observe(document.body, { attributeFilter: ["data-move"], attributeOldValue: true });
"""


def transitions() -> set[Move]:
    """The table of fss_ecdf/pages/party/states.js."""
    text = (ROOT / "fss_ecdf" / "pages" / "party" / "states.js").read_text()
    table = re.search(r"export const TRANSITIONS = (\{.*?\n\});\n", text, re.DOTALL)
    assert table
    plain = re.sub(r"//.*", "", table[1])
    found = json.loads(re.sub(r",(\s*})", r"\1", re.sub(r"(\w+):", r'"\1":', plain)))
    return {(state, event, to) for state, events in found.items() for event, to in events.items()}


class Walk:
    """Clicks, typing and waiting; `moves` has all transitions of all pages that were opened."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.moves: set[Move] = set()

    def open(self, address: str) -> None:
        self.gather()
        self.tab.open(address)
        self.tab.run(_WATCH)

    def gather(self) -> None:
        self.moves |= {(a, b, c) for a, b, c in self.tab.run("return window.moves ?? []")}

    def state(self) -> str:
        return str(self.tab.run("return document.body.dataset.state ?? ''"))

    def at(self, state: str, seconds: float = 60) -> None:
        self.wait(lambda: self.state() == state, f"the state {state}", seconds)
        self.gather()

    def wait(self, until: Callable[[], Any], what: str, seconds: float = 60) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := until():
                return found
            time.sleep(0.05)
        raise AssertionError(f"{what}: not after {seconds} s; the page says:\n{self.text('body')}")

    def text(self, selector: str) -> str:
        return str(self.tab.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def has(self, id: str) -> bool:
        return bool(self.tab.run("return Boolean(document.getElementById(arguments[0]))", id))

    def click(self, id: str) -> None:
        self.wait(lambda: self.has(id), f"#{id} is there")
        self.tab.run("document.getElementById(arguments[0]).click()", id)
        self.gather()

    def type(self, id: str, text: str) -> None:
        self.wait(lambda: self.has(id), f"#{id} is there")
        self.tab.run("document.getElementById(arguments[0]).value = ''", id)
        self.tab.type(id, text)

    def unfold(self, id: str) -> None:
        self.tab.run("document.getElementById(arguments[0]).open = true", id)

    def invite(self, token: str) -> None:
        """An invitation that is opened in the tab that is there."""
        self.tab.run("location.hash = `token=${arguments[0]}`", token)
        self.wait(lambda: not self.tab.run("return location.hash"), "the token is taken out of the address")

    def enter(self, value: str, stratum: int = 1) -> None:
        if self.state() == "study":
            self.click("begin")
        self.at("enter")
        self.type("value", value)
        self.click(f"stratum-{stratum}")
        self.click("review-button")

    def give(self, path: Path, column: int = 1, groups: int = 2) -> None:
        if self.state() == "study":
            self.click("begin-file")
        self.at("enter")
        self.tab.type("file", str(path))
        self.click(f"column-{column}")
        self.click(f"group-column-{groups}")
        self.click("review-button")
        self.at("review")

    def send(self) -> None:
        self.at("review")
        self.click("agree")
        self.click("send")
