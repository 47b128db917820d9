"""The kernel's boundary to Python: no argument makes it crash, and wrong sizes are named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fss import dcf
from fss.prg import tree_prg
from tests.fss.helpers import BINDER, make

native = pytest.importorskip("fss._native", reason="the native kernel was not built")
AES_KEYS = tree_prg(BINDER).keys


def arguments(function: str) -> list[object]:
    """A good call, to be spoilt."""
    if function == "canonical":
        return [np.zeros(9, np.uint64)]
    if function == "hash_alone":
        return [AES_KEYS, np.zeros(64, np.uint64), 1]
    if function == "table_expand":
        return [bytes(16), bytes(16), 0, np.zeros(9, np.uint64)]
    if function == "table_dot":
        return [np.zeros(9, np.uint64), np.zeros(9, np.uint64)]
    if function == "table_add":
        return [np.zeros(9, np.uint64), 1, np.zeros(9, np.uint64)]
    keys = make(dcf, [1, 2, 3], 5)[0]
    fixed: list[object] = [True, 5, AES_KEYS]
    if function == "gen":
        n = np.zeros(3, np.uint64)
        ends = np.zeros((4, 3), np.uint64)
        return [*fixed, n, np.zeros((3, 4), np.uint64), n, keys.words.copy(), keys.words.copy(), ends]
    if function == "prove":
        words = np.zeros((2, 22, 3), np.uint64)
        ends, constants = np.zeros((4, 3), np.uint64), np.zeros(257, np.uint64)
        return [*fixed, np.zeros(3, np.uint64), np.zeros((3, 19), np.uint64), ends, constants, *words]
    if function == "observe":
        rows = np.zeros((18, 3), np.uint64)
        return [*fixed, keys.words, np.zeros((2, 22), np.uint64), np.zeros(32, np.uint64), rows]
    out = np.zeros(32 if function == "add" else (32, 3), np.uint64)
    return [*fixed, keys.words, np.arange(32, dtype=np.uint64), out]


def spoilt(value: object) -> st.SearchStrategy[object]:
    """Everything near a good argument, and some things that are not."""
    others: list[object] = [
        None,
        b"",
        bytes(95),
        "x",
        0,
        -1,
        33,
        2**70,
        np.float64(1),
        np.zeros(0, np.uint64),
        object(),
    ]
    others += [np.zeros((2, 2, 2), np.uint64), np.array(1, np.uint64), np.zeros((0, 3), np.uint64)]
    if isinstance(value, np.ndarray):
        read_only = value.copy()
        read_only.setflags(write=False)
        others += [value[1:], value[:-1], value[..., 1:], value[..., ::-1], value.T, np.append(value, value)]
        others += [value.astype(np.int64), value.astype(">u8"), value.astype(np.uint32), value.tolist(), read_only]
        others += [
            np.repeat(value, 2, axis=-1)[..., ::2],
            np.broadcast_to(value[..., :1], value.shape),
            value + value.dtype.type(9),
        ]
    return st.sampled_from(others)


TABLES = ["table_expand", "table_dot", "table_add"]
FUNCTIONS = ["gen", "prove", "each", "add", "observe", "canonical", "hash_alone", *TABLES]


@settings(max_examples=1000, deadline=None)
@given(data=st.data(), function=st.sampled_from(FUNCTIONS))
def test_wrong_arguments_raise_and_never_crash(data: st.DataObject, function: str) -> None:
    given_ = arguments(function)
    for at in data.draw(st.sets(st.integers(0, len(given_) - 1), min_size=1, max_size=min(2, len(given_)))):
        given_[at] = data.draw(spoilt(given_[at]))
    for short in (given_, given_[: data.draw(st.integers(0, len(given_)))]):
        try:
            getattr(native, function)(*short)
        except (ValueError, TypeError, BufferError, OverflowError):
            continue
        assert len(short) == len(given_)


@pytest.mark.parametrize(
    ("function", "at", "value", "message"),
    [
        ("add", 1, 0, "bits must be 1 to 32"),
        ("add", 1, 33, "bits must be 1 to 32"),
        ("add", 2, bytes(159), "160 bytes of AES keys"),
        ("add", 1, 6, r"words must have shape \(words, keys\)"),
        ("add", 0, False, r"words must have shape \(words, keys\)"),
        ("add", 4, np.array([2, 1], np.uint64), "sorted and distinct"),
        ("add", 4, np.array([1, 1], np.uint64), "sorted and distinct"),
        ("add", 4, np.array([32], np.uint64), "in the domain"),
        ("add", 4, np.zeros(0, np.uint64), "points must be"),
        ("add", 5, np.zeros(31, np.uint64), "one row for each point"),
        ("add", 5, np.zeros((32, 3), np.uint64), "out must be a uint64 array of 1 dimensions"),
        ("each", 5, np.zeros((32, 2), np.uint64), "one row for each point"),
        ("each", 5, np.zeros((31, 3), np.uint64), "one row for each point"),
        ("gen", 4, np.zeros((3, 3), np.uint64), r"rand must have shape \(keys, 4\)"),
        ("gen", 4, np.zeros((3, 8), np.uint64)[:, :4], "rand must have shape .* and be contiguous"),
        ("gen", 5, np.zeros(2, np.uint64), "one word a key"),
        ("gen", 6, np.zeros((22, 2), np.uint64), r"words must have shape \(words, keys\)"),
        ("gen", 7, np.zeros((21, 3), np.uint64), r"words must have shape \(words, keys\)"),
        ("gen", 8, np.zeros((3, 3), np.uint64), r"ends must have shape \(4, keys\)"),
        ("gen", 8, np.zeros((4, 2), np.uint64), r"ends must have shape \(4, keys\)"),
        ("observe", 4, np.zeros((3, 22), np.uint64), r"weights must have shape \(nodes, 22\)"),
        ("observe", 4, np.zeros((2, 21), np.uint64), r"weights must have shape \(nodes, 22\)"),
        ("observe", 4, np.zeros((2, 44), np.uint64)[:, :22], r"weights must have shape \(nodes, 22\)"),
        ("observe", 5, np.zeros(31, np.uint64), "one row for each point"),
        ("observe", 6, np.zeros((17, 3), np.uint64), r"seen \(2 \+ leaves, keys\)"),
        ("canonical", 0, np.zeros((1, 3), np.uint64), "words must be a uint64 array of 1 dimensions"),
        ("canonical", 0, np.zeros(25, np.uint8)[1:].view(np.uint64), "words must be aligned"),
        ("prove", 4, np.zeros((3, 18), np.uint64), r"rand must have shape \(keys, 19\)"),
        ("prove", 4, np.zeros((3, 38), np.uint64)[:, :19], "rand must have shape .* and be contiguous"),
        ("prove", 5, np.zeros((3, 3), np.uint64), r"ends must have shape \(4, keys\)"),
        ("prove", 6, np.zeros(256, np.uint64), "constants must be aligned, 1 . leaves x leaves words"),
        ("prove", 7, np.zeros((21, 3), np.uint64), r"words must have shape \(words, keys\)"),
        ("prove", 8, np.zeros((22, 2), np.uint64), r"words must have shape \(words, keys\)"),
        ("hash_alone", 0, bytes(159), "160 bytes of AES keys"),
        ("hash_alone", 1, np.zeros(63, np.uint64), "seeds must be aligned, 64 words"),
        ("hash_alone", 2, -1, "times must not be negative"),
        ("observe", 6, np.zeros((18, 2), np.uint64), r"seen \(2 \+ leaves, keys\)"),
        ("table_expand", 0, bytes(15), "key and seed must have 16 bytes"),
        ("table_expand", 1, bytes(17), "key and seed must have 16 bytes"),
        ("table_expand", 3, np.zeros((3, 3), np.uint64), "out must be a uint64 array of 1 dimensions"),
        ("table_expand", 3, np.zeros(25, np.uint8)[1:].view(np.uint64), "out must be aligned"),
        ("table_dot", 0, np.zeros(8, np.uint64), "both arrays must be of one length"),
        ("table_dot", 1, np.zeros(73, np.uint8)[1:].view(np.uint64), "the second aligned"),
        ("table_add", 1, 2**61 - 1, "factor must be an element"),
        ("table_add", 2, np.zeros(10, np.uint64), "both arrays must be of one length"),
    ],
)
def test_wrong_sizes_are_named(function: str, at: int, value: object, message: str) -> None:
    given_ = arguments(function)
    given_[at] = value
    with pytest.raises(ValueError, match=message):
        getattr(native, function)(*given_)
