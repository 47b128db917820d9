"""python -m bench core: keys against raw AES and sycret, tables against keys, noise against OpenDP, smoothing against
cvxopt, in one run."""

import argparse
import subprocess
import sys
from pathlib import Path

from bench import output
from bench.core import analysis, kernel, keys, noise, roles, tables
from bench.output import Result, print_table, write_json
from fss import dcf
from fss.backends import using


def main(argv: list[str]) -> int:
    parser = output.parser("core", __doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often everything is run; the best counts")
    parser.add_argument("--keys", type=int, default=8192, help="keys of the whole-domain runs; sycret gets 4 x")
    parser.add_argument("--point-keys", type=int, default=100_000, help="keys evaluated at one point, and for memory")
    parser.add_argument("--runs", type=int, default=20, help="noisy curves for a mean squared error")
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    results = [*keys.against_aes(args), *kernel.results(args), *keys.against_sycret(args), _memory(args)]
    results += [*tables.results(args), *noise.results(args), *roles.results(args), *analysis.results(args)]
    print_table(results)
    write_json(args.json, results, args.seed)
    return 0


_MEMORY_CHILD = """
import sys
from bench.core.run import peak_of_domain_sum
print(peak_of_domain_sum(int(sys.argv[1]), int(sys.argv[2])))
"""


def peak_of_domain_sum(count: int, seed: int) -> float:
    """MB by which a whole-domain sum raises the peak memory of a process that holds the keys already."""
    batch = keys.some_keys(dcf, 15, count, seed)
    before = _status_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the keys
    with using("numpy"):
        dcf.sum_over_domain(batch)
    return _status_mb("VmHWM") - before


def _status_mb(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


def _memory(args: argparse.Namespace) -> Result:
    """In a process of its own, so that the peak is that of the sum."""
    command = [sys.executable, "-c", _MEMORY_CHILD, str(args.point_keys), str(args.seed)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    what = f"MB beyond {args.point_keys} keys, whole-domain sum, D = 15"
    return Result.at_most("domain_sum_extra_mb", float(run.stdout), 200, what)
