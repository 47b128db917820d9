"""The gallery's pages in a browser: both consoles and the party's page come into the state that is shown of them."""

import os
from pathlib import Path

import pytest

from tests.harness import browser
from tools.gallery.__main__ import main
from tools.gallery.pictures import PICTURES


@pytest.mark.browser
def test_pages_are_looked_at(tmp_path: Path) -> None:
    if browser.programs() is None and not os.environ.get("CI"):
        pytest.skip(browser.MISSING)
    seen = [picture.name for picture in PICTURES if picture.screen]
    assert main(["--out", str(tmp_path), "--only", *seen]) == 0
    assert {file.stem for file in tmp_path.iterdir()} == set(seen)
