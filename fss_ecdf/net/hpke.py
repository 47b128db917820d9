"""Decryption with HPKE (RFC 9180) of a message that a party encrypted (`fss_ecdf/campaign/hpke.py`)."""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fss_ecdf.campaign.hpke import Kem, overhead

SEED_BYTES = 32
_MLKEM_SEED_BYTES = 64
_KEMS = {"x25519": hpke.KEM.X25519, "mlkem768x25519": hpke.KEM.MLKEM768_X25519}


class HpkeKey:
    """A private key, made of 32 secret bytes. Does not print them."""

    def __init__(self, kem: Kem, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"an HPKE key is made of {SEED_BYTES} bytes, got {len(seed)}")
        self.kem = kem
        self._suite = hpke.Suite(_KEMS[kem], hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
        self._private: X25519PrivateKey | hpke.MLKEM768X25519PrivateKey
        if kem == "x25519":
            curve = X25519PrivateKey.from_private_bytes(seed)
            self._private, self.public_bytes = curve, curve.public_key().public_bytes_raw()
            return
        # X-Wing's expandDecapsulationKey
        expanded = hashlib.shake_256(seed).digest(_MLKEM_SEED_BYTES + 32)
        lattice = MLKEM768PrivateKey.from_seed_bytes(expanded[:_MLKEM_SEED_BYTES])
        curve = X25519PrivateKey.from_private_bytes(expanded[_MLKEM_SEED_BYTES:])
        self._private = hpke.MLKEM768X25519PrivateKey(lattice, curve)
        self.public_bytes = lattice.public_key().public_bytes_raw() + curve.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"<HpkeKey {self.kem}>"

    def open(self, info: bytes, sealed: bytes | memoryview) -> bytes:
        """The plaintext of a message for this key and this `info`; ValueError for any other."""
        if len(sealed) < overhead(self.kem):
            raise ValueError("shorter than an encapsulated key and a tag")
        try:
            return self._suite.decrypt(sealed, self._private, info=info)
        except (InvalidTag, ValueError):
            raise ValueError("not sealed to this key with this info") from None
