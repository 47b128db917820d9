"""The flat noise, one node at a time, with exact integers and no floating point: what servers/release/noise.py equals.

Tables are convolved by the definition, entry by entry, and cut as fss_ecdf/campaign/noise/tables.py says.
"""

import hashlib
import hmac
from fractions import Fraction
from functools import cache

from Crypto.Cipher import AES

from fss_ecdf.campaign.noise.flat import Flat
from fss_ecdf.campaign.noise.tables import KEPT_BITS, SCALE_BITS


class FlatOracle:
    def __init__(self, seed: bytes, server: int, covers: bytes, mechanism: Flat) -> None:
        context = b""
        for part in (b"fss-ecdf noise 2", bytes([server]), covers, b"curve " + mechanism.name.encode()):
            context += len(part).to_bytes(2, "little") + part
        self.key = hmac.new(seed, context, hashlib.sha256).digest()
        self.mechanism = mechanism
        self.table, self.leaves = cache(self._table), cache(self._leaves)

    def used(self, position: int) -> bool:
        cells = self.mechanism.cells
        return position >> cells.bits < cells.strata and position % (1 << cells.bits) < cells.size

    def cells(self, level: int, node: int) -> int:
        return sum(self.used(t) for t in range(node << level, (node + 1) << level))

    def _table(self, level: int, node: int) -> dict[int, int]:
        """The weights of a node's values: a cell's, or those of both children added up."""
        if level == 0:
            half = self.mechanism.leaf.half
            return {z: half[abs(z)] for z in range(1 - len(half), len(half))}
        if not self.cells(level - 1, 2 * node + 1):
            return self.table(level - 1, 2 * node)
        found: dict[int, int] = {}
        for a, f in self.table(level - 1, 2 * node).items():
            for b, g in self.table(level - 1, 2 * node + 1).items():
                found[a + b] = found.get(a + b, 0) + f * g
        shift = found[0].bit_length() - 1 - SCALE_BITS
        return {z: f >> shift for z, f in found.items() if f >> shift >= 1 << (SCALE_BITS - KEPT_BITS)}

    def _leaves(self, level: int, node: int, value: int) -> list[int]:
        """The noise of every position below a node of this value."""
        if level == 0:
            return [value]
        left = value
        if self.cells(level - 1, 2 * node + 1):
            left = self.drawn(level - 1, node, value)
        return [*self.leaves(level - 1, 2 * node, left), *self.leaves(level - 1, 2 * node + 1, value - left)]

    def drawn(self, level: int, parent: int, value: int) -> int:
        first, second = self.table(level, 2 * parent), self.table(level, 2 * parent + 1)
        weights = {z: first[z] * second[value - z] for z in sorted(first) if value - z in second}
        block = parent.to_bytes(8, "little") + level.to_bytes(8, "little")
        bits = AES.new(self.key, AES.MODE_ECB).encrypt(block)
        u, total, reached = Fraction(int.from_bytes(bits, "little"), 2**128), sum(weights.values()), 0
        for z, weight in weights.items():
            reached += weight
            if Fraction(reached, total) > u:
                return z
        raise AssertionError

    def curve(self) -> list[int]:
        noise = self.leaves(self.mechanism.depth, 0, 0)
        return [sum(noise[: t + 1]) for t in range(len(noise))]
