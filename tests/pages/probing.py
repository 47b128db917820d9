"""The party's JavaScript, called from Python: in Chromium, on a page without a script."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

from fss_ecdf.pages.bundle import bundle

HERE = Path(__file__).with_name("probe.js")
SOURCE = bundle(HERE)


class Probe:
    """`probe.NAME(...)` of tests/pages/probe.js as a method; `change` may break the source first."""

    def __init__(self, driver: Chrome, change: Callable[[str], str] = str) -> None:
        self._driver = driver
        driver.get(HERE.as_uri())  # a page of a secure context, which WebCrypto needs
        driver.execute_script(change(SOURCE))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: object) -> Any:
            return self._driver.execute_script(f"return probe.{name}(...arguments)", *arguments)

        return call
