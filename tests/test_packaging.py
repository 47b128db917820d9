"""What is built can be installed, and each role needs no more than its own extra: programs in empty environments."""

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.ports import free_ports
from tests.harness.server_pair import ROOT

pytestmark = pytest.mark.slow

# What a role must not have to install.
FOREIGN = {
    "dealer": {"fastapi", "sqlalchemy", "uvicorn", "cryptography", "matplotlib", "scipy", "jinja2", "cvxopt"},
    "server": {"matplotlib", "scipy", "jinja2", "cvxopt", "clarabel"},
    "analyst": {"fastapi", "sqlalchemy", "uvicorn", "cryptography"},
    "all": {"pytest", "mypy"},
}


def run(*words: str | Path, code: int = 0, env: dict[str, str] | None = None) -> str:
    """Away from the checkout's modules; returns what was printed, standard error included."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), env={**clean, **(env or {})}, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of a clean copy, and the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.so", "build", "*.egg-info"))
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", source)
    return folder / "dist"


def test_the_sdist_has_the_kernel_and_the_templates(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = [path for end in ("html", "js", "css") for path in ROOT.glob(f"fss_ecdf/pages/**/*.{end}")]
    assert len(pages) > 20
    templates = [*ROOT.glob("analyst/**/*.html"), *ROOT.glob("bench/*.html")]
    tracked = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("fss/native/*"), *templates, *pages]}
    assert tracked
    assert tracked <= names
    assert {"LICENSE", "README.md", "constraints.txt", "tests/test_flow.py", "tests/vectors/fss_keys.json"} <= names


def test_the_wheel_has_five_names_and_no_sources_of_others(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    packages = {name.partition("/")[0] for name in names}
    assert packages == {"analyst", "dealer", "fss", "fss_ecdf", "servers"}
    assert {f"{package}/py.typed" for package in packages} <= set(names)
    assert not [name for name in names if name.endswith((".c", ".h"))]


def test_the_tests_of_the_sdist_run(built: Path, tmp_path: Path) -> None:
    """Unpacked, in an environment that has only what the sdist and these tests ask for."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    folder = tmp_path / "environment"
    run(sys.executable, "-m", "venv", folder)
    install = (folder / "bin" / "pip", "install", "--quiet", "--constraint", source / "constraints.txt")
    run(*install, "--editable", f"{source}[all]", "pytest", "hypothesis")
    tests = (source / "tests" / "test_flow.py", source / "tests" / "fss" / "test_schemes.py")
    words = ("-m", "pytest", "-c", source / "pyproject.toml", "--rootdir", source)
    assert " passed" in run(folder / "bin" / "python", *words, *tests)


def test_another_package_called_web_survives_ours(built: Path, tmp_path: Path) -> None:
    """Packages of ours have been called web, client and campaign; web.py has a module of the first name."""
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "environment")
    programs = tmp_path / "environment" / "bin"
    pip = (programs / "pip", "--quiet")
    use = (
        programs / "python",
        "-I",
        "-c",
        "import web; print(web.application(('/', 'x'), {}).request('/none').status)",
    )
    run(*pip, "install", "web.py")
    assert "404" in run(*use)
    run(*pip, "install", "--constraint", ROOT / "constraints.txt", wheel)
    assert "404" in run(*use)
    run(*pip, "uninstall", "--yes", "fss-ecdf")
    assert "404" in run(*use)
    assert "No module named" in run(programs / "python", "-I", "-c", "import fss_ecdf", code=1)


