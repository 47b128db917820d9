"""The fixed-key AES hash of the IRTF VDAF draft (XofFixedKeyAes128), batched over seeds.

    key         = TurboSHAKE128(len(dst)_le16 || dst || binder, domain 2, 16 bytes)
    sigma(b)    = hi || (hi xor lo)             for b = lo || hi
    H(b)        = AES_key(sigma(b)) xor sigma(b)
    block i     = H(seed xor i_le)

The draft makes one AES key per client. Here the binder is the campaign's nonce, so that one key serves all clients of
a campaign and a batch of seeds is one AES call; docs/security.md says what that costs. A tree node needs only block 0
under several keys, which share the same sigma buffer: `left` and `right` for the children, `value` for what they carry,
those three and `leaf 3` to `leaf 7` for the values of a terminal node's leaves, two each, `check 0` and `check 1` for
its check (`fss/check.py`).

Seeds are pairs of little-endian uint64 words, held as two arrays `lo` and `hi`; only AES sees them side by side.
"""

import sys
from functools import lru_cache

import numpy as np
from Crypto.Cipher import AES
from Crypto.Hash import TurboSHAKE128

from fss.errors import ShapeError
from fss.field import Words

SEED_BYTES = 16
_DOMAIN = 2

if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("fss stores seeds as native words and needs a little-endian machine")


def derive_key(dst: bytes, binder: bytes) -> bytes:
    """The AES key for one use (dst) in one campaign (binder)."""
    message = len(dst).to_bytes(2, "little") + dst + binder
    return TurboSHAKE128.new(domain=_DOMAIN, data=message).read(16)


def sigma(lo: Words, hi: Words, out: Words) -> None:
    """Write sigma(lo || hi) side by side into `out`, whose last axis has length 2."""
    out[..., 0] = hi
    np.bitwise_xor(hi, lo, out=out[..., 1])


class Aes:
    """AES-128 under one derived key, on contiguous arrays of 16-byte rows."""

    def __init__(self, dst: bytes, binder: bytes) -> None:
        self._cipher = AES.new(derive_key(dst, binder), AES.MODE_ECB)

    def encrypt(self, rows: memoryview, out: memoryview) -> None:
        self._cipher.encrypt(rows, output=out)


def as_bytes(rows: Words) -> memoryview:
    """The bytes of a contiguous array, as `Aes` takes them."""
    return rows.data.cast("B")


def stream(key: bytes, seed: bytes, length: int, first: int = 0) -> bytes:
    """Bytes of the draft's stream for one seed under its AES key, from block `first` on."""
    if len(seed) != SEED_BYTES:
        raise ShapeError(f"a seed has {SEED_BYTES} bytes, got {len(seed)}")
    if not length:
        return b""
    lo, hi = np.frombuffer(seed, np.uint64)
    blocks = -(-length // 16)
    rows = np.empty((blocks, 2), np.uint64)
    sigma(lo ^ np.arange(first, first + blocks, dtype=np.uint64), np.full(blocks, hi), rows)
    hashed = np.empty_like(rows)
    AES.new(key, AES.MODE_ECB).encrypt(as_bytes(rows), output=as_bytes(hashed))
    return (hashed ^ rows).tobytes()[:length]


def xof(dst: bytes, binder: bytes, seed: bytes, length: int) -> bytes:
    """The first bytes of the draft's stream for one seed: the whole construction, for any number of blocks."""
    return stream(derive_key(dst, binder), seed, length)


LEAVES = b"left", b"right", b"value", b"leaf 3", b"leaf 4", b"leaf 5", b"leaf 6", b"leaf 7"
USES = *LEAVES, b"check 0", b"check 1"


class TreePrg:
    """The hashes of a node, and their AES keys, one after the other."""

    def __init__(self, binder: bytes) -> None:
        hashes = [Aes(use, binder) for use in USES]
        self.leaves, self.check = hashes[: len(LEAVES)], hashes[len(LEAVES) :]
        left, right, self.value = self.leaves[:3]
        self.sides = left, right
        self.keys = b"".join(derive_key(use, binder) for use in USES)


@lru_cache(maxsize=64)
def tree_prg(binder: bytes) -> TreePrg:
    """The hashes of one campaign. They hold no state besides the round keys, so threads may share them."""
    return TreePrg(binder)


@lru_cache(maxsize=64)
def binder_tag(binder: bytes) -> bytes:
    """Four public bytes that stand in every key of a campaign, to notice keys of another one."""
    return derive_key(b"tag", binder)[:4]
