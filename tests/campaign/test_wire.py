"""Messages are read strictly: one form each, clear errors, no crash on any bytes."""

import re
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fss import dcf
from fss.proof import proof_bytes
from fss_ecdf.campaign.binary_messages import (
    ShareMessage,
    Uploads,
    decode_shares,
    decode_uploads,
    encode_shares,
    encode_uploads,
    stored_bytes,
    upload_bytes,
    upload_rows,
)
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import DigestMismatch, InvalidPeerResponse, InvalidQuery, InvalidUpload
from fss_ecdf.campaign.json_messages import EcdfResponse, ShareQuery, read
from tests.campaign.helpers import campaign

CAMPAIGN, CHECKED = campaign(), campaign(check_keys=True)
RNG = np.random.default_rng(1)


def _random(count: int) -> list[Any]:
    """Ids, and hashes of nothing."""
    return [RNG.integers(0, 256, (count, size), dtype=np.uint8) for size in (16, 32)]


def uploads(count: int = 3, party: int = 0) -> Uploads:
    keys = dcf.gen(np.arange(count), bits=CAMPAIGN.bits, binder=CAMPAIGN.id, rand=RNG.bytes(32 * count))[party]
    ids, others = _random(count)
    return Uploads(ids, keys, others)


ENVELOPE = encode_uploads(CAMPAIGN, uploads())
ENTRY = 16 + 32 + CAMPAIGN.key_type(0).key_bytes


def test_an_envelope_round_trips() -> None:
    sent = uploads(5, party=1)
    data = encode_uploads(CAMPAIGN, sent)
    assert len(data) == upload_bytes(CAMPAIGN, 5) == 64 + 5 * ENTRY
    got = decode_uploads(data, CAMPAIGN, 1)
    assert np.array_equal(got.ids, sent.ids)
    assert np.array_equal(got.keys.words, sent.keys.words)
    assert encode_uploads(CAMPAIGN, got) == data
    assert repr(got) == f"<Uploads 5 of {ENTRY - 48} bytes for wave 0>"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "header of 64 bytes, got 0"),
        (b"X" + ENVELOPE[1:], "not an upload of version 4"),
        (ENVELOPE[:4] + b"\2" + ENVELOPE[5:], "not an upload of version 4"),
        (ENVELOPE[:6] + b"\1" + ENVELOPE[7:], "takes keys only"),
        (ENVELOPE[:6] + b"\2" + ENVELOPE[7:], "or a table, of kind 1; this one is of kind 2"),
        (ENVELOPE[:60] + b"\1" + ENVELOPE[61:], "proofs of this campaign have 0 bytes, the upload says 1"),
        (ENVELOPE[:5] + b"\1" + ENVELOPE[6:], "for server 1, but was sent to server 0"),
        (ENVELOPE[:-1], "3 uploads make"),
        (ENVELOPE + b"\0", "3 uploads make"),
        (ENVELOPE[:40] + b"\1" + ENVELOPE[41:], "this campaign has no wave 1"),
        (ENVELOPE[:44] + struct.pack("<IQ", 0, 0) + ENVELOPE[56:64], "0 keys of 0 people"),
        (ENVELOPE[:48] + struct.pack("<Q", 4) + ENVELOPE[56:], "3 keys of 4 people"),
        (ENVELOPE[:56] + struct.pack("<I", 7) + ENVELOPE[60:], "the upload says 7"),
        (ENVELOPE[:64] + ENVELOPE[64 : 64 + ENTRY] * 3, "the same id"),
        (ENVELOPE[:112] + b"\xff" * 8 + ENVELOPE[120:], "key version 255 is not known"),
        (ENVELOPE[:112] + b"\1" + ENVELOPE[113:], "key version 1 is not known"),
        (ENVELOPE[:127] + b"\xff" + ENVELOPE[128:], "key 0, word 0: expected a top bit equal to server 0"),
        (ENVELOPE[:-8] + b"\xff" * 8, "key 2, word .*: expected an element of Z_p"),
    ],
)
def test_bad_envelopes(data: bytes, message: str) -> None:
    for decode in (decode_uploads, upload_rows):
        with pytest.raises(InvalidUpload, match=message):
            decode(data, CAMPAIGN, 0)


def proved_uploads(count: int = 3, party: int = 0) -> Uploads:
    rand = RNG.bytes(dcf.PROVED_RAND_BYTES * count)
    keys, proofs = dcf.gen_proved(np.arange(count), bits=CHECKED.bits, binder=CHECKED.id, rand=rand)
    ids, others = _random(count)
    return Uploads(ids, keys[party], others, proofs[party])


PROVED = encode_uploads(CHECKED, proved_uploads())
PROOF = proof_bytes(CHECKED.key_type(0))


def _for(campaign: Campaign, envelope: bytes) -> bytes:
    """The same envelope with another campaign's digest."""
    return envelope[:8] + campaign.digest + envelope[40:]


def test_an_envelope_with_proofs_is_laid_out_as_documented_and_round_trips() -> None:
    sent = proved_uploads(5, party=1)
    assert sent.proofs is not None
    data = encode_uploads(CHECKED, sent)
    assert len(data) == upload_bytes(CHECKED, 5) == 64 + 5 * (ENTRY + PROOF)
    body = b"FSSU" + bytes([4, 1, 0, 0]) + CHECKED.digest + struct.pack("<IIQII", 0, 5, 5, ENTRY - 48, PROOF)
    for i in range(5):
        body += sent.ids[i].tobytes() + sent.others[i].tobytes()
        body += sent.keys[i : i + 1].to_bytes() + sent.proofs[i : i + 1].to_bytes()
    assert data == body
    got = decode_uploads(data, CHECKED, 1)
    assert got.proofs is not None
    assert np.array_equal(got.proofs.words, sent.proofs.words)
    assert np.array_equal(got.keys.words, sent.keys.words)
    assert encode_uploads(CHECKED, got) == data


