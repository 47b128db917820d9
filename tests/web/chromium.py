"""A real Chromium for tests: Debian's, driven by its own driver. Without one, tests are skipped, except where CI is."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

MISSING = "no browser: `make browser` needs chromium and chromium-driver (apt-get install chromium chromium-driver)"


def programs() -> tuple[str, str] | None:
    """Where browser and driver are."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def chromium(arguments: Sequence[str] = (), downloads: Path | None = None) -> Iterator[Chrome]:
    """One browser with a profile of its own, until the end of the block."""
    found = programs()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    options = ChromeOptions()
    options.binary_location = found[0]
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in (
            "--headless=new",
            "--no-sandbox",  # of a browser in a container; it opens our own pages only
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--force-color-profile=srgb",
            f"--user-data-dir={profile}",
            *arguments,
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if downloads is not None:
            several = {"profile.default_content_setting_values.automatic_downloads": 1}
            options.add_experimental_option("prefs", {"download.default_directory": str(downloads), **several})
        driver = Chrome(options=options, service=Service(found[1]))
        try:
            driver.set_script_timeout(300)
            yield driver
        finally:
            driver.quit()
