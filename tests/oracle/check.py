"""The check of keys, one key and one node at a time, straight from its definition, on Python integers.

Flags switch off one detail each, to show what it is for: without it an attack succeeds
(tests/fss/test_check_breaks.py).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tests.oracle.fss import Key, Oracle, P, control, convert, hash_block, with_control, words

Poly = list[int]


@cache
def inverse(x: int) -> int:
    return pow(x, P - 2, P)


def times(a: Poly, b: Poly) -> Poly:
    out = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] = (out[i + j] + x * y) % P
    return out


def value(poly: Poly, x: int) -> int:
    return sum(c * pow(x, i, P) for i, c in enumerate(poly)) % P


def through(values: Sequence[int]) -> Poly:
    """Coefficients of the polynomial with these values at 0, 1, 2, ..."""
    out = [0] * len(values)
    for j, y in enumerate(values):
        out = [(a + y * b) % P for a, b in zip(out, lagrange(j, len(values)), strict=True)]
    return out


@cache
def lagrange(j: int, count: int) -> Poly:
    """Coefficients of the polynomial that is 1 at j and 0 at the others of 0, 1, ..., count - 1."""
    out: Poly = [1]
    for k in range(count):
        if k != j:
            out = [c * inverse(j - k) % P for c in times(out, [-k % P, 1])]
    return out


def divided(a: Poly, by: Poly) -> Poly:
    """The quotient; `by` is monic. What remains is forgotten."""
    rest, out = list(a), [0] * (len(a) - len(by) + 1)
    for i in reversed(range(len(out))):
        out[i] = rest[i + len(by) - 1]
        for j, c in enumerate(by):
            rest[i + j] = (rest[i + j] - out[i] * c) % P
    return out


def zeros_at(m: int) -> Poly:
    """(x - 1)...(x - m)."""
    out = [1]
    for j in range(1, m + 1):
        out = times(out, [-j % P, 1])
    return out


@dataclass
class Challenge:
    tau: int
    total: int
    rho: list[int]
    low: list[int]
    high: list[int]
    r: list[int]


@dataclass
class CheckOracle:
    scheme: str
    bits: int
    binder: bytes
    common_words: bool = True
    control_in_hash: bool = True
    numbered: bool = True
    totals: bool = True

    def __post_init__(self) -> None:
        self.tree = Oracle(self.scheme, self.bits, self.binder)
        self.m, self.nodes = 1 << self.tree.leaf_bits, 1 << self.tree.depth

    def challenge(self, digest: bytes, seed0: bytes, seed1: bytes) -> Challenge:
        per_key = 1 + self.tree.depth * (3 if self.scheme == "dcf" else 2) + self.m + 4
        count = 6 + 2 * per_key + self.nodes
        stream = hashlib.shake_256(b"fss-ecdf check challenge 1\n" + digest + seed0 + seed1).digest(8 * (count + 16))
        drawn = [int.from_bytes(stream[i : i + 8], "little") & P for i in range(0, len(stream), 8)]
        left = iter([x for x in drawn if x != P])
        tau = next(x for x in left if x > self.m)

        def take(n: int) -> list[int]:
            return [next(left) for _ in range(n)]

        return Challenge(tau, take(1)[0], take(4), take(per_key), take(per_key), take(self.nodes))

    def state(self, key: Key, node: int) -> bytes:
        s = key.root
        for i in range(self.tree.depth):
            right = node >> (self.tree.depth - 1 - i) & 1
            both = self.tree.node(self.seen(s))
            t_cw = key.t_right_cw[i] if right else key.t_left_cw[i]
            s = self.tree.correct(both.right if right else both.left, control(s), key.seed_cw[i], t_cw)
        return s

    def seen(self, state: bytes) -> bytes:
        """What is hashed of a state."""
        return state if self.control_in_hash else with_control(state, 0)

    def h(self, state: bytes) -> list[int]:
        blocks = [hash_block(self.tree.keys[use], self.seen(state)) for use in ("check 0", "check 1")]
        return [convert(w) for block in blocks for w in words(block)]

    def z(self, node: int) -> int:
        return node + 1 if self.numbered else 1

    def shares(self, key: Key) -> list[int]:
        if self.control_in_hash:
            return [self.tree.evaluate(key, x) for x in range(1 << self.bits)]
        out = []
        for node in range(self.nodes):
            s = self.state(key, node)
            leaves = self.tree.leaves(self.seen(s))
            out += [(-1) ** key.party * (v + control(s) * cw) % P for v, cw in zip(leaves, key.leaf_cw, strict=True)]
        return out

    def steps(self, key: Key) -> list[list[int]]:
        """For each node, this server's share of the step at each leaf."""
        f = self.shares(key)
        if self.scheme == "dcf":
            f = [(b - a) % P for a, b in zip([0, *f], f, strict=False)]
        return [f[self.m * k : self.m * k + self.m] for k in range(self.nodes)]

    def in_total(self, key: Key) -> list[int]:
        return [sum(column) % P for column in zip(*self.steps(key), strict=True)]

    def corrections(self, keys: tuple[Key, Key], node: int) -> list[int]:
        """What makes both servers agree at this node, whether or not the keys are honest."""
        s0, s1 = (self.state(key, node) for key in keys)
        g = control(s0) - control(s1)
        apart = [(a - b) % P for a, b in zip(self.h(s0), self.h(s1), strict=True)]
        if self.scheme == "dcf":
            apart[0] += sum(self.steps(key)[node][0] for key in keys)
        return [g * self.z(node) * a % P for a in apart]

    def quotient(self, w: int, steps: Sequence[int]) -> list[int]:
        """(f^2 - f) / ((x-1)...(x-m)) at 0..m."""
        f = through([w, *steps])
        square = times(f, f)
        top = [(a - b) % P for a, b in zip(square, f + [0] * len(f), strict=False)]
        q = divided(top, zeros_at(self.m))
        return [value(q, x) for x in range(self.m + 1)]

    def prove(self, keys: tuple[Key, Key], node: int, rand: bytes) -> tuple[list[int], list[int]]:
        """Proofs as good as they can be, for keys that may share anything."""
        drawn = [convert(int.from_bytes(rand[i : i + 8], "little")) for i in range(0, len(rand), 8)]
        both = [sum(pair) % P for pair in zip(*(self.in_total(key) for key in keys), strict=True)]
        secret = [drawn[0], *self.quotient(drawn[0], both)]
        c = self.corrections(keys, node)
        shares = drawn[1 : 1 + len(secret)]
        return [*c, *((a - b) % P for a, b in zip(secret, shares, strict=True))], [*c, *shares]

    def message(self, key: Key, proof: Sequence[int], ch: Challenge) -> tuple[int, int, int]:
        c, w, q = proof[:4], proof[4], proof[5:]
        steps, digest = self.steps(key), 0
        for k in range(self.nodes):
            s = self.state(key, k)
            h = self.h(s)
            if self.scheme == "dcf":
                h[0] += (-1) ** key.party * steps[k][0]
            for i in range(4):
                digest += ch.r[k] * ch.rho[i] * (self.z(k) * h[i] - control(s) * c[i])
        own = self.in_total(key)
        if self.totals:
            digest += ch.total * (1 - sum(own) if key.party else sum(own))
        if self.common_words:
            body = key.serialise(self.binder)[24:]
            shared = [int.from_bytes(body[i : i + 8], "little") for i in range(0, len(body), 8)] + list(c)
            digest += sum(ch.low[j] * (u & 0xFFFFFFFF) + ch.high[j] * (u >> 32) for j, u in enumerate(shared))
        return digest % P, value(through([w, *own]), ch.tau), value(through(q), ch.tau)

    def accepts(self, keys: tuple[Key, Key], proofs: tuple[Sequence[int], Sequence[int]], ch: Challenge) -> bool:
        (d0, f0, q0), (d1, f1, q1) = (self.message(k, p, ch) for k, p in zip(keys, proofs, strict=True))
        f, q = f0 + f1, q0 + q1
        return d0 == d1 and (f * f - f - value(zeros_at(self.m), ch.tau) * q) % P == 0
