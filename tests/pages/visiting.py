"""A page in the browser: finding, waiting, looking. Screenshots go to a folder of their own, to be looked at."""

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_core_python
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.harness.server_pair import ROOT

SCREENSHOTS = Path(os.environ.get("FSS_SCREENSHOTS", ROOT / "bench-results" / "screenshots"))
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
# The last is a desk at 400 %.
PHONE, DESK, ZOOMED = (390, 844), (1100, 900), (320, 256)

# What is drawn anew at this moment, or still lies under a window that closes.
_NOT_YET = (
    StaleElementReferenceException,
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
)


class Visit:
    """One page, as somebody uses it."""

    def __init__(self, driver: Chrome, size: tuple[int, int] = DESK) -> None:
        self.driver = driver
        self.resize(size)

    def resize(self, size: tuple[int, int]) -> None:
        # The window's own size has a least width; the metrics of a device have not.
        about = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", about)

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # so that a change of the fragment alone is a visit too
        self.driver.get(address)

    def find(self, id: str) -> WebElement:
        return self.driver.find_element(By.ID, id)

    def shown(self, id: str) -> bool:
        found = self.driver.find_elements(By.ID, id)
        return bool(found) and found[0].is_displayed()

    def state(self) -> str:
        """The party's page says in which state it is."""
        return str(self.run("return document.body.dataset.state"))

    def wait_state(self, state: str, seconds: float = 60) -> None:
        self.wait(lambda: self.state() == state, f"the page is in the state {state}", seconds)

    def text(self, id: str) -> str:
        return self.find(id).text

    def click(self, id: str) -> None:
        """When it can be: a click on what is still disabled would be lost."""
        self.wait(lambda: self.find(id).is_displayed() and self.find(id).is_enabled(), f"#{id} can be clicked")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.find(id))
        self.find(id).click()

    def choose(self, id: str, value: str) -> None:
        """An option, as a person's choice: the page hears it change."""
        self.run("const s = document.getElementById(arguments[0]); s.value = arguments[1];"
                 "s.dispatchEvent(new Event('change', { bubbles: true }));", id, value)  # fmt: skip

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, until: Callable[[], Any], what: str, seconds: float = 60) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if found := until():
                    return found
            except _NOT_YET:
                pass
            time.sleep(0.05)
        body = self.driver.find_element(By.TAG_NAME, "body").text
        raise AssertionError(f"{what}: not after {seconds} s; the page says:\n{body}\n{self._console()}")

    def _console(self) -> Any:
        return self.driver.get_log("browser")  # type: ignore[no-untyped-call]

    def wait_shown(self, id: str, seconds: float = 60) -> None:
        self.wait(lambda: self.shown(id), f"#{id} is shown", seconds)

    def look(self, name: str, *, strict: bool = False) -> None:
        """Keep what the page looks like, from its top to its end, by day and by night; nobody may be shut out."""
        self._picture(name)
        self.check_access(name, strict=strict)
        for value in ("dark", "light"):
            self.driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": value}]}
            )
            if value == "dark":
                self._picture(f"{name}-dark")
                self.check_access(f"{name}, dark", strict=strict)

    def forced_colours(self, name: str) -> None:
        """As for readers whose system chooses all colours."""
        features = [{"name": "forced-colors", "value": "active"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        try:
            assert self.run("return matchMedia('(forced-colors: active)').matches")
            self._picture(name)
            self.check_access(name, strict=True)
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def check_access(self, what: str, *, strict: bool = False) -> None:
        """axe-core finds no fault that is serious or worse; strictly, none at all."""
        self.run(AXE)
        found = self.driver.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
        bad = [v for v in found["violations"] if strict or v["impact"] in ("serious", "critical")]
        told = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in bad]
        assert not bad, f"{what}: {told}"
        assert len(found["passes"]) > 10, "axe-core has looked at nothing"

    def _picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        whole = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(whole["data"]))

    def still(self) -> None:
        """Nothing on the page moves by itself for those who ask for less motion."""
        features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        moving = self.run("""
          const styles = [...document.querySelectorAll("*")].map((e) => getComputedStyle(e));
          return [matchMedia("(prefers-reduced-motion: reduce)").matches, document.getAnimations().length,
            styles.filter((s) => s.animationName !== "none" || parseFloat(s.transitionDuration) > 0).length];""")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        assert moving == [True, 0, 0]

    def tab_to(self, id: str) -> None:
        """By the keyboard alone."""
        for _ in range(60):
            self.driver.switch_to.active_element.send_keys(Keys.TAB)
            if self.run("return document.activeElement.id") == id:
                return
        raise AssertionError(f"the keyboard does not reach #{id}")

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def fits(self) -> bool:
        """Nothing has to be scrolled sideways."""
        return bool(self.run("return document.documentElement.scrollWidth <= innerWidth"))
