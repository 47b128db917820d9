"""`fss-ecdf demo`, smaller: everything it promises is there, and nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

PROGRAM = str(Path(sys.executable).with_name("fss-ecdf"))
SMALL = ["--hospitals", "3", "--patients", "3000"]


def demo(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "demo", "--out", str(out), *SMALL, *more]
    cwd = out.parent  # what the printed commands write must not lie in the checkout
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def ports(out: Path) -> list[str]:
    return re.findall(r"https://127\.0\.0\.1:\d+", (out / "pair" / "operator.toml").read_text())


def test_help_lists_the_programs() -> None:
    help_text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("fss-dealer", "fss-server", "fss-analyst", "demo"):
        assert name in help_text


def test_the_year_of_waves_is_drawn(tmp_path: Path) -> None:
    done = demo(tmp_path / "year", "--waves", "--weeks", "4")
    assert done.returncode == 0, done.stderr
    assert "pooled after week 2" in done.stdout
    assert (tmp_path / "year" / "year.png").stat().st_size > 20_000


def test_the_demo_shows_answers_beside_the_truth_and_ends(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = demo(out)
    assert done.returncode == 0, done.stderr
    for words in ("published", "truth", "area under the ROC curve", "Hosmer-Lemeshow", "a hospital sent"):
        assert words in done.stdout, words
    assert "nothing is left running" in done.stdout
    assert "Calibration" in (out / "report.html").read_text()
    assert (out / "truth.png").stat().st_size > 20_000
    for url in ports(out):
        with pytest.raises(httpx.ConnectError):
            httpx.get(url + "/healthz", trust_env=False)
    again = demo(out.parent)
    assert again.returncode != 0
    assert "was not made by the demo" in again.stderr


def test_servers_that_are_kept_answer_the_commands_it_prints(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = demo(out, "--keep")
    assert done.returncode == 0, done.stderr
    processes = [int(p) for p in re.findall(r"kill ([\d ]+)", done.stdout)[0].split()]
    try:
        said = done.stdout.splitlines()
        commands = [line.strip() for line in said if line.startswith("  . ") or "fss-analyst" in line]
        script = "\n".join(["set -e", *commands])
        tried = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert tried.returncode == 0, tried.stderr
        assert "auc" in tried.stdout
        links = re.findall(r"console: +(http://127\.0\.0\.1:\d+/enter\?secret=\S+)", done.stdout)
        assert [httpx.get(link, trust_env=False).status_code for link in links] == [200, 200]
        assert (out / "party.html").as_uri() in done.stdout
    finally:
        for process in processes:
            os.kill(process, signal.SIGTERM)
