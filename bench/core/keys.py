"""Keys made and evaluated by both back ends, against raw AES and sycret; whatever is compared takes turns."""

import argparse
from collections.abc import Callable
from types import ModuleType

import numpy as np
from Crypto.Cipher import AES

from bench.measure import best_in_turn
from bench.output import Result
from fss import BackendError, KeyBatch, KeyType, Scheme, dcf, dpf
from fss.backends import using
from fss.challenge import derive
from fss.check import sum_and_messages
from fss.proof import proof_bytes

AES_BYTES = 1 << 18
BINDER = b"bench core binder".ljust(32, b".")
POINT = 0x1234
DOMAIN_BITS = 15
FEW = 1024

Run = Callable[[], object]


def some_keys(scheme: ModuleType, bits: int, count: int, seed: int) -> KeyBatch:
    rng = np.random.default_rng(seed)
    alphas = rng.integers(0, 1 << bits, count)
    pair: tuple[KeyBatch, KeyBatch] = scheme.gen(
        alphas, bits=bits, binder=BINDER, rand=rng.bytes(scheme.RAND_BYTES * count)
    )
    return pair[0]


def _gen(bits: int, count: int, seed: int) -> Run:
    rng = np.random.default_rng(seed)
    alphas, rand = rng.integers(0, 1 << bits, count), rng.bytes(dcf.RAND_BYTES * count)
    return lambda: dcf.gen(alphas, bits=bits, binder=BINDER, rand=rand)


def _gen_proved(bits: int, count: int, seed: int) -> Run:
    rng = np.random.default_rng(seed)
    alphas, rand = rng.integers(0, 1 << bits, count), rng.bytes(dcf.PROVED_RAND_BYTES * count)
    return lambda: dcf.gen_proved(alphas, bits=bits, binder=BINDER, rand=rand)


def _checked(scheme: ModuleType, bits: int, count: int, seed: int) -> Run:
    """The sum over the domain together with the messages of a check."""
    rng = np.random.default_rng(seed)
    rand = rng.bytes(scheme.PROVED_RAND_BYTES * count)
    keys, proofs = scheme.gen_proved(rng.integers(0, 1 << bits, count), bits=bits, binder=BINDER, rand=rand)
    drawn = derive(keys[0].type.scheme, bits, bytes(32), bytes(32), bytes(32))
    return lambda: sum_and_messages(keys[0], proofs[0], drawn)


def _aes() -> Run:
    """One call encrypts AES_BYTES, 32 times over: long enough to time, small enough to stay in the cache."""
    cipher, data, out = AES.new(bytes(16), AES.MODE_ECB), bytearray(AES_BYTES), bytearray(AES_BYTES)

    def run() -> None:
        for _ in range(32):
            cipher.encrypt(data, output=out)

    return run


def backends() -> list[str]:
    try:
        with using("native"):
            return ["numpy", "native"]
    except BackendError as error:
        print(f"{error}: the keys that start with native_ are left out\n")
        return ["numpy"]


def _on_each(runs: dict[str, Run]) -> dict[str, Run]:
    """The same runs by every back end, as `numpy NAME` and `native NAME`."""

    def on(backend: str, run: Run) -> Run:
        def wrapped() -> None:
            with using(backend):
                run()

        return wrapped

    return {f"{backend} {name}": on(backend, run) for name, run in runs.items() for backend in backends()}


