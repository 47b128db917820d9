"""The messages: binary for keys and shares, JSON for questions and answers. Both are read strictly.

What is accepted has exactly one form: the right length, nothing left over, no unknown field, canonical numbers. A
binary message that was decoded encodes to the same bytes.

    upload   "FSSU" version party proof_bytes(2) digest(32) count(4) key_bytes(4), then count x (id(16) key proof)
    shares   "FSSS" version party 0(2) digest(32) set(32) uploads(8) count(8), then count x element(8)

Numbers are little-endian. `proof_bytes` is 0, or the size of the proof (`fss/proof.py`) that each key has beside it.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from campaign.errors import InvalidQuery, InvalidUpload, PeerMismatch
from campaign.reading import parse_json
from campaign.spec import DIGEST_BYTES, MAX_UPLOADS, Campaign, check_digest, from_base64url, to_base64url
from campaign.wording import listed, short
from fss import FssError, KeyBatch, field
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


def decode_uploads(data: bytes, campaign: Campaign, party: int) -> Uploads:
    """Read an envelope for one server, or raise. Whether keys have proofs is the campaign's choice, not the party's."""
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
    rows = np.frombuffer(data, np.uint8, offset=_UPLOAD.size).reshape(count, -1)
    ids = np.ascontiguousarray(rows[:, :UPLOAD_ID_BYTES])
    if count > 1 and len(np.unique(ids.view(f"V{UPLOAD_ID_BYTES}"))) != count:
        raise InvalidUpload("two uploads in one envelope have the same id")
    end = UPLOAD_ID_BYTES + key_bytes
    try:
        keys = KeyBatch.from_bytes(rows[:, UPLOAD_ID_BYTES:end].tobytes(), campaign.id, expected=expected)
        proofs = Proofs.from_bytes(rows[:, end:].tobytes(), expected) if campaign.checked else None
    except FssError as error:
        raise InvalidUpload(str(error)) from None
    return Uploads(ids, keys, proofs)


def upload_rows(data: bytes, campaign: Campaign, party: int) -> list[tuple[bytes, bytes]]:
    """Each id of an envelope with the bytes of its key, and of its proof if there is one, as a server stores them."""
    count = len(decode_uploads(data, campaign, party).ids)  # or an error; what is accepted has no other form
    size = (len(data) - _UPLOAD.size) // count
    starts = range(_UPLOAD.size, len(data), size)
    return [(data[i : i + UPLOAD_ID_BYTES], data[i + UPLOAD_ID_BYTES : i + size]) for i in starts]


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


Digest = Annotated[
    bytes,
    BeforeValidator(lambda v: from_base64url(v, DIGEST_BYTES, "a campaign's digest")),
    PlainSerializer(to_base64url),
]
Threshold = float | int | str
Position = Annotated[int, Field(ge=0, lt=1 << 32)]


class Message(BaseModel):
    """A JSON message: frozen, strict types, unknown fields refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def to_json(self) -> str:
        return self.model_dump_json()


M = TypeVar("M", bound=Message)


def _same_length(message: M, *columns: list[Any]) -> M:
    if len({len(column) for column in columns}) > 1:
        raise ValueError("the columns of an answer must have the same length")
    return message


def read(kind: type[M], data: str | bytes | Mapping[str, Any]) -> M:
    """A message from JSON text or parsed JSON; the error names the fields that are wrong."""
    try:
        fields = data if isinstance(data, Mapping) else parse_json(data)
    except (ValueError, RecursionError) as error:
        raise InvalidQuery(f"not a {kind.__name__}: not JSON: {error}") from None
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise InvalidQuery(f"not a {kind.__name__}: {listed([_explain(e) for e in error.errors()])}") from None


def _explain(error: Any) -> str:
    where = ".".join(short(str(part)) for part in error["loc"]) or "message"
    return f"{where}: {short(error['msg'], 500)}"


class ShareQuery(Message):
    """One server asks the other for its noised shares at positions, or at all of them."""

    digest: Digest
    positions: Annotated[list[Position], Field(fail_fast=True)] | Literal["all"]


Bytes32 = Annotated[bytes, BeforeValidator(lambda v: from_base64url(v, 32, "the field")), PlainSerializer(to_base64url)]


