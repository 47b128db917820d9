"""The C kernel, as a back end. Its boundary (native/module.c) checks every size again and releases the GIL."""

import hashlib
from collections.abc import Callable

import numpy as np

from fss import _native, field
from fss.challenge import Weights
from fss.errors import BackendError
from fss.field import Words
from fss.keys import KeyBatch, KeyType, Scheme
from fss.observe import observed_rows
from fss.path import Ends, Fill
from fss.plan import Points
from fss.prg import tree_prg
from fss.proof import RAND_BYTES, RAND_WORDS, proof_constants, proof_words

# Keys handed over in one call, a multiple of what the kernel walks together: enough to pay for the call, few enough to
# share them out evenly between threads and, up to 2^21 points, to be interrupted after a second, between calls.
FEWEST, MOST = 64, 32768
ANSWERS = 1 << 21

# What numpy makes of the self-test; tests/fss/test_backends.py computes it again.
KNOWN_TABLE = "273ef673322d8d8af8b0e9c20c68316891927f14860dcaa2a7ec17715c9c3844"
KNOWN_ANSWER = "daa90b4698fd9dd2f3f645330617956c83c79330fd10db1f2d61ec3b3068afd6"


class NativeEvaluation:
    def __init__(self, points: Points | None, answers: int) -> None:
        self._points, self._sums = points, np.zeros(answers, np.uint64)

    def each(self, keys: KeyBatch, shares: Words) -> None:
        _native.each(*_about(keys.type), keys.words, self._points, shares)

    def add(self, keys: KeyBatch) -> None:
        _native.add(*_about(keys.type), keys.words, self._points, self._sums)

    def observe(self, keys: KeyBatch, weights: Weights, seen: Words) -> None:
        _native.observe(*_about(keys.type), keys.words, weights.by_node, self._sums, seen)

    def sums(self) -> Words:
        _native.canonical(self._sums)
        return self._sums


def self_test_input() -> tuple[Words, bytes, Words]:
    """Positions, randomness and payloads of 70 keys over 6 bits: whole groups of what is walked at once, and a rest."""
    n = np.arange(70, dtype=np.uint64)
    rand = hashlib.shake_128(b"self-test").digest(32 * n.size)
    return n * np.uint64(7) % np.uint64(64), rand, n + np.uint64(1)


def self_test_weights() -> Weights:
    drawn = np.frombuffer(hashlib.shake_128(b"weights").digest(8 * 5 * 4), np.uint64) % field.MASK
    return Weights(drawn[:16].reshape(4, 4), drawn[16:])


def self_test_proof_rand() -> Words:
    drawn = np.frombuffer(hashlib.shake_128(b"proofs").digest(70 * RAND_BYTES), np.uint64)
    return drawn.reshape(70, RAND_WORDS)


def self_test() -> str:
    """A digest of what the chosen instructions make, for both schemes: keys, proofs, sums over the domain, what a check
    needs."""
    alphas, rand, beta = self_test_input()
    seeds, all = np.frombuffer(rand, np.uint64).reshape(-1, 4), hashlib.sha256()
    for scheme in (Scheme.DCF, Scheme.DPF):
        type = KeyType(scheme, 6, 0, b"self-test")
        words = [np.empty((type.words, alphas.size), np.uint64) for _ in (0, 1)]
        ends = np.empty((4, alphas.size), np.uint64)
        _native.gen(*_about(type), alphas, seeds, beta, words[0], words[1], ends)
        proofs = [np.empty((proof_words(type), alphas.size), np.uint64) for _ in (0, 1)]
        constants = proof_constants(type.leaves)
        _native.prove(*_about(type), alphas, self_test_proof_rand(), ends, constants, proofs[0], proofs[1])
        sums, seen = np.zeros(64, np.uint64), np.empty((observed_rows(type), alphas.size), np.uint64)
        _native.observe(*_about(type), words[0], self_test_weights().by_node, sums, seen)
        for array in (*words, ends, *proofs, field.canonical(sums), seen):
            all.update(array.tobytes())
    return all.hexdigest()


def table_self_test() -> str:
    """The same for tables: 71 words of a seed, their sums, and sums that they were added to twice."""
    words, sums, all = np.empty(71, np.uint64), np.zeros(71, np.uint64), hashlib.sha256()
    _native.table_expand(b"self-test of key", b"self-test of one", 7, words)
    for factor in (1, field.P - 2):
        _native.table_add(words, factor, sums)
    for array in (words, sums, np.array(_native.table_dot(words, sums), np.uint64)):
        all.update(array.tobytes())
    return all.hexdigest()


def choose_instructions() -> None:
    """The best set that passes the self-test: a processor that was never tried must not make wrong keys silently."""
    for name in _native.sets():
        _native.choose(name)
        if self_test() == KNOWN_ANSWER and table_self_test() == KNOWN_TABLE:
            return
    raise BackendError("the native kernel fails its self-test on this processor; set FSS_BACKEND=numpy")


class NativeBackend:
    name = "native"

    def __init__(self) -> None:
        choose_instructions()

    def gen(
        self, type: KeyType, fill: Fill, alphas: Words, rand: Words, beta: Words, words: tuple[Words, Words]
    ) -> Ends:
        del fill
        ends = np.empty((4, alphas.size), np.uint64)
        _native.gen(*_about(type), alphas, rand, np.ascontiguousarray(beta), *words, ends)
        return Ends(ends)

    def prove(self, type: KeyType, alphas: Words, ends: Ends, rand: Words, words: tuple[Words, Words]) -> None:
        _native.prove(*_about(type), alphas, rand, ends.words, proof_constants(type.leaves), *words)

    def evaluation(self, type: KeyType, points: Points | None, keys: int) -> tuple[int, Callable[[], NativeEvaluation]]:
        del keys
        answers = 1 << type.bits if points is None else points.size
        chunk = min(MOST, max(FEWEST, ANSWERS // answers // FEWEST * FEWEST))
        return chunk, lambda: NativeEvaluation(points, answers)

    def table_expand(self, key: bytes, seed: bytes, first: int, out: Words) -> None:
        _native.table_expand(key, seed, first, out)

    def table_dot(self, words: Words, weights: Words) -> tuple[int, int]:
        return _native.table_dot(words, weights)

    def table_add(self, words: Words, factor: int, sums: Words) -> None:
        _native.table_add(words, factor, sums)


def _about(type: KeyType) -> tuple[bool, int, bytes]:
    return type.scheme is Scheme.DCF, type.bits, tree_prg(type.binder).keys
