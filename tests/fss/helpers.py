"""What several tests of the core share."""

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from fss import KeyBatch, dcf, dpf, field
from fss.field import Words

BINDER = b"a campaign's nonce".ljust(32, b".")
SCHEMES = [dcf, dpf]
NAMES = {dcf: "dcf", dpf: "dpf"}

Pair = tuple[KeyBatch, KeyBatch]


def make(scheme: ModuleType, alphas: object, bits: int, *, beta: object = 1, seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    rand = rng.bytes(scheme.RAND_BYTES * np.size(np.asarray(alphas)))
    pair: Pair = scheme.gen(alphas, bits=bits, binder=BINDER, rand=rand, beta=beta)
    return pair


def expected(scheme: ModuleType, alphas: NDArray[np.int64], points: NDArray[np.int64], beta: object = 1) -> Words:
    """f(t) for each point (rows) and alpha (columns)."""
    at = points[:, np.newaxis]
    hit = alphas <= at if scheme is dcf else alphas == at
    return np.where(hit, np.asarray(beta, np.uint64), np.uint64(0))


def reconstruct(shares: tuple[Words, Words]) -> Words:
    return field.add(*shares)
