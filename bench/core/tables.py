"""Part of `python -m bench core`: tables made and checked, and their bytes beside those of keys."""

import argparse
import tempfile

import numpy as np

from bench.core.keys import BINDER, Run
from bench.measure import best_in_turn
from bench.output import Result
from fss import KeyType, Scheme, table

# A site of a registry, and a hospital of the demo: two strata of 1001 thresholds, over which keys have 11 bits.
SITE = 1 << 15, 5000
HOSPITAL, HOSPITAL_BITS = (2002, 500), 11

_SITE = f"{SITE[1]} values at 2^15 positions"


def results(args: argparse.Namespace) -> list[Result]:
    shape = table.shape_for(*SITE)
    with tempfile.NamedTemporaryFile() as file:
        best = best_in_turn(_runs(args.seed, file.name), 5 * args.rounds)
    ns = {name: 1e9 * seconds / shape.words for name, seconds in best.items()}
    return [
        Result.at_most("table_prove_s", best["prove"], 0.15, f"one table, {_SITE}, checked by its maker"),
        Result("table_verify_ns_per_word", ns["words"], f"a server's check and sums of a table's words, {_SITE}"),
        Result("table_verify_seed_ns_per_word", ns["seed"], "the same from a seed, which is expanded first"),
        Result.at_most(
            "table_verify_vs_reading", ns["words"] / ns["read"], 2, "the words' check over reading a file of them"
        ),
        Result.at_most(
            "table_verify_seed_vs_reading", ns["seed"] / ns["read"], 2, "a seed's expansion and check over that reading"
        ),
        Result.at_most(
            "table_bytes_vs_keys", bytes_vs_keys(), 0.08, "a hospital of the demo: a table over keys, in bytes"
        ),
    ]


def bytes_vs_keys() -> float:
    """What both servers get of 500 patients: one table, over 500 pairs of keys with proofs."""
    pair = table.pair_bytes(KeyType(Scheme.DCF, HOSPITAL_BITS, 0, BINDER))
    return table.table_bytes(table.shape_for(*HOSPITAL)) / (HOSPITAL[1] * pair)


def _runs(seed: int, file: str) -> dict[str, Run]:
    shape, rng = table.shape_for(*SITE), np.random.default_rng(seed)
    histogram = np.bincount(rng.integers(0, shape.positions, shape.count), minlength=shape.positions)
    secrets = {"secret": rng.bytes(table.SECRET_BYTES), "context": rng.bytes(table.CONTEXT_BYTES), "binder": BINDER}

    def prove() -> table.Shared:
        return table.share(histogram, shape, **secrets)

    made, point = prove(), table.draw_point(rng.bytes(32))
    made.words.tofile(file)
    sums = np.zeros(shape.positions, np.uint64)
    return {
        "prove": prove,
        "words": lambda: table.message([made.words], shape, point, sums),
        "seed": lambda: table.message(table.expanded(made.seed, BINDER, shape), shape, point, sums),
        "read": lambda: np.fromfile(file, np.uint64),
    }
