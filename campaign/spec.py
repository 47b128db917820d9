"""Campaign: the one thing that parties, servers and analysts must agree on, byte for byte.

A campaign is written in TOML or JSON, checked completely when it is read, and never changed. Its digest stands in
every upload, query and answer.

>>> campaign = Campaign.from_toml('''
... title = "HbA1c in clinic patients"
... question = "How is the last HbA1c value (in %) of your patients distributed?"
... epsilon = 1.0
... strata = ["no event", "event"]
... [grid]
... kind = "linear"
... from = 3.0
... to = 15.0
... step = 0.1
... ''', id=bytes(32))
>>> campaign.grid.size, campaign.bits, campaign.total_epsilon
(121, 8, 1.0)
>>> placed = campaign.place([7.05, 41.0], ["event", "no event"])
>>> placed.positions, placed.above
(array([169, 120]), 1)
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
import tomli_w
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

from campaign.base64url import from_base64url as from_base64url
from campaign.base64url import to_base64url as to_base64url
from campaign.errors import DigestMismatch, InvalidCampaign
from campaign.fields import PLAIN, Name, Time
from campaign.fields import TIME_FORMAT as TIME_FORMAT
from campaign.grid import MAX_BITS, Grid
from campaign.hpke import PUBLIC_KEY_BYTES, Kem
from campaign.inputs import Strata, Values, named
from campaign.noise.choice import summed
from campaign.noise.mechanism import MAX_EPSILON, Mechanism
from campaign.pledges import Pledges
from campaign.reading import explain, parse_json, parse_toml
from campaign.strata import arms, check_strata, check_survival, number, numbers
from campaign.waves import Waves
from campaign.waves import check as check_waves
from campaign.wording import listed
from fss.challenge import MAX_BITS as MAX_CHECKED_BITS
from fss.keys import KeyType, key_type

ID_BYTES = 32
DIGEST_BYTES = 32
MAX_UPLOADS = 100_000_000
_DIGEST_CONTEXT = b"fss-ecdf campaign 6\n"


def new_id(rand: Callable[[int], bytes]) -> bytes:
    """A random id whose text does not begin with a dash, which command lines would take for an option."""
    while True:
        found = rand(ID_BYTES)
        if not to_base64url(found).startswith("-"):
            return found


Id = Annotated[
    bytes, BeforeValidator(lambda v: from_base64url(v, ID_BYTES, "a campaign's id")), PlainSerializer(to_base64url)
]
Names = Annotated[tuple[Name, ...], FailFast(), BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)]


@dataclass(frozen=True)
class Placed:
    """Values of one party as positions, and how many of them lay outside the grid."""

    positions: NDArray[np.int64]
    below: int
    above: int

    @property
    def clipped(self) -> int:
        return self.below + self.above


class Campaign(BaseModel):
    """What is measured, how privately, by whom, and when. Frozen; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Id
    title: Name
    question: Annotated[str, Field(min_length=1, max_length=2000), PLAIN]
    unit: Annotated[str, Field(max_length=40), PLAIN] = ""
    value_name: Annotated[str, Field(max_length=80), PLAIN] = ""
    kind: Literal["distribution", "survival"] = "distribution"
    grid: Grid
    strata: Names = ("all",)
    epsilon: float = Field(gt=0, allow_inf_nan=False)
    reserve: float = Field(default=0.0, ge=0, le=MAX_EPSILON, allow_inf_nan=False)
    mechanism: Literal["slice-tree", "paper-tree", "paper-tree-exact"] = "slice-tree"
    scheme: Literal["dcf", "dpf"] = "dcf"
    min_uploads: int = Field(default=100, ge=1, le=MAX_UPLOADS)
    max_uploads: int = Field(default=1_000_000, ge=1, le=MAX_UPLOADS)
    max_instances: int = Field(default=1, ge=1, le=1_000_000)
    admission: Literal["open", "invited", "sites"] = "open"
    checked: bool = True
    kem: Kem = "x25519"
    opens: Time | None = None
    closes: Time | None = None
    seal: Literal["by-consent", "at-closing"] = "by-consent"
    waves: Waves | None = None
    servers: Pledges | None = None

    @model_validator(mode="after")
    def _valid(self) -> Self:
        check_strata(self.strata)
        if self.bits > MAX_BITS:
            raise ValueError(f"grid and strata need {self.bits} bits, at most {MAX_BITS} are possible")
        if self.max_uploads < self.min_uploads:
            raise ValueError(f"max_uploads ({self.max_uploads}) is below min_uploads ({self.min_uploads})")
        if self.epsilon <= MAX_EPSILON < (total := self.total_epsilon):
            raise ValueError(f"curve, reserve and pools may have epsilon {MAX_EPSILON:g} in all, not {total:g}")
        if self.opens and self.closes and self.closes <= self.opens:
            raise ValueError("a campaign closes after it opens")
        if self.seal == "at-closing" and self.closes is None:
            raise ValueError('seal = "at-closing" needs closes, the time at which both servers seal by themselves')
        if self.checked and self.bits > MAX_CHECKED_BITS:
            raise ValueError(
                f"keys are checked up to {MAX_CHECKED_BITS} bits; grid and strata need {self.bits}. "
                "Say checked = false, which parties and analysts will see, or choose a coarser grid"
            )
        if self.scheme == "dpf" and self.bits > 26:
            raise ValueError(f"scheme dpf evaluates whole domains, of at most 26 bits; this one has {self.bits}")
        if self.kind == "survival":
            check_survival(self.strata)
            if self.grid.values == "date" or self.grid.thresholds(np.zeros(1, np.int64))[0] < 0:
                raise ValueError("times of survival are numbers from 0 on: days since the start, not dates")
        _ = self.noise, self.digest
        return self

    @model_validator(mode="after")
    def _valid_pledges(self) -> Self:
        if any(len(pledge.hpke_key) != PUBLIC_KEY_BYTES[self.kem] for pledge in self.servers or ()):
            raise ValueError(f"servers: an HPKE key of {self.kem} has {PUBLIC_KEY_BYTES[self.kem]} bytes")
        return self

    @model_validator(mode="after")
    def _valid_waves(self) -> Self:
        if self.waves is not None:
            check_waves(self.waves, self)
            for epsilon in self.waves.milestones.values():
                summed(self.mechanism, self.bits, ((epsilon, 1),), self.max_instances)
        return self

    @property
    def arms(self) -> dict[str, tuple[str, str]]:
        """Of survival: each arm's strata, those whose event was seen and those who were censored before it."""
        return arms(self.strata) if self.kind == "survival" else {}

    @property
    def stratum_bits(self) -> int:
        return (len(self.strata) - 1).bit_length()

    @property
    def bits(self) -> int:
        """Bits of a position: the stratum in front, the index on the grid behind."""
        return self.stratum_bits + self.grid.bits

    @property
    def total_epsilon(self) -> float:
        """What a party consents to: the curve and the reserve for further statistics, and all that may be pooled."""
        return self.consent(0)

    def consent(self, wave: int) -> float:
        """What a party consents to that may be in this wave or a later one."""
        return self.own_epsilon + self.reserve + (0.0 if self.waves is None else self.waves.pooled_from(wave))

    @cached_property
    def own_epsilon(self) -> float:
        """What a party's own wave costs it, or a plain campaign's curve; `epsilon` may be that of a pooled release."""
        return self.epsilon

    @property
    def ends(self) -> datetime | None:
        """When uploads end, if that is a matter of time."""
        if self.waves is None or self.opens is None:
            return self.closes
        return self.waves.end(self.opens, self.waves.count)

    @property
    def first_wave(self) -> int:
        return 0 if self.waves is None else 1

    @property
    def last_wave(self) -> int:
        """The number of its last wave; a plain campaign has one, number 0."""
        return 0 if self.waves is None else self.waves.count

    @cached_property
    def noise_parts(self) -> tuple[tuple[float, int], ...]:
        """The epsilon of each release that the counts are the sum of, and how many there are of it."""
        return ((self.epsilon, 1),)

    @cached_property
    def noise(self) -> Mechanism:
        """One server's noise."""
        return summed(self.mechanism, self.bits, self.noise_parts, self.max_instances)

    def released(self, parts: Sequence[tuple[float, int]]) -> "Campaign":
        """This campaign as a sum of releases knows it: of its digest, with their epsilon and noise."""
        seen = self.model_copy(update={"epsilon": max(epsilon for epsilon, _ in parts)})
        noise = summed(self.mechanism, self.bits, parts, self.max_instances)
        kept = {"canonical": self.canonical, "digest": self.digest, "own_epsilon": self.own_epsilon}
        seen.__dict__.update(**kept, noise_parts=tuple(parts), noise=noise)
        return seen

    @property
    def check_in_words(self) -> str:
        """What consent, status and reports say of it."""
        if self.checked:
            return "checked: an upload that is not one value, well made, is left out"
        return "NOT CHECKED: one dishonest party can change the result by any amount, unnoticed"

    def key_type(self, party: int) -> KeyType:
        """What the keys of one server must be. The binder is the campaign's random id."""
        return key_type(self.scheme, self.bits, party, self.id)

    def stratum(self, name: str) -> int:
        return number(self.strata, name)

    def position(self, stratum: int, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the count of a stratum at a grid index is read; index -1 is the end of what comes before it."""
        return (stratum << self.grid.bits) + index

    def place(self, values: Values, strata: Strata | None = None, *, first_row: int = 1) -> Placed:
        """A party's values, and their strata where there is more than one, as positions."""
        placed = self.grid.place(values, first_row)
        count = placed.index.size
        names = None if strata is None else named(strata, count)
        return Placed(
            placed.index + (numbers(self.strata, names, count, first_row) << self.grid.bits),
            placed.below,
            placed.above,
        )

    @cached_property
    def canonical(self) -> bytes:
        """The one byte string that stands for this campaign: every field, sorted, compact UTF-8 JSON."""
        fields = self.model_dump(mode="json", by_alias=True)
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()

    @cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(_DIGEST_CONTEXT + self.canonical).digest()

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False)

    def to_toml(self) -> str:
        """TOML that reads back as the same campaign."""
        return tomli_w.dumps(self.model_dump(mode="json", by_alias=True, exclude_none=True))

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Campaign":
        """Check everything; the error names each field that is wrong and what it should be."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise InvalidCampaign(listed([explain(e) for e in error.errors()])) from None

    @classmethod
    def from_json(cls, text: str | bytes) -> "Campaign":
        try:
            fields = parse_json(text)
        except (ValueError, RecursionError) as error:
            raise InvalidCampaign(f"the campaign is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise InvalidCampaign("the campaign must be a JSON object")
        return cls.from_dict(fields)

    @classmethod
    def from_toml(cls, text: str, *, id: bytes | None = None) -> "Campaign":
        """Read a TOML file; `id` is for a new campaign that does not have one yet."""
        try:
            fields = parse_toml(text)
        except (ValueError, RecursionError) as error:
            raise InvalidCampaign(f"the campaign is not TOML: {error}") from None
        if id is not None:
            if "id" in fields:
                raise InvalidCampaign("this campaign has an id already; a new one gets its own")
            fields["id"] = id
        return cls.from_dict(fields)


def check_digest(expected: bytes, given: bytes) -> None:
    """Raise unless both sides mean the same campaign; the error names both digests."""
    if expected != given:
        raise DigestMismatch(
            f"campaign digest {to_base64url(given)} was given, {to_base64url(expected)} is expected here"
        )
