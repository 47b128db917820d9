"""FSS_BACKEND says which code runs the inner loops; an installation without a compiler has numpy's."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import fss
from fss.backends import using

ROOT = Path(__file__).parents[2]


def run(folder: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Without `site`: an editable installation would find for the package in `folder` what it lacks."""
    kept = {name: value for name, value in os.environ.items() if name != "FSS_BACKEND"}
    kept["PYTHONPATH"] = sysconfig.get_path("purelib")
    command = [sys.executable, "-S", "-c", "import fss; print(fss.backend())"]
    return subprocess.run(command, cwd=folder, env={**kept, **env}, capture_output=True, text=True, check=False)


@pytest.fixture
def without_kernel(tmp_path: Path) -> Path:
    """A folder with the package as it is where the kernel could not be built."""
    shutil.copytree(ROOT / "fss", tmp_path / "fss", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


def test_numpy_can_be_asked_for() -> None:
    assert run(FSS_BACKEND="numpy").stdout == "numpy\n"


def test_without_the_kernel_numpy_is_used(without_kernel: Path) -> None:
    assert run(without_kernel).stdout == "numpy\n"


@pytest.mark.parametrize("name", ["", "Native", "cuda"])
def test_another_name_is_an_error(name: str) -> None:
    done = run(FSS_BACKEND=name)
    assert f"BackendError: FSS_BACKEND must be native or numpy, got '{name}'" in done.stderr


def test_asking_for_an_absent_kernel_is_an_error(without_kernel: Path) -> None:
    done = run(without_kernel, FSS_BACKEND="native")
    assert "BackendError: the native kernel is not here" in done.stderr
    assert "set FSS_BACKEND=numpy" in done.stderr


def test_using_is_undone() -> None:
    before = fss.backend()
    with using("numpy"):
        assert fss.backend() == "numpy"
    assert fss.backend() == before


@pytest.mark.slow
def test_installing_without_a_compiler_succeeds(without_kernel: Path) -> None:
    """The wheel is then one of Python files only."""
    for package in ROOT.glob("*/__init__.py"):
        name = package.parent.name
        if name not in ("fss", "tests"):
            shutil.copytree(ROOT / name, without_kernel / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, without_kernel)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "made", "."]
    env = {**os.environ, "CC": "false"}
    done = subprocess.run(command, cwd=without_kernel, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (without_kernel / "made").iterdir()
    shutil.unpack_archive(wheel, without_kernel / "installed", "zip")
    assert run(without_kernel / "installed").stdout == "numpy\n"


@pytest.mark.skipif(
    shutil.which("cc") is None
    or platform.machine() not in ("x86_64", "aarch64")
    or "aes" not in Path("/proc/cpuinfo").read_text(),
    reason="no C compiler, or another processor",
)
def test_where_there_is_a_compiler_the_kernel_was_built() -> None:
    """Its absence must not turn half of the tests into skips."""
    assert run().stdout == "native\n"
