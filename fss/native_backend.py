"""The C kernel, as a back end. Its boundary (native/module.c) checks every size again and releases the GIL."""

from collections.abc import Callable

import numpy as np

from fss import _native, field
from fss.field import Words
from fss.keys import KeyBatch, KeyType, Scheme
from fss.path import Fill
from fss.plan import Points
from fss.prg import tree_prg

# Keys handed over in one call, a multiple of what the kernel walks together: enough to pay for the call, few enough to
# share them out evenly between threads and to be interrupted, which only happens between calls.
FEWEST, MOST = 64, 8192
ANSWERS = 1 << 22


class NativeEvaluation:
    def __init__(self, points: Points | None, answers: int) -> None:
        self._points, self._sums = points, np.zeros(answers, np.uint64)

    def each(self, keys: KeyBatch, shares: Words) -> None:
        _native.each(*_about(keys.type), keys.words, self._points, shares)

    def add(self, keys: KeyBatch) -> None:
        _native.add(*_about(keys.type), keys.words, self._points, self._sums)

    def sums(self) -> Words:
        return field.canonical(self._sums)


class NativeBackend:
    name = "native"

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
