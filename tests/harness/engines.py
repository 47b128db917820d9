"""Three browser engines behind one small interface: Debian's Chromium, Firefox and WebKitGTK."""

import base64
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from selenium.webdriver import WebKitGTK
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.webkitgtk.options import Options
from selenium.webdriver.webkitgtk.service import Service

from tests.harness.browser import chromium, programs, trusting
from tests.harness.marionette import Marionette, firefox
from tests.harness.server_pair import LivePair

_MINI_BROWSER = "webkit2gtk-4.*/MiniBrowser"


class Tab(Protocol):
    """What tests need of any engine."""

    def open(self, address: str) -> None: ...
    def run(self, script: str, *arguments: object) -> Any: ...
    def type(self, id: str, text: str) -> None:
        """Press keys in a field, or give a file's path to its input."""

    def picture(self) -> bytes:
        """What is in the window, as PNG."""


class SeleniumTab:
    """Chromium or WebKitGTK, by WebDriver."""

    def __init__(self, driver: WebDriver) -> None:
        self._driver = driver

    def open(self, address: str) -> None:
        self._driver.get("about:blank")  # so that a change of the fragment alone is a visit, too
        self._driver.get(address)

    def run(self, script: str, *arguments: object) -> Any:
        return self._driver.execute_script(script, *arguments)

    def type(self, id: str, text: str) -> None:
        self._driver.find_element(By.ID, id).send_keys(text)

    def picture(self) -> bytes:
        return bytes(self._driver.get_screenshot_as_png())


class FirefoxTab:
    """Firefox, by Marionette."""

    def __init__(self, session: Marionette) -> None:
        self._session = session

    def open(self, address: str) -> None:
        for each in ("about:blank", address):
            self._session.call("WebDriver:Navigate", url=each)

    def run(self, script: str, *arguments: object) -> Any:
        return self._session.call("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]

    def type(self, id: str, text: str) -> None:
        self._session.call("WebDriver:ElementSendKeys", id=self._session.element(id), text=text)

    def picture(self) -> bytes:
        return base64.b64decode(self._session.call("WebDriver:TakeScreenshot", full=False)["value"])


@contextmanager
def _chromium(pair: LivePair) -> Iterator[Tab]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"]) as driver:
        yield SeleniumTab(driver)


@contextmanager
def _firefox(_: LivePair) -> Iterator[Tab]:
    with firefox(str(shutil.which("firefox-esr"))) as session:
        yield FirefoxTab(session)


@contextmanager
def _webkit(_: LivePair) -> Iterator[Tab]:
    """It draws on a screen that nobody sees."""
    with _screen() as display, TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = {"DISPLAY": display, "LANG": "en_US.UTF-8", "XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder}
        options = Options()
        options.binary_location = str(_mini_browser())
        options.add_argument("--automation")
        options.set_capability("acceptInsecureCerts", True)
        service = Service(str(shutil.which("WebKitWebDriver")), env={**os.environ, **own})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of selenium, about itself
            driver = WebKitGTK(options=options, service=service)
        try:
            yield SeleniumTab(driver)
        finally:
            driver.quit()


@contextmanager
def _screen() -> Iterator[str]:
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x1000x24", "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            yield f":{pipe.readline().strip()}"
    finally:
        process.terminate()
        process.wait(30)


def _mini_browser() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob(f"*/{_MINI_BROWSER}"))), None)


def missing(engine: str) -> str:
    """What an engine lacks on this machine, as one line that says what to install; "": nothing."""
    if engine == "chromium":
        return "" if programs() else "no Chromium: apt-get install chromium chromium-driver"
    if engine == "firefox":
        return "" if shutil.which("firefox-esr") else "no Firefox: apt-get install firefox-esr"
    found = shutil.which("WebKitWebDriver") and shutil.which("Xvfb") and _mini_browser()
    return "" if found else "no WebKitGTK: apt-get install webkit2gtk-driver xvfb"


ENGINES: dict[str, Callable[[LivePair], AbstractContextManager[Tab]]] = {
    "chromium": _chromium,
    "firefox": _firefox,
    "webkit": _webkit,
}