class CheckSeed(Message):
    """One server tells the other its part of a campaign's challenge."""

    digest: Digest
    seed: Bytes32


class CheckMessagesQuery(Message):
    """One server asks the other what it found about some keys of a set, in the order of their ids."""

    digest: Digest
    checksum: Bytes32
    start: int = Field(ge=0)
    stop: int = Field(ge=0)


TokenHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class NewCampaign(Message):
    """An operator creates a campaign: its fields, and the hashes of the tokens that admit parties to it."""

    campaign: dict[str, Any]
    upload_token: TokenHash | None = None
    invitations: Annotated[list[TokenHash], FailFast()] = Field(default_factory=list, max_length=1_000_000)


SITE_ID_BYTES = 16


class NewSite(Message):
    """A site of a campaign: an id that stays, a label for the operators, its token's hash, how much it may send."""

    id: str = Field(pattern=r"^[0-9a-f]{32}$")
    label: str = Field(min_length=1, max_length=200)
    token: TokenHash
    quota: int = Field(ge=1, le=MAX_UPLOADS)


class NewSites(Message):
    sites: Annotated[list[NewSite], FailFast()] = Field(min_length=1, max_length=100_000)


class SiteChange(Message):
    """What an operator changes about a site; fields that are not given stay."""

    state: Literal["active", "paused", "revoked"] | None = None
    token: TokenHash | None = None
    quota: int | None = Field(default=None, ge=1, le=MAX_UPLOADS)
    withdraw: bool = False  # erase what it sent, while nothing is sealed


class CampaignCreated(Message):
    id: str
    digest: Digest


class UploadFailure(Message):
    id: str
    code: str
    detail: str


class UploadResult(Message):
    """What of an upload failed; everything else is stored for good."""

    failures: list[UploadFailure] = Field(default_factory=list)


class Answer(Message):
    """What every answer says about itself. Counts are signed: noise may take them below zero or above n."""

    digest: Digest
    n: int = Field(ge=0)
    epsilon: float
    mechanism: str
    checked: bool
    stratum: str
    made_of: list[str] = Field(default_factory=list)  # of a campaign of waves: the releases it is the sum of


class EcdfAnswer(Answer):
    """The number of values at or below each threshold, with its standard error."""

    thresholds: list[Threshold]
    counts: list[int]
    standard_errors: list[float]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return _same_length(self, self.thresholds, self.counts, self.standard_errors)


class GroupsQuery(Message):
    """Observed and expected counts of score groups, each up to one of these scores; costs epsilon from the reserve."""

    upper_ends: Annotated[list[float], FailFast()] = Field(min_length=2, max_length=1000)
    epsilon: float = Field(ge=0.01, le=20)


class PeerGroupsQuery(GroupsQuery):
    """The same, asked by the other server."""

    digest: Digest


class GroupsAnswer(Message):
    """For each group: observed and expected numbers of stratum 0 (negative) and 1 (positive), with standard errors."""

    digest: Digest
    n: int
    epsilon: float
    upper_ends: list[float]
    observed_negative: list[int]
    observed_positive: list[int]
    expected_negative: list[float]
    expected_positive: list[float]
    observed_error: float
    expected_error: float

    @model_validator(mode="after")
    def _fits(self) -> Self:
        observed = self.observed_negative, self.observed_positive
        expected: list[list[Any]] = [self.expected_negative, self.expected_positive]
        return _same_length(self, self.upper_ends, *observed, *expected)


class BudgetAnswer(Message):
    """What a campaign may spend and has spent."""

    digest: Digest
    epsilon: float
    reserve: float
    spent: float
    remaining: float


class WaveBrief(Message):
    """Where one wave stands."""

    number: int
    state: str
    uploads: int | None  # once its set is fixed
    closes: str | None  # when, if that is a matter of time
    consented: float  # the epsilon that its parties have consented to in all
    spent: float


class ReleaseBrief(Message):
    """One release that can be asked for."""

    name: str
    kind: Literal["wave", "pooled"]
    at: int
    waves: list[int]
    uploads: int
    epsilon: float


class WavesAnswer(Message):
    """The waves of a campaign, and what can be asked of them."""

    digest: Digest
    waves: list[WaveBrief]
    releases: list[ReleaseBrief]
