"""Checking keys: two servers refuse those that share another function than they should, and learn nothing else.

    party      `dcf.gen_proved`, `dpf.gen_proved`: keys, and a proof for each server (`fss/proof.py`)
    servers    `challenge.derive`, once both are frozen and have exchanged their seeds (`fss/challenge.py`)
               `sum_and_messages`: the sum over the domain, and three elements a key for the other server
               `accept`: which keys are kept; both servers come to the same answer
               the sum over the others (`KeyBatch.take`, `sum_over_domain`) is then subtracted

For terminal node k with state s, control bit t and z = k + 1, and the challenge's r_k, rho_i, r', R_j, tau:

    digest   sum over k, i of r_k rho_i (z h_i(s) - t c_i), in a DCF with the step into node k added to h_0
             + r' times the sum of all steps (server 1: plus 1), + sum over j of R_j u_j
    f, q     the values at tau of the shares of f and q, f(i + 1) being the sum over k of the steps at leaf i

Steps are those of the function for a DCF, its values for a DPF; u_j are the 32-bit limbs of every word that both keys
share. Digests are equal, and f^2 - f = (tau-1)...(tau-m) q, for an honest key; docs/security.md says why for no other.
Server 1 collects negated shares; what it adds to a digest is what it collected, so that both compute the same number.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fss import field
from fss.challenge import HASHES, Challenge
from fss.errors import CheckFormatError, KeyMismatchError, ShapeError
from fss.evaluate import sum_and_observe
from fss.field import Words
from fss.keys import CONTROL, KeyBatch
from fss.observe import CONTROLS, HASHED, STEPS
from fss.proof import Proofs

MESSAGE_BYTES = 24

# Keys whose messages are computed together: their words stay in the cache.
_BLOCK = 1024

DIGEST, F, Q = range(3)


class Messages:
    """What one server tells the other about each key: rows `DIGEST`, `F`, `Q`, one column a key."""

    def __init__(self, words: Words) -> None:
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim != 2 or len(words) != 3:
            raise ShapeError("messages must be a uint64 array of shape (3, keys)")
        self.words = words

    def __len__(self) -> int:
        return int(self.words.shape[1])

    def __repr__(self) -> str:
        return f"<Messages about {len(self)} keys>"

    def to_bytes(self) -> bytes:
        return np.ascontiguousarray(self.words.T).tobytes()

    @staticmethod
    def from_bytes(data: bytes, count: int) -> "Messages":
        """Decode the messages about `count` keys, or raise."""
        if len(data) != MESSAGE_BYTES * count:
            raise CheckFormatError(f"messages about {count} keys have {MESSAGE_BYTES * count} bytes, got {len(data)}")
        words = np.frombuffer(data, np.uint64).reshape(count, 3).T.copy()
        if not field.is_canonical(words):
            raise CheckFormatError("a message of a check is not an element of Z_p, below 2^61 - 1")
        return Messages(words)

    @staticmethod
    def concatenate(parts: Sequence["Messages"]) -> "Messages":
        return Messages(np.concatenate([np.empty((3, 0), np.uint64), *(part.words for part in parts)], axis=1))


def sum_and_messages(
    keys: KeyBatch, proofs: Proofs, challenge: Challenge, *, threads: int = 1
) -> tuple[Words, Messages]:
    """The sum of the shares over the whole domain, as `sum_over_domain` has it, and the messages, in one pass."""
    _require_fitting(keys, proofs, challenge)
    sums, seen = sum_and_observe(keys, challenge.weights, threads=threads)
    messages = np.empty((3, len(keys)), np.uint64)
    for start in range(0, len(keys), _BLOCK):
        part = slice(start, start + _BLOCK)
        messages[:, part] = _messages(keys[part], proofs[part], challenge, seen[:, part])
    return sums, Messages(messages)


def accept(of_server0: Messages, of_server1: Messages, challenge: Challenge) -> NDArray[np.bool_]:
    """Which keys share the function that they should."""
    if len(of_server0) != len(of_server1):
        raise ShapeError(f"one server has messages about {len(of_server0)} keys, the other about {len(of_server1)}")
    digest0, digest1 = of_server0.words[DIGEST], of_server1.words[DIGEST]
    f, q = (field.add(of_server0.words[row], of_server1.words[row]) for row in (F, Q))
    left = field.sub(field.mul(f, f), f)
    return np.asarray((digest0 == digest1) & (left == field.mul(q, challenge.vanishing)))


def _require_fitting(keys: KeyBatch, proofs: Proofs, challenge: Challenge) -> None:
    if proofs.type != keys.type:
        raise KeyMismatchError("these proofs are for keys of another kind")
    if len(proofs) != len(keys):
        raise ShapeError(f"there are {len(keys)} keys and {len(proofs)} proofs")
    if (challenge.scheme, challenge.bits) != (keys.type.scheme, keys.type.bits):
        raise KeyMismatchError("this challenge is for keys of another kind")
    # Decoders enforce it; the check is worth nothing without it.
    keys.check_roots()


def _messages(keys: KeyBatch, proofs: Proofs, challenge: Challenge, seen: Words) -> Words:
    steps = seen[STEPS:]
    own = field.neg(steps) if keys.type.server else steps
    f = field.weigh(challenge.lagrange, np.concatenate([proofs.w[np.newaxis], own]))
    q = field.weigh(challenge.lagrange, proofs.q)
    return np.stack([_digest(keys, proofs, challenge, seen), f, q])


def _digest(keys: KeyBatch, proofs: Proofs, challenge: Challenge, seen: Words) -> Words:
    corrected = field.mul(seen[CONTROLS], field.weigh(challenge.rho, proofs.corrections))
    total = field.canonical(field.total(seen[STEPS:], axis=0) + np.uint64(keys.type.server))
    common = np.concatenate([keys.words[CONTROL:], proofs.corrections])
    parts = [field.mul(total, challenge.total), field.weigh_halves(challenge.common[0], challenge.common[1], common)]
    return field.add_all([field.sub(seen[HASHED], corrected), *parts])


__all__ = ["HASHES", "MESSAGE_BYTES", "Challenge", "Messages", "Proofs", "accept", "sum_and_messages"]