@pytest.mark.parametrize(
    ("data", "proved", "message"),
    [
        (_for(CHECKED, ENVELOPE), True, f"proofs of this campaign have {PROOF} bytes, the upload says 0"),
        (_for(CAMPAIGN, PROVED), False, f"proofs of this campaign have 0 bytes, the upload says {PROOF}"),
        (PROVED[:-1], True, "3 uploads make"),
        (PROVED + b"\0", True, "3 uploads make"),
        (PROVED[:60] + struct.pack("<I", PROOF - 8) + PROVED[64:], True, f"the upload says {PROOF - 8}"),
        (PROVED[:-8] + b"\xff" * 8, True, "proof 2, word 21: expected an element of Z_p"),
        (PROVED[: 64 + ENTRY - 8] + b"\xff" * 8 + PROVED[64 + ENTRY :], True, "key 0, word .*: expected an element"),
    ],
)
def test_bad_envelopes_with_proofs(data: bytes, proved: bool, message: str) -> None:
    for decode in (decode_uploads, upload_rows):
        with pytest.raises(InvalidUpload, match=message):
            decode(data, CHECKED if proved else CAMPAIGN, 0)


def test_an_envelope_of_another_campaign_names_both_digests() -> None:
    other = campaign(title="Other")
    with pytest.raises(DigestMismatch, match=to_base64url(CAMPAIGN.digest)):
        decode_uploads(ENVELOPE, other, 0)


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from([ENVELOPE, PROVED])))
    for _ in range(draw(st.integers(0, 5))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@given(mutations(), st.booleans())
@example(ENVELOPE, False)
@example(PROVED, True)
def test_any_bytes_decode_to_themselves_or_are_a_problem(data: bytes, proved: bool) -> None:
    of = CHECKED if proved else CAMPAIGN
    try:
        got = decode_uploads(data, of, 0)
    except (InvalidUpload, DigestMismatch) as problem:
        with pytest.raises(type(problem), match=re.escape(str(problem))):  # a server stores none of it
            upload_rows(data, of, 0)
        return
    assert encode_uploads(of, got) == data
    _, rows = upload_rows(data, of, 0)
    assert [upload_id for upload_id, _, _ in rows] == [row.tobytes() for row in got.ids]
    stored = np.concatenate([stored_bytes(got.keys, got.proofs), got.others], axis=1)
    assert [opening for _, _, opening in rows] == [row.tobytes() for row in stored]


def test_shares_round_trip() -> None:
    sent = ShareMessage(1, b"s" * 32, 12345, RNG.integers(0, 2**61 - 1, 9, dtype=np.uint64))
    data = encode_shares(CAMPAIGN, sent)
    got = decode_shares(data, CAMPAIGN, 1, 9)
    assert (got.server, got.key_set, got.uploads) == (1, b"s" * 32, 12345)
    assert np.array_equal(got.elements, sent.elements)
    assert encode_shares(CAMPAIGN, got) == data
    for party, count, bad in ((0, 9, data), (1, 8, data), (1, 9, data[:-8] + b"\xff" * 8), (1, 9, b"x" + data[1:])):
        with pytest.raises(InvalidPeerResponse):
            decode_shares(bad, CAMPAIGN, party, count)
    with pytest.raises(DigestMismatch):
        decode_shares(data, campaign(title="Other"), 1, 9)


def test_json_messages_are_strict() -> None:
    digest = to_base64url(CAMPAIGN.digest)
    query = read(ShareQuery, {"digest": digest, "positions": [1, 2]})
    assert read(ShareQuery, query.to_json()) == query
    for bad in (
        {"digest": digest},
        {"digest": digest, "positions": ["1"]},
        {"digest": digest, "positions": "some"},
        {"digest": "short", "positions": [1]},
        {"digest": digest, "positions": [1], "more": 1},
    ):
        with pytest.raises(InvalidQuery, match="not a ShareQuery"):
            read(ShareQuery, bad)
    for text in (
        b"\xff{",
        "[" * 100_000,
        f'{{"digest": "{digest}", "positions": [1], "positions": "all"}}',
        f'{{"digest": "{digest}", "positions": [-5]}}',
        f'{{"digest": "{digest}", "positions": [{10**400}]}}',
    ):
        with pytest.raises(InvalidQuery, match="not a ShareQuery"):
            read(ShareQuery, text)


def test_answers_carry_signed_counts() -> None:
    answer = EcdfResponse(
        digest=CAMPAIGN.digest,
        n=10,
        epsilon=1.0,
        mechanism="slice-tree",
        check_keys=True,
        stratum="all",
        thresholds=[0.5, 1.0],
        counts=[-3, 12],
        standard_errors=[2.5, 0.0],
    )
    assert read(EcdfResponse, answer.to_json()) == answer
    with pytest.raises(InvalidQuery, match="same length"):
        read(EcdfResponse, {**answer.model_dump(mode="json"), "counts": [1]})
    with pytest.raises(InvalidQuery, match="finite"):
        read(EcdfResponse, answer.to_json().replace("2.5", "1e999"))
