"""The binary messages: keys for a server, and shares between servers. They are read strictly.

What is accepted has exactly one form: the right length, nothing left over, canonical numbers; what was decoded encodes
to the same bytes.

    upload   "FSSU" version server kind 0 digest(32) wave(4) count(4) people(8) key_bytes(4) proof_bytes(4),
             then count x (id(16) other(32) key proof), or of a table id(16) other(32) share
    shares   "FSSS" version server 0(2) digest(32) set(32) uploads(8) count(8), then count x element(8)

Numbers are little-endian. `kind` is 0: keys, of one person each; or 1: a table of the counts of `people` people, whose
`count` is 1 and whose `key_bytes` are those of its share, a seed or words (`fss/table.py`). `proof_bytes` is 0, or the
size of the proof (`fss/proof.py`) that each key has beside it. `other` is the SHA-256 of what the other server gets in
place of key and proof, or of the share: by it both servers compute the same leaf for an upload, and only if both were
given what belongs together. An upload is for one wave, which its leaf covers, too, with its kind and its people.
"""

import hashlib
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss import FssError, KeyBatch, KeyType, field
from fss.field import Words
from fss.proof import Proofs, proof_bytes
from fss.table_shape import SEED_BYTES
from fss.table_words import seed_server
from fss_ecdf.campaign.campaign import Campaign, check_digest
from fss_ecdf.campaign.contribution import HASH_BYTES, ONE_KEY, TABLE, Contribution
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidUpload
from fss_ecdf.campaign.tables import table_shape

UPLOAD_TYPE = "application/vnd.fss-ecdf.upload"
SHARES_TYPE = "application/vnd.fss-ecdf.shares"

UPLOAD_VERSION = 4
VERSION = 1
UPLOAD_ID_BYTES = 16
KEYS, TABLES = 0, 1  # the kind of an envelope
KINDS = {"dcf": KEYS, "dpf": KEYS, TABLE: TABLES}  # by the scheme of its uploads

_UPLOAD = struct.Struct("<4sBBBB32sIIQII")
UPLOAD_HEADER_BYTES = _UPLOAD.size
_SHARES = struct.Struct("<4sBBH32s32sQQ")

Bytes = NDArray[np.uint8]


# An upload's id, its leaf, and what opens that: the bytes of its key and proof, then the hash of the other server's. Of
# a table, that hash alone: its share is kept apart.
Row = tuple[bytes, bytes, bytes]


def is_table(row: Row) -> bool:
    """Whether a stored upload is a table."""
    return len(row[2]) == HASH_BYTES


@dataclass(frozen=True)
class Uploads:
    """Keys for one server with the ids their owners chose, and proofs, if any; row i of `ids` belongs to key i.

    `others` has the hash of what the other server gets of each.
    """

    ids: Bytes
    keys: KeyBatch
    others: Bytes
    proofs: Proofs | None = None
    contribution: Contribution = ONE_KEY

    def __repr__(self) -> str:
        return f"<Uploads {len(self.keys)} of {self.keys.type.key_bytes} bytes for wave {self.contribution.wave}>"


def stored_bytes(keys: KeyBatch, proofs: Proofs | None) -> Bytes:
    """A row for each key: its bytes, and its proof's behind them, as a server stores them."""
    count, type = len(keys), keys.type
    columns = [np.frombuffer(keys.to_bytes(), np.uint8).reshape(count, type.key_bytes)]
    if proofs is not None:
        columns.append(np.frombuffer(proofs.to_bytes(), np.uint8).reshape(count, proof_bytes(type)))
    return np.concatenate(columns, axis=1)


def hash_rows(rows: Bytes) -> Bytes:
    """The SHA-256 of each row."""
    hashed = b"".join(hashlib.sha256(row).digest() for row in np.ascontiguousarray(rows))
    return np.frombuffer(hashed, np.uint8).reshape(len(rows), HASH_BYTES)


def encode_uploads(campaign: Campaign, uploads: Uploads) -> bytes:
    stored, type = stored_bytes(uploads.keys, uploads.proofs), uploads.keys.type
    return encode_rows(campaign, type, uploads.contribution, uploads.ids, uploads.others, stored)


def encode_rows(
    campaign: Campaign, type: KeyType, contribution: Contribution, ids: Bytes, others: Bytes, stored: Bytes
) -> bytes:
    """An envelope of what a server stores (`stored_bytes`), for who has made that already."""
    count, sizes = len(stored), (type.key_bytes, stored.shape[1] - type.key_bytes)
    kind, people = KINDS[contribution.scheme], contribution.people * count
    header = UPLOAD_VERSION, type.server, kind, 0, campaign.digest, contribution.wave, count, people
    return _UPLOAD.pack(b"FSSU", *header, *sizes) + np.concatenate([ids, others, stored], axis=1).tobytes()


