"""Z_p against Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fss import DomainError, ShapeError, field

P = 2**61 - 1
any_word = st.integers(0, 2**64 - 1)
element = st.integers(0, P - 1)


def words(*values: int) -> field.Words:
    return np.array(values, np.uint64)


@given(any_word)
def test_canonical_is_the_remainder(x: int) -> None:
    assert field.canonical(words(x)).tolist() == [x % P]
    assert int(field.fold(words(x))[0]) <= P + 7


@given(element, element)
def test_arithmetic_equals_python(a: int, b: int) -> None:
    assert field.add(words(a), words(b)).tolist() == [(a + b) % P]
    assert field.sub(words(a), words(b)).tolist() == [(a - b) % P]
    assert field.neg(words(a)).tolist() == [-a % P]


@given(element, st.integers(0, 2**29 - 1))
def test_scaling_equals_python(a: int, w: int) -> None:
    assert field.scale(words(a), words(w)).tolist() == [a * w % P]


@given(st.lists(any_word, min_size=1, max_size=50))
def test_sums_of_any_words_are_exact(xs: list[int]) -> None:
    assert int(field.total(words(*xs))) == sum(xs) % P
    assert field.prefix_sum(words(*xs)).tolist() == [sum(xs[: i + 1]) % P for i in range(len(xs))]


@pytest.mark.parametrize("x", [0, 1, P - 1, P, P + 1, P + 7, 2**62, 2**64 - 1])
def test_edges(x: int) -> None:
    assert field.canonical(words(x)).tolist() == [x % P]


def test_a_sum_at_the_limits_does_not_overflow() -> None:
    assert int(field.total(np.full(1_000_000, 2**64 - 1, np.uint64))) == 1_000_000 * (2**64 - 1) % P


@given(st.integers(-(P // 2), P // 2))
def test_signed_decoding_inverts_encoding(v: int) -> None:
    assert field.decode(field.encode(np.array([v]))).tolist() == [v]


def test_a_negative_noisy_count_comes_out_negative() -> None:
    share0, share1 = words(123456789), field.sub(field.encode([-17]), words(123456789))
    assert field.decode(field.add(share0, share1)).tolist() == [-17]


def test_bad_input_is_named() -> None:
    with pytest.raises(DomainError, match=r"must lie in.*number 0 does not"):
        field.decode(words(P))
    with pytest.raises(ShapeError, match="uint64"):
        field.decode(np.array([1.0]))
    with pytest.raises(ShapeError, match="integers"):
        field.encode([0.5])
    with pytest.raises(DomainError, match=r"\|v\| <= .*; number 0 is larger"):
        field.encode(np.array([2**61], np.int64))


@given(element, element)
def test_products_equal_python(a: int, b: int) -> None:
    assert field.mul(words(a), words(b)).tolist() == [a * b % P]


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("columns", [0, 1, 700, 3000])
def test_weighed_sums_equal_python(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    weights, other = (rng.integers(0, P, rows, dtype=np.uint64) for _ in (0, 1))
    x = rng.integers(0, 2**64, (rows, columns), dtype=np.uint64)
    weights[0], x[:, :1] = P - 1, 2**64 - 1
    some = range(0, columns, 97)
    plain, halves = field.weigh(weights, x), field.weigh_halves(weights, other, x)
    assert field.is_canonical(plain)
    for i in some:
        column = [int(v) for v in x[:, i]]
        pairs = list(zip(weights.tolist(), other.tolist(), column, strict=True))
        assert int(plain[i]) == sum(w * v for w, _, v in pairs) % P
        assert int(halves[i]) == sum(w * (v & 0xFFFFFFFF) + u * (v >> 32) for w, u, v in pairs) % P


def test_a_long_weighed_sum_does_not_overflow() -> None:
    sum = field.Weighed(1)
    ones = np.full((32, 1), 2**64 - 1, np.uint64)
    for _ in range(2500):
        sum.add(field.limbs_of(np.full(32, P - 1, np.uint64)), field.halves_of(ones))
    assert sum.total().tolist() == [2500 * 32 * (P - 1) * (2**64 - 1) % P]
