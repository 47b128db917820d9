"""The point at which tables are checked, and the public weights that follow from it.

For the point tau, drawn after nothing can be added any more, with Z = (X - 1)...(X - L):

    1 / (tau - l)       weigh the labels' words, in sum S(tau)
    tau^i, i tau^(i-1)  weigh the coefficients of a polynomial, in sum its value and its derivative's
    g                   tau^(L + D) / Z(tau), what the mask v is multiplied by. A smaller exponent is not sound

Many tables may be checked at one point, but each table once: two points for one table show what it holds
(docs/security.md). Whoever calls this keeps a table from being checked twice.
"""

import hashlib

import numpy as np

from fss import field
from fss.errors import DomainError, ShapeError
from fss.field import P, Words
from fss.table_shape import FIRST_POINT, Shape

CHALLENGE_BYTES = 32

_LABEL = b"fss-ecdf table point 1\n"

# A candidate is dropped with probability 2^-29: all of these only if SHAKE is broken.
_CANDIDATES = 16
_FEW = 64


def draw_point(challenge: bytes) -> "Point":
    """The point of a challenge of 32 bytes or more, uniform from 2^32 to p - 1.

    Nobody who makes tables may know the challenge before, and neither server may choose it: the caller sees to that.
    """
    if not isinstance(challenge, bytes) or len(challenge) < CHALLENGE_BYTES:
        raise ShapeError(f"a challenge is {CHALLENGE_BYTES} bytes or more")
    return Point(first_element(_LABEL + challenge, FIRST_POINT))


def first_element(message: bytes, least: int) -> int:
    """The first element that is not below `least` of a stream of 61-bit numbers, which follow from the message."""
    stream = hashlib.shake_256(message).digest(8 * _CANDIDATES)
    for start in range(0, len(stream), 8):
        drawn = int.from_bytes(stream[start : start + 8], "little") & P
        if least <= drawn < P:
            return drawn
    raise DomainError("no number of the stream is in range")  # pragma: no cover


class Point:
    """A point and its weights, computed when they are first needed and kept for all tables. Does not print itself."""

    def __init__(self, tau: int) -> None:
        if type(tau) is not int or not FIRST_POINT <= tau < P:
            raise DomainError("the point of a check must be an int from 2^32 to p - 1: others may be labels")
        self.tau = tau
        self._inverses = self._powers = self._slopes = np.empty(0, np.uint64)
        self._masks: dict[tuple[int, int], int] = {}

    def inverses(self, labels: int) -> Words:
        """1 / (tau - l) for l = 1..labels."""
        if self._inverses.size < labels:
            self._inverses = inverse_of_all(np.uint64(self.tau) - np.arange(1, labels + 1, dtype=np.uint64))
        return self._inverses[:labels]

    def powers(self, degree: int) -> Words:
        """tau^i for i = 0..degree."""
        if self._powers.size <= degree:
            self._powers = _powers(self.tau, degree + 1)
        return self._powers[: degree + 1]

    def slopes(self, degree: int) -> Words:
        """i tau^(i - 1) for i = 0..degree."""
        if self._slopes.size <= degree:
            before = np.append(np.uint64(0), self.powers(degree)[:-1])
            self._slopes = field.mul(np.arange(degree + 1, dtype=np.uint64), before)
        return self._slopes[: degree + 1]

    def mask(self, shape: Shape) -> int:
        """g, never 0."""
        size = shape.labels, shape.degree
        if size not in self._masks:
            self._masks[size] = pow(self.tau, sum(size), P) * product(self.inverses(shape.labels)) % P
        return self._masks[size]


def product(x: Words) -> int:
    """The product of canonical elements."""
    while x.size > 1:
        if x.size % 2:
            x = np.append(x, np.uint64(1))
        x = field.mul(x[0::2], x[1::2])
    return int(x[0])


def inverse_of_all(x: Words) -> Words:
    """1 / x for canonical elements other than 0: of pairs, whose inverse times either is that of the other."""
    if x.size <= _FEW:
        return np.array([pow(value, -1, P) for value in x.tolist()], np.uint64)
    padded = np.append(x, np.uint64(1)) if x.size % 2 else x
    left, right = padded[0::2], padded[1::2]
    of_pairs = inverse_of_all(field.mul(left, right))
    out = np.empty_like(padded)
    out[0::2], out[1::2] = field.mul(of_pairs, right), field.mul(of_pairs, left)
    return out[: x.size]


def _powers(tau: int, count: int) -> Words:
    out = np.ones(count, np.uint64)
    done = 1
    while done < count:
        more = min(done, count - done)
        out[done : done + more] = field.mul(out[:more], np.array(pow(tau, done, P), np.uint64))
        done += more
    return out