def row_bytes(campaign: Campaign) -> int:
    """How long one upload in an envelope is."""
    type = campaign.key_type(0)
    return UPLOAD_ID_BYTES + HASH_BYTES + type.key_bytes + campaign.check_keys * proof_bytes(type)


def upload_bytes(campaign: Campaign, count: int) -> int:
    """How long an envelope with so many uploads is."""
    return _UPLOAD.size + count * row_bytes(campaign)


@dataclass(frozen=True)
class UploadHeader:
    """What an envelope says before its rows: what each of them brings, how many there are, and how long each is."""

    contribution: Contribution
    count: int
    row_bytes: int

    @property
    def people(self) -> int:
        return self.count * self.contribution.people

    @property
    def first_bytes(self) -> int:
        """What is encrypted apart from the rest: the first row, or of a table what stands before its share."""
        return UPLOAD_ID_BYTES + HASH_BYTES if self.contribution.is_table else self.row_bytes

    @property
    def share_bytes(self) -> int:
        """Of a table: the bytes of its share."""
        return self.row_bytes - UPLOAD_ID_BYTES - HASH_BYTES


def encode_table(campaign: Campaign, server: int, wave: int, people: int, upload_id: bytes, other: bytes) -> bytes:
    """An envelope for one server of a table, up to its share."""
    shape = table_shape(campaign, people)
    share_bytes = SEED_BYTES if seed_server(upload_id) == server else shape.bytes
    return table_header(campaign, server, wave, people, share_bytes) + upload_id + other


def table_header(campaign: Campaign, server: int, wave: int, people: int, share_bytes: int) -> bytes:
    about = UPLOAD_VERSION, server, TABLES, 0, campaign.digest, wave, 1, people
    return _UPLOAD.pack(b"FSSU", *about, share_bytes, 0)


def upload_header(data: bytes, campaign: Campaign, server: int) -> UploadHeader:
    """The header of an envelope for one server, or an error where it is wrong. What follows it is not looked at."""
    if len(data) < _UPLOAD.size:
        raise InvalidUpload(f"an upload starts with a header of {_UPLOAD.size} bytes, got {len(data)} bytes")
    magic, version, given_server, kind, zero, digest, wave, count, people, *sizes = _UPLOAD.unpack_from(data)
    if magic != b"FSSU" or version != UPLOAD_VERSION:
        raise InvalidUpload(f"this is not an upload of version {UPLOAD_VERSION}")
    check_digest(campaign.digest, digest)
    if given_server != server:
        raise InvalidUpload(f"this upload is for server {given_server}, but was sent to server {server}")
    if kind not in KINDS.values() or zero:
        raise InvalidUpload(
            f"uploads are keys, of kind {KEYS}, or a table, of kind {TABLES}; this one is of kind {kind}"
        )
    (_check_keys_header if kind == KEYS else _check_table_header)(campaign, count, people, sizes)
    if wave > campaign.last_wave or (campaign.waves is not None and not wave):
        raise InvalidUpload(f"this campaign has no wave {wave}")
    contribution = (
        Contribution(campaign.variable.scheme, wave=wave) if kind == KEYS else Contribution(TABLE, people, wave)
    )
    return UploadHeader(contribution, count, UPLOAD_ID_BYTES + HASH_BYTES + sum(sizes))


def _check_keys_header(campaign: Campaign, count: int, people: int, sizes: list[int]) -> None:
    expected = campaign.key_type(0)
    if sizes[0] != expected.key_bytes:
        raise InvalidUpload(f"keys of this campaign have {expected.key_bytes} bytes, the upload says {sizes[0]}")
    proof_size = proof_bytes(expected) if campaign.check_keys else 0
    if sizes[1] != proof_size:
        raise InvalidUpload(f"proofs of this campaign have {proof_size} bytes, the upload says {sizes[1]}")
    if not count or people != ONE_KEY.people * count:
        raise InvalidUpload(f"each key is of one person; the upload says {count} keys of {people} people")


def _check_table_header(campaign: Campaign, count: int, people: int, sizes: list[int]) -> None:
    words = table_shape(campaign, people).bytes
    if count != 1 or sizes[1]:
        raise InvalidUpload("a table comes alone, and its proof is among its words")
    if sizes[0] not in (SEED_BYTES, words):
        raise InvalidUpload(
            f"the share of a table of {people} people has {SEED_BYTES} or {words} bytes, the upload says {sizes[0]}"
        )


def _whole(data: bytes, campaign: Campaign, server: int) -> UploadHeader:
    """The header of an envelope that has the length it says."""
    header = upload_header(data, campaign, server)
    if header.contribution.is_table:
        raise InvalidUpload("this upload is a table, and keys were expected")
    wanted = upload_bytes(campaign, header.count)
    if len(data) != wanted:
        raise InvalidUpload(f"{header.count} uploads make {wanted} bytes, got {len(data)}")
    return header


