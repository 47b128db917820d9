"""Tables, one label and one coefficient at a time, on Python integers, over any prime field.

Follows the definition in `fss/table.py`. Flags switch off one detail of the check each, to show what it is for: without
it an attack succeeds (tests/fss/test_table_breaks.py). Small primes let tests try everything (test_table_tiny.py).
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count as numbers_from
from typing import NamedTuple

from tests.oracle.fss import P, aes_key, convert, hash_block, words

Poly = list[int]


class Message(NamedTuple):
    a: int
    b: int
    c: int
    total: int


@dataclass(frozen=True)
class TableOracle:
    """Tables of one shape over Z_p, and their check, whole or without a detail."""

    positions: int
    count: int
    base: int
    coins: int
    degree: int
    p: int = P
    masked: bool = True  # the mask is v g; without: v
    exponent_less: int = 0  # g has this much less than L + D in its exponent
    nonzero: bool = True  # a must not be 0
    total: bool = True  # the total must be the count

    @property
    def labels(self) -> int:
        return self.coins * self.positions

    def digits(self, histogram: Sequence[int]) -> list[int]:
        """How many of each coin each position needs: coin by coin."""
        left, y = list(histogram), []
        for _ in range(self.coins - 1):
            y += [x % self.base for x in left]
            left = [x // self.base for x in left]
        return y + left

    def witness(self, histogram: Sequence[int], rho: int, v: int) -> list[int]:
        y, q = self.digits(histogram), [rho]
        for label, times in enumerate(y, start=1):
            for _ in range(times):
                q = self._times_linear(q, label)
        return self.forged(y, q, v)

    def forged(self, y: Sequence[int], q: Poly, v: int, w: Poly | None = None) -> list[int]:
        """The words of any y, Q, v and W (v Q unless given), honest or not."""
        whole = list(q) + [0] * (self.degree + 1 - len(q))
        made = [v * x for x in whole] if w is None else list(w) + [0] * (self.degree + 1 - len(w))
        assert len(whole) == len(made) == self.degree + 1
        assert len(y) == self.labels
        return [x % self.p for x in (*y, v, *whole, *made)]

    def _times_linear(self, q: Poly, root: int) -> Poly:
        """q (X - root)"""
        return [(a - root * b) % self.p for a, b in zip([0, *q], [*q, 0], strict=True)]

    def share(self, whole: Sequence[int], mask: Sequence[int]) -> list[int]:
        return [(x - r) % self.p for x, r in zip(whole, mask, strict=True)]

    def g(self, tau: int) -> int:
        if not self.masked:
            return 1
        z = 1
        for label in range(1, self.labels + 1):
            z = z * (tau - label) % self.p
        return pow(tau, self.labels + self.degree - self.exponent_less, self.p) * pow(z, -1, self.p) % self.p

    def message(self, share: Sequence[int], tau: int) -> Message:
        p, labels, g = self.p, self.labels, self.g(tau)
        y, v = share[:labels], share[labels]
        q, w = share[labels + 1 : labels + 2 + self.degree], share[labels + 2 + self.degree :]
        s = sum(x * pow(tau - label, -1, p) for label, x in enumerate(y, start=1))
        a = sum(x * pow(tau, i, p) for i, x in enumerate(q))
        slope = sum(i * x * pow(tau, i - 1, p) for i, x in enumerate(q) if i)
        c = slope + g * sum(x * pow(tau, i, p) for i, x in enumerate(w))
        total = sum(self.base ** (i // self.positions) * x for i, x in enumerate(y))
        return Message(*(x % p for x in (a, s + v * g, c, total)))

    def accepts(self, *messages: Sequence[int]) -> bool:
        a, b, c, total = (sum(parts) % self.p for parts in zip(*messages, strict=True))
        if self.nonzero and a == 0:
            return False
        return a * b % self.p == c and (not self.total or total == self.count % self.p)

    def counts(self, share: Sequence[int]) -> list[int]:
        """A server's shares of the counts."""
        weighed = [self.base ** (i // self.positions) * x for i, x in enumerate(share[: self.labels])]
        return [sum(weighed[j :: self.positions]) % self.p for j in range(self.positions)]


def shape(positions: int, count: int) -> tuple[int, int, int]:
    """Base, coins and degree of the fewest words, by trying all that can be any good: a table with base - 1 of the
    first coin for each position must not have more words than one with a single coin."""
    choices = [(count_words(positions, 1, count), 2, 1, count)]
    for base in range(2, choices[0][0] // (2 * positions) + 3):
        for coins in range(2, 64):
            if base ** (coins - 1) > count:
                break
            degree = most_coins(positions, count, base, coins)
            choices.append((count_words(positions, coins, degree), base, coins, degree))
    return min(choices)[1:]


def count_words(positions: int, coins: int, degree: int) -> int:
    return positions * coins + 1 + 2 * (degree + 1)


def most_coins(positions: int, count: int, base: int, coins: int) -> int:
    """Buy coins, one at a time, the cheapest first."""
    bought = 0
    for coin in range(coins):
        room = positions * (base - 1) if coin < coins - 1 else count
        while room and count >= base**coin:
            bought, room, count = bought + 1, room - 1, count - base**coin
    return bought


def expand(seed: bytes, binder: bytes, positions: int, count: int, length: int) -> list[int]:
    key = aes_key(b"table 1", binder + number(positions) + number(count) + seed[16:])
    start, out = int.from_bytes(seed[:16], "little"), list[int]()
    for i in range((length + 1) // 2):
        out += map(convert, words(hash_block(key, (start ^ i).to_bytes(16, "little"))))
    return out[:length]


def number(x: int) -> bytes:
    return x.to_bytes(8, "little")


def first_element(message: bytes, least: int) -> int:
    for i in numbers_from(1):
        drawn = int.from_bytes(hashlib.shake_256(message).digest(8 * i)[-8:], "little") % 2**61
        if least <= drawn < P:
            return drawn
    raise AssertionError


def point(challenge: bytes) -> int:
    return first_element(b"fss-ecdf table point 1\n" + challenge, 2**32)


class Secrets(NamedTuple):
    seed: bytes
    rho: int
    v: int


def secrets(secret: bytes, context: bytes, histogram: Iterable[int], count: int) -> Secrets:
    label, counts = b"fss-ecdf table secrets 1\n", list(histogram)
    about = secret + context + number(len(counts)) + number(count) + b"".join(map(number, counts))
    root = hashlib.shake_256(label + b"root" + about).digest(64)
    seed = hashlib.shake_256(label + b"seed" + root).digest(32)
    return Secrets(seed, first_element(label + b"rho " + root, 1), first_element(label + b"mask" + root, 0))
