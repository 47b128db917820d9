"""The binary messages: keys for a server, and shares between servers. They are read strictly.

What is accepted has exactly one form: the right length, nothing left over, canonical numbers; what was decoded encodes
to the same bytes.

    upload   "FSSU" version party proof_bytes(2) digest(32) count(4) key_bytes(4), then count x (id(16) key proof)
    shares   "FSSS" version party 0(2) digest(32) set(32) uploads(8) count(8), then count x element(8)

Numbers are little-endian. `proof_bytes` is 0, or the size of the proof (`fss/proof.py`) that each key has beside it.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from campaign.errors import InvalidUpload, PeerMismatch
from campaign.spec import Campaign, check_digest
from fss import FssError, KeyBatch, KeyType, field
from fss.field import Words
from fss.proof import Proofs, proof_bytes

UPLOAD_TYPE = "application/vnd.fss-ecdf.upload"
SHARES_TYPE = "application/vnd.fss-ecdf.shares"

UPLOAD_VERSION = 2
VERSION = 1
UPLOAD_ID_BYTES = 16

_UPLOAD = struct.Struct("<4sBBH32sII")
_SHARES = struct.Struct("<4sBBH32s32sQQ")

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Uploads:
    """Keys for one server with the ids their owners chose, and proofs, if any; row i of `ids` belongs to key i."""

    ids: Bytes
    keys: KeyBatch
    proofs: Proofs | None = None

    def __repr__(self) -> str:
        return f"<Uploads {len(self.keys)} of {self.keys.type.key_bytes} bytes>"


def encode_uploads(campaign: Campaign, uploads: Uploads) -> bytes:
    type, count = uploads.keys.type, len(uploads.keys)
    size = 0 if uploads.proofs is None else proof_bytes(type)
    header = _UPLOAD.pack(b"FSSU", UPLOAD_VERSION, type.party, size, campaign.digest, count, type.key_bytes)
    columns = [uploads.ids, np.frombuffer(uploads.keys.to_bytes(), np.uint8).reshape(count, type.key_bytes)]
    if uploads.proofs is not None:
        columns.append(np.frombuffer(uploads.proofs.to_bytes(), np.uint8).reshape(count, size))
    return header + np.concatenate(columns, axis=1).tobytes()


def upload_bytes(campaign: Campaign, count: int) -> int:
    """How long an envelope with so many uploads is."""
    type = campaign.key_type(0)
    return _UPLOAD.size + count * (UPLOAD_ID_BYTES + type.key_bytes + campaign.checked * proof_bytes(type))


def _count(data: bytes, campaign: Campaign, party: int) -> int:
    """How many uploads an envelope for one server has, or an error where its header is wrong."""
    if len(data) < _UPLOAD.size:
        raise InvalidUpload(f"an upload starts with a header of {_UPLOAD.size} bytes, got {len(data)} bytes")
    magic, version, given_party, given_proof, digest, count, key_bytes = _UPLOAD.unpack_from(data)
    expected = campaign.key_type(party)
    if magic != b"FSSU" or version != UPLOAD_VERSION:
        raise InvalidUpload(f"this is not an upload of version {UPLOAD_VERSION}")
    check_digest(campaign.digest, digest)
    if given_party != party:
        raise InvalidUpload(f"this upload is for server {given_party}, but was sent to server {party}")
    if key_bytes != expected.key_bytes:
        raise InvalidUpload(f"keys of this campaign have {expected.key_bytes} bytes, the upload says {key_bytes}")
    proof_size = proof_bytes(expected) if campaign.checked else 0
    if given_proof != proof_size:
        raise InvalidUpload(f"proofs of this campaign have {proof_size} bytes, the upload says {given_proof}")
    wanted = upload_bytes(campaign, count)
    if not count or len(data) != wanted:
        raise InvalidUpload(f"{count} uploads make {wanted} bytes, got {len(data)}")
    return int(count)


def decode_uploads(data: bytes, campaign: Campaign, party: int) -> Uploads:
    """Read an envelope for one server, or raise. Whether keys have proofs is the campaign's choice, not the party's."""
    count, expected = _count(data, campaign, party), campaign.key_type(party)
    rows = np.frombuffer(data, np.uint8, offset=_UPLOAD.size).reshape(count, -1)
    ids = np.ascontiguousarray(rows[:, :UPLOAD_ID_BYTES])
    if count > 1 and len(np.unique(ids.view(f"V{UPLOAD_ID_BYTES}"))) != count:
        raise InvalidUpload("two uploads in one envelope have the same id")
    end = UPLOAD_ID_BYTES + expected.key_bytes
    try:
        keys = KeyBatch.from_bytes(rows[:, UPLOAD_ID_BYTES:end].tobytes(), campaign.id, expected=expected)
        proofs = Proofs.from_bytes(rows[:, end:].tobytes(), expected) if campaign.checked else None
    except FssError as error:
        raise InvalidUpload(str(error)) from None
    return Uploads(ids, keys, proofs)


def upload_rows(data: bytes, campaign: Campaign, party: int) -> list[tuple[bytes, bytes]]:
    """Each id of an envelope with the bytes of its key, and of its proof if there is one, as a server stores them."""
    count = _count(data, campaign, party)
    size = (len(data) - _UPLOAD.size) // count
    starts = range(_UPLOAD.size, len(data), size)
    rows = [(data[i : i + UPLOAD_ID_BYTES], data[i + UPLOAD_ID_BYTES : i + size]) for i in starts]
    if len({upload_id for upload_id, _ in rows}) < count or not _are_canonical(data, campaign.key_type(party), count):
        decode_uploads(data, campaign, party)  # says what is wrong
    return rows


def _are_canonical(data: bytes, type: KeyType, count: int) -> bool:
    """Whether keys and proofs have their one legal form: the same as decoding them, without making anything of them."""
    words = np.frombuffer(data, np.uint64, offset=_UPLOAD.size).reshape(count, -1)[:, UPLOAD_ID_BYTES // 8 :]
    least, most = type.on_the_wire
    keys, proofs = words[:, : most.size], words[:, most.size :]
    return bool((keys >= least).all() and (keys <= most).all() and (proofs < field.MASK).all())


@dataclass(frozen=True)
class Shares:
    """One server's noised shares, and the set of uploads (checksum and number) they were computed from."""

    party: int
    key_set: bytes
    uploads: int
    elements: Words

    def __repr__(self) -> str:
        return f"<Shares of server {self.party}: {self.elements.size} of {self.uploads} uploads>"


def encode_shares(campaign: Campaign, shares: Shares) -> bytes:
    header = _SHARES.pack(
        b"FSSS", VERSION, shares.party, 0, campaign.digest, shares.key_set, shares.uploads, shares.elements.size
    )
    return header + shares.elements.tobytes()


def decode_shares(data: bytes, campaign: Campaign, party: int, count: int) -> Shares:
    """Read the other server's answer to a question for `count` shares, or raise."""
    if len(data) != _SHARES.size + 8 * count:
        raise PeerMismatch(f"{count} shares make {_SHARES.size + 8 * count} bytes, got {len(data)}")
    magic, version, given_party, zero, digest, key_set, uploads, given = _SHARES.unpack_from(data)
    if (magic, version, zero, given_party, given) != (b"FSSS", VERSION, 0, party, count):
        raise PeerMismatch(f"this is not an answer of version {VERSION} from server {party} with {count} shares")
    check_digest(campaign.digest, digest)
    elements = np.frombuffer(data, np.uint64, offset=_SHARES.size).copy()
    if not field.is_canonical(elements):
        raise PeerMismatch("a share is not an element of the field")
    return Shares(party, key_set, uploads, elements)
