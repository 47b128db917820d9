"""A dishonest party's tools: keys that share anything, and for them proofs as good as they can be made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fss import KeyBatch, Scheme
from fss.challenge import Challenge, derive
from fss.check import accept, sum_and_messages
from fss.proof import RAND_BYTES, Proofs
from tests.fss.helpers import BINDER
from tests.oracle.check import CheckOracle
from tests.oracle.fss import Key, P, control, parse

BITS = 6
SEEDS = b"0" * 32, b"1" * 32

Proof = list[int]
Words = list[int]


def challenge(scheme: str, bits: int = BITS, number: int = 0) -> Challenge:
    return derive(Scheme[scheme.upper()], bits, number.to_bytes(32, "big"), *SEEDS)


@dataclass
class Forger:
    """One party, with its own randomness."""

    scheme: str
    bits: int = BITS
    seed: int = 0
    binder: bytes = BINDER
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, self.bits])
        self.oracle = CheckOracle(self.scheme, self.bits, self.binder)

    def uploads(self) -> "Uploads":
        return Uploads(self.scheme, self.bits, self.binder)

    def keys(self, alpha: int, beta: int = 1) -> tuple[Key, Key]:
        return self.oracle.tree.gen(alpha, beta % P, self.rng.bytes(32))

    def words(self, key: Key) -> Words:
        """Root, control word, corrections, leaves."""
        body = key.serialise(self.binder)[8:]
        return [int.from_bytes(body[i : i + 8], "little") for i in range(0, len(body), 8)]

    def key(self, party: int, words: Words) -> Key:
        head = bytes([3, {"dcf": 1, "dpf": 2}[self.scheme], self.bits, party, 0, 0, 0, 0])
        return parse(head + b"".join(w.to_bytes(8, "little") for w in words))

    def special(self, pair: tuple[Key, Key]) -> list[int]:
        """Nodes where the control bits differ."""
        states = [[self.oracle.state(key, k) for key in pair] for k in range(self.oracle.nodes)]
        return [k for k, (s0, s1) in enumerate(states) if control(s0) != control(s1)]

    def best(self, pair: tuple[Key, Key], node: int | None = None) -> tuple[Proof, Proof]:
        """Corrections that fit at one node, and the polynomial for whatever the keys share."""
        special = self.special(pair)
        at = node if node is not None else special[0] if special else 0
        return self.oracle.prove(pair, at, self.rng.bytes(RAND_BYTES))


@dataclass
class Uploads:
    """What parties send to two servers."""

    scheme: str
    bits: int = BITS
    binder: bytes = BINDER
    keys: list[tuple[Key, Key]] = field(default_factory=list)
    proofs: list[tuple[Proof, Proof]] = field(default_factory=list)

    def add(self, pair: tuple[Key, Key], proofs: tuple[Proof, Proof]) -> None:
        self.keys.append(pair)
        self.proofs.append((list(proofs[0]), list(proofs[1])))

    def of_server(self, b: int) -> tuple[KeyBatch, Proofs]:
        """Through the servers' own strict decoders."""
        keys = KeyBatch.from_bytes(b"".join(pair[b].serialise(self.binder) for pair in self.keys), self.binder)
        elements = [x for pair in self.proofs for x in pair[b]]
        return keys, Proofs.from_bytes(b"".join(x.to_bytes(8, "little") for x in elements), keys.type)

    def accepted(self, number: int = 0) -> NDArray[np.bool_]:
        c = challenge(self.scheme, self.bits, number)
        told = [sum_and_messages(*self.of_server(b), c)[1] for b in (0, 1)]
        return accept(told[0], told[1], c)


def changed(words: Words, at: int, by: Callable[[int], int]) -> Words:
    return [by(w) if i == at else w for i, w in enumerate(words)]


def onehot(m: int, leaf: int) -> Sequence[int]:
    return [int(i == leaf) for i in range(m)]
