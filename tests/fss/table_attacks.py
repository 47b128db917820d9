"""python -m tests.fss.table_attacks: words that are no table, each accepted by a check without one detail.

Ends with 1 and their names if the library accepts any, or takes a point that it must not take. A test also runs it as
`python -O -m`, which leaves out assertions, so that none of the library's rules may be one; here there are none either.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fss import DomainError, FssError, table
from fss.field import P
from tests.oracle.table import TableOracle

POINTS = 5


@dataclass(frozen=True)
class Forgery:
    """Words, the check without a detail that accepts them, and whether the whole check accepts them at no point."""

    name: str
    without: TableOracle
    words: list[int]

    @property
    def shape(self) -> table.Shape:
        o = self.without
        return table.Shape(o.positions, o.count, o.base, o.coins, o.degree)

    @property
    def whole(self) -> TableOracle:
        return replace(self.without, masked=True, exponent_less=0, nonzero=True, total=True)


def of(positions: int, count: int) -> TableOracle:
    shape = table.shape_for(positions, count)
    return TableOracle(positions, count, shape.base, shape.coins, shape.degree)


def forgeries() -> Iterator[Forgery]:
    two, one = of(2, 2), of(2, 1)
    z = [2, -3, 1]  # (X - 1)(X - 2)
    # Q = Z makes Q S a polynomial, and W is whatever is needed.
    s_times_q, slope, v = [-5, 2], [-3, 2], 7  # 3 (X - 2) - (X - 1)
    w = [a - b + v * c for a, b, c in zip([*s_times_q, 0], [*slope, 0], z, strict=True)]
    yield Forgery("g = 1", replace(two, masked=False), two.forged([3, -1], z, v, w))
    yield Forgery("a may be 0", replace(two, nonzero=False), two.forged([3, -1], [0], v))
    # F = (s - 1) X^2 with s = -5, hence W = v Q + s - 1
    less = one.forged([3, -8], [1, 1], v, [v - 6, v])
    yield Forgery("exponent L + D - 1", replace(one, exponent_less=1, total=False), less)
    # F = X (5 + 0 X) for Q = X + 1, y1 + y2 = 1 and 2 y1 + y2 = -2: the total is right
    yield Forgery("exponent L + D - 2", replace(one, exponent_less=2), one.forged([-3, 4], [1, 1], v, [v + 6, v]))
    yield Forgery("no total, less", replace(two, total=False), two.witness([0, 1], 5, v))
    coins = TableOracle(2, 10, 2, 3, table_degree(2, 10, 2, 3))
    heavy = coins.forged([0] * 5 + [coins.degree], power_of_root(6, coins.degree), v)
    yield Forgery("no total, more", replace(coins, total=False), heavy)


def table_degree(positions: int, count: int, base: int, coins: int) -> int:
    from fss.table_shape import most_coins

    return most_coins(positions, count, base, coins)


def power_of_root(root: int, times: int) -> list[int]:
    q = [1]
    for _ in range(times):
        q = [(a - root * b) % P for a, b in zip([0, *q], [*q, 0], strict=True)]
    return q


def library_accepts(shape: table.Shape, words: list[int], point: table.Point) -> bool:
    """By the library's own functions, the words shared at random."""
    mask = np.random.default_rng(1).integers(0, P, len(words), dtype=np.uint64)
    rest = np.array([(x - int(r)) % P for x, r in zip(words, mask, strict=True)], np.uint64)
    return table.accept(table.message([mask], shape, point), table.message([rest], shape, point), shape)


def points() -> list[table.Point]:
    return [table.draw_point(bytes([i]) * 32) for i in range(POINTS)]


def forged_words() -> Iterator[str]:
    """Names of forgeries that the library accepts."""
    for forgery in forgeries():
        for point in points():
            if not forgery.without.accepts(forgery.without.message(forgery.words, point.tau)):
                yield f"{forgery.name}: the check without it refuses as well"
            if library_accepts(forgery.shape, forgery.words, point):
                yield forgery.name
    if any(library_accepts(table.shape_for(2, 2), beaver_forgery(), point) for point in points()):
        yield "a product that nobody checks"
    honest = of(2, 2).witness([1, 1], 5, 7)
    if not all(library_accepts(table.shape_for(2, 2), honest, point) for point in points()):
        yield "nothing, not even a table"


def beaver_forgery() -> list[int]:
    """y = (1 - d, 1 + d), Q = Z: a b - c is d at every point, which a wrong triple of d hides."""
    return of(2, 2).forged([-4, 6], [2, -3, 1], 7)


def points_that_tell() -> Iterator[str]:
    for tau in (0, 1, 2, 2**32 - 1, P, P + 1, -1):
        try:
            table.Point(tau)
        except DomainError:
            continue
        yield f"the point {tau}"


def histograms_that_are_none() -> Iterator[str]:
    for histogram in ([3, -1], [1, 0], [2, 1]):
        try:
            table.share(histogram, table.shape_for(2, 2), secret=bytes(32), context=bytes(64), binder=b"-")
        except FssError:
            continue
        yield f"the histogram {histogram}"


def main() -> int:
    found = sorted({*forged_words(), *points_that_tell(), *histograms_that_are_none()})
    print("\n".join(found) or "none is accepted", f"(assertions {'on' if __debug__ else 'off'})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
