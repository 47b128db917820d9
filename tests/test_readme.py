"""What the README shows works: its Python runs, its make targets exist."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.live import free_ports

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


def commands() -> list[str]:
    return [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines() if line.strip()]


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [command.split()[1] for command in commands() if command.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_server_commands_work(tmp_path: Path) -> None:
    """As written, but for the ports, which may be taken, and the folder, which is a copy."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    lines = [command for command in commands() if command.startswith("fss-server ")]
    assert len(lines) >= 5
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    running, said = [], ""
    try:
        for line in lines:
            words = shlex.split(line)
            if words[1] == "init-pair":
                words += ["--ports", *map(str, free_ports())]
            if words[-1] == "&":
                log = (tmp_path / "log").open("ab")
                running.append(subprocess.Popen(words[:-1], cwd=tmp_path, env=path, stderr=log))
                log.close()
                continue
            said = run_until_up(words, tmp_path, path)
    finally:
        for process in running:
            process.terminate()
            process.wait(40)
    assert "Waiting time for hip replacement" in said


def run_until_up(words: list[str], folder: Path, env: dict[str, str]) -> str:
    """Run a command, again while a server is still starting (exit code 75)."""
    for _ in range(100):
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 75:
            assert done.returncode == 0, done.stderr
            return done.stdout
        time.sleep(0.2)
    raise AssertionError(done.stderr)


def test_files_it_names_exist() -> None:
    for name in re.findall(r"`((?:fss|campaign|servers|bench|docs|tests)/[\w./]*)`", README):
        assert (ROOT / name).exists(), name
