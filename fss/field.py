"""The prime field Z_p with p = 2^61 - 1, on arrays of uint64.

A canonical element lies in [0, p). Because 2^61 = 1 (mod p), `fold` brings any uint64 down to at most p + 7 with a
mask, a shift and an addition, so sums can run lazily in the three spare bits and be made canonical once, at the end.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fss.errors import DomainError, ShapeError

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

BITS = 61
P = (1 << BITS) - 1

MASK = np.uint64(P)
_SHIFT = np.uint64(BITS)
_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_29 = np.uint64(BITS - 32)
_LOW29 = np.uint64((1 << (BITS - 32)) - 1)


def fold(x: Words) -> Words:
    """The same elements, each at most p + 7."""
    return (x & MASK) + (x >> _SHIFT)


def fold_into(x: Words, scratch: Words) -> None:
    """`fold`, in place."""
    np.right_shift(x, _SHIFT, out=scratch)
    np.bitwise_and(x, MASK, out=x)
    np.add(x, scratch, out=x)


def canonical(x: Words) -> Words:
    """The same elements in [0, p), from any uint64."""
    folded = np.asarray(fold(x))
    # Below p the difference wraps around to something larger; only scalars complain of that.
    less = np.subtract(folded, MASK, out=np.empty_like(folded))
    return np.minimum(folded, less, out=less)


def is_canonical(x: Words) -> bool:
    return bool((x < MASK).all())


def add(a: Words, b: Words) -> Words:
    return canonical(a + b)


def neg(a: Words) -> Words:
    return canonical(MASK - a)


def sub(a: Words, b: Words) -> Words:
    return canonical(a + (MASK - b))


def _times_2_32(x: Words) -> Words:
    """2^32 x for canonical x: a rotation of 61 bits."""
    return ((x & _LOW29) << _32) | (x >> _29)


# How to cut any uint64 into two halves of 32 bits, of which up to 2^32 can be summed apart: nothing overflows or is
# rounded. `join` puts the sums together.
HALVES = (np.bitwise_and, _LOW32), (np.right_shift, _32)


def join(low: Words, high: Words) -> Words:
    """low + 2^32 high, canonical, from sums of halves."""
    return add(canonical(low), _times_2_32(canonical(high)))


def total(x: Words, axis: int = -1) -> Words:
    """The sum along an axis of up to 2^32 arbitrary uint64 words, canonical."""
    low, high = (np.asarray(np.add.reduce(cut(x, by), axis=axis)) for cut, by in HALVES)
    return join(low, high)


def prefix_sum(x: Words) -> Words:
    """Running sums along the last axis: out[t] = x[0] + ... + x[t]."""
    low, high = (np.cumsum(cut(x, by), axis=-1, dtype=np.uint64) for cut, by in HALVES)
    return join(low, high)


_31, _30 = np.uint64(31), np.uint64(30)
_LOW31, _LOW30 = np.uint64((1 << 31) - 1), np.uint64((1 << 30) - 1)


def mul(a: Words, b: Words) -> Words:
    """The product of canonical elements, by halves of 31 and 30 bits: 2^62 = 2, and 2^31 x is a rotation."""
    a0, a1, b0, b1 = a & _LOW31, a >> _31, b & _LOW31, b >> _31
    middle = a1 * b0 + a0 * b1
    return canonical(a0 * b0 + ((a1 * b1) << np.uint64(1)) + ((middle & _LOW30) << _31) + (middle >> _30))


# Of a 64-bit word, two halves of 32 bits; of a weight, four limbs of 16. At most 32 products of them add up to less
# than 2^53, so that floating point is exact and the linear algebra library does the work.
ROWS = 32
_LIMBS = np.arange(0, 64, 16, dtype=np.uint64)[:, np.newaxis]


def limbs_of(weights: Words) -> Floats:
    """Four rows of 16-bit limbs, as `Weighed.add` takes them."""
    return ((weights >> _LIMBS) & np.uint64(0xFFFF)).astype(np.float64)


def halves_of(rows: Words) -> Floats:
    """The low and the high halves of words, by turns."""
    return np.ascontiguousarray(rows).view(np.uint32).astype(np.float64)


# Multiplications in one product. Larger ones were slower on busy cores, probably because the BLAS starts threads.
_SMALL = 1 << 17


def _product(limbs: Floats, halves: Floats) -> Words:
    """limbs @ halves, as words, on this thread alone."""
    columns = max(1, _SMALL // max(1, limbs.size))
    out = np.empty((len(limbs), halves.shape[1]))
    for start in range(0, halves.shape[1], columns):
        part = slice(start, start + columns)
        np.matmul(limbs, halves[:, part], out=out[:, part])
    return out.astype(np.uint64)


class Weighed:
    """A running sum of weight times row over many rows of any 64-bit words, in Z_p."""

    _OFTEN = 1 << 10  # additions of less than 2^53 that a word holds

    def __init__(self, columns: int, limbs: int = 4) -> None:
        self._halves = np.zeros((limbs, 2 * columns), np.uint64)
        self._total, self._pending = np.zeros(columns, np.uint64), 0

    def add(self, limbs: Floats, halves: Floats) -> None:
        """`limbs` of the weights of at most 32 rows, and those rows' halves, low and high by turns."""
        self._halves += _product(limbs, halves)
        self._pending += 1
        if self._pending == self._OFTEN:
            self._settle()

    def _settle(self) -> None:
        for row, halves in enumerate(self._halves.reshape(len(self._halves), -1, 2)):
            for half in (0, 1):
                part = canonical(np.ascontiguousarray(halves[:, half]))
                self._total = add(self._total, _rotated(part, (16 * row + 32 * half) % BITS))
        self._halves[...] = 0
        self._pending = 0

    def total(self) -> Words:
        self._settle()
        return self._total


