"""The fixed-key AES hash against the published vector and against one block at a time."""

import json
from pathlib import Path

import numpy as np
import pytest

from fss import ShapeError
from fss.prg import derive_key, xof
from tests.oracle.fss import aes_key, hash_block

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "xof_fixed_key_aes128.json").read_text())


def test_published_vector() -> None:
    dst, binder, seed = (bytes.fromhex(VECTOR[name]) for name in ("dst", "binder", "seed"))
    assert xof(dst, binder, seed, 16).hex() == VECTOR["derived_seed"]


def test_published_stream() -> None:
    """Forty elements of the draft's 128-bit field: none of them was rejected, so they are the stream itself."""
    dst, binder, seed = (bytes.fromhex(VECTOR[name]) for name in ("dst", "binder", "seed"))
    assert xof(dst, binder, seed, 640).hex() == VECTOR["expanded_vec_field128"]


def test_stream_equals_the_hash_one_block_at_a_time() -> None:
    seed = bytes(range(100, 116))
    key = aes_key(b"value", b"binder")
    assert derive_key(b"value", b"binder") == key
    blocks = [hash_block(key, (int.from_bytes(seed, "little") ^ i).to_bytes(16, "little")) for i in range(5)]
    assert xof(b"value", b"binder", seed, 77) == b"".join(blocks)[:77]


def test_other_binder_other_dst_other_stream() -> None:
    seed = bytes(16)
    streams = {xof(d, b, seed, 32) for d in (b"left", b"right") for b in (b"one", b"two")}
    assert len(streams) == 4
    # The length prefix keeps dst and binder apart.
    assert derive_key(b"ab", b"c") != derive_key(b"a", b"bc")


def test_a_seed_has_sixteen_bytes() -> None:
    with pytest.raises(ShapeError, match="16 bytes, got 15"):
        xof(b"left", b"b", bytes(15), 16)
    assert np.frombuffer(xof(b"left", b"b", bytes(16), 16), np.uint8).size == 16
