"""The C kernel of tables equals numpy bit for bit, on every instruction set of this processor."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fss import field
from fss.field import Words
from fss.numpy_backend import NumpyBackend

native = pytest.importorskip("fss._native", reason="the native kernel was not built")
native_backend = pytest.importorskip("fss.native_backend")
SETS: tuple[str, ...] = native.sets()
REFERENCE = NumpyBackend()

# Around whole vectors and batches of every width, and none
SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 4099]


def some(size: int, seed: int) -> Words:
    """Random elements, and as many of the largest, which leave lazy sums no room to spare."""
    drawn = np.random.default_rng(seed).integers(0, field.P, size, dtype=np.uint64)
    drawn[: size // 2] = field.P - 1
    return drawn


@pytest.fixture(params=SETS)
def chosen(request: pytest.FixtureRequest) -> object:
    native.choose(request.param)
    yield request.param
    native.choose(SETS[0])


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("size", SIZES)
def test_sums(size: int) -> None:
    words, weights = some(size, 1), some(size, 2)
    shifted = np.zeros(8 * size + 1, np.uint8)[1:].view(np.uint64)
    shifted[...] = words
    for given_ in (words, shifted):
        assert native.table_dot(given_, weights) == REFERENCE.table_dot(words, weights)
        for factor in (0, 1, 2, 1 << 40, field.P - 1):
            mine, theirs = weights.copy(), weights.copy()
            native.table_add(given_, factor, mine)
            REFERENCE.table_add(words, factor, theirs)
            assert np.array_equal(mine, theirs)
    assert native.table_dot(words, weights)[0] == sum(map(int.__mul__, words.tolist(), weights.tolist())) % field.P


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("size", SIZES)
def test_seeds(size: int) -> None:
    key, seed = hashlib.sha256(b"key").digest()[:16], b"\xff" * 8 + b"seed".ljust(8)
    for first in (0, 1, 12345, 2**33):
        out, theirs = np.zeros(size + 2, np.uint64), np.empty(size, np.uint64)
        native.table_expand(key, seed, first, out[1:-1])
        REFERENCE.table_expand(key, seed, first, theirs)
        assert np.array_equal(out[1:-1], theirs)
        assert (out[0], out[-1]) == (0, 0)


@settings(max_examples=50, deadline=None)
@given(words=st.lists(st.one_of(st.integers(0, field.P - 1), st.sampled_from([0, 1, field.P - 1])), max_size=70))
def test_any_elements(words: list[int]) -> None:
    array, weights = np.array(words, np.uint64), np.array(words[::-1], np.uint64)
    try:
        for name in SETS:
            native.choose(name)
            expected = sum(map(int.__mul__, words, words[::-1])) % field.P, sum(words) % field.P
            assert native.table_dot(array, weights) == expected, name
    finally:
        native.choose(SETS[0])


def test_the_known_answer_is_numpy_s_and_every_set_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for name in SETS:
            native.choose(name)
            assert native_backend.table_self_test() == native_backend.KNOWN_TABLE, name
    finally:
        native.choose(SETS[0])
    for name in ("table_expand", "table_dot", "table_add"):
        monkeypatch.setattr(native, name, getattr(REFERENCE, name))
    assert native_backend.table_self_test() == native_backend.KNOWN_TABLE


def test_a_kernel_that_fails_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_backend, "KNOWN_TABLE", "something else")
    with pytest.raises(native_backend.BackendError, match="fails its self-test"):
        native_backend.NativeBackend()
