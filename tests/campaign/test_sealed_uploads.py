"""Uploads as they travel: opened by one key, in one place, whole; anything else is refused."""

import secrets
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign import sealed_uploads
from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, decode_uploads, row_bytes
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidUpload, UnreadableUpload
from fss_ecdf.campaign.hpke import Kem, overhead
from fss_ecdf.campaign.sealed_uploads import open_first, open_upload, part_info, seal_upload, sealed_bytes, token_digest
from fss_ecdf.net.hpke import HpkeKey
from fss_ecdf.net.server_identity import Identity
from tests.campaign.helpers import campaign
from tests.harness.server_pair import IDENTITIES, SALT, commitments, envelopes
from tests.oracle.page import specified

HEADER = UPLOAD_HEADER_BYTES
TOKEN = "fss-up-of-this-campaign"  # noqa: S105
SENDER = token_digest(TOKEN)


def made(kem: Kem = "x25519", **changes: Any) -> Campaign:
    id = secrets.token_bytes(32)
    return campaign(id=id, kem=kem, server_commitments=commitments(id, kem), **{"check_keys": False, **changes})


def key_of(of: Campaign, server: int) -> HpkeKey:
    return Identity(IDENTITIES[server], server).hpke_key(of.id, of.kem, SALT)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sealed_uploads, "PART_BYTES", 1000)
    return 1000


@pytest.mark.parametrize("kem", ["x25519", "mlkem768x25519"])
@pytest.mark.parametrize("count", [1, 2, 17])
def test_what_is_sealed_opens_again(kem: Kem, count: int, small_parts: int) -> None:
    of = made(kem)
    for server, plain in enumerate(envelopes(of, np.arange(count))):
        sealed = seal_upload(of, server, plain, TOKEN)
        assert len(sealed) == sealed_bytes(of, count)
        assert (len(sealed) - len(plain)) % overhead(kem) == 0
        assert sealed[:HEADER] == plain[:HEADER]
        assert open_upload(sealed, of, server, SENDER, key_of(of, server).open) == plain
        assert sealed != seal_upload(of, server, plain, TOKEN)
        for at in range(HEADER, len(plain) - 16, 16):
            assert plain[at : at + 16] not in sealed


