"""The pointwise protocol: for every question every party sends a fresh share of 1[x <= t] to each of two servers.

    share   position(4) party(16) element(8)      little-endian; the answer is empty

It is made as lean as it can be, so that a comparison with it errs in its favour: the message carries no digest of the
campaign, and a party learns each question for nothing.
"""

import struct
from dataclasses import dataclass

import numpy as np

from dealer.key_pairs import Rand
from fss import field
from fss.field import Words
from fss_ecdf.campaign.errors import InvalidUpload

NAME = "pointwise"
PARTY_BYTES = 16
_SHARE = struct.Struct(f"<I{PARTY_BYTES}sQ")
SHARE_BYTES = _SHARE.size


@dataclass(frozen=True)
class Share:
    position: int
    party: bytes
    element: Words


def split(x: int, t: int, party: bytes, rand: Rand) -> tuple[bytes, bytes]:
    """One party's messages for the two servers."""
    first = field.canonical(np.frombuffer(rand(8), np.uint64))
    second = field.sub(np.array([x <= t], np.uint64), first)
    return _SHARE.pack(t, party, int(first[0])), _SHARE.pack(t, party, int(second[0]))


def decode(data: bytes, positions: int) -> Share:
    if len(data) != SHARE_BYTES:
        raise InvalidUpload(f"a pointwise share has {SHARE_BYTES} bytes, got {len(data)}")
    position, party, element = _SHARE.unpack(data)
    if position >= positions or element >= field.P:
        raise InvalidUpload("a pointwise share is an element of the field at a position of the campaign")
    return Share(position, party, np.array([element], np.uint64))
