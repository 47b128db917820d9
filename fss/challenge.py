"""What the two servers draw together to check keys: once for each wave, after nothing can be added to it any more.

Each server's seeds follow from a secret that it keeps, and both servers' commitments stand in the campaign itself,
hence in the digest that every upload carries. So nobody can choose a challenge, and a key meets only one: a second
challenge for the same key would show where its value lies among the leaves of a terminal node (docs/security.md).

The seeds of a campaign's waves are a chain, each the hash of the next wave's, and the commitment is to its end, the
seed of wave 0: whoever is told the seed of one wave can check it, and knows those of earlier waves, but no later one.
A plain campaign is wave 0.
"""

import hashlib
import hmac
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fss import field
from fss.errors import DomainError, ShapeError
from fss.field import Words
from fss.keys import CONTROL, KeyType, Scheme
from fss.polynomial import lagrange, vanishing

SEED_BYTES = 32
COMMITMENT_BYTES = 32
MAX_BITS = 20
HASHES = 4  # field elements that the state of a terminal node is hashed to, and corrections of a proof

MAX_WAVE = 1000

_SEED, _STEP = b"fss-ecdf check seed 2\n", b"fss-ecdf check step 1\n"
_COMMITMENT, _CHALLENGE = b"fss-ecdf check commitment 1\n", b"fss-ecdf check challenge 1\n"


def check_seed(secret: bytes, campaign: bytes, wave: int = 0) -> bytes:
    """A server's share of the challenge: the same after any restore, since it follows from its long-term secret."""
    if len(secret) < SEED_BYTES:
        raise ShapeError(f"a server's secret has at least {SEED_BYTES} bytes, got {len(secret)}")
    if not 0 <= wave <= MAX_WAVE:
        raise DomainError(f"waves are numbered 0 to {MAX_WAVE}, got {wave}")
    last = hmac.digest(secret, _SEED + _exactly(campaign, "a campaign's id"), "sha256")
    return _earlier(last, campaign, MAX_WAVE - wave)


def _earlier(seed: bytes, campaign: bytes, waves: int) -> bytes:
    """The seed of so many waves before: no way leads back."""
    for _ in range(waves):
        seed = hashlib.sha256(_STEP + campaign + seed).digest()
    return seed


def commitment(server: int, campaign: bytes, seed: bytes) -> bytes:
    """What stands in the campaign: it binds the server to its seed and hides it."""
    if server not in (0, 1):
        raise DomainError(f"server must be 0 or 1, got {server!r}")
    opened = bytes([server]) + _exactly(campaign, "a campaign's id") + _exactly(seed, "a check seed")
    return hashlib.sha256(_COMMITMENT + opened).digest()


def verify_commitment(committed: bytes, server: int, campaign: bytes, seed: bytes, wave: int = 0) -> bool:
    """Whether a seed is the one that was committed to for a wave."""
    return hmac.compare_digest(committed, commitment(server, campaign, _earlier(seed, campaign, wave)))


def _exactly(data: bytes, what: str) -> bytes:
    if len(data) != SEED_BYTES:
        raise ShapeError(f"{what} has {SEED_BYTES} bytes, got {len(data)}")
    return data


@dataclass(frozen=True)
class Weights:
    """What each terminal node k counts in a digest: shapes (HASHES, nodes) and (nodes,)."""

    hashes: Words  # of h_i: z_k r_k rho_i, with z_k = k + 1
    control: Words  # of the control bit: r_k

    @cached_property
    def by_node(self) -> Words:
        """For the native kernel (`fss/native/weigh.h`), a row for each node: the weights of the hashes, that of the
        control bit, and 1, by which control bits are counted."""
        return np.ascontiguousarray(np.vstack([self.hashes, self.control, np.ones_like(self.control)]).T)


@dataclass(frozen=True, repr=False)
class Challenge:
    """One campaign's random numbers, in Z_p. Secret until both servers are frozen; does not print them."""

    scheme: Scheme
    bits: int
    tau: int
    total: Words  # of shape ()
    rho: Words
    common: Words  # shape (2, words): for the low and the high 32 bits of every word that both keys share
    weights: Weights

    @cached_property
    def lagrange(self) -> Words:
        """Weights that take the values of a polynomial at 0..m to its value at tau."""
        return np.array(lagrange(_leaves(self.bits), self.tau), np.uint64)

    @cached_property
    def vanishing(self) -> Words:
        """(tau - 1)...(tau - m), of shape ()."""
        return np.array(vanishing(_leaves(self.bits), self.tau), np.uint64)


def _leaves(bits: int) -> int:
    return KeyType(Scheme.DPF, bits, 0, b"-").leaves


def check_bits(bits: int) -> None:
    """Raise unless keys over so many bits can be checked."""
    if bits > MAX_BITS:
        raise DomainError(f"keys over more than {MAX_BITS} bits cannot be checked, since that needs the whole domain")


@lru_cache(maxsize=4)
def derive(scheme: Scheme, bits: int, digest: bytes, seed0: bytes, seed1: bytes) -> Challenge:
    """The challenge of a campaign, from its digest and both servers' seeds."""
    check_bits(bits)
    type = KeyType(scheme, bits, 0, b"-")
    nodes, common = 1 << type.depth, 2 * (type.words - CONTROL + HASHES)
    seeds = _exactly(seed0, "a check seed") + _exactly(seed1, "a check seed")
    drawn = _elements(_CHALLENGE + _exactly(digest, "a campaign's digest") + seeds, 2 + HASHES + common + nodes)
    # tau is the first element outside 0..m: at those points a proof's polynomial is not hidden.
    first = int(np.argmax(drawn > type.leaves))
    total, rho, common_weights, r = np.split(drawn[first + 1 :], np.cumsum([1, HASHES, common]))
    r = r[:nodes]
    z = np.arange(1, nodes + 1, dtype=np.uint64)
    weights = Weights(field.mul(field.mul(z, r), rho[:, np.newaxis]), r)
    return Challenge(scheme, bits, int(drawn[first]), total.reshape(()), rho, common_weights.reshape(2, -1), weights)


# An element is dropped with probability 2^-61, a tau with 2^-56: these many more are enough for ever.
_SPARE = 16


def _elements(message: bytes, count: int) -> Words:
    stream = np.frombuffer(hashlib.shake_256(message).digest(8 * (count + _SPARE)), np.uint64) & field.MASK
    return np.asarray(stream[stream != field.MASK])
