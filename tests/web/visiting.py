"""A page in the browser: finding, waiting, looking. Screenshots go to a folder of their own, to be looked at."""

import base64
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from harness.live import ROOT, Pair

SCREENSHOTS = Path(os.environ.get("FSS_SCREENSHOTS", ROOT / "bench-results" / "screenshots"))
PHONE, DESK = (390, 844), (1100, 900)


def trusting(pair: Pair) -> str:
    """The option by which the browser takes exactly these two development certificates."""
    spki = []
    for role in (0, 1):
        certificate = x509.load_pem_x509_certificate((pair.folder / f"server{role}" / "cert.pem").read_bytes())
        form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        spki.append(base64.b64encode(hashlib.sha256(certificate.public_key().public_bytes(*form)).digest()).decode())
    return "--ignore-certificate-errors-spki-list=" + ",".join(spki)


class Visit:
    """One page, as somebody uses it."""

    def __init__(self, driver: Chrome, size: tuple[int, int] = DESK) -> None:
        self.driver = driver
        # The window's own size has a least width; the metrics of a device have not.
        about = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", about)

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # so that a change of the fragment alone is a visit too
        self.driver.get(address)

    def find(self, id: str) -> WebElement:
        return self.driver.find_element(By.ID, id)

    def shown(self, id: str) -> bool:
        return self.find(id).is_displayed()

    def text(self, id: str) -> str:
        return self.find(id).text

    def click(self, id: str) -> None:
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
            except StaleElementReferenceException:
                pass
            time.sleep(0.05)
        body = self.driver.find_element(By.TAG_NAME, "body").text
        raise AssertionError(f"{what}: not after {seconds} s; the page says:\n{body}\n{self._console()}")

    def _console(self) -> Any:
        return self.driver.get_log("browser")  # type: ignore[no-untyped-call]

    def wait_shown(self, id: str, seconds: float = 60) -> None:
        self.wait(lambda: self.shown(id), f"#{id} is shown", seconds)

    def look(self, name: str) -> None:
        """Keep what the page looks like, from its top to its end."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        whole = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(whole["data"]))

    def fits(self) -> bool:
        """Nothing has to be scrolled sideways."""
        return bool(self.run("return document.documentElement.scrollWidth <= innerWidth"))
