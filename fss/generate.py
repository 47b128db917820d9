"""Making batches of keys: the input is checked, then the back end in use fills the words chunk by chunk."""

import numpy as np
from numpy.typing import ArrayLike

from fss import field
from fss.backends import current
from fss.errors import DomainError, ShapeError
from fss.field import Words
from fss.keys import KeyBatch, KeyType, Scheme, check_bits
from fss.path import Fill
from fss.prg import SEED_BYTES

RAND_BYTES = 2 * SEED_BYTES

# Keys that are generated together: small enough for the cache, large enough to pay for numpy's calls.
CHUNK = 16384


def make_keys(
    fill: Fill, scheme: Scheme, alphas: ArrayLike, bits: int, binder: bytes, rand: bytes, beta: ArrayLike
) -> tuple[KeyBatch, KeyBatch]:
    """Check the input, then make the keys of both parties chunk by chunk."""
    check_bits(bits)
    positions = _check_alphas(alphas, bits)
    n = positions.size
    if len(rand) != n * RAND_BYTES:
        raise ShapeError(f"rand must have {RAND_BYTES} bytes a key, {n * RAND_BYTES} for {n} keys; got {len(rand)}")
    seeds = np.frombuffer(rand, np.uint64).reshape(n, 4)
    payload = _check_beta(beta, n)
    types = [KeyType(scheme, bits, b, binder) for b in (0, 1)]
    words = [np.empty((t.words, n), np.uint64) for t in types]
    for a in range(0, n, CHUNK):
        part = slice(a, a + CHUNK)
        current().gen(
            types[0], fill, positions[part], seeds[part], payload[part], (words[0][:, part], words[1][:, part])
        )
    return KeyBatch(types[0], words[0]), KeyBatch(types[1], words[1])


def _check_alphas(alphas: ArrayLike, bits: int) -> Words:
    array = np.asarray(alphas)
    if not array.size:
        array = array.astype(np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ShapeError(f"alphas must be a 1-d integer array, got shape {array.shape}, dtype {array.dtype}")
    # The bad alpha itself is somebody's secret: name its place, not its value.
    bad = np.flatnonzero((array < 0) | (array > (1 << bits) - 1))
    if bad.size:
        raise DomainError(f"alpha number {bad[0]} is outside the domain 0 to {(1 << bits) - 1}")
    return array.astype(np.uint64)


def _check_beta(beta: ArrayLike, n: int) -> Words:
    array = np.asarray(beta)
    if array.dtype.kind not in "iu" or array.shape not in ((), (n,)):
        raise ShapeError(f"beta must be an integer or {n} of them, got shape {array.shape}, dtype {array.dtype}")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= field.P):
        raise DomainError("beta must lie in [0, p), p = 2^61 - 1")
    return np.broadcast_to(array.astype(np.uint64), (n,))
