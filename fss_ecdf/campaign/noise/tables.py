"""Exact integer probability tables of noise trees: the distribution of a node's noise, level by level.

    f_0(z) = exp(-w_0 |z|),   F_{l+1} = f_l * f_l,   f_{l+1}(z) = F_{l+1}(z) exp(-w_{l+1} |z|)

Under a parent of value p the left child, on level l, takes z with probability f_l(z) f_l(p - z) / F_{l+1}(p).
A Gaussian tree has z^2 in place of |z| (`exponent` 2). Trees of which some leaves are unused have two kinds of children
below one parent: f(z) g(p - z) / (f * g)(p) (`convolve`, `joint_weights`).

The tables are integers, so the distribution that is sampled is the same on every machine, and its distance from the
formula above is a matter of counting, not of floating point:

- An entry is scaled so that the largest of its level has `SCALE_BITS` bits; entries below 2^(SCALE_BITS - KEPT_BITS),
  that is below 2^-KEPT_BITS of the largest, are cut to zero. So every entry has at least KEPT_BITS significant bits.
- A convolution is the square of one large integer and exact.
- Each entry is rounded down once, when it is tilted by exp(-w |z|): a relative error of at most 2^(2 - KEPT_BITS).

These errors do not pile up in the privacy loss, because the sampler normalises by the exact convolution of the rounded
table: the joint probability it realises is a product over all nodes of f_l(z) / F_l(z), each of which is exp(-w_l |z|)
up to that one relative error. docs/privacy.md has the argument.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import sub

import numpy as np
from gmpy2 import mpz, pack, unpack
from numpy.typing import NDArray

SCALE_BITS = 256
KEPT_BITS = 128
DRAW_BITS = 128  # of the pseudorandom function, that decide one draw (servers/release/noise.py)

_ONE = 1 << SCALE_BITS
_SMALLEST = 1 << (SCALE_BITS - KEPT_BITS)

# Powers of exp(-w) are carried with so many bits, and decimal digits for them, that their own error does not count.
_FINE_BITS = 2 * SCALE_BITS
_DIGITS = 200

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """f_l for z = 0, 1, ..., reach; it is symmetric. The scale is arbitrary: only ratios within a table matter."""

    half: tuple[int, ...]

    @property
    def reach(self) -> int:
        return len(self.half) - 1

    @cached_property
    def floats(self) -> Floats:
        """f_l(-reach), ..., f_l(reach), the largest being about 1, each correctly rounded."""
        right = np.array([f / _ONE for f in self.half])
        return np.concatenate([right[:0:-1], right])

    def weights(self, p: int) -> tuple[int, list[int]]:
        """The smallest z that a left child may take under a parent of value p, and the exact weights from there on."""
        low, high = max(-self.reach, p - self.reach), min(self.reach, p + self.reach)
        return low, [self.half[abs(z)] * self.half[abs(p - z)] for z in range(low, high + 1)]

    def convolved(self) -> list[int]:
        """F_{l+1}(p) for p = 0, 1, ..., 2 reach, exactly."""
        right = list(map(mpz, self.half))
        return square([*right[:0:-1], *right], 2 * right[0].bit_length() + (2 * len(right)).bit_length())


def joint_weights(left: Table, right: Table, p: int) -> tuple[int, list[int]]:
    """The smallest z that a left child may take under a parent of value p, and the exact weights from there on."""
    low, high = max(-left.reach, p - right.reach), min(left.reach, p + right.reach)
    return low, [left.half[abs(z)] * right.half[abs(p - z)] for z in range(low, high + 1)]


def convolve(left: Table, right: Table) -> list[int]:
    """(f * g)(p) for p = 0, 1, ..., exactly."""
    if left == right:
        return left.convolved()
    halves = [list(map(mpz, table.half)) for table in (left, right)]
    width = sum(int(half[0].bit_length()) for half in halves) + (2 * max(map(len, halves))).bit_length()
    product = pack([*halves[0][:0:-1], *halves[0]], width) * pack([*halves[1][:0:-1], *halves[1]], width)
    found: list[int] = unpack(product >> (left.reach + right.reach) * width, width)
    return found


def square(palindrome: list[int], width: int) -> list[int]:
    """The square of this polynomial, of which no coefficient has more than `width` bits, from the middle on.

    As one product of integers. The square c is a palindrome too, so its coefficients may overlap by nearly half: with
    c_i = low_i + high_i 2^apart digit i of the product is low_i + high_{i-1}, and digit i from the other end is
    high_i + low_{i-1}, which is solved from the ends to the middle. A digit that is smaller than any high part may have
    lost a carry to the next; with 24 bits to spare that is rare, and then the coefficients are kept apart.
    """
    apart, half = width // 2 + 24, len(palindrome)
    whole = pack(palindrome, apart)
    digits = unpack(whole * whole, apart)
    digits += [mpz(0)] * (2 * half - len(digits))
    if min(digits[1:-1], default=0) >> max(0, width - apart) == 0:
        return _square_apart(palindrome, width)
    low, high = digits[:half], digits[: -half - 1 : -1]
    steps = [low[0], *map(sub, low[1:], high)]
    low[0::2], low[1::2] = accumulate(steps[0::2]), accumulate(steps[1::2])
    high[1:] = map(sub, high[1:], low)
    return [a + (b << apart) for a, b in zip(reversed(low), reversed(high), strict=True)]


def _square_apart(polynomial: list[int], width: int) -> list[int]:
    whole = pack(polynomial, width)
    found: list[int] = unpack(whole * whole >> (len(polynomial) - 1) * width, width)
    return found + [mpz(0)] * (len(polynomial) - len(found))


def exponential(w: float) -> int:
    """exp(-w) as a fixed-point number of _FINE_BITS bits, rounded down; the same on every machine."""
    with localcontext(Context(prec=_DIGITS)):
        return int((-Decimal(w)).exp() * (1 << _FINE_BITS))


def tilt(values: list[int], w: float, exponent: int = 1) -> tuple[int, ...]:
    """values[k] exp(-w k^exponent), brought to the scale of a table and cut where it becomes negligible.

    The exponent is 1 or 2; of squares the ratio of two neighbours falls by exp(-2 w) at every step.
    """
    ratio, power, tilted = mpz(exponential(w)), mpz(1) << _FINE_BITS, []
    change = (ratio * ratio) >> _FINE_BITS
    shift = values[0].bit_length() - 1 + _FINE_BITS - SCALE_BITS
    smallest = mpz(_SMALLEST)
    for value in values:
        entry = (power * value) >> shift
        if entry < smallest:
            break
        tilted.append(entry)
        power = (power * ratio) >> _FINE_BITS
        ratio = (ratio * change) >> _FINE_BITS if exponent > 1 else ratio
    return tuple(map(int, tilted))


def distance_of_draw(tables: Iterable[Table]) -> float:
    """A bound on the total variation distance of one draw by any of these tables from the ideal one.

    What was cut off both ends, the rounding of entries, and that of a draw to 128 bits. Tables are log-concave, so
    beyond its end one falls at least as fast as there.
    """
    each = list(tables)
    falling = max(table.half[-1] / table.half[-2] for table in each)
    widest = max(table.reach for table in each)
    return (4 / (1 - falling) + 4.0) * 2.0**-KEPT_BITS + (4 * widest + 2) * 2.0**-DRAW_BITS


@lru_cache(maxsize=8)
def build(weights: tuple[float, ...], exponent: int = 1) -> tuple[Table, ...]:
    """The tables of all levels, from the leaves to the children of the root."""
    reach = int((KEPT_BITS / weights[0]) ** (1 / exponent)) + 1
    tables = [Table(tilt([1] * (reach + 1), weights[0], exponent))]
    for w in weights[1:]:
        tables.append(Table(tilt(tables[-1].convolved(), w, exponent)))
    return tuple(tables)


@lru_cache(maxsize=64)
def marginal_variances(weights: tuple[float, ...], exponent: int = 1) -> Floats:
    """Var z on each level. Floating point is enough here: variances are shown, not sampled from.

    With m_l(z) proportional to exp(-w_l |z|^exponent) c_l(z) the message from above, c_l = m_{l+1} * f_l and
    pi_l = f_l c_l is the distribution of a node on level l; at the root m is 1 at 0.
    """
    message, variances = np.ones(1), [0.0]
    for table, w in zip(reversed(build(weights, exponent)), reversed(weights), strict=True):
        f, values = table.floats, np.abs(np.arange(-table.reach, table.reach + 1.0))
        c = _convolve_centre(message, f)
        pi = f * c / (f @ c)
        variances.append(float(pi @ values**2))
        message = np.exp(-w * values**exponent) * c / c.max()
    return np.array(variances[::-1])


def _convolve_centre(a: Floats, b: Floats) -> Floats:
    """The convolution of two symmetric arrays, on the values that b reaches."""
    size = a.size + b.size - 1
    length = 1 << size.bit_length()
    whole = np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)[:size]
    start = size // 2 - b.size // 2
    return np.maximum(whole[start : start + b.size], 0.0)
