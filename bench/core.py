"""python -m bench core: keys against raw AES and sycret, noise against OpenDP, smoothing against cvxopt, in one run."""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
from Crypto.Cipher import AES

from bench import noise, output, roles
from bench.measure import best_in_turn
from bench.output import Result, print_table, write_json
from fss import KeyBatch, dcf, dpf

AES_BYTES = 1 << 18
BINDER = b"bench core binder".ljust(32, b".")
POINT = 0x1234


def main(argv: list[str]) -> int:
    parser = output.parser("core", __doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often everything is run; the best counts")
    parser.add_argument("--keys", type=int, default=8192, help="keys of the whole-domain runs; sycret gets 4 x")
    parser.add_argument("--point-keys", type=int, default=100_000, help="keys evaluated at one point, and for memory")
    parser.add_argument("--runs", type=int, default=20, help="noisy curves for a mean squared error")
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    results = [*_against_aes(args), *_against_sycret(args), _memory(args), *noise.results(args), *roles.results(args)]
    print_table(results)
    write_json(args.json, results, args.seed)
    return 0


def _keys(scheme: ModuleType, bits: int, count: int, seed: int) -> KeyBatch:
    rng = np.random.default_rng(seed)
    alphas = rng.integers(0, 1 << bits, count)
    made: tuple[KeyBatch, KeyBatch] = scheme.gen(
        alphas, bits=bits, binder=BINDER, rand=rng.bytes(scheme.RAND_BYTES * count)
    )
    return made[0]


def _aes() -> Callable[[], None]:
    """One call encrypts AES_BYTES, 32 times over: long enough to time, small enough to stay in the cache."""
    cipher, data, out = AES.new(bytes(16), AES.MODE_ECB), bytearray(AES_BYTES), bytearray(AES_BYTES)

    def run() -> None:
        for _ in range(32):
            cipher.encrypt(data, output=out)

    return run


def _against_aes(args: argparse.Namespace) -> list[Result]:
    n, whole, domain = args.point_keys, args.keys, 1 << 15
    point = _keys(dcf, 16, n, args.seed)
    dcf_whole, dpf_whole = _keys(dcf, 15, whole, args.seed), _keys(dpf, 15, whole, args.seed)
    best = best_in_turn(
        {
            "aes": _aes(),
            "point": lambda: dcf.sum_at_points(point, [POINT]),
            "dcf": lambda: dcf.sum_over_domain(dcf_whole),
            "dcf2": lambda: dcf.sum_over_domain(dcf_whole, threads=2),
            "dpf": lambda: dpf.sum_over_domain(dpf_whole),
        },
        args.rounds,
    )
    block = best["aes"] / (32 * AES_BYTES / 16)
    per_level, dcf_point, dpf_point = best["point"] / n / 16, best["dcf"] / whole / domain, best["dpf"] / whole / domain
    return [
        Result("aes_block_ns", block * 1e9, "one AES block, pycryptodome, 256 KiB buffer"),
        Result("dcf_point_ns", per_level * 1e9, f"DCF, D = 16, {n} keys at one point, per (key, level)"),
        Result.at_most("dcf_point_vs_aes", per_level / block, 9.5, "the same, in AES blocks"),
        Result.at_most("dcf_domain_vs_aes", dcf_point / block, 11, "DCF whole domain, D = 15, per (key, point)"),
        Result.at_most("dpf_domain_vs_aes", dpf_point / block, 6, "DPF whole domain, D = 15, per (key, point)"),
        Result.at_least("threads_2_vs_1", best["dcf"] / best["dcf2"], 1.6, "DCF whole domain, two threads over one"),
    ]


def _against_sycret(args: argparse.Namespace) -> list[Result]:
    what_eval, what_gen = "DCF at one point, D = 32, over sycret's comparison", "DCF key pairs/s, D = 32, over sycret"
    try:
        import sycret
    except ImportError:
        print("sycret is not installed (pip install 'fss-ecdf[bench]'): the comparison with it is left out\n")
        return [Result("dcf_point_vs_sycret", None, what_eval), Result("dcf_gen_vs_sycret", None, what_gen)]
    n, rng = 4 * args.keys, np.random.default_rng(args.seed)
    alphas, rand = rng.integers(0, 1 << 32, n), rng.bytes(dcf.RAND_BYTES * n)
    ours = _keys(dcf, 32, n, args.seed)
    factory = sycret.LeFactory(n_threads=1)
    theirs, _ = factory.keygen(n)
    points = np.full(n, POINT, np.int64)
    best = best_in_turn(
        {
            "our eval": lambda: dcf.sum_at_points(ours, [POINT]),
            "their eval": lambda: factory.eval(0, points, theirs, n_threads=1),
            "our gen": lambda: dcf.gen(alphas, bits=32, binder=BINDER, rand=rand),
            "their gen": lambda: factory.keygen(n),
        },
        args.rounds,
    )
    return [
        Result.at_least("dcf_point_vs_sycret", best["their eval"] / best["our eval"], 6.5, what_eval),
        Result.at_least("dcf_gen_vs_sycret", best["their gen"] / best["our gen"], 2.5, what_gen),
    ]


_MEMORY_CHILD = """
import sys
from bench.core import peak_of_domain_sum
print(peak_of_domain_sum(int(sys.argv[1]), int(sys.argv[2])))
"""


def peak_of_domain_sum(count: int, seed: int) -> float:
    """MB by which a whole-domain sum raises the peak memory of a process that holds the keys already."""
    keys = _keys(dcf, 15, count, seed)
    before = _status_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the keys
    dcf.sum_over_domain(keys)
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
