"""The JSON messages: questions and answers. They are read strictly: no unknown field, no number out of its range."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

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

from fss_ecdf.campaign.campaign import DIGEST_BYTES, MAX_UPLOADS, from_base64url, to_base64url
from fss_ecdf.campaign.error_text import listed, short
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.fields import Name
from fss_ecdf.campaign.noise.mechanism import MAX_EPSILON, MIN_EPSILON_EACH
from fss_ecdf.campaign.parsing import parse_json

Digest = Annotated[
    bytes,
    BeforeValidator(lambda v: from_base64url(v, DIGEST_BYTES, "a campaign's digest")),
    PlainSerializer(to_base64url),
    Field(description="of the campaign"),
]
Threshold = float | int | Name
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

    campaign: dict[str, Any] = Field(description="its fields")
    upload_token: TokenHash | None = Field(default=None, description="SHA-256 of the one token, if it is open")
    invitations: Annotated[list[TokenHash], FailFast()] = Field(
        default_factory=list, max_length=1_000_000, description="SHA-256 of each token, if parties are invited"
    )


SITE_ID_BYTES = 16
MOST_SITES = 100_000
SiteId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class NewSite(Message):
    """A site of a campaign: an id that stays, a label for the operators, its token's hash, how much it may send."""

    id: SiteId
    label: Name
    token: TokenHash
    quota: int = Field(ge=1, le=MAX_UPLOADS)


class NewSites(Message):
    sites: Annotated[list[NewSite], FailFast()] = Field(
        min_length=1,
        max_length=MOST_SITES,
        description="id (16 bytes in hexadecimal), label, token's SHA-256, quota of each",
    )


class SiteChange(Message):
    """What an operator changes about a site; fields that are not given stay."""

    state: Literal["active", "paused", "revoked"] | None = Field(default=None, description="whether it may send")
    token: TokenHash | None = Field(default=None, description="SHA-256 of another token; the old one opens nothing")
    quota: int | None = Field(default=None, ge=1, le=MAX_UPLOADS, description="uploads that it may send in all")
    withdraw: bool = Field(default=False, description="erase what it sent, while nothing is sealed")


class ListedChange(SiteChange):
    """The same in a list that one operator sends to the other."""

    id: SiteId


class SiteSummary(Message):
    """What a server says of a site to its operator."""

    id: SiteId
    label: Name
    state: Literal["active", "paused", "revoked"]
    quota: int = Field(ge=1, le=MAX_UPLOADS)
    uploads: int = Field(ge=0, description="people whose values are stored")
    rejected: int = Field(default=0, ge=0, description="people of its tables that failed the check and are kept")


class CampaignCreated(Message):
    id: str
    digest: Digest


class UploadFailure(Message):
    id: str
    code: str
    detail: str


class UploadResponse(Message):
    """What of an upload failed; everything else is stored for good."""

    failures: list[UploadFailure] = Field(default_factory=list, description="id, code and detail of each not stored")
    signature: str | None = Field(default=None, description="the server's, where nothing failed: all of it is stored")


class ResultResponse(Message):
    """What every answer says about itself. Counts are signed: noise may take them below zero or above n."""

    digest: Digest
    n: int = Field(ge=0, description="values in the set, all strata together")
    epsilon: float = Field(description="of the release")
    mechanism: Name = Field(description="of the noise")
    check_keys: bool = Field(description="whether keys of another form were left out")
    stratum: Name = Field(description="which one was asked for")
    releases: list[Name] = Field(default_factory=list, description="of waves: the releases it is the sum of")


class EcdfResponse(ResultResponse):
    """The number of values at or below each threshold, with its standard error."""

    thresholds: list[Threshold] = Field(description="of the grid; days as text")
    counts: list[int] = Field(description="values at or below each, with noise")
    standard_errors: list[float] = Field(description="of each count, by the noise")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return _same_length(self, self.thresholds, self.counts, self.standard_errors)


class CountsResponse(ResultResponse):
    """The number of values in each category, with its standard error; "missing" is the last where it is counted."""

    categories: list[Name] = Field(description="in the campaign's order")
    counts: list[int] = Field(description="values in each, with noise")
    standard_errors: list[float] = Field(description="of each count, by the noise")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return _same_length(self, self.categories, self.counts, self.standard_errors)


Weights = Annotated[list[int], FailFast()]


class SumsQuery(Message):
    """Weighted sums over the values of one release; costs epsilon from the reserve."""

    weights: Annotated[list[Weights], FailFast()] = Field(
        min_length=1, description="for each sum, a whole number for each threshold of each stratum, in their order"
    )
    units: Annotated[list[int], Field(fail_fast=True)] | None = Field(
        default=None, description="for each sum what counts as a change of one; the range of its weights if left out"
    )
    epsilon: float = Field(ge=MIN_EPSILON_EACH, le=MAX_EPSILON, description="to spend from the reserve, for all sums")


class PeerSumsQuery(SumsQuery):
    """The same, asked by the other server."""

    digest: Digest


class SumsResponse(Message):
    """The sums with both servers' noise, which is independent for each."""

    digest: Digest
    n: int = Field(ge=0, description="values in the set")
    release: Name = Field(description="which the sums are of")
    epsilon: float = Field(description="that was spent")
    delta: float = Field(ge=0, le=1, description="that goes with it: the distance of the drawn noise from the ideal")
    sensitivity: float = Field(description="the largest change by replacing one value, every sum in its unit")
    exact: bool = Field(description="whether that is the largest change or an upper bound")
    sums: list[int] = Field(description="with noise")
    standard_errors: list[float] = Field(description="of each sum, by the noise")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return _same_length(self, self.sums, self.standard_errors)


class BudgetResponse(Message):
    """What a campaign may spend and has spent."""

    digest: Digest
    epsilon: float = Field(description="of the curve, or of a wave")
    reserve: float = Field(description="for questions beyond it")
    spent: float = Field(description="by the parties who have spent most")
    remaining: float = Field(description="of all that parties consented to")
    reserve_left: float = Field(description="of the reserve, for a query about the release that was named, or any")


class WaveSummary(Message):
    """Where one wave stands."""

    number: int
    state: Name
    uploads: int | None  # once its set is fixed
    closes: Name | None  # when, if that is a matter of time
    consented: float  # the epsilon that its parties have consented to in all
    spent: float


class ReleaseSummary(Message):
    """One release that can be asked for."""

    name: Name
    kind: Literal["wave", "pooled"]
    at: int
    waves: list[int]
    uploads: int
    epsilon: float


class WavesResponse(Message):
    """The waves of a campaign, and what can be asked of them."""

    digest: Digest
    waves: list[WaveSummary] = Field(description="where each stands, and what its parties consented to and spent")
    releases: list[ReleaseSummary] = Field(description="name, waves, uploads and epsilon of each that can be asked for")
