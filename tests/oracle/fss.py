"""DCF and DPF, one key and one bit at a time, on Python integers and bytes.

Follows Boyle et al. (Eurocrypt 2021) Figure 3 and Boyle, Gilboa, Ishai (CCS 2016) Figure 1 line by line, with the two
changes that docs/paper.md describes: "alpha <= t" instead of "t < alpha", and a terminal node of up to sixteen leaves.
"""

from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

from Crypto.Cipher import AES
from Crypto.Cipher._mode_ecb import EcbMode
from Crypto.Hash import TurboSHAKE128

P = 2**61 - 1
LEAVES = "left", "right", "value", "leaf 3", "leaf 4", "leaf 5", "leaf 6", "leaf 7"
USES = *LEAVES, "check 0", "check 1"


def aes_key(dst: bytes, binder: bytes) -> bytes:
    return TurboSHAKE128.new(domain=2, data=len(dst).to_bytes(2, "little") + dst + binder).read(16)


@cache
def cipher(key: bytes) -> EcbMode:
    """AES with this key; it has no other state."""
    return AES.new(key, AES.MODE_ECB)


@lru_cache(maxsize=1 << 16)
def hash_block(key: bytes, block: bytes) -> bytes:
    """H(b) = AES(sigma(b)) xor sigma(b), sigma(lo || hi) = hi || (hi xor lo)."""
    lo, hi = block[:8], block[8:]
    sigma = hi + xor(hi, lo)
    return xor(cipher(key).encrypt(sigma), sigma)


def xor(a: bytes, b: bytes) -> bytes:
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little")


def words(block: bytes) -> list[int]:
    return [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]


def convert(word: int) -> int:
    """61 bits of a 64-bit word as an element of Z_p."""
    return (word & P) % P


def control(seed: bytes) -> int:
    """The control bit: the top bit of the first word."""
    return seed[7] >> 7


def with_control(seed: bytes, bit: int) -> bytes:
    return seed[:7] + bytes([(seed[7] & 0x7F) | (bit << 7)]) + seed[8:]


@dataclass
class Key:
    """One party's key, in the figure's terms."""

    scheme: str
    bits: int
    party: int
    root: bytes
    seed_cw: list[bytes] = field(default_factory=list)
    t_left_cw: list[int] = field(default_factory=list)
    t_right_cw: list[int] = field(default_factory=list)
    v_cw: list[int] = field(default_factory=list)
    leaf_cw: list[int] = field(default_factory=list)

    def serialise(self, binder: bytes) -> bytes:
        out = bytes([3, {"dcf": 1, "dpf": 2}[self.scheme], self.bits, self.party]) + aes_key(b"tag", binder)[:4]
        out += self.root
        both = zip(self.t_left_cw, self.t_right_cw, strict=True)
        out += sum((left ^ right) << i for i, (left, right) in enumerate(both)).to_bytes(8, "little")
        for i, seed in enumerate(self.seed_cw):
            out += with_control(seed, self.t_left_cw[i])
            if self.scheme == "dcf":
                out += self.v_cw[i].to_bytes(8, "little")
        return out + b"".join(v.to_bytes(8, "little") for v in self.leaf_cw)


def parse(data: bytes) -> Key:
    """One key from its bytes, whose form is not checked."""
    scheme, bits, party = {1: "dcf", 2: "dpf"}[data[1]], data[2], data[3]
    level = 24 if scheme == "dcf" else 16
    key, body = Key(scheme, bits, party, data[8:24]), data[32:]
    apart = int.from_bytes(data[24:32], "little")
    for i in range(bits - min(4, bits)):
        seed, body = body[:16], body[16:]
        key.seed_cw.append(with_control(seed, 0))
        key.t_left_cw.append(control(seed))
        key.t_right_cw.append(control(seed) ^ (apart >> i & 1))
        if level == 24:
            key.v_cw.append(int.from_bytes(body[:8], "little"))
            body = body[8:]
    key.leaf_cw = [int.from_bytes(body[i : i + 8], "little") for i in range(0, len(body), 8)]
    return key


class Node(NamedTuple):
    left: bytes
    right: bytes
    v_left: int
    v_right: int


