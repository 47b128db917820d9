"""An upload as it travels: the header of its envelope in plain view, and its rows encrypted to one server.

    header (fss_ecdf/campaign/binary_messages.py), then for every part: encapsulated key, ciphertext, tag

The first part is the first row alone, or of a table what stands before its share, so that a server knows a retry before
it reads the rest. What follows is cut into parts of PART_BYTES bytes, the last one being what is left; so a table is
decrypted as it comes (`SealedParts`).

Each part is an HPKE message of its own (`fss_ecdf/campaign/hpke.py`). Its `info` covers the media type, the header
(campaign's digest, server, kind, wave, numbers and lengths), the hash of the token that it is sent with, the part's
number, whether it is the last, and the encapsulated key of the first part. So a part opens only at the server, in the
campaign and in the wave that it was made for, with that token, in its place, and together with the parts that it was
made with.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator

from fss_ecdf.campaign.binary_messages import (
    TABLES,
    UPLOAD_HEADER_BYTES,
    UPLOAD_ID_BYTES,
    UPLOAD_TYPE,
    row_bytes,
    upload_header,
)
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import HASH_BYTES
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidUpload, UnreadableUpload
from fss_ecdf.campaign.hpke import ENCAPSULATED_BYTES, overhead, seal

PART_BYTES = 1 << 20
BEFORE_SHARE = UPLOAD_ID_BYTES + HASH_BYTES  # of a table
_KIND = 6  # where a header says its kind

_CONTEXT = b"fss-ecdf sealed upload 2\n" + UPLOAD_TYPE.encode() + b"\n"
_PART = struct.Struct("<I?")

Opener = Callable[[bytes, memoryview], bytes]  # of `info` and a sealed part


def token_digest(token: str) -> bytes:
    """What `info` has of the token: by it a server knows the token, too."""
    return hashlib.sha256(token.encode()).digest()


def part_info(header: bytes, token: bytes, number: int, last: bool, first: bytes = b"") -> bytes:
    """What the two sides must agree on for a part to be opened; `first` is nothing for the first part itself."""
    return _CONTEXT + header + token + _PART.pack(number, last) + first


def seal_upload(campaign: Campaign, server: int, envelope: bytes, token: str) -> bytes:
    """What travels of an envelope for one server, with this token. Each time other bytes: encryption is randomised."""
    if campaign.server_commitments is None:
        raise InvalidCampaign("the campaign has no commitments of the servers, so nothing can be encrypted to them")
    header, key = envelope[:UPLOAD_HEADER_BYTES], campaign.server_commitments[server].hpke_key
    alone = BEFORE_SHARE if header[_KIND : _KIND + 1] == bytes([TABLES]) else row_bytes(campaign)
    parts, first, sender = [header], b"", token_digest(token)
    for number, start, stop in _parts(len(envelope) - UPLOAD_HEADER_BYTES, alone):
        info = part_info(header, sender, number, stop >= len(envelope), first)
        parts.append(seal(campaign.kem, key, info, envelope[start:stop]))
        first = parts[1][: ENCAPSULATED_BYTES[campaign.kem]]
    return b"".join(parts)


def _parts(rows: int, row: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each part in an envelope with so many bytes of rows, of so many bytes each."""
    for number, start in enumerate([0, *range(row, rows, PART_BYTES)]):
        stop = start + PART_BYTES if number else row
        yield number, UPLOAD_HEADER_BYTES + start, UPLOAD_HEADER_BYTES + min(stop, rows)


def sealed_bytes(campaign: Campaign, count: int) -> int:
    """How many bytes travel to one server for so many keys."""
    row = row_bytes(campaign)
    return _sealed_bytes(campaign, count * row, row)


def sealed_table_bytes(campaign: Campaign, share_bytes: int) -> int:
    """How many bytes travel to one server for a table whose share has so many."""
    return _sealed_bytes(campaign, BEFORE_SHARE + share_bytes, BEFORE_SHARE)


def _sealed_bytes(campaign: Campaign, rows: int, first: int) -> int:
    parts = 1 + -(-(rows - first) // PART_BYTES)
    return UPLOAD_HEADER_BYTES + rows + parts * overhead(campaign.kem)


def open_first(start: bytes, count: int, token: bytes, open_part: Opener) -> bytes:
    """The id of the first of `count` uploads, of the first `sealed_bytes(campaign, 1)` bytes that travelled."""
    header = start[:UPLOAD_HEADER_BYTES]
    row = _opened(open_part, part_info(header, token, 0, count == 1), memoryview(start)[UPLOAD_HEADER_BYTES:], 0)
    return row[:UPLOAD_ID_BYTES]


class SealedParts:
    """The parts of a table on its way, opened one after the other as they come."""

    def __init__(self, header: bytes, campaign: Campaign, server: int, token: bytes, open_part: Opener) -> None:
        self._header, self._token, self._open = header, token, open_part
        about = upload_header(header, campaign, server)
        self._rows, more = about.row_bytes, overhead(campaign.kem)
        self._ends = [stop for _, _, stop in _parts(self._rows, about.first_bytes)]
        self.sizes = [stop - start + more for _, start, stop in _parts(self._rows, about.first_bytes)]
        self._key, self._first, self._number = ENCAPSULATED_BYTES[campaign.kem], b"", 0

    def open(self, sealed: bytes) -> bytes:
        """What is in the next part."""
        number, self._number = self._number, self._number + 1
        last = self._ends[number] == UPLOAD_HEADER_BYTES + self._rows
        info = part_info(self._header, self._token, number, last, self._first)
        self._first = self._first or sealed[: self._key]
        return _opened(self._open, info, memoryview(sealed), number)


def open_upload(data: bytes, campaign: Campaign, server: int, token: bytes, open_part: Opener) -> bytes:
    """The envelope of what travelled, or a problem. What its header says is checked before anything is decrypted."""
    about = upload_header(data, campaign, server)
    if about.contribution.is_table:
        raise InvalidUpload("this upload is a table, and keys were expected")
    count = about.count
    wanted = sealed_bytes(campaign, count)
    if len(data) != wanted:
        raise InvalidUpload(f"{count} uploads make {wanted} encrypted bytes, got {len(data)}")
    header, view, more = data[:UPLOAD_HEADER_BYTES], memoryview(data), overhead(campaign.kem)
    parts, rows, first = [header], count * row_bytes(campaign), b""
    for number, start, stop in _parts(rows, row_bytes(campaign)):
        sealed = view[start + number * more : stop + (number + 1) * more]
        info = part_info(header, token, number, stop == len(header) + rows, first)
        first = first or bytes(sealed[: ENCAPSULATED_BYTES[campaign.kem]])
        parts.append(_opened(open_part, info, sealed, number))
    return b"".join(parts)


def _opened(open_part: Opener, info: bytes, sealed: memoryview, number: int) -> bytes:
    try:
        return open_part(info, sealed)
    except ValueError:
        raise UnreadableUpload(
            f"part {number + 1} of the upload cannot be decrypted: it was not made for this server, campaign, wave, "
            "token and place, or it was changed on the way"
        ) from None
