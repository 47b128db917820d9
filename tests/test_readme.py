"""What the README shows works: its Python runs, its make targets exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run_and_print_what_they_say(code: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.+?)(?: people.*)?$", code, re.MULTILINE)
    assert promised
    assert out.getvalue().splitlines() == promised


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = [line.split("#")[0].split() for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert commands
    for command in commands:
        assert command[0] == "make"
        assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), command


def test_files_it_names_exist() -> None:
    for name in re.findall(r"`((?:fss|campaign|servers|bench|docs|tests)/[\w./]*)`", README):
        assert (ROOT / name).exists(), name
