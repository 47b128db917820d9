"""Key generation's walk down the path to alpha, for both parties at once: what DCF and DPF have in common.

On the path the parties hold independent seeds and different control bits; a correction word makes them agree as soon
as an evaluation leaves it. All secrets (alpha's bits, control bits) act as masks, never as branches or indices.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fss import field
from fss.field import Words
from fss.keys import CONTROL, ROOT_HI, ROOT_LO, TOP_BIT, KeyType
from fss.prg import Aes, as_bytes, sigma, tree_prg


class Fill(Protocol):
    """What a scheme does with one chunk: walk the path to the bottom and write every word."""

    def __call__(self, path: "Path", beta: Words) -> None: ...


@dataclass(frozen=True)
class Ends:
    """The states of both parties at the terminal nodes above their alphas, as key generation leaves them."""

    words: Words  # shape (4, keys): lo and hi of party 0, then of party 1

    def lo(self, party: int) -> Words:
        """The first words of this party's states."""
        lo: Words = self.words[2 * party]
        return lo

    def hi(self, party: int) -> Words:
        """The second ones."""
        hi: Words = self.words[2 * party + 1]
        return hi


class Path:
    """One chunk of keys being made. `words[b]` are the columns of party b's keys."""

    def __init__(self, type: KeyType, alphas: Words, rand: Words, words: tuple[Words, Words]) -> None:
        self.type, self._alphas, self._words = type, alphas, words
        self._prg = tree_prg(type.binder)
        self._rows = [np.empty((alphas.size, 2), np.uint64) for _ in (0, 1)]
        self._hashed = np.empty((alphas.size, 2), np.uint64)
        # t_b^(0) = b, in the top bit of the seed
        self._lo = [(rand[:, 2 * b] & ~TOP_BIT) | np.uint64(b << 63) for b in (0, 1)]
        self._hi = [np.ascontiguousarray(rand[:, 2 * b + 1]) for b in (0, 1)]
        for b in (0, 1):
            words[b][ROOT_LO], words[b][ROOT_HI], words[b][CONTROL] = self._lo[b], self._hi[b], 0
            sigma(self._lo[b], self._hi[b], self._rows[b])

    def bit(self, level: int) -> Words:
        """Bit `level` of alpha, counted from the top, as a mask: all ones where the path goes right."""
        return mask_of(self._alphas << np.uint64(64 - self.type.bits + level))

    def leaf(self) -> Words:
        """Alpha's position among the leaves of its terminal node."""
        return self._alphas & np.uint64(self.type.leaves - 1)

    def sign(self) -> Words:
        """What turns an element into (-1)^t1 times it by xor: -x is the complement of x in 61 bits."""
        return mask_of(self._lo[1]) & field.MASK

    def put(self, word: int, value: Words) -> None:
        """Write a word that both keys share, made canonical."""
        element = field.canonical(value)
        for b in (0, 1):
            self._words[b][word] = element

    def values(self, b: int) -> tuple[Words, Words]:
        """Party b's value for the left and the right child, at most p each."""
        left, right = self._hash(b, self._prg.value)
        return left & field.MASK, right & field.MASK

    def leaf_values(self, b: int) -> list[Words]:
        """Party b's values for the leaves of the terminal node, at most p each."""
        blocks = [self._hash(b, aes) for aes in self._prg.leaves[: self.type.leaves // 2]]
        return [half & field.MASK for block in blocks for half in block]

    def descend(self, level: int) -> None:
        """Correct one level and go down to the child on the path. BCG+21 Fig. 3, Gen lines 4 to 9 and 12 to 14."""
        right = self.bit(level)
        child = [[self._hash(b, side) for side in self._prg.sides] for b in (0, 1)]
        differ = [[child[0][side][half] ^ child[1][side][half] for half in (0, 1)] for side in (0, 1)]
        # s_CW = s_0^Lose xor s_1^Lose; t_CW^L = t_0^L xor t_1^L xor alpha_i xor 1; t_CW^R = t_0^R xor t_1^R xor alpha_i
        cw_lo, cw_hi = (select(right, differ[0][half], differ[1][half]) for half in (0, 1))
        turn_left = ~(differ[0][0] ^ right) & TOP_BIT
        turn_right = (differ[1][0] ^ right) & TOP_BIT
        cw_lo = (cw_lo & ~TOP_BIT) | turn_left
        apart = turn_left ^ turn_right
        word = self.type.level(level)
        for b in (0, 1):
            self._words[b][word], self._words[b][word + 1] = cw_lo, cw_hi
            self._words[b][CONTROL] |= apart >> np.uint64(63 - level)
        cw_lo = cw_lo ^ (apart & right)
        for b in (0, 1):
            t = mask_of(self._lo[b])
            self._lo[b] = select(right, child[b][1][0], child[b][0][0]) ^ (t & cw_lo)
            self._hi[b] = select(right, child[b][1][1], child[b][0][1]) ^ (t & cw_hi)
            sigma(self._lo[b], self._hi[b], self._rows[b])

    def ends(self) -> Ends:
        """Where the walk has come to."""
        return Ends(np.stack([self._lo[0], self._hi[0], self._lo[1], self._hi[1]]))

    def _hash(self, b: int, aes: Aes) -> tuple[Words, Words]:
        rows, hashed = self._rows[b], self._hashed
        aes.encrypt(as_bytes(rows), as_bytes(hashed))
        return hashed[:, 0] ^ rows[:, 0], hashed[:, 1] ^ rows[:, 1]


def mask_of(bit: Words) -> Words:
    """All ones where the top bit is set."""
    return (bit.view(np.int64) >> np.int64(63)).view(np.uint64)


def select(mask: Words, where_set: Words, where_clear: Words) -> Words:
    return where_clear ^ (mask & (where_set ^ where_clear))