def _rotated(x: Words, by: int) -> Words:
    """2^by x for canonical x."""
    return ((x << np.uint64(by)) & MASK) | (x >> np.uint64(BITS - by))


def weigh(weights: Words, rows: Words) -> Words:
    """The sum over the rows of weights[i] rows[i], for canonical weights and any words; the last axis is kept."""
    sum = Weighed(rows.shape[-1])
    for start in range(0, len(rows), ROWS):
        sum.add(limbs_of(weights[start : start + ROWS]), halves_of(rows[start : start + ROWS]))
    return sum.total()


def weigh_halves(low: Words, high: Words, rows: Words) -> Words:
    """The same with a weight for the low and one for the high 32 bits of each row: no two rows weigh the same mod p."""
    sums = np.zeros((8, 2 * rows.shape[-1]), np.uint64)
    for start in range(0, len(rows), ROWS):
        part = slice(start, start + ROWS)
        limbs = np.concatenate([limbs_of(low[part]), limbs_of(high[part])])
        sums += _product(limbs, halves_of(rows[part]))
    result = np.zeros(rows.shape[-1], np.uint64)
    for half in (0, 1):
        for limb in range(4):
            part_sum = canonical(sums[4 * half + limb, half::2])
            result = add(result, _rotated(part_sum, 16 * limb))
    return result


def scale(x: Words, factors: Words) -> Words:
    """x times factors, for canonical x and factors below 2^29."""
    low, high = (x & _LOW32) * factors, (x >> _32) * factors
    return join(low, high)


def encode(values: ArrayLike) -> Words:
    """Signed integers, |v| <= (p - 1) / 2, as field elements."""
    signed = np.asarray(values)
    if signed.dtype.kind not in "iu":
        raise ShapeError(f"field.encode takes integers, got dtype {signed.dtype}")
    bad = np.flatnonzero((signed.ravel() > P // 2) | (signed.ravel() < -(P // 2)))
    if bad.size:
        raise DomainError(f"field.encode takes |v| <= {P // 2}; number {bad[0]} is larger")
    wide = signed.astype(np.int64)
    return np.where(wide < 0, wide + P, wide).astype(np.uint64)


def decode(elements: Words) -> NDArray[np.int64]:
    """Field elements as signed integers: the upper half of the field is negative."""
    signed = check_elements(elements, "elements").astype(np.int64)
    return np.where(signed > P // 2, signed - P, signed)


def check_elements(elements: Words, name: str) -> Words:
    """Raise unless this is an array of canonical elements."""
    if not isinstance(elements, np.ndarray) or elements.dtype != np.uint64:
        raise ShapeError(f"{name} must be a uint64 array, got {getattr(elements, 'dtype', type(elements).__name__)}")
    if not is_canonical(elements):
        raise DomainError(
            f"{name} must lie in [0, p), p = 2^61 - 1; number {int(np.argmax(elements >= MASK))} does not"
        )
    return elements


def add_all(parts: Sequence[Words]) -> Words:
    """The sum of equally shaped arrays of canonical elements."""
    result = parts[0]
    for part in parts[1:]:
        result = add(result, part)
    return result
