"""Checking tables: what each server computes of its words, in one pass, and when a table is kept.

    a = Q(tau)      b = S(tau) + v g      c = Q'(tau) + g W(tau)      total = the sum of all counts

All are linear, so that each server computes its shares of them alone and sends 32 bytes. A table is kept if a b = c, a
is not 0, and the total is the number of values that it counts as: then it holds counts of exactly so many values, but
for `Shape.error` of all points (docs/security.md). `Verifier` takes the words in pieces, as they come from a disk or
the network, and adds this server's shares of the counts to a sum on the way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from fss import field
from fss.backends import current
from fss.errors import DomainError, ShapeError, TableFormatError
from fss.field import P, Words
from fss.table_point import Point
from fss.table_shape import Shape

MESSAGE_BYTES = 32

# Words that are handed over in one call: with what weighs them they stay in the cache, and a little less than 128 KiB,
# from which on every array is mapped anew. Even, as seeds are expanded in blocks of two words.
PIECE = 15 << 10


@dataclass(frozen=True)
class Message:
    """What one server tells the other about a table: shares of four elements."""

    a: int
    b: int
    c: int
    total: int

    def __post_init__(self) -> None:
        if not all(type(x) is int and 0 <= x < P for x in self.elements):
            raise TableFormatError("a message about a table has four elements of Z_p, below 2^61 - 1")

    @property
    def elements(self) -> tuple[int, int, int, int]:
        return self.a, self.b, self.c, self.total

    def to_bytes(self) -> bytes:
        return b"".join(x.to_bytes(8, "little") for x in self.elements)

    @staticmethod
    def from_bytes(data: bytes) -> "Message":
        """Decode one message, or raise."""
        if len(data) != MESSAGE_BYTES:
            raise TableFormatError(f"a message about a table has {MESSAGE_BYTES} bytes, got {len(data)}")
        return Message(*(int.from_bytes(data[i : i + 8], "little") for i in range(0, MESSAGE_BYTES, 8)))


def accept(of_server0: Message, of_server1: Message, shape: Shape) -> bool:
    """Whether the words of both servers are a table of `shape.count` values."""
    a, b, c, total = ((x + y) % P for x, y in zip(of_server0.elements, of_server1.elements, strict=True))
    return a != 0 and a * b % P == c and total == shape.count


def add_counts(pieces: Iterable[Words], shape: Shape, sums: Words, *, subtract: bool = False) -> None:
    """Add a server's shares of a table's counts to running sums, or take them from those, without a check. `sums` is
    canonical and has `shape.positions` words; the words come in pieces, in their order."""
    sign, at, n = -1 if subtract else 1, 0, shape.positions
    field.check_elements(sums, "sums")
    if sums.shape != (n,) or not sums.flags.c_contiguous:
        raise ShapeError(f"sums must be {n} contiguous words")
    for piece in pieces:
        words, end = piece[: max(0, shape.labels - at)], at + piece.size
        while words.size:
            coin, j = divmod(at, n)
            row, words = words[: n - j], words[n - j :]
            current().table_add(row, sign * shape.weight(coin) % P, sums[j : j + row.size])
            at += row.size
        at = end
    if at != shape.words:
        raise ShapeError(f"this table has {shape.words} words, got {at}")


class Verifier:
    """One server's pass over its words of one table, in their order and in pieces of any size.

    `sums`, if given, are the running sums of `shape.positions` counts: canonical, and what this table adds to them is
    this server's shares. They are written before anybody knows whether the table is kept; with `subtract` they are
    taken away again.
    """

    def __init__(self, shape: Shape, point: Point, sums: Words | None = None, *, subtract: bool = False) -> None:
        if sums is not None:
            field.check_elements(sums, "sums")
            if sums.shape != (shape.positions,) or not sums.flags.c_contiguous:
                raise ShapeError(f"sums must be {shape.positions} contiguous words")
        self._shape, self._point, self._sums, self._sign = shape, point, sums, -1 if subtract else 1
        self._read = 0
        # S, v, Q and W at tau, the derivative of Q there, and the total
        self._s = self._v = self._q = self._slope = self._w = self._total = 0

    def add(self, words: Words) -> None:
        """Take the next words. They are canonical elements, as `fss.table_words` makes and decodes them."""
        if words.ndim != 1 or words.dtype != np.uint64:
            raise ShapeError("the words of a table come as uint64 arrays of one dimension")
        if self._read + words.size > self._shape.words:
            raise ShapeError(f"this table has {self._shape.words} words, got more")
        for start in range(0, words.size, PIECE):
            for part, at, piece in self._cut(words[start : start + PIECE]):
                self._take(part, at, piece)

    def _cut(self, words: Words) -> Iterator[tuple[int, int, Words]]:
        """The words of each part of the table: which part, how far into it, and the words."""
        first = 0
        for part, end in enumerate(self._shape.parts):
            piece = words[: max(0, end - self._read)]
            if piece.size:
                yield part, self._read - first, piece
            self._read += piece.size
            words, first = words[piece.size :], end

    def _take(self, part: int, at: int, words: Words) -> None:
        if part == 0:
            self._take_labels(at, words)
        elif part == 1:
            self._v = int(words[0])
        else:
            degree, these = self._shape.degree, slice(at, at + words.size)
            value, _ = current().table_dot(words, self._point.powers(degree)[these])
            if part == 2:
                self._q = (self._q + value) % P
                slope, _ = current().table_dot(words, self._point.slopes(degree)[these])
                self._slope = (self._slope + slope) % P
            else:
                self._w = (self._w + value) % P

    def _take_labels(self, at: int, words: Words) -> None:
        """Labels of one coin after the other."""
        inverses, n = self._point.inverses(self._shape.labels), self._shape.positions
        while words.size:
            coin, j = divmod(at, n)
            row, words = words[: n - j], words[n - j :]
            weight = self._shape.weight(coin)
            weighed, sum = current().table_dot(row, inverses[at : at + row.size])
            if self._sums is not None:
                current().table_add(row, self._sign * weight % P, self._sums[j : j + row.size])
            self._s, self._total = (self._s + weighed) % P, (self._total + weight * sum) % P
            at += row.size

    def message(self) -> Message:
        """What to tell the other server, when all words were taken."""
        if self._read != self._shape.words:
            raise ShapeError(f"this table has {self._shape.words} words, got {self._read}")
        g = self._point.mask(self._shape)
        if not g:
            raise DomainError("the weight of the mask is 0: the point must not be used")
        return Message(self._q, (self._s + self._v * g) % P, (self._slope + g * self._w) % P, self._total)