def test_parts_are_of_one_mebibyte() -> None:
    """After the first row. The specification's program opens the second part, and knows that it is not the last."""
    of = made(check_keys=True)
    plain = envelopes(of, np.arange((5 << 19) // row_bytes(of)) % 50)[0]
    sealed, size, row = seal_upload(of, 0, plain, TOKEN), (1 << 20) + 48, row_bytes(of)
    start = HEADER + row + 48
    assert 2 * size < len(sealed) - start < 3 * size
    assert open_upload(sealed, of, 0, SENDER, key_of(of, 0).open) == plain
    page = specified()
    seed = page.hpke_secret(IDENTITIES[0], "x25519", of.id, SALT)
    second, first = sealed[start : start + size], sealed[HEADER : HEADER + 32]
    label = b"fss-ecdf sealed upload 2\napplication/vnd.fss-ecdf.upload\n"
    info = label + plain[:HEADER] + sha256(TOKEN.encode()).digest() + b"\1\0\0\0\0" + first
    assert page.hpke_open(seed, info, second) == plain[HEADER + row : HEADER + row + (1 << 20)]
    assert open_first(sealed[:start], 2, SENDER, key_of(of, 0).open) == plain[HEADER : HEADER + 16]
    ephemerals = [secrets.token_bytes(32) for _ in range(4)]
    theirs = page.sealed_upload(of.server_commitments[0].hpke_key, plain, TOKEN, ephemerals)  # type: ignore[index]
    assert open_upload(theirs, of, 0, SENDER, key_of(of, 0).open) == plain


def test_another_header_opens_nothing() -> None:
    """Whatever an attacker writes into the plain header: another server, wave, count or campaign."""
    weekly = {"every": "manual", "count": 5, "pooled": []}
    of = made(waves=weekly)
    twin = made(waves=weekly)
    plain = envelopes(of, np.arange(2), 1)[0]
    sealed = seal_upload(of, 0, plain, TOKEN)
    assert open_upload(sealed, of, 0, SENDER, key_of(of, 0).open) == plain

    def changed(at: int, data: bytes) -> bytes:
        return sealed[:at] + data + sealed[at + len(data) :]

    for body, campaign_, server in (
        (changed(5, b"\1"), of, 1),  # for the other server
        (changed(40, b"\2"), of, 0),  # for the next wave
        (changed(8, twin.digest), twin, 0),  # for another campaign
    ):
        for opener in (key_of(of, 0), key_of(of, 1), key_of(twin, 0)):
            with pytest.raises(UnreadableUpload, match="part 1 of the upload cannot be decrypted"):
                open_upload(body, campaign_, server, SENDER, opener.open)
    for body, message in (
        (changed(6, b"\1"), "takes keys only"),
        (changed(6, b"\2"), "of kind 2"),
        (changed(44, b"\1"), "one person"),
        (changed(40, b"\6"), "no wave 6"),
        (changed(4, b"\3"), "version 4"),
        (changed(5, b"\1"), "for server 1"),
        (sealed[:-1], "encrypted bytes"),
        (sealed + b"\0", "encrypted bytes"),
        (sealed[:63], "a header of 64 bytes"),
        (plain, "encrypted bytes"),  # not encrypted at all
    ):
        with pytest.raises(InvalidUpload, match=message):
            open_upload(body, of, 0, SENDER, key_of(of, 0).open)


def test_another_token_opens_nothing() -> None:
    """Whoever recorded an upload cannot send it under a token of its own."""
    of = made()
    sealed = seal_upload(of, 0, envelopes(of, np.arange(2))[0], TOKEN)
    for other in (token_digest("fss-in-of-somebody-else"), bytes(32), b""):
        with pytest.raises(UnreadableUpload, match="part 1 of the upload cannot be decrypted"):
            open_upload(sealed, of, 0, other, key_of(of, 0).open)
        with pytest.raises(UnreadableUpload):
            open_first(sealed[: sealed_bytes(of, 1)], 2, other, key_of(of, 0).open)


def test_parts_open_in_their_place_and_together_only(small_parts: int) -> None:
    """Truncated, reordered, duplicated, spliced from two uploads with the same header, or the last one too early."""
    of = made()
    first, second = (seal_upload(of, 0, envelopes(of, np.arange(10))[0], TOKEN) for _ in range(2))
    assert first[:HEADER] == second[:HEADER]
    size, start = small_parts + overhead(of.kem), sealed_bytes(of, 1)
    a, b = (
        [data[HEADER:start], *(data[at : at + size] for at in range(start, len(data), size))]
        for data in (first, second)
    )
    assert len(a) >= 4
    assert len(a[1]) == len(a[2]) == size > len(a[-1])
    head, key = first[:HEADER], key_of(of, 0)
    wrong = {
        "reordered": [a[0], a[2], a[1], *a[3:]],
        "duplicated": [a[0], a[1], a[1], *a[3:]],
        "spliced": [a[0], b[1], *a[2:]],
        "spliced at the end": [*a[:-1], b[-1]],
        "spliced at the start": [b[0], *a[1:]],
    }
    for name, parts in wrong.items():
        with pytest.raises(UnreadableUpload, match="cannot be decrypted"):
            pytest.fail(f"{name}: {len(open_upload(head + b''.join(parts), of, 0, SENDER, key.open))} bytes")
    for parts in (a[:-1], a[1:], [*a, a[-1]], []):
        with pytest.raises(InvalidUpload, match="encrypted bytes"):
            open_upload(head + b"".join(parts), of, 0, SENDER, key.open)
    for flag in (True, False):  # a part says whether it is the last
        with pytest.raises(ValueError, match="not sealed"):
            key.open(part_info(head, SENDER, 0, True), a[0] if flag else a[-1])
    assert decode_uploads(open_upload(first, of, 0, SENDER, key.open), of, 0).ids.shape == (10, 16)


def test_every_flipped_bit_is_noticed() -> None:
    of = made()
    sealed = seal_upload(of, 1, envelopes(of, np.arange(1))[1], TOKEN)
    for at in range(HEADER, len(sealed), 7):
        changed = sealed[:at] + bytes([sealed[at] ^ 1 << at % 8]) + sealed[at + 1 :]
        with pytest.raises(UnreadableUpload):
            open_upload(changed, of, 1, SENDER, key_of(of, 1).open)


def test_a_campaign_without_commitments_cannot_be_encrypted_to() -> None:
    with pytest.raises(InvalidCampaign, match="no commitments"):
        seal_upload(campaign(), 0, bytes(100), TOKEN)
