"""The C kernel, as a back end. Its boundary (native/module.c) checks every size again and releases the GIL."""

import hashlib
from collections.abc import Callable

import numpy as np

from fss import _native, field
from fss.errors import BackendError
from fss.field import Words
from fss.keys import KeyBatch, KeyType, Scheme
from fss.path import Fill
from fss.plan import Points
from fss.prg import tree_prg

# Keys handed over in one call, a multiple of what the kernel walks together: enough to pay for the call, few enough to
# share them out evenly between threads and, up to 2^22 points, to be interrupted after a second, between calls.
FEWEST, MOST = 64, 32768
ANSWERS = 1 << 22

# What numpy makes of the self-test; tests/fss/test_backends.py computes it again.
KNOWN_ANSWER = "93e2197021e0d83571c0ec5fa809c5a148de741bbffe465911625373ecf830f2"


class NativeEvaluation:
    def __init__(self, points: Points | None, answers: int) -> None:
        self._points, self._sums = points, np.zeros(answers, np.uint64)

    def each(self, keys: KeyBatch, shares: Words) -> None:
        _native.each(*_about(keys.type), keys.words, self._points, shares)

    def add(self, keys: KeyBatch) -> None:
        _native.add(*_about(keys.type), keys.words, self._points, self._sums)

    def sums(self) -> Words:
        return field.canonical(self._sums)


def self_test_input() -> tuple[Words, bytes, Words]:
    """Positions, randomness and payloads of 70 keys over 5 bits: whole groups of what is walked at once, and a rest."""
    n = np.arange(70, dtype=np.uint64)
    rand = hashlib.shake_128(b"self-test").digest(32 * n.size)
    return n * np.uint64(7) % np.uint64(32), rand, n + np.uint64(1)


def self_test() -> str:
    """A digest of keys and of their sums over the domain, both schemes, as the chosen instructions make them."""
    alphas, rand, beta = self_test_input()
    seeds, seen = np.frombuffer(rand, np.uint64).reshape(-1, 4), hashlib.sha256()
    for scheme in (Scheme.DCF, Scheme.DPF):
        type = KeyType(scheme, 5, 0, b"self-test")
        words = [np.empty((type.words, alphas.size), np.uint64) for _ in (0, 1)]
        _native.gen(*_about(type), alphas, seeds, beta, *words)
        sums = np.zeros(32, np.uint64)
        _native.add(*_about(type), words[0], None, sums)
        for array in (*words, field.canonical(sums)):
            seen.update(array.tobytes())
    return seen.hexdigest()


def choose_instructions() -> None:
    """The best set that passes the self-test: a processor that was never tried must not make wrong keys silently."""
    for name in _native.sets():
        _native.choose(name)
        if self_test() == KNOWN_ANSWER:
            return
    raise BackendError("the native kernel fails its self-test on this processor; set FSS_BACKEND=numpy")


class NativeBackend:
    name = "native"

    def __init__(self) -> None:
        choose_instructions()

    def gen(
        self, type: KeyType, fill: Fill, alphas: Words, rand: Words, beta: Words, words: tuple[Words, Words]
    ) -> None:
        del fill
        _native.gen(*_about(type), alphas, rand, np.ascontiguousarray(beta), *words)

    def evaluation(self, type: KeyType, points: Points | None, keys: int) -> tuple[int, Callable[[], NativeEvaluation]]:
        del keys
        answers = 1 << type.bits if points is None else points.size
        chunk = min(MOST, max(FEWEST, ANSWERS // answers // FEWEST * FEWEST))
        return chunk, lambda: NativeEvaluation(points, answers)


def _about(type: KeyType) -> tuple[bool, int, bytes]:
    return type.scheme is Scheme.DCF, type.bits, tree_prg(type.binder).keys
