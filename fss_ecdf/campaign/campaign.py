"""Campaign: the one thing that parties, servers and analysts must agree on, byte for byte.

A campaign is written in TOML or JSON, checked completely when it is read, and never changed. Its digest stands in
every upload, query and answer.

>>> campaign = Campaign.from_toml('''
... title = "HbA1c in clinic patients"
... question = "How is the last HbA1c value (in %) of your patients distributed?"
... epsilon = 1.0
... strata = ["no event", "event"]
... [[variables]]
... name = "HbA1c"
... unit = "%"
... [variables.grid]
... kind = "linear"
... from = 3.0
... to = 15.0
... step = 0.1
... ''', id=bytes(32))
>>> campaign.variable.size, campaign.bits, campaign.total_epsilon
(121, 8, 1.0)
>>> placed = campaign.to_positions([7.05, 41.0], ["event", "no event"])
>>> placed.positions, placed.above
(array([169, 120]), 1)
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, Self, overload

import numpy as np
import tomli_w
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from fss.challenge import MAX_BITS as MAX_CHECKED_BITS
from fss.keys import KeyType, key_type
from fss.schemes import SCHEMES
from fss.table_shape import MAX_POSITIONS
from fss_ecdf.campaign.array_inputs import Strata, Values, named
from fss_ecdf.campaign.base64url import from_base64url as from_base64url
from fss_ecdf.campaign.base64url import to_base64url as to_base64url
from fss_ecdf.campaign.commitments import ServerCommitments
from fss_ecdf.campaign.error_text import listed
from fss_ecdf.campaign.errors import DigestMismatch, InvalidCampaign
from fss_ecdf.campaign.fields import PLAIN, Name, Time
from fss_ecdf.campaign.fields import TIME_FORMAT as TIME_FORMAT
from fss_ecdf.campaign.grid import MAX_BITS
from fss_ecdf.campaign.hpke import PUBLIC_KEY_BYTES, Kem
from fss_ecdf.campaign.noise.flat import Cells
from fss_ecdf.campaign.noise.mechanism import MAX_EPSILON, Mechanism
from fss_ecdf.campaign.noise.registry import summed
from fss_ecdf.campaign.parsing import explain, parse_json, parse_toml
from fss_ecdf.campaign.strata import arms, check_strata, check_survival, number, numbers
from fss_ecdf.campaign.variable import MAX_CELLS, Names, Variable, Variables
from fss_ecdf.campaign.waves import Waves
from fss_ecdf.campaign.waves import check as check_waves

ID_BYTES = 32
DIGEST_BYTES = 32
MAX_UPLOADS = 100_000_000
_DIGEST_CONTEXT = b"fss-ecdf campaign 8\n"


def new_id(rand: Callable[[int], bytes]) -> bytes:
    """A random id whose text does not begin with a dash, which command lines would take for an option."""
    while True:
        found = rand(ID_BYTES)
        if not to_base64url(found).startswith("-"):
            return found


Id = Annotated[
    bytes, BeforeValidator(lambda v: from_base64url(v, ID_BYTES, "a campaign's id")), PlainSerializer(to_base64url)
]


@dataclass(frozen=True)
class Positions:
    """Values of one party as positions, how many of them lay outside the grid, and how many are missing."""

    positions: NDArray[np.int64]
    below: int
    above: int
    missing: int = 0

    @property
    def clipped(self) -> int:
        return self.below + self.above


class Campaign(BaseModel):
    """What is measured, how privately, by whom, and when. Frozen; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Id
    title: Name
    question: Annotated[str, Field(min_length=1, max_length=2000), PLAIN]
    kind: Literal["distribution", "survival"] = "distribution"
    variables: Variables
    strata: Names = ("all",)
    epsilon: float = Field(gt=0, allow_inf_nan=False)
    reserve: float = Field(default=0.0, ge=0, le=MAX_EPSILON, allow_inf_nan=False)
    min_uploads: int = Field(default=100, ge=1, le=MAX_UPLOADS)
    max_uploads: int = Field(default=1_000_000, ge=1, le=MAX_UPLOADS)
    max_values_per_person: int = Field(default=1, ge=1, le=1_000_000)
    admission: Literal["open", "invited", "sites"] = "open"
    check_keys: bool = True
    tables: bool = False
    kem: Kem = "x25519"
    opens: Time | None = None
    closes: Time | None = None
    seal: Literal["by-agreement", "at-closing"] = "by-agreement"
    waves: Waves | None = None
    server_commitments: ServerCommitments | None = None

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
        if self.check_keys and self.bits > MAX_CHECKED_BITS:
            raise ValueError(
                f"keys are checked up to {MAX_CHECKED_BITS} bits; grid and strata need {self.bits}. "
                "Say check_keys = false, which parties and analysts will see, or choose a coarser grid"
            )
        scheme = self.variable.scheme
        if self.bits > (most := SCHEMES[scheme].max_bits):
            raise ValueError(
                f"scheme {scheme} evaluates whole domains, of at most {most} bits; this one has {self.bits}"
            )
        _ = self.noise, self.digest
        return self

    @model_validator(mode="after")
    def _valid_variable(self) -> Self:
        if self.variable.is_categorical and (count := len(self.strata) * self.variable.size) > MAX_CELLS:
            raise ValueError(f"all strata together have at most {MAX_CELLS} categories, this campaign has {count}")
        if self.kind == "survival":
            check_survival(self.strata)
            grid = self.variable.own_grid
            if grid is None or grid.values == "date" or grid.thresholds(np.zeros(1, np.int64))[0] < 0:
                raise ValueError("times of survival are numbers from 0 on: days since the start, not dates")
        return self

    @model_validator(mode="after")
    def _valid_tables(self) -> Self:
        if self.tables:
            check_tables(self.admission, self.check_keys, len(self.strata) * self.variable.size)
        return self

    @model_validator(mode="after")
    def _valid_commitments(self) -> Self:
        if any(len(commitment.hpke_key) != PUBLIC_KEY_BYTES[self.kem] for commitment in self.server_commitments or ()):
            raise ValueError(f"server_commitments: an HPKE key of {self.kem} has {PUBLIC_KEY_BYTES[self.kem]} bytes")
        return self

    @model_validator(mode="after")
    def _valid_waves(self) -> Self:
        if self.waves is not None:
            check_waves(self.waves, self)
            for epsilon in self.waves.milestones.values():
                self._summed(((epsilon, 1),))
        return self

    @property
    def variable(self) -> Variable:
        """The campaign's only variable: what code reads that does not take a `Variable` as an argument."""
        (only,) = self.variables
        return only

    @property
    def arms(self) -> dict[str, tuple[str, str]]:
        """Of survival: each arm's strata, those whose event was seen and those who were censored before it."""
        return arms(self.strata) if self.kind == "survival" else {}

    @property
    def stratum_bits(self) -> int:
        return (len(self.strata) - 1).bit_length()

    @property
    def bits(self) -> int:
        """Bits of a position: the stratum in front, the variable's index behind."""
        return self.stratum_bits + self.variable.index_bits

    @property
    def total_epsilon(self) -> float:
        """What a party consents to: the curve and the reserve for further statistics, and all that may be pooled."""
        return self.epsilon_for_party(0)

    def epsilon_for_party(self, wave: int) -> float:
        """What a party consents to that may be in this wave or a later one."""
        return self.own_epsilon + self.reserve + self._pooled_from(wave)

    def epsilon_for_releases(self, wave: int) -> float:
        """The part of it that is not the reserve."""
        return self.own_epsilon + self._pooled_from(wave)

    def _pooled_from(self, wave: int) -> float:
        return 0.0 if self.waves is None else self.waves.pooled_from(wave)

    @property
    def own_epsilon(self) -> float:
        """What a party's own wave costs it, or a plain campaign's curve; `epsilon` may be that of a pooled release."""
        return self.epsilon

    @property
    def uploads_end(self) -> datetime | None:
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

    @property
    def noise_parts(self) -> tuple[tuple[float, int], ...]:
        """The variable's epsilon in each release that the counts are the sum of, and how many there are of it."""
        return self._of_variable(((self.epsilon, 1),))

    def _of_variable(self, parts: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
        """The part of each epsilon that the variable has by its weight."""
        fraction = self.variable.weight / sum(variable.weight for variable in self.variables)
        return tuple((epsilon * fraction, count) for epsilon, count in parts)

    def _summed(self, parts: Sequence[tuple[float, int]]) -> Mechanism:
        layout = Cells(self.bits, self.variable.size, len(self.strata)) if self.variable.is_categorical else None
        return summed(self.variable.mechanism, self.bits, parts, self.max_values_per_person, layout)

    @property
    def total_is_public(self) -> bool:
        """Whether the number of values on the grid is n: there is one stratum, and nothing is missing."""
        return len(self.strata) == 1 and not self.variable.missing

    @cached_property
    def noise(self) -> Mechanism:
        """One server's noise."""
        return self._summed(self.noise_parts)

    def released(self, parts: Sequence[tuple[float, int]]) -> "ReleasedCampaign":
        """This campaign as a sum of releases has it; `parts` are their epsilon, and how many there are of each."""
        fields = {name: getattr(self, name) for name in Campaign.model_fields}
        fields["epsilon"] = max(epsilon for epsilon, _ in parts)
        return ReleasedCampaign.model_construct(**fields, original=self, parts=tuple(parts))

    @property
    def key_check_text(self) -> str:
        """What consent, status and reports say of it."""
        if self.check_keys:
            return "checked: an upload that is not one value, well made, is left out"
        return "NOT CHECKED: one dishonest party can change the result by any amount, unnoticed"

    def key_type(self, server: int) -> KeyType:
        """What the keys of one server must be. The binder is the campaign's random id."""
        return key_type(self.variable.scheme, self.bits, server, self.id)

    def stratum(self, name: str) -> int:
        return number(self.strata, name)

    @overload
    def position(self, stratum: int, index: int) -> int: ...

    @overload
    def position(self, stratum: int | NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]: ...

    def position(self, stratum: int | NDArray[np.int64], index: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
        """Where the count of a stratum at an index is read; index -1 is the end of what comes before it."""
        return (stratum << self.variable.index_bits) + index

    def strata_and_indices(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The stratum and the index of each position: what `position` puts together."""
        bits = self.variable.index_bits
        return positions >> bits, positions & ((1 << bits) - 1)

    def to_positions(self, values: Values, strata: Strata | None = None, *, first_row: int = 1) -> Positions:
        """A party's values, and their strata where there is more than one, as positions."""
        placed = self.variable.to_indices(values, first_row)
        count = placed.index.size
        names = None if strata is None else named(strata, count)
        positions = self.position(numbers(self.strata, names, count, first_row), placed.index)
        return Positions(positions, placed.below, placed.above, placed.missing)

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


class ReleasedCampaign(Campaign):
    """A campaign as a sum of its releases has it: `epsilon` and noise are theirs, its digest is the campaign's."""

    original: Campaign = Field(exclude=True)
    parts: tuple[tuple[float, int], ...] = Field(exclude=True)

    @property
    def own_epsilon(self) -> float:
        return self.original.own_epsilon

    @property
    def noise_parts(self) -> tuple[tuple[float, int], ...]:
        return self._of_variable(self.parts)

    @cached_property
    def canonical(self) -> bytes:
        return self.original.canonical

    def released(self, parts: Sequence[tuple[float, int]]) -> "ReleasedCampaign":
        return self.original.released(parts)


def check_tables(admission: str, check_keys: bool, positions: int) -> None:
    """Raise unless a campaign may take tables of counts."""
    if admission != "sites":
        raise ValueError(f'tables = true needs admission = "sites": a table is of many people, not "{admission}"')
    if not check_keys:
        raise ValueError("tables = true needs check_keys = true: a table that is not checked could add any number")
    if positions > MAX_POSITIONS:
        raise ValueError(f"a table counts at 2^20 positions at most; strata and thresholds make {positions}")


def check_digest(expected: bytes, given: bytes) -> None:
    """Raise unless both sides mean the same campaign; the error names both digests."""
    if expected != given:
        raise DigestMismatch(
            f"campaign digest {to_base64url(given)} was given, {to_base64url(expected)} is expected here"
        )