def _over(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a / b


def _runs(args: argparse.Namespace, whole: int) -> dict[str, Run]:
    """What is measured against AES, with so many keys over whole domains."""
    n = args.point_keys
    point = some_keys(dcf, 16, n, args.seed)
    dcf_whole, dpf_whole = (some_keys(scheme, DOMAIN_BITS, whole, args.seed) for scheme in (dcf, dpf))
    return {
        "point": lambda: dcf.sum_at_points(point, [POINT]),
        "dcf": lambda: dcf.sum_over_domain(dcf_whole),
        "dcf2": lambda: dcf.sum_over_domain(dcf_whole, threads=2),
        "dpf": lambda: dpf.sum_over_domain(dpf_whole),
        "gen": _gen(16, n, args.seed),
        "proved": _gen_proved(16, n, args.seed),
        "checked": _checked(dcf, DOMAIN_BITS, whole, args.seed),
    }


def _nanoseconds(best: dict[str, float], n: int, whole: int) -> dict[str, float]:
    """Per AES block, per (key, level), per key pair, or per (key, point)."""
    units = {"aes": 32 * AES_BYTES // 16, "point": n * 16, "gen": n, "proved": n}
    return {name: 1e9 * s / units.get(name.split()[-1], whole << DOMAIN_BITS) for name, s in best.items()}


def against_aes(args: argparse.Namespace) -> list[Result]:
    n, few = args.point_keys, min(args.keys, FEW)
    best = best_in_turn({"aes": _aes(), **_on_each(_runs(args, args.keys))}, args.rounds)
    ns = _nanoseconds(best, n, args.keys)
    # The kernel needs no long runs, and more of the short ones find a quiet moment.
    short = {name: run for name, run in _on_each(_runs(args, few)).items() if name.startswith("native")}
    again = _nanoseconds(best_in_turn({"aes": _aes(), **short}, 5 * args.rounds), n, few)
    ns |= {name: min(took, ns[name]) for name, took in again.items()}
    block = ns.pop("aes")
    return [
        Result("aes_block_ns", block, "one AES block, pycryptodome, 256 KiB buffer"),
        *_numpy_results(ns, block, n),
        *_native_results(ns, block, n),
        *_check_results(ns, block),
    ]


_POINT = "DCF, D = 16, {} keys at one point, per (key, level)"
_DOMAIN = f"{{}} whole domain, D = {DOMAIN_BITS}, per (key, point), in AES blocks"
_THREADS = "DCF whole domain, two threads over one"


_CHECK = f"DCF whole domain, D = {DOMAIN_BITS}, with the messages of a check over without"
_PROVED = "one DCF key pair, D = 16, with proofs over without"


def _check_results(ns: dict[str, float], block: float) -> list[Result]:
    whole, checked, gen, proved = (ns.get(f"native {name}") for name in ("dcf", "checked", "gen", "proved"))
    what = f"native: {_DOMAIN.format('DCF')}, checked"
    proof = proof_bytes(KeyType(Scheme.DCF, 16, 0, BINDER))
    return [
        Result.at_most("check_vs_plain", ns["numpy checked"] / ns["numpy dcf"], 2.5, _CHECK),
        Result.at_most("native_check_vs_plain", _over(checked, whole), 1.6, f"native: {_CHECK}"),
        Result.at_most("native_checked_domain_vs_aes", _over(checked, block), 0.95, what),
        Result.at_most("dcf_gen_checked_vs_plain", ns["numpy proved"] / ns["numpy gen"], 1.5, _PROVED),
        Result.at_most("native_dcf_gen_checked_vs_plain", _over(proved, gen), 1.35, f"native: {_PROVED}"),
        Result.at_most("proof_bytes", proof, 176, "bytes that a proof adds to a key, for each server"),
    ]


def _numpy_results(ns: dict[str, float], block: float, n: int) -> list[Result]:
    return [
        Result("dcf_point_ns", ns["numpy point"], _POINT.format(n)),
        Result.at_most("dcf_point_vs_aes", ns["numpy point"] / block, 9.5, "the same, in AES blocks"),
        Result.at_most("dcf_domain_vs_aes", ns["numpy dcf"] / block, 11, _DOMAIN.format("DCF")),
        Result.at_most("dpf_domain_vs_aes", ns["numpy dpf"] / block, 6, _DOMAIN.format("DPF")),
        Result.at_least("threads_2_vs_1", ns["numpy dcf"] / ns["numpy dcf2"], 1.6, _THREADS),
        Result("dcf_gen_ns", ns["numpy gen"], f"one DCF key pair, D = 16, of {n}"),
    ]


def _native_results(ns: dict[str, float], block: float, n: int) -> list[Result]:
    point, whole, two, dpf_whole, gen = (ns.get(f"native {name}") for name in ("point", "dcf", "dcf2", "dpf", "gen"))
    return [
        Result("native_dcf_point_ns", point, f"native: {_POINT.format(n)}"),
        Result.at_most("native_dcf_point_vs_aes", _over(point, block), 2, "the same, in AES blocks"),
        Result.at_least("native_dcf_point_vs_numpy", _over(ns["numpy point"], point), 5, "how many times faster"),
        Result.at_most("native_dcf_domain_vs_aes", _over(whole, block), 0.65, f"native: {_DOMAIN.format('DCF')}"),
        Result.at_most("native_dpf_domain_vs_aes", _over(dpf_whole, block), 1.7, f"native: {_DOMAIN.format('DPF')}"),
        Result.at_least("native_threads_2_vs_1", _over(whole, two), 1.85, f"native: {_THREADS}"),
        Result.at_most("native_dcf_gen_ns", gen, 320, f"native: one DCF key pair, D = 16, of {n}"),
    ]


def against_sycret(args: argparse.Namespace) -> list[Result]:
    n = 4 * args.keys
    ours = some_keys(dcf, 32, n, args.seed)
    runs = _on_each({"eval": lambda: dcf.sum_at_points(ours, [POINT]), "gen": _gen(32, n, args.seed)})
    best: dict[str, float] = {}
    try:
        import sycret
    except ImportError:
        print("sycret is not installed (pip install 'fss-ecdf[bench]'): the comparison with it is left out\n")
    else:
        factory = sycret.LeFactory(n_threads=1)
        theirs, _ = factory.keygen(n)
        points = np.full(n, POINT, np.int64)
        peer = {"eval": lambda: factory.eval(0, points, theirs, n_threads=1), "gen": lambda: factory.keygen(n)}
        best = best_in_turn({**runs, **peer}, args.rounds)
    results = []
    for prefix, backend, eval_goal, gen_goal in (("", "numpy", 6.5, 2.5), ("native_", "native", 6.5, 8)):
        of = f"{backend}: " if prefix else ""
        at, generated = (_over(best.get(name), best.get(f"{backend} {name}")) for name in ("eval", "gen"))
        what = f"{of}DCF at one point, D = 32, over sycret's comparison", f"{of}DCF key pairs/s, D = 32, over sycret"
        results.append(Result.at_least(f"{prefix}dcf_point_vs_sycret", at, eval_goal, what[0]))
        results.append(Result.at_least(f"{prefix}dcf_gen_vs_sycret", generated, gen_goal, what[1]))
    return results
