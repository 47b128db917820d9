"""What the README shows works: its Python runs, its make targets exist."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.ports import free_ports

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


MOST_LINES = 150  # three screens
ALONE = ("README.md", "docs/how-to/plan.md", "docs/how-to/python.md")  # pages with Python that needs no server


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_it_fits_on_three_screens() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def is_live(code: str) -> bool:
    return "FSS_CAMPAIGN_URLS" in code


@pytest.mark.parametrize(
    "code", [code for page in ALONE for code in blocks("python", (ROOT / page).read_text()) if not is_live(code)]
)
def test_python_blocks_run_and_print_what_they_say(code: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.+?)(?: people.*)?$", code, re.MULTILINE)
    assert promised
    assert out.getvalue().splitlines() == promised


def commands() -> list[str]:
    return [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines() if line.strip()]


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [command.split()[1] for command in commands() if command.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


# Commands that meet a server which is still starting say so (exit code 75) and are repeated, as a person would.
PREAMBLE = """set -eu
trap 'kill $(jobs -p) 2>/dev/null || :; wait' EXIT
again() {
  for _ in $(seq 150); do "$@" && return 0; code=$?; [ $code = 75 ] || return $code; sleep 0.2; done
  return 75
}
"""


def walk_through() -> str:
    """The README's session as one script: all commands of its sh blocks, and the analyst's Python."""
    ports = " ".join(map(str, free_ports()))
    (analyst,) = (code for code in blocks("python") if is_live(code))
    lines = [PREAMBLE]
    for line in commands():
        if line.startswith("fss-server init-pair"):
            line += f" --ports {ports}"
        if not line.startswith("make "):
            lines.append(f"again {line}" if line.startswith("fss-") and not line.endswith("&") else line)
    return "\n".join([*lines, f"python - <<'END'\n{analyst}END\n"])


@pytest.mark.slow
def test_the_session_works_as_written(tmp_path: Path) -> None:
    """Every command, against two live servers; only the ports, which may be taken, are others."""
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", walk_through()], cwd=tmp_path, env=path, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    for word in ("nothing was sent (--dry-run)", "both servers have stored 2000 values", "sealed 2000 uploads"):
        assert word in done.stdout, word
    for word in ("auc", "hosmer lemeshow", "Kolmogorov-Smirnov", "wrote report.html", "2114", "threshold"):
        assert word in done.stdout, word
    assert "Calibration" in (tmp_path / "report.html").read_text()
    assert {"quantiles.png", "roc.png"} <= {path.name for path in tmp_path.iterdir()}


def test_files_it_names_exist() -> None:
    for name in re.findall(r"`((?:fss|campaign|servers|dealer|analyst|bench|docs|tests)/[\w./]*)`", README):
        assert (ROOT / name).exists(), name
