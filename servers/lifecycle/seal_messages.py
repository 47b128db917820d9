"""The messages of a sealing, between the servers.

    frozen   state(1) freeze(8) digest(32) count(8) set(32): answer to a freeze; the set's checksum once it is fixed
    step     freeze(8) digest(32) set(32), then ids(16 each): leave these out of that set, agree on it, thaw
    ids      JSON: digests below some nodes of the tree of ids (`id_tree.py`), or the entries of some leaves
    agreed   JSON: what the other side has fixed

Numbers are little-endian. Every step names the freeze it acts on.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer

from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES
from fss_ecdf.campaign.campaign import from_base64url, to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidQuery, InvalidUpload
from fss_ecdf.campaign.json_messages import Digest, Message, read
from servers.lifecycle.id_tree import FAN_OUT, LEAVES_AT_ONCE, MAX_DEPTH, NODES_AT_ONCE
from servers.storage.key_files import split_ids
from servers.storage.waves import CHECKING, FROZEN, SEALED, Wave

STATES = (FROZEN, CHECKING, SEALED)
NO_SET = bytes(32)
EXCLUDED_AT_ONCE = 4096  # ids in one step

_FROZEN = struct.Struct("<BQ32sQ32s")
_STEP = struct.Struct("<Q32s32s")
STEP_BYTES = _STEP.size + UPLOAD_ID_BYTES * EXCLUDED_AT_ONCE

UploadId = Annotated[
    bytes,
    BeforeValidator(lambda v: from_base64url(v, UPLOAD_ID_BYTES, "an upload's id")),
    PlainSerializer(to_base64url),
]


@dataclass(frozen=True)
class Frozen:
    """What a side holds: its state, the number of its freeze, its campaign, how many uploads, and the fixed set."""

    state: str
    freeze: int
    digest: bytes
    count: int
    set: bytes = NO_SET

    def encode(self) -> bytes:
        return _FROZEN.pack(STATES.index(self.state), self.freeze, self.digest, self.count, self.set)

    @staticmethod
    def decode(data: bytes) -> "Frozen":
        if len(data) != _FROZEN.size or data[0] >= len(STATES):
            raise InvalidPeerResponse("the other server's answer to a freeze is not well-formed")
        state, *rest = _FROZEN.unpack(data)
        return Frozen(STATES[state], *rest)

    @property
    def is_fixed(self) -> bool:
        return self.state != FROZEN


@dataclass(frozen=True)
class Step:
    """What one side asks of the other, about one freeze of a campaign and the set that is to come of it."""

    freeze: int
    digest: bytes
    set: bytes = NO_SET
    ids: bytes = b""

    def encode(self) -> bytes:
        return _STEP.pack(self.freeze, self.digest, self.set) + self.ids

    @staticmethod
    def decode(data: bytes) -> "Step":
        if len(data) < _STEP.size or (len(data) - _STEP.size) % UPLOAD_ID_BYTES:
            raise InvalidUpload("a step of a sealing is a header and whole ids")
        freeze, digest, given = _STEP.unpack_from(data)
        step = Step(freeze, digest, given, data[_STEP.size :])
        if any(a >= b for a, b in pairwise(split_ids(step.ids))):
            raise InvalidUpload("the ids of a step are sorted and different")
        return step


class IdsQuery(Message):
    """Of nodes above the leaves, the digests of their children; of leaves, their entries behind an id."""

    digest: Digest
    freeze: int = Field(ge=0, lt=1 << 63)
    depth: int = Field(ge=0, le=MAX_DEPTH)
    level: int = Field(ge=0, le=MAX_DEPTH)
    nodes: Annotated[list[int], Field(min_length=1, max_length=NODES_AT_ONCE)]
    after: UploadId | None = None

    @staticmethod
    def decode(data: bytes) -> "IdsQuery":
        query = read(IdsQuery, data)
        known = FAN_OUT**query.level
        if query.level == query.depth and len(query.nodes) > LEAVES_AT_ONCE:
            raise InvalidQuery(f"at most {LEAVES_AT_ONCE} leaves in one question")
        if query.level > query.depth or any(a >= b for a, b in pairwise([-1, *query.nodes, known])):
            raise InvalidQuery("nodes are of a level of the tree, in order, each once")
        return query


class Agreed(Message):
    """What a side has fixed."""

    count: int
    checksum: str
    unmatched: int

    @staticmethod
    def of(wave: Wave) -> "Agreed":
        assert wave.set is not None
        return Agreed(count=wave.set.count, checksum=to_base64url(wave.set.checksum), unmatched=wave.set.unmatched)

    @staticmethod
    def decode(data: bytes) -> "Agreed":
        try:
            return read(Agreed, data)
        except InvalidQuery:
            raise InvalidPeerResponse("the other server's answer to sealing is not well-formed") from None
