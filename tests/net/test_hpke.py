"""HPKE: RFC 9180's vectors, our own, and what one library seals the other one opens and nobody else."""

import json
import os
from pathlib import Path
from typing import Any, get_args

import pytest
from Crypto.Protocol import HPKE
from Crypto.Protocol.DH import import_x25519_private_key
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fss_ecdf.campaign.hpke import ENCAPSULATED_BYTES, PUBLIC_KEY_BYTES, Kem, overhead, seal
from fss_ecdf.net.hpke import HpkeKey
from tests.oracle.page import specified
from tests.vectors import make_hpke

VECTORS = Path(__file__).parents[1] / "vectors"
RFC = json.loads((VECTORS / "hpke_rfc9180.json").read_text())
OURS = json.loads((VECTORS / "hpke.json").read_text())
KEMS: tuple[Kem, ...] = get_args(Kem)


def rfc(name: str) -> bytes:
    return bytes.fromhex(RFC[name])


def test_rfc_9180_by_the_library_of_parties() -> None:
    """pycryptodome: all of A.1.1's messages, one after the other, in one context."""
    secret = import_x25519_private_key(rfc("secret"))
    context = HPKE.new(receiver_key=secret, enc=rfc("enc"), aead_id=HPKE.AEAD.AES128_GCM, info=rfc("info"))
    assert (context._key, context._base_nonce) == (rfc("key"), rfc("base_nonce"))
    for message in RFC["encryptions"]:
        context._sequence = message["sequence"]
        opened = context.unseal(bytes.fromhex(message["ciphertext"]), bytes.fromhex(message["aad"]))
        assert opened == rfc("plaintext")


def test_rfc_9180_by_the_library_of_servers() -> None:
    """`cryptography`: the first message; it has no others, and associated data only in an inner function."""
    suite = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
    secret = X25519PrivateKey.from_private_bytes(rfc("secret"))
    first = RFC["encryptions"][0]
    sealed, aad = rfc("enc") + bytes.fromhex(first["ciphertext"]), bytes.fromhex(first["aad"])
    assert openssl.hpke._decrypt_with_aad(suite, sealed, secret, rfc("info"), aad) == rfc("plaintext")
    with pytest.raises(InvalidTag):
        openssl.hpke._decrypt_with_aad(suite, sealed, secret, rfc("info"), b"")


def test_rfc_9180_by_the_specification() -> None:
    page = specified()
    assert page.x25519_public(rfc("secret")) == rfc("public_key")
    assert page.x25519_public(rfc("ephemeral_secret")) == rfc("enc")
    dh = page.x25519(rfc("ephemeral_secret"), rfc("public_key"))
    assert page.hpke_schedule(dh, rfc("enc"), rfc("public_key"), rfc("info")) == [rfc("key"), rfc("base_nonce")]
    sealed = page.hpke_seal(rfc("public_key"), rfc("info"), rfc("plaintext"), rfc("ephemeral_secret"))
    first = bytes.fromhex(RFC["encryptions"][0]["ciphertext"])
    assert sealed[:-16] == rfc("enc") + first[:-16]  # but for the tag, which covers its associated data


def test_the_vectors_are_those_of_the_program() -> None:
    assert make_hpke.body() == OURS
    assert {case["kem"] for case in OURS["good"]} == set(KEMS)


@pytest.mark.parametrize("case", OURS["good"], ids=lambda case: f"{case['kem']}-{len(case['plaintext']) // 2}")
def test_our_vectors(case: dict[str, Any]) -> None:
    kem, (seed, public, info, plaintext, sealed) = (
        case["kem"],
        [bytes.fromhex(case[name]) for name in ("seed", "public_key", "info", "plaintext", "sealed")],
    )
    key = HpkeKey(kem, seed)
    assert (key.public_bytes, len(public)) == (public, PUBLIC_KEY_BYTES[kem])
    assert len(sealed) == len(plaintext) + overhead(kem)
    assert key.open(info, sealed) == plaintext
    assert key.open(info, seal(kem, public, info, plaintext)) == plaintext
    if kem == "x25519":
        assert specified().hpke_open(seed, info, seal(kem, public, info, plaintext)) == plaintext


@pytest.mark.parametrize("kem", KEMS)
def test_only_the_key_and_the_info_that_it_was_sealed_for_open_a_message(kem: Kem) -> None:
    key, other, plaintext = HpkeKey(kem, os.urandom(32)), HpkeKey(kem, os.urandom(32)), os.urandom(100)
    sealed = seal(kem, key.public_bytes, b"info", plaintext)
    assert sealed != seal(kem, key.public_bytes, b"info", plaintext)  # two encapsulated keys
    assert plaintext not in sealed
    wrong = [(other, b"info", sealed), (key, b"info2", sealed), (key, b"", sealed), (key, b"info", sealed[:-1])]
    wrong += [(key, b"info", sealed + b"\0"), (key, b"info", b""), (key, b"info", sealed[: overhead(kem) - 1])]
    for place in (0, 31, ENCAPSULATED_BYTES[kem] - 1, ENCAPSULATED_BYTES[kem], len(sealed) - 1):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        wrong.append((key, b"info", changed))
    wrong.append((key, b"info", bytes(ENCAPSULATED_BYTES[kem]) + sealed[ENCAPSULATED_BYTES[kem] :]))
    for opener, info, message in wrong:
        with pytest.raises(ValueError, match=r"not sealed|shorter"):
            opener.open(info, message)


@pytest.mark.parametrize("kem", KEMS)
def test_what_is_no_public_key_is_refused(kem: Kem) -> None:
    size = PUBLIC_KEY_BYTES[kem]
    good = HpkeKey(kem, bytes(32)).public_bytes
    for bad in (b"", good[:-1], good + b"\0", good[:-32] + bytes(32), good[:-32] + (1).to_bytes(32, "little")):
        with pytest.raises(ValueError, match=r"(?i)public key|point|x25519|curve25519"):
            seal(kem, bad, b"", b"")
    if kem == "mlkem768x25519":
        with pytest.raises(ValueError, match="ML-KEM"):
            seal(kem, b"\xff" * size, b"", b"")


def test_a_key_does_not_print_itself() -> None:
    assert repr(HpkeKey("x25519", b"\7" * 32)) == "<HpkeKey x25519>"
    with pytest.raises(ValueError, match="32 bytes"):
        HpkeKey("x25519", b"")
