"""Products of many polynomials over Z_p, by the fast Fourier transform in floating point.

Coefficients are cut into signed limbs, products of limbs are sums of integers, and these are rounded. That the rounding
is right is checked, not proved: a transform whose results are far from integers is repeated with smaller limbs, and
whoever uses a product checks it by other means (`fss/table.py` always does).

Which operations run, and on how many numbers, depends on how many factors there are and on nothing else.
"""

import numpy as np

from fss import field
from fss.errors import SelfCheckError
from fss.field import Floats, Words

# Factors that are multiplied one by one before transforms pay.
_FEW = 32

# Bits of a limb, the second if rounding was not clear with the first. Rounding is clear if nothing is further than this
# from an integer: in tables it is 10 to 100 times nearer.
_LIMB_BITS = 16, 11
_CLEAR = 0.125


def product_of_linear(constant: Words, slope: Words) -> Words:
    """The coefficients, from X^0 on, of the product of all constant[i] + slope[i] X; slopes are 0 or 1."""
    groups = -(-constant.size // _FEW)
    ones = np.zeros(groups * _FEW - constant.size, np.uint64)
    low, top = _small_products(
        np.append(constant, ones + np.uint64(1)).reshape(groups, _FEW), np.append(slope, ones).reshape(groups, _FEW)
    )
    while len(low) > 1:
        low, top = _paired(low, top)
    return np.append(low[0], top[0])[: constant.size + 1]


def _small_products(constant: Words, slope: Words) -> tuple[Words, Words]:
    """The product of each row, of degree at most the length of a row: all coefficients but the top one, and that."""
    poly = np.zeros((len(constant), _FEW + 1), np.uint64)
    poly[:, 0] = 1
    for i in range(_FEW):
        c, s = constant[:, i : i + 1], slope[:, i : i + 1]
        shifted = poly[:, : i + 1] * s
        poly[:, : i + 1] = field.mul(poly[:, : i + 1], c)
        poly[:, 1 : i + 2] = field.add(poly[:, 1 : i + 2], shifted)
    return poly[:, :-1], poly[:, -1]


def _paired(low: Words, top: Words) -> tuple[Words, Words]:
    """The products of two neighbours each. A top coefficient is 0 or 1, so that transforms need not hold it."""
    if len(low) % 2:
        one = np.zeros_like(low[:1])
        one[0, 0] = 1
        low, top = np.concatenate([low, one]), np.append(top, np.uint64(0))
    a, b, top_a, top_b = low[0::2], low[1::2], top[0::2, np.newaxis], top[1::2, np.newaxis]
    out = multiply(a, b)
    half = out[:, low.shape[1] :]
    half[...] = field.canonical(half + a * top_b + b * top_a)
    return out, (top_a * top_b)[:, 0]


def multiply(a: Words, b: Words) -> Words:
    """The products of rows of n coefficients, as rows of 2 n, of which the last is 0."""
    for bits in _LIMB_BITS:
        sums = _limb_products(_limbs(a, bits), _limbs(b, bits), 2 * a.shape[1])
        whole = np.rint(sums)
        if np.abs(sums - whole).max() < _CLEAR:
            return _joined(whole, bits)
    raise SelfCheckError(f"a product of polynomials of {a.shape[1]} coefficients is too long for floating point")


def _limbs(x: Words, bits: int) -> Floats:
    """Signed limbs, at most half of 2^bits: limb first."""
    count = -(-(field.BITS + 1) // bits)
    half = 1 << (bits - 1)
    # Adding half to every limb makes their carries; what is taken away again leaves them signed.
    carried = x + np.uint64(sum(half << (bits * i) for i in range(count - 1)))
    shifts = np.arange(0, bits * count, bits, dtype=np.uint64).reshape(-1, *[1] * x.ndim)
    limbs = (carried >> shifts).astype(np.int64)
    limbs[:-1] = (limbs[:-1] & ((1 << bits) - 1)) - half
    return limbs.astype(np.float64)


def _limb_products(a: Floats, b: Floats, size: int) -> Floats:
    """The sums of products of limbs that count the same."""
    of_a, of_b = np.fft.rfft(a, size), np.fft.rfft(b, size)
    count = len(a)
    together = np.zeros((2 * count - 1, *of_a.shape[1:]), np.complex128)
    for i in range(count):
        for j in range(count):
            together[i + j] += of_a[i] * of_b[j]
    return np.fft.irfft(together, size)


def _joined(whole: Floats, bits: int) -> Words:
    """The sum of whole[i] 2^(bits i), canonical, by Horner's rule."""
    signed = whole.astype(np.int64)
    elements = np.where(signed < 0, signed + field.P, signed).view(np.uint64)
    out = elements[-1]
    by, rest = np.uint64(bits), np.uint64(field.BITS - bits)
    for part in elements[-2::-1]:
        out = field.add(((out << by) & field.MASK) | (out >> rest), part)
    return np.asarray(out)
