"""What a table looks like, from two public numbers: how many positions it counts at, and how many values it counts.

A count is written in coins of weight base^k for k = 0..coins-1: every position has one label for each coin, and a label
holds how many of that coin the count needs. Label l = 1 + k positions + j is coin k of position j. One coin is best
while there are few values for each position; then more labels, and fewer coins in all, are cheaper.

    words    labels, one count each       y_1..y_L         L = coins * positions
             one mask                     v
             a polynomial                 Q_0..Q_D         D = degree: the most coins that any table of this size needs
             its multiple v Q             W_0..W_D

The order of the labels, of the words, and the rule by which `shape_for` chooses are version 1 of a table.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

from fss.errors import DomainError
from fss.field import P
from fss.keys import KeyType
from fss.proof import proof_bytes

VERSION = 1
MAX_POSITIONS = 1 << 20
MAX_COUNT = (1 << 32) - 1

# The point of a check is at least this, and labels are less: so it is never a label, and never 0.
FIRST_POINT = 1 << 32

WORD_BYTES = 8
SEED_BYTES = 32
# Of one table, the bytes besides its words that both servers receive: its id, two digests and the seed, rounded up.
OVERHEAD_BYTES = 96


@dataclass(frozen=True)
class Shape:
    """What all tables of one size have in common, and where their words lie."""

    positions: int
    count: int
    base: int
    coins: int
    degree: int

    def __post_init__(self) -> None:
        _check_sizes(self.positions, self.count)
        if self.base < 2 or self.coins < 1 or self.degree < 1:
            raise DomainError(f"a table needs a base of 2, a coin and a degree of 1 at least, got {self}")
        if self.labels >= FIRST_POINT:
            raise DomainError(f"a table has less than 2^32 labels, got {self.labels}")
        # Otherwise digits that are too large could add up to the right total modulo p.
        if self.base ** (self.coins - 1) * self.degree >= P:
            raise DomainError(f"base^(coins - 1) * degree must be below p = 2^61 - 1, got {self}")

    @cached_property
    def labels(self) -> int:
        return self.coins * self.positions

    @cached_property
    def words(self) -> int:
        return _words(self.positions, self.coins, self.degree)

    @cached_property
    def bytes(self) -> int:
        return WORD_BYTES * self.words

    @cached_property
    def parts(self) -> tuple[int, int, int, int]:
        """Where each part of the words ends: the labels, the mask, Q and W."""
        return self.labels, self.labels + 1, self.labels + 2 + self.degree, self.words

    @property
    def error(self) -> float:
        """The fraction of all points at which words that are no table may be taken for one, at most."""
        return (self.labels + 2 * self.degree) / (P - FIRST_POINT)

    def weight(self, coin: int) -> int:
        return int(self.base**coin)


def _check_sizes(positions: int, count: int) -> None:
    for name, number, most in (("positions", positions, MAX_POSITIONS), ("count", count, MAX_COUNT)):
        if type(number) is not int or not 1 <= number <= most:
            raise DomainError(f"{name} of a table must be an int, 1 to {most}, got {number!r}")


def _words(positions: int, coins: int, degree: int) -> int:
    return coins * positions + 1 + 2 * (degree + 1)


def most_coins(positions: int, count: int, base: int, coins: int) -> int:
    """No table of so many values needs more coins: the cheapest first, and of each but the last, whose number has no
    limit, at most base - 1 for each position."""
    total, left = 0, count
    for coin in range(coins - 1):
        taken = min(left // int(base**coin), positions * (base - 1))
        total, left = total + taken, left - taken * base**coin
    return total + left // int(base ** (coins - 1))


@lru_cache(maxsize=1024, typed=True)
def shape_for(positions: int, count: int) -> Shape:
    """The shape of the fewest words for `count` values at `positions` positions; of several the one of the smallest
    base, then of the fewest coins. Raises `DomainError` for sizes out of range."""
    _check_sizes(positions, count)
    best = 2, 1, count
    base = 2
    # A table of this base has base - 1 of the first coin for each position, or all its values are such coins, and then
    # one coin was better.
    while 2 * positions * (base - 1) < _words(positions, *best[1:]):
        coins = 2
        while base ** (coins - 1) <= count:
            degree = most_coins(positions, count, base, coins)
            if base ** (coins - 1) * degree < P and _words(positions, coins, degree) < _words(positions, *best[1:]):
                best = base, coins, degree
            coins += 1
        base += 1
    return Shape(positions, count, *best)


def pair_bytes(type: KeyType) -> int:
    """Bytes of two keys of this type with their proofs: what one value costs without a table."""
    return 2 * (type.key_bytes + proof_bytes(type))


def table_bytes(shape: Shape) -> int:
    """Bytes of a table, for both servers."""
    return shape.bytes + OVERHEAD_BYTES


def worth_it(positions: int, count: int, type: KeyType) -> bool:
    """Whether a table has no more bytes than a pair of keys of this type for each value. Otherwise keys are sent, and
    servers refuse the table: so its bytes are bounded by the number of values that it counts as."""
    return count > 0 and table_bytes(shape_for(positions, count)) <= count * pair_bytes(type)