def decode_uploads(data: bytes, campaign: Campaign, server: int) -> Uploads:
    """Read an envelope for one server, or raise. Whether keys have proofs is the campaign's choice, not the party's."""
    header, expected = _whole(data, campaign, server), campaign.key_type(server)
    rows = np.frombuffer(data, np.uint8, offset=_UPLOAD.size).reshape(header.count, -1)
    start = UPLOAD_ID_BYTES + HASH_BYTES
    columns = rows[:, :UPLOAD_ID_BYTES], rows[:, UPLOAD_ID_BYTES:start]
    ids, others = map(np.ascontiguousarray, columns)
    if header.count > 1 and len(np.unique(ids.view(f"V{UPLOAD_ID_BYTES}"))) != header.count:
        raise InvalidUpload("two uploads in one envelope have the same id")
    end = start + expected.key_bytes
    try:
        keys = KeyBatch.from_bytes(rows[:, start:end].tobytes(), campaign.id, expected=expected)
        proofs = Proofs.from_bytes(rows[:, end:].tobytes(), expected) if campaign.check_keys else None
    except FssError as error:
        raise InvalidUpload(str(error)) from None
    return Uploads(ids, keys, others, proofs, header.contribution)


def upload_rows(data: bytes, campaign: Campaign, server: int) -> tuple[Contribution, list[Row]]:
    """What each upload of an envelope brings, and each as a server stores it: id, leaf, and what opens the leaf."""
    header = _whole(data, campaign, server)
    size, rows, sha256 = row_bytes(campaign), list[Row](), hashlib.sha256
    before, behind = header.contribution.leaf_parts
    for start in range(_UPLOAD.size, len(data), size):  # a million times: `Contribution.opened_leaf`, without its calls
        upload_id = data[start : (other := start + UPLOAD_ID_BYTES)]
        theirs, key = data[other : (at := other + HASH_BYTES)], data[at : start + size]
        ours = sha256(key).digest()
        hashes = ours + theirs if server == 0 else theirs + ours
        rows.append((upload_id, sha256(before + upload_id + behind + hashes).digest(), key + theirs))
    repeated = len({upload_id for upload_id, _, _ in rows}) < len(rows)
    if repeated or not _are_canonical(data, campaign.key_type(server), len(rows)):
        decode_uploads(data, campaign, server)  # says what is wrong
    return header.contribution, rows


def _are_canonical(data: bytes, type: KeyType, count: int) -> bool:
    """Whether keys and proofs have their one legal form: the same as decoding them, without making anything of them."""
    start = (UPLOAD_ID_BYTES + HASH_BYTES) // 8
    words = np.frombuffer(data, np.uint64, offset=_UPLOAD.size).reshape(count, -1)[:, start:]
    least, most = type.on_the_wire
    keys, proofs = words[:, : most.size], words[:, most.size :]
    return bool((keys >= least).all() and (keys <= most).all() and (proofs < field.MASK).all())


@dataclass(frozen=True)
class ShareMessage:
    """One server's noised shares, and the set of uploads (checksum and number) they were computed from."""

    server: int
    key_set: bytes
    uploads: int
    elements: Words

    def __repr__(self) -> str:
        return f"<Shares of server {self.server}: {self.elements.size} of {self.uploads} uploads>"


def encode_shares(campaign: Campaign, shares: ShareMessage) -> bytes:
    header = _SHARES.pack(
        b"FSSS", VERSION, shares.server, 0, campaign.digest, shares.key_set, shares.uploads, shares.elements.size
    )
    return header + shares.elements.tobytes()


def decode_shares(data: bytes, campaign: Campaign, server: int, count: int) -> ShareMessage:
    """Read the other server's answer to a question for `count` shares, or raise."""
    if len(data) != _SHARES.size + 8 * count:
        raise InvalidPeerResponse(f"{count} shares make {_SHARES.size + 8 * count} bytes, got {len(data)}")
    magic, version, given_server, zero, digest, key_set, uploads, given = _SHARES.unpack_from(data)
    if (magic, version, zero, given_server, given) != (b"FSSS", VERSION, 0, server, count):
        raise InvalidPeerResponse(
            f"this is not an answer of version {VERSION} from server {server} with {count} shares"
        )
    check_digest(campaign.digest, digest)
    elements = np.frombuffer(data, np.uint64, offset=_SHARES.size).copy()
    if not field.is_canonical(elements):
        raise InvalidPeerResponse("a share is not an element of the field")
    return ShareMessage(server, key_set, uploads, elements)
