"""Uploads as a server stores them: any bytes under any id, with a leaf that tells them apart."""

import hashlib
from collections.abc import Iterable

from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES, Row, upload_bytes
from fss_ecdf.campaign.campaign import Campaign
from servers.storage.entries import set_checksum


def row(upload_id: bytes, key: bytes = b"key") -> Row:
    return upload_id, hashlib.sha256(key).digest(), key


def entry(upload_id: bytes, key: bytes = b"key") -> bytes:
    return b"".join(row(upload_id, key)[:2])


def checksum_of(ids: Iterable[bytes], key: bytes = b"key") -> bytes:
    """Of uploads that all have the same bytes."""
    return set_checksum(b"".join(entry(upload_id, key) for upload_id in ids))


def with_id(envelope: bytes, other: bytes) -> bytes:
    """An envelope whose first upload has the id of another envelope's first."""
    start, end = UPLOAD_HEADER_BYTES, UPLOAD_HEADER_BYTES + UPLOAD_ID_BYTES
    return envelope[:start] + other[start:end] + envelope[end:]


def first_only(envelope: bytes, campaign: Campaign) -> bytes:
    """An envelope's first upload in an envelope of its own."""
    one = (1).to_bytes(4, "little")
    return envelope[:44] + one + one + envelope[52 : upload_bytes(campaign, 1)]
