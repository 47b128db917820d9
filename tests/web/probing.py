"""The party's JavaScript, called from Python: in Chromium, on an empty page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

from web.join import joined

SOURCE = joined(Path(__file__).with_name("probe.js"))


class Probe:
    """`probe.NAME(...)` of tests/web/probe.js as a method; `change` may break the source first."""

    def __init__(self, driver: Chrome, change: Callable[[str], str] = str) -> None:
        self._driver = driver
        driver.get("about:blank")
        driver.execute_script(change(SOURCE))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: object) -> Any:
            return self._driver.execute_script(f"return probe.{name}(...arguments)", *arguments)

        return call
