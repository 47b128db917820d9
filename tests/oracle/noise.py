"""The noise, one node at a time, with exact integers and no floating point: what servers/release/noise.py must equal.

Probabilities are taken as exact fractions from fss_ecdf/campaign/noise/tables.py, whose own correctness has its own
test.
"""

import hashlib
import hmac
from fractions import Fraction
from functools import cache

from Crypto.Cipher import AES

from fss_ecdf.campaign.noise.paper_tree import PaperTree
from fss_ecdf.campaign.noise.slice_tree import SliceTree


class Oracle:
    def __init__(self, seed: bytes, server: int, covers: bytes, mechanism: SliceTree | PaperTree) -> None:
        context = b""
        for part in (b"fss-ecdf noise 2", bytes([server]), covers, b"curve " + mechanism.name.encode()):
            context += len(part).to_bytes(2, "little") + part
        self.key = hmac.new(seed, context, hashlib.sha256).digest()
        self.mechanism = mechanism
        self.left, self.own = cache(self._left), cache(self._own)

    def uniform(self, level: int, node: int) -> Fraction:
        block = node.to_bytes(8, "little") + level.to_bytes(8, "little")
        bits = AES.new(self.key, AES.MODE_ECB).encrypt(block)
        return Fraction(int.from_bytes(bits, "little"), 2**128)

    def draw(self, values: range, weights: list[int], u: Fraction) -> int:
        total, reached = sum(weights), 0
        for value, weight in zip(values, weights, strict=True):
            reached += weight
            if Fraction(reached, total) > u:
                return value
        raise AssertionError

    def _left(self, level: int, node: int, parent: int) -> int:
        assert isinstance(self.mechanism, SliceTree)
        f = self.mechanism.tables[level].half
        reach = len(f) - 1
        values = range(max(-reach, parent - reach), min(reach, parent + reach) + 1)
        weights = [f[abs(z)] * f[abs(parent - z)] for z in values]
        return self.draw(values, weights, self.uniform(level, node))

    def _own(self, level: int, node: int) -> int:
        assert isinstance(self.mechanism, PaperTree)
        f = self.mechanism.table.half
        values = range(-len(f) + 1, len(f))
        return self.draw(values, [f[abs(k)] for k in values], self.uniform(level, node))

    def noise(self, position: int) -> int:
        """z_0 + ... + z_position by splitting intervals, or the sum over all ancestors."""
        m = self.mechanism
        if isinstance(m, PaperTree):
            return sum(self.own(level, position >> level) for level in range(m.depth + 1))
        return self.prefix(m.depth, 0, 0, position + 1)

    def prefix(self, level: int, node: int, value: int, leaves: int) -> int:
        """The noise of the first `leaves` leaves below a node of this value."""
        if leaves == 0:
            return 0
        if leaves == 1 << level:
            return value
        left = self.left(level - 1, node, value)
        half = 1 << (level - 1)
        if leaves <= half:
            return self.prefix(level - 1, 2 * node, left, leaves)
        return left + self.prefix(level - 1, 2 * node + 1, value - left, leaves - half)
