"""The gallery: its page is made of the list of pictures, which exist, are small, and come from their commands."""

from pathlib import Path

import pytest
from PIL import Image

from tools.gallery.__main__ import main
from tools.gallery.pictures import ALONE, IMAGES, MOST_BYTES, PAGE, PICTURES, page


def test_the_page_is_that_of_the_list() -> None:
    assert PAGE.read_text() == page()


def test_every_picture_is_there_and_all_together_are_small() -> None:
    files = sorted(IMAGES.iterdir())
    assert [file.stem for file in files] == sorted(picture.name for picture in PICTURES)
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    for file in files:
        with Image.open(file) as picture:
            assert min(picture.size) > 400, file


@pytest.mark.slow
def test_commands_make_their_pictures(tmp_path: Path) -> None:
    drawn = [picture.name for picture in PICTURES if not picture.screen and picture.study != ALONE]
    assert main(["--out", str(tmp_path), "--only", *drawn]) == 0
    assert {file.stem for file in tmp_path.iterdir()} == set(drawn)