@pytest.fixture(scope="module")
def environments(built: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An environment for each extra; returns the folders of their programs."""
    (wheel,) = built.glob("*.whl")
    folders = {}
    for extra in FOREIGN:
        folder = tmp_path_factory.mktemp(extra)
        run(sys.executable, "-m", "venv", folder)
        what = str(wheel) if extra == "dealer" else f"{wheel}[{extra}]"  # a party's program is in the bare package
        run(folder / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", what)
        folders[extra] = folder / "bin"
    return folders


def test_a_role_installs_what_it_needs_and_no_more(environments: dict[str, Path]) -> None:
    for extra, foreign in FOREIGN.items():
        listed = run(environments[extra] / "pip", "list", "--format", "freeze").lower()
        assert not foreign & {line.partition("==")[0] for line in listed.splitlines()}, extra


def test_programs_of_other_roles_say_what_is_missing(environments: dict[str, Path], tmp_path: Path) -> None:
    said = run(environments["dealer"] / "fss-analyst", "report", "https://a/v1/campaigns/x", "--out", "x", code=64)
    assert "pip install 'fss-ecdf[analyst]'" in said
    said = run(environments["dealer"] / "fss-server", "init-pair", tmp_path / "pair", code=64)
    assert "pip install 'fss-ecdf[server]'" in said
    for program in ("fss-analyst", "fss-dealer", "fss-ecdf", "fss-server"):
        assert "usage" in run(environments["dealer"] / program, "--help")


@contextmanager
def servers(programs: Path, pair: Path) -> Iterator[None]:
    processes = []
    try:
        for role in (0, 1):
            config = pair / f"server{role}" / "server.toml"
            with (pair / f"server{role}.log").open("wb") as log:
                words: list[str | Path] = [programs / "fss-server", "run", "--config", config]
                processes.append(subprocess.Popen(words, cwd=pair, stderr=log))
            health: list[str | Path] = [programs / "fss-server", "health", "--config", config]
            until = time.monotonic() + 60
            while subprocess.run(health, cwd=pair, capture_output=True, check=False).returncode:
                assert time.monotonic() < until, (pair / f"server{role}.log").read_text()
                time.sleep(0.2)
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait(40)


@pytest.mark.parametrize("all_in_one", [False, True], ids=["each role's own", "all in one"])
def test_a_campaign_with_nothing_else_installed(
    environments: dict[str, Path], tmp_path: Path, all_in_one: bool
) -> None:
    server, dealer, analyst = (environments["all" if all_in_one else x] for x in ("server", "dealer", "analyst"))
    pair, ports = tmp_path / "pair", map(str, free_ports())
    run(server / "fss-server", "init-pair", pair, "--ports", *ports)
    campaign = tmp_path / "campaign.toml"
    shutil.copy(ROOT / "docs" / "examples" / "risk-score.toml", campaign)
    with servers(server, pair):
        operator: list[str | Path] = [server / "fss-server", "campaign", "--operator-config", pair / "operator.toml"]
        run(*operator, "create", campaign)
        lines = campaign.with_suffix(".env").read_text().replace("export ", "").replace("'", "").splitlines()
        env = dict(line.split("=", 1) for line in lines)
        run(*operator, "party-page", env["FSS_CAMPAIGN_ID"], "--out", tmp_path / "party.html")
        assert "sha256-" in (tmp_path / "party.html").read_text()
        values = ROOT / "docs" / "examples" / "risk-scores.csv"
        sent = run(
            *(dealer / "fss-dealer", "upload", "--file", values, "--column", "score"),
            *("--stratum-column", "outcome", "--yes", "--receipt", tmp_path / "receipt.json"),
            env=env,
        )
        assert "both servers have stored 2000 values" in sent
        run(*operator, "seal", env["FSS_CAMPAIGN_ID"])
        env["FSS_ANALYST_TOKEN"] = (pair / "server0" / "analyst.token").read_text().strip()
        assert "auc" in run(analyst / "fss-analyst", "roc", "--plot", tmp_path / "roc.png", env=env)
        run(analyst / "fss-analyst", "report", "--out", tmp_path / "report.html", env=env)
    assert "Calibration" in (tmp_path / "report.html").read_text()


def test_the_demo_runs_from_the_wheel(environments: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "demo"
    printed = run(environments["all"] / "fss-ecdf", "demo", "--out", out, "--hospitals", "3", "--patients", "3000")
    assert "nothing is left running" in printed
    assert "Calibration" in (out / "report.html").read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_kernel_is_in_the_wheel(environments: dict[str, Path]) -> None:
    said = run(environments["dealer"] / "python", "-c", "import fss; print(fss.backend())")
    assert said.strip() == "native"
