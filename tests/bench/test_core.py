"""The benchmarks run, and write what they promise."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *args], cwd=ROOT, capture_output=True, text=True, check=False)


def test_core_writes_its_results(tmp_path: Path) -> None:
    out = tmp_path / "core.json"
    done = run("core", "--json", str(out), "--rounds", "1", "--keys", "64", "--point-keys", "1000", "--runs", "1")
    assert done.returncode == 0, done.stderr
    body = json.loads(out.read_text())
    assert {"cpu", "commit", "seed", "command", "results"} <= body.keys()
    keys = {"dcf_point_vs_aes", "dcf_domain_vs_aes", "dpf_domain_vs_aes", "threads_2_vs_1", "domain_sum_extra_mb"}
    keys |= {"check_vs_plain", "dcf_gen_checked_vs_plain", "proof_bytes"}
    keys |= {"slice_curve_s", "slice_tables_s", "slice_points_ms", "slice_vs_paper_mse"}
    keys |= {"slice_small_tables_s", "analyst_help_cpu_s"}
    keys |= {"band_1m_s", "report_s", "survival_ms"}
    assert all(body["results"][key] > 0 for key in keys)
    assert {"dcf_point_vs_sycret", "dcf_gen_vs_sycret", "slice_vs_opendp_mse"} <= body["results"].keys()
    there = importlib.util.find_spec("fss._native") is not None
    native = {f"native_{k}" for k in ("dcf_point_vs_aes", "dcf_point_vs_numpy", "dcf_gen_ns", "dcf_domain_vs_aes")}
    native |= {"native_dpf_domain_vs_aes", "native_threads_2_vs_1", "native_check_vs_plain"}
    native |= {"native_checked_domain_vs_aes", "native_dcf_gen_checked_vs_plain", "native_one_key_vs_batch"}
    native |= {"native_hash_block_ns", "native_dcf_vs_limit", "native_dcf_checked_vs_limit"}
    assert all((body["results"][key] is not None) == there for key in native)
    assert "native_dcf_gen_vs_sycret" in body["results"]
    assert "dcf_point_vs_aes" in done.stdout


@pytest.mark.parametrize(("args", "code"), [((), 0), (("nonsense",), 2)])
def test_usage_lists_the_benchmarks(args: tuple[str, ...], code: int) -> None:
    done = run(*args)
    assert done.returncode == code
    assert "core" in done.stdout
