"""Encryption to one server with HPKE (RFC 9180, base mode, HKDF-SHA256, AES-128-GCM): what parties do.

The campaign names the KEM: X25519, or the hybrid of ML-KEM-768 and X25519 (X-Wing, HPKE's KEM 0x647a), which also
protects recorded traffic from a quantum computer. Every message has an encapsulated key of its own, and everything
that the two sides must agree on is in `info`: the one-shot interfaces of other libraries have no associated data.
"""

from typing import Literal

Kem = Literal["x25519", "mlkem768x25519"]

PUBLIC_KEY_BYTES: dict[Kem, int] = {"x25519": 32, "mlkem768x25519": 1184 + 32}
ENCAPSULATED_BYTES: dict[Kem, int] = {"x25519": 32, "mlkem768x25519": 1088 + 32}
TAG_BYTES = 16


def overhead(kem: Kem) -> int:
    """By how many bytes a sealed message is longer than its plaintext."""
    return ENCAPSULATED_BYTES[kem] + TAG_BYTES


def seal(kem: Kem, public_key: bytes, info: bytes, plaintext: bytes) -> bytes:
    """The encapsulated key and the ciphertext. Raises ValueError if the public key is not one of this KEM."""
    from Crypto.Protocol import HPKE  # here: most commands never seal, and its modules take a while to load
    from Crypto.Protocol.DH import import_x25519_public_key
    from Crypto.PublicKey.Hybrid import MLKEM768_X25519, HybridKey

    if len(public_key) != PUBLIC_KEY_BYTES[kem]:
        raise ValueError(f"a public key of {kem} has {PUBLIC_KEY_BYTES[kem]} bytes, got {len(public_key)}")
    receiver = (
        import_x25519_public_key(public_key) if kem == "x25519" else HybridKey(param_set=MLKEM768_X25519, pk=public_key)
    )
    context = HPKE.new(receiver_key=receiver, aead_id=HPKE.AEAD.AES128_GCM, info=info)
    return context.enc + context.seal(plaintext)
