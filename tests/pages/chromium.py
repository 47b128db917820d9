"""The browser of these tests. Without one they are skipped, except where CI says that there must be one."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.harness import browser


def skip_or_fail(missing: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@contextmanager
def chromium(arguments: Sequence[str] = (), downloads: Path | None = None) -> Iterator[Chrome]:
    if browser.programs() is None:
        skip_or_fail(browser.MISSING)
    with browser.chromium(arguments, downloads) as started:
        yield started
