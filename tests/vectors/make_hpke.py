"""python -m tests.vectors.make_hpke: write hpke.json. Frozen.

The program on docs/specification.md makes the vectors of X25519. Those of the hybrid KEM are pycryptodome's: it seals
with the coins given here, and `cryptography` must open what it sealed.
"""

import json
from pathlib import Path
from typing import Any

from Crypto.Cipher import AES
from Crypto.Protocol.HPKE import AEAD, MODE, HPKE_Cipher
from Crypto.PublicKey.Hybrid import MLKEM768_X25519, HybridKey

from tests.oracle.page import specified
from tests.vectors.make_messages import named

page = specified()
SIZES = (0, 1, 15, 16, 17, 1000)


def of_x25519(size: int) -> dict[str, Any]:
    seed, ephemeral, info, plaintext = _given("x25519", size)
    public = page.x25519_public(seed)
    return _case("x25519", seed, public, info, plaintext, page.hpke_seal(public, info, plaintext, ephemeral[:32]))


def of_the_hybrid(size: int) -> dict[str, Any]:
    """Encapsulated with known coins, which takes pycryptodome's inner functions."""
    seed, coins, info, plaintext = _given("mlkem768x25519", size)
    private = HybridKey(param_set=MLKEM768_X25519, seed=seed)
    public = private.public_key()
    _, encapsulated = public._encaps(coins)
    context = HPKE_Cipher(private, encapsulated, None, (b"", b""), info, AEAD.AES128_GCM, MODE.BASE)
    ciphertext, tag = AES.new(context._key, AES.MODE_GCM, nonce=context._base_nonce).encrypt_and_digest(plaintext)
    return _case("mlkem768x25519", seed, public._pk, info, plaintext, encapsulated + ciphertext + tag)


def _given(kem: str, size: int) -> tuple[bytes, bytes, bytes, bytes]:
    name = f"hpke {kem} {size}"
    return named(name, 32), named(f"{name} coins", 64), named(f"{name} info", size), named(f"{name} plain", size)


def _case(kem: str, seed: bytes, public: bytes, info: bytes, plaintext: bytes, sealed: bytes) -> dict[str, Any]:
    about = {"seed": seed, "public_key": public, "info": info, "plaintext": plaintext, "sealed": sealed}
    return {"kem": kem, **{name: data.hex() for name, data in about.items()}}


def body() -> dict[str, Any]:
    cases = [make(size) for make in (of_x25519, of_the_hybrid) for size in SIZES]
    return {"provenance": " ".join((__doc__ or "").split("\n\n", 1)[1].split()), "good": cases}


if __name__ == "__main__":
    (Path(__file__).parent / "hpke.json").write_text(json.dumps(body(), indent=1) + "\n")
