"""The benchmarks of whole servers run, at a small size, and write what their pages are made of."""

import json
from pathlib import Path

import pytest

from bench.docs import figures_table
from tests.bench.test_core import run
from tests.harness.postgres import NoPostgres, programs

pytestmark = pytest.mark.slow


def test_system(tmp_path: Path) -> None:
    target = tmp_path / "system.json"
    done = run(
        "system", "--keys", "3000", "--many", "3000", "--singles", "500", "--erased", "3000", "--json", str(target)
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(target.read_text())
    assert all(value is not None for value in written["results"].values())
    assert figures_table(written).count("\n| `") == len(written["results"])


def test_scale(tmp_path: Path) -> None:
    try:
        programs()
    except NoPostgres as error:
        pytest.skip(str(error))
    target = tmp_path / "scale.json"
    sizes = {"keys": 2000, "singles": 100, "many": 10_000, "evaluated": 2000, "bits": 8, "repeats": 1, "sealed": 2000}
    options = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    done = run("scale", *options, "--json", str(target))
    assert done.returncode == 0, done.stderr
    results = json.loads(target.read_text())["results"]
    left = {key for key, value in results.items() if value is None}
    assert left == {"seal_10m_mb", "seal_10m_rss_mb"}  # of ten million only
