"""python -m tests.native.answers: the frozen keys and shares as words, for the driver in C (make sanitize, make arm).

What a check sees of a key is not frozen by itself; it is what numpy makes of the same key, which other tests compare
with the scalar oracle.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fss import KeyBatch, field
from fss.backends import using
from fss.challenge import Weights
from fss.evaluate import sum_and_observe
from fss.prg import tree_prg

VECTORS = Path(__file__).parents[1] / "vectors" / "fss_keys.json"
# Whole domains of more bits take long in an emulator.
MOST_BITS = 16


def words_of(case: dict[str, Any], binder: bytes) -> Iterator[int]:
    """One case, as tests/native/answers.c reads it."""
    keys = [KeyBatch.from_bytes(bytes.fromhex(key), binder) for key in case["keys"]]
    yield 1
    yield from _words(tree_prg(binder).keys)
    yield from (case["scheme"] == "dcf", case["bits"], case["alpha"], case["beta"])
    yield from _words(bytes.fromhex(case["rand"]))
    yield keys[0].type.words
    for key in keys:
        yield from key.words[:, 0].tolist()
    yield len(case["points"])
    yield from case["points"]
    yield from case["shares"][0]
    yield from ((field.P - share) % field.P for share in case["shares"][1])  # the kernel does not negate
    yield from _seen(keys)


def _words(data: bytes) -> list[int]:
    return list(np.frombuffer(data, np.uint64).tolist())


def _seen(keys: list[KeyBatch]) -> Iterator[int]:
    type = keys[0].type
    nodes = 1 << type.depth if type.bits <= MOST_BITS else 0
    yield nodes
    if nodes:
        drawn = np.random.default_rng(type.bits).integers(0, field.P, (5, nodes), dtype=np.uint64)
        weights = Weights(drawn[:4], drawn[4])
        yield from weights.by_node.ravel().tolist()
        for key in keys:
            with using("numpy"):
                yield from sum_and_observe(key, weights)[1][:, 0].tolist()


def main() -> None:
    vectors = json.loads(VECTORS.read_text())
    for case in vectors["good"]:
        print(*(f"{int(word):x}" for word in words_of(case, bytes.fromhex(vectors["binder"]))))
    print(0)


if __name__ == "__main__":
    main()
