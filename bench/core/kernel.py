"""Part of `python -m bench core`: one key alone beside a batch, and what is left between the kernel and AES alone."""

import argparse
from functools import partial

import numpy as np

from bench.core.keys import DOMAIN_BITS, Run, backends, some_keys
from bench.measure import best_in_turn
from bench.output import Result
from fss import dcf, dpf
from fss.backends import using
from fss.challenge import derive
from fss.evaluate import sum_and_observe
from fss.prg import tree_prg

# Keys of a batch, evaluations of one key alone, and blocks of a tight loop: about two milliseconds, so that some of the
# runs find a quiet moment.
MANY = 64
TIMES = 20
HASHED, BLOCKS_AT_ONCE = 1 << 20, 32

# Blocks a point that the scheme needs: two or three an inner node, eight a terminal one or ten with a check; 16 leaves
BLOCKS = {"dcf": 0.6875, "dpf": 0.625, "dcf checked": 0.8125, "dpf checked": 0.75}
GOALS = {"dcf": 1.12, "dpf": 1.12, "dcf checked": 1.25, "dpf checked": 1.25}

_WHOLE = f"native: {{}} whole domain, D = {DOMAIN_BITS}, "
_ONE = f"native: one key alone over one of {MANY}, whole domain, D = {DOMAIN_BITS}; the largest of {{}}"


def results(args: argparse.Namespace) -> list[Result]:
    there = "native" in backends()
    ns = _nanoseconds(args) if there else {}
    ratios = {kind: ns[f"{kind} 1"] / ns[f"{kind} many"] for kind in BLOCKS} if there else {}
    each = ", ".join(f"{kind} {ratio:.2f}" for kind, ratio in ratios.items())
    return [
        Result("native_one_key_ns", ns.get("dcf 1"), _WHOLE.format("DCF") + "one key alone, per point"),
        Result.at_most("native_one_key_vs_batch", max(ratios.values(), default=None), 3, _ONE.format(each)),
        Result("native_hash_block_ns", ns.get("hash"), "native: one AES block, hashed in a tight loop"),
        *(_over_limit(ns, kind, blocks) for kind, blocks in BLOCKS.items()),
    ]


def _over_limit(ns: dict[str, float], kind: str, blocks: float) -> Result:
    took = ns[f"{kind} many"] / (blocks * ns["hash"]) if ns else None
    what = _WHOLE.format(kind.replace("dcf", "DCF").replace("dpf", "DPF")) + f"over {blocks} such blocks a point"
    return Result.at_most(f"native_{kind.replace(' ', '_')}_vs_limit", took, GOALS[kind], what)


def _nanoseconds(args: argparse.Namespace) -> dict[str, float]:
    """Per block, or per (key, point)."""
    with using("native"):
        best = best_in_turn({"hash": _hash_alone(), **_domains(args.seed)}, 20 * args.rounds)
    units = {"hash": HASHED, "1": TIMES << DOMAIN_BITS, "many": MANY << DOMAIN_BITS}
    return {name: 1e9 * seconds / units[name.split()[-1]] for name, seconds in best.items()}


def _hash_alone() -> Run:
    """The kernel's hash and nothing else, as fast as the processor can."""
    from fss import _native

    seeds = np.arange(2 * BLOCKS_AT_ONCE, dtype=np.uint64)
    return partial(_native.hash_alone, tree_prg(b"limit").keys, seeds, HASHED // BLOCKS_AT_ONCE)


def _domains(seed: int) -> dict[str, Run]:
    """Sums over whole domains, plain and with what a check needs: `dcf 1`, `dcf many`, `dcf checked 1`, ..."""
    runs: dict[str, Run] = {}
    for name, scheme in (("dcf", dcf), ("dpf", dpf)):
        for of, count in (("1", 1), ("many", MANY)):
            keys = some_keys(scheme, DOMAIN_BITS, count, seed)
            weights = derive(keys.type.scheme, DOMAIN_BITS, bytes(32), bytes(32), bytes(32)).weights
            times = TIMES if count == 1 else 1
            runs[f"{name} {of}"] = _repeated(times, partial(scheme.sum_over_domain, keys))
            runs[f"{name} checked {of}"] = _repeated(times, partial(sum_and_observe, keys, weights))
    return runs


def _repeated(times: int, run: Run) -> Run:
    def wrapped() -> None:
        for _ in range(times):
            run()

    return wrapped