class Oracle:
    def __init__(self, scheme: str, bits: int, binder: bytes) -> None:
        self.scheme, self.bits, self.binder = scheme, bits, binder
        self.leaf_bits = min(4, bits)
        self.depth = bits - self.leaf_bits
        self.keys = {name: aes_key(name.encode(), binder) for name in USES}

    def node(self, seed: bytes) -> Node:
        left, right = hash_block(self.keys["left"], seed), hash_block(self.keys["right"], seed)
        v = words(hash_block(self.keys["value"], seed))
        return Node(left, right, convert(v[0]), convert(v[1]))

    def leaves(self, seed: bytes) -> list[int]:
        blocks = [hash_block(self.keys[side], seed) for side in LEAVES[: 1 << self.leaf_bits >> 1]]
        return [convert(w) for block in blocks for w in words(block)]

    def gen(self, alpha: int, beta: int, rand: bytes) -> tuple[Key, Key]:
        s = [with_control(rand[:16], 0), with_control(rand[16:], 1)]
        keys = tuple(Key(self.scheme, self.bits, b, s[b]) for b in (0, 1))
        v_alpha = 0
        for i in range(self.depth):
            alpha_i = (alpha >> (self.bits - 1 - i)) & 1
            t = [control(s[0]), control(s[1])]
            nodes = [self.node(s[0]), self.node(s[1])]
            sl, sr = [n.left for n in nodes], [n.right for n in nodes]
            vl, vr = [n.v_left for n in nodes], [n.v_right for n in nodes]
            keep, lose = (sr, sl) if alpha_i else (sl, sr)
            v_keep, v_lose = (vr, vl) if alpha_i else (vl, vr)
            sign = -1 if t[1] else 1
            v_cw = sign * (v_lose[1] - v_lose[0] - v_alpha)
            if not alpha_i:  # the lost child is the right one: its t are above alpha
                v_cw += sign * beta
            v_cw %= P
            v_alpha = (v_alpha - v_keep[1] + v_keep[0] + sign * v_cw) % P
            seed_cw = xor(lose[0], lose[1])
            t_cw = [control(sl[0]) ^ control(sl[1]) ^ alpha_i ^ 1, control(sr[0]) ^ control(sr[1]) ^ alpha_i]
            for key in keys:
                key.seed_cw.append(with_control(seed_cw, 0))
                key.t_left_cw.append(t_cw[0])
                key.t_right_cw.append(t_cw[1])
                key.v_cw.append(v_cw)
            for b in (0, 1):
                s[b] = self.correct(keep[b], t[b], seed_cw, t_cw[alpha_i])
        if self.scheme == "dpf":
            v_alpha = 0
        sign = -1 if control(s[1]) else 1
        end = alpha % (1 << self.leaf_bits)
        for leaf, (l0, l1) in enumerate(zip(self.leaves(s[0]), self.leaves(s[1]), strict=True)):
            gained = beta if (end <= leaf if self.scheme == "dcf" else end == leaf) else 0
            for key in keys:
                key.leaf_cw.append(sign * (l1 - l0 - v_alpha + gained) % P)
        return keys[0], keys[1]

    @staticmethod
    def correct(child: bytes, t: int, seed_cw: bytes, t_cw: int) -> bytes:
        if not t:
            return child
        return with_control(xor(child, seed_cw), control(child) ^ t_cw)

    def evaluate(self, key: Key, x: int) -> int:
        s, total = key.root, 0
        for i in range(self.depth):
            x_i = (x >> (self.bits - 1 - i)) & 1
            t = control(s)
            sl, sr, vl, vr = self.node(s)
            if self.scheme == "dcf":
                total += (vr if x_i else vl) + t * key.v_cw[i]
            t_cw = key.t_right_cw[i] if x_i else key.t_left_cw[i]
            s = self.correct(sr if x_i else sl, t, key.seed_cw[i], t_cw)
        leaf = x % (1 << self.leaf_bits)
        total += self.leaves(s)[leaf] + control(s) * key.leaf_cw[leaf]
        return -total % P if key.party else total % P
