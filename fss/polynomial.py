"""Polynomials over Z_p that are given by their values at 0, 1, ..., m: what the proof of a key is made of.

`Z` is the polynomial (x - 1)...(x - m). Plain Python integers: everything here is public and computed once.
"""

from functools import cache
from math import prod

from fss.field import P


def inverse(x: int) -> int:
    return pow(x, -1, P)


def vanishing(m: int, x: int) -> int:
    """Z(x)."""
    return prod(x - j for j in range(1, m + 1)) % P


def lagrange(m: int, x: int) -> list[int]:
    """The weights that take values at 0..m to the value at x, which is none of these."""
    points = range(m + 1)
    return [prod((x - k) * inverse(j - k) for k in points if k != j) % P for j in points]


def slope(m: int, i: int, j: int) -> int:
    """At j, the derivative of the polynomial that is 1 at i and 0 at the others of 0..m."""
    others = [k for k in range(m + 1) if k != i]
    if i == j:
        return sum(inverse(i - k) for k in others) % P
    return prod((j - k if k != j else 1) * inverse(i - k) for k in others) % P


@cache
def quotients(m: int) -> list[list[int]]:
    """At 0..m, the values of (l^2 - l) / Z for each l that is 1 at one of 1..m and 0 at the others of 0..m.

    At a zero j of Z both sides vanish, and the quotient is that of their derivatives: (2 l(j) - 1) l'(j) / Z'(j).
    """
    result = []
    for i in range(1, m + 1):
        values = [0]
        for j in range(1, m + 1):
            z_slope = prod(j - k for k in range(1, m + 1) if k != j)
            values.append((1 if i == j else -1) * slope(m, i, j) * inverse(z_slope) % P)
        result.append(values)
    return result
