"""What a party adds to a key so that two servers can check it without learning anything: 176 bytes for each.

A proof has, for m leaves in a terminal node (docs/security.md says why they suffice):

    4 corrections   the same for both servers: z (h_i(s_0) - h_i(s_1)), with the sign of t_0 - t_1, at the one terminal
                    node where their states differ. h_i are four hashes of a state, z is the node's number + 1. In a
                    DCF's first one the function's step into the node is added to the difference
    w, q_0..q_m     additive shares of a random w and of q = (f^2 - f) / ((x-1)...(x-m)) at x = 0..m, where f(0) = w and
                    f(i + 1) is the function's step at leaf i. q is a polynomial only if all steps are 0 or 1

Everything here is computed with masks: no branch and no index depends on alpha or on a state.
"""

from functools import cache

import numpy as np

from fss import field
from fss.challenge import HASHES
from fss.errors import CheckFormatError, ShapeError
from fss.field import Words
from fss.keys import KeyType, Scheme
from fss.path import Ends, mask_of, select
from fss.polynomial import inverse, quotients, vanishing
from fss.prg import as_bytes, sigma, tree_prg

# w, a share of it, and shares of q at up to 17 points.
RAND_WORDS = 19
RAND_BYTES = 8 * RAND_WORDS


def proof_words(type: KeyType) -> int:
    return HASHES + 2 + type.leaves


def proof_bytes(type: KeyType) -> int:
    return 8 * proof_words(type)


class Proofs:
    """Proofs of one server, beside its keys: row w holds word w of all proofs."""

    def __init__(self, type: KeyType, words: Words) -> None:
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64:
            raise ShapeError(f"proof words must be a uint64 array, got {getattr(words, 'dtype', words.__class__)}")
        if words.ndim != 2 or words.shape[0] != proof_words(type):
            raise ShapeError(f"proof words must have shape ({proof_words(type)}, keys), got {words.shape}")
        self.type, self.words = type, words

    def __len__(self) -> int:
        return int(self.words.shape[1])

    def __repr__(self) -> str:
        return f"<Proofs {len(self)} of {proof_bytes(self.type)} bytes>"

    def __getitem__(self, part: slice) -> "Proofs":
        return Proofs(self.type, self.words[:, part])

    @property
    def corrections(self) -> Words:
        return self.words[:HASHES]

    @property
    def w(self) -> Words:
        w: Words = self.words[HASHES]
        return w

    @property
    def q(self) -> Words:
        return self.words[HASHES + 1 :]

    def to_bytes(self) -> bytes:
        """All proofs, one after the other, their words little-endian."""
        return np.ascontiguousarray(self.words.T).tobytes()

    @staticmethod
    def from_bytes(data: bytes, type: KeyType) -> "Proofs":
        """Decode proofs, or raise. What is accepted re-encodes to the same bytes."""
        count, rest = divmod(len(data), proof_bytes(type))
        if rest:
            raise CheckFormatError(
                f"a proof over {type.bits} bits has {proof_bytes(type)} bytes; got {len(data)} bytes, which is {count} "
                f"proofs and {rest} bytes more"
            )
        words = np.frombuffer(data, np.uint64).reshape(count, proof_words(type)).T.copy()
        bad = np.argwhere(words.T >= field.MASK)
        if bad.size:
            raise CheckFormatError(f"proof {bad[0, 0]}, word {bad[0, 1]}: expected an element of Z_p, below 2^61 - 1")
        return Proofs(type, words)


def check_hashes(binder: bytes, lo: Words, hi: Words) -> list[Words]:
    """h_0..h_3 of states, at most p each."""
    rows = np.empty((lo.size, 2), np.uint64)
    hashed = np.empty_like(rows)
    sigma(lo, hi, rows)
    planes = []
    for aes in tree_prg(binder).check:
        aes.encrypt(as_bytes(rows), as_bytes(hashed))
        planes += [(hashed[:, half] ^ rows[:, half]) & field.MASK for half in (0, 1)]
    return planes


@cache
def proof_constants(m: int) -> Words:
    """1 / Z(0), then for j = 1..m and each leaf i of m the value at j of what `quotients` has for it."""
    table = [row[j] for j in range(1, m + 1) for row in quotients(m)]
    return np.array([inverse(vanishing(m, 0)), *table], np.uint64)


class Prover:
    """Makes the proofs of keys of one kind with payload 1."""

    def __init__(self, type: KeyType) -> None:
        self._type = type

    def prove(self, alphas: Words, ends: Ends, rand: Words, words: tuple[Words, Words]) -> None:
        """Write both servers' proofs. `rand` has shape (keys, RAND_WORDS): uniform, secret, used once, and independent
        of what the keys were made from, since each server knows one root seed."""
        leaf = alphas & np.uint64(self._type.leaves - 1)
        here = [np.uint64(0) - (leaf == np.uint64(i)) for i in range(self._type.leaves)]
        for i, c in enumerate(self._corrections(alphas, ends, here[0])):
            words[0][i] = words[1][i] = c
        drawn = field.canonical(np.ascontiguousarray(rand.T) & field.MASK)
        w, mine = drawn[0], drawn[1:]
        for row, (whole, share) in enumerate(zip([w, *self._quotient(w, here)], mine, strict=False)):
            words[1][HASHES + row] = share
            words[0][HASHES + row] = field.sub(whole, share)

    def _corrections(self, alphas: Words, ends: Ends, first: Words) -> list[Words]:
        h0, h1 = (check_hashes(self._type.binder, ends.lo(b), ends.hi(b)) for b in (0, 1))
        z = (alphas >> np.uint64(self._type.leaf_bits)) + np.uint64(1)
        minus = mask_of(ends.lo(1)) & field.MASK
        step = first & np.uint64(self._type.scheme is Scheme.DCF)
        result = []
        for i in range(HASHES):
            apart = field.canonical(h0[i] + (h1[i] ^ field.MASK) + (step if not i else np.uint64(0)))
            result.append(field.canonical(field.mul(apart, z) ^ minus))
        return result

    def _quotient(self, w: Words, here: list[Words]) -> list[Words]:
        """q at 0..m. With f = w l_0 + l, l being 1 at alpha's leaf: (w^2 l_0 - w + 2 w l) / Z(0) + (l^2 - l) / Z."""
        scaled = field.mul(w, proof_constants(self._type.leaves)[0])
        minus = field.neg(scaled)
        q = [field.sub(field.mul(w, scaled), scaled)]
        for j, mask in enumerate(here, start=1):
            fixed = np.zeros_like(w)
            for of_leaf, table in zip(here, quotients(self._type.leaves), strict=True):
                fixed |= of_leaf & np.uint64(table[j])
            q.append(field.add(select(mask, scaled, minus), fixed))
        return q
