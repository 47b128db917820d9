"""Which code runs the inner loops: the C kernel where it was built and the processor has AES, else numpy.

Both make the same keys from the same randomness and the same shares from the same keys, bit for bit. Checks, formats,
chunks and threads are not their business.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Protocol

from fss.challenge import Weights
from fss.errors import BackendError
from fss.field import Words
from fss.keys import KeyBatch, KeyType
from fss.path import Ends, Fill
from fss.plan import Points


class Evaluation(Protocol):
    """One thread's evaluation of some points, which is given the keys chunk by chunk."""

    def each(self, keys: KeyBatch, shares: Words) -> None:
        """Write every key's share into shares[point, key], canonical."""

    def add(self, keys: KeyBatch) -> None:
        """Add the shares of these keys to the sums."""

    def observe(self, keys: KeyBatch, weights: Weights, seen: Words) -> None:
        """Add these keys and write what their check needs into seen[row, key]; for the whole domain only."""

    def sums(self) -> Words:
        """What was added so far, for each point, canonical."""


class Backend(Protocol):
    name: str

    def gen(
        self, type: KeyType, fill: Fill, alphas: Words, rand: Words, beta: Words, words: tuple[Words, Words]
    ) -> Ends:
        """Write all words of both parties' keys. `fill` is the scheme's, for numpy."""

    def prove(self, type: KeyType, alphas: Words, ends: Ends, rand: Words, words: tuple[Words, Words]) -> None:
        """Fill both servers' proofs for keys whose paths ended there (`fss/proof.py`)."""

    def evaluation(self, type: KeyType, points: Points | None, keys: int) -> tuple[int, Callable[[], Evaluation]]:
        """The most keys in a chunk, and what makes an evaluation for each thread.

        Points are sorted and distinct; None is the whole domain.
        """

    def table_expand(self, key: bytes, seed: bytes, first: int, out: Words) -> None:
        """Fill `out` with the elements of a key and a seed, from block `first` on (`fss/table_words.py`)."""

    def table_dot(self, words: Words, weights: Words) -> tuple[int, int]:
        """The sum of words times weights, and the sum of the words, all canonical."""

    def table_add(self, words: Words, factor: int, sums: Words) -> None:
        """Add factor times words to the sums, all canonical."""


def _numpy() -> Backend:
    from fss.numpy_backend import NumpyBackend

    return NumpyBackend()


def _native() -> Backend:
    try:
        from fss.native_backend import NativeBackend
    except ImportError as error:
        raise BackendError(
            f"the native kernel is not here ({error}); reinstall where there is a C compiler and an x86-64 or AArch64 "
            "processor with AES, or set FSS_BACKEND=numpy"
        ) from error
    return NativeBackend()


_MAKERS = {"native": _native, "numpy": _numpy}


@cache
def _made(name: str) -> Backend:
    if name not in _MAKERS:
        raise BackendError(f"FSS_BACKEND must be native or numpy, got {name!r}")
    return _MAKERS[name]()


@cache
def _default() -> Backend:
    name = os.environ.get("FSS_BACKEND")
    if name is not None:
        return _made(name)
    try:
        return _made("native")
    except BackendError:
        return _made("numpy")


_used: list[Backend] = []


def current() -> Backend:
    return _used[-1] if _used else _default()


@contextmanager
def using(name: str) -> Iterator[None]:
    """Take this one meanwhile, in all threads; for comparing them."""
    _used.append(_made(name))
    try:
        yield
    finally:
        _used.pop()


def backend() -> str:
    """The name of the one in use, native or numpy."""
    return current().name
