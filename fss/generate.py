"""Making batches of keys: the input is checked, then the back end in use fills the words chunk by chunk."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from fss import field, proof
from fss.backends import current
from fss.challenge import check_bits as check_checkable
from fss.errors import DomainError, ShapeError
from fss.field import Words
from fss.keys import KeyBatch, KeyType, Scheme, check_bits
from fss.path import Ends, Fill
from fss.prg import SEED_BYTES
from fss.proof import Proofs, proof_words

RAND_BYTES = 2 * SEED_BYTES
PROVED_RAND_BYTES = RAND_BYTES + proof.RAND_BYTES

# Keys that are generated together: small enough for the cache, large enough to pay for numpy's calls.
CHUNK = 16384

Pair = tuple[KeyBatch, KeyBatch]


def make_keys(
    fill: Fill, scheme: Scheme, alphas: ArrayLike, bits: int, binder: bytes, rand: bytes, beta: ArrayLike
) -> Pair:
    """Check the input, then make the keys of both parties chunk by chunk."""
    making = _Making(fill, scheme, alphas, bits, binder, rand, beta)
    for _ in making.chunks():
        pass
    return making.keys


def make_proved_keys(
    fill: Fill, scheme: Scheme, alphas: ArrayLike, bits: int, binder: bytes, rand: bytes
) -> tuple[Pair, tuple[Proofs, Proofs]]:
    """The same for payload 1, with a proof for each server."""
    check_checkable(bits)
    n = np.size(np.asarray(alphas))
    _check_rand(rand, n, PROVED_RAND_BYTES)
    making = _Making(fill, scheme, alphas, bits, binder, rand[: n * RAND_BYTES], 1)
    more = np.frombuffer(rand, np.uint64, offset=n * RAND_BYTES).reshape(n, proof.RAND_WORDS)
    type0, type1 = making.types
    words = [np.empty((proof_words(type0), n), np.uint64) for _ in (0, 1)]
    for part, ends in making.chunks():
        proofs = words[0][:, part], words[1][:, part]
        current().prove(type0, making.positions[part], ends, more[part], proofs)
    return making.keys, (Proofs(type0, words[0]), Proofs(type1, words[1]))


class _Making:
    """Checked input, and the keys that are being made of it."""

    def __init__(
        self, fill: Fill, scheme: Scheme, alphas: ArrayLike, bits: int, binder: bytes, rand: bytes, beta: ArrayLike
    ) -> None:
        check_bits(bits)
        self.positions, self._fill = _check_alphas(alphas, bits), fill
        n = self.positions.size
        _check_rand(rand, n, RAND_BYTES)
        self._seeds = np.frombuffer(rand, np.uint64).reshape(n, 4)
        self._payload = _check_beta(beta, n)
        self.types = KeyType(scheme, bits, 0, binder), KeyType(scheme, bits, 1, binder)
        self._words = [np.empty((t.words, n), np.uint64) for t in self.types]

    def chunks(self) -> Iterator[tuple[slice, Ends]]:
        """Make the keys; yields after each chunk where its paths have ended."""
        for start in range(0, self.positions.size, CHUNK):
            part = slice(start, start + CHUNK)
            words = self._words[0][:, part], self._words[1][:, part]
            inputs = self.positions[part], self._seeds[part], self._payload[part]
            yield part, current().gen(self.types[0], self._fill, *inputs, words)

    @property
    def keys(self) -> Pair:
        return KeyBatch(self.types[0], self._words[0]), KeyBatch(self.types[1], self._words[1])


def _check_rand(rand: bytes, n: int, each: int) -> None:
    if len(rand) != n * each:
        raise ShapeError(f"rand must have {each} bytes a key, {n * each} for {n} keys; got {len(rand)}")


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
