"""The public grid of thresholds, and how a value becomes an index on it.

A grid is fixed when a campaign is created and never computed from data. A value x gets the smallest index i with
tau_i >= x, so that the count at tau_i is the number of values at most tau_i: a tie belongs to the threshold. Values
beyond the last threshold are clipped to it, values below the first get index 0; both are counted.

Thresholds are computed in decimal and rounded once, so 0.1, 0.2, 0.3 are the doubles that everybody else means by
these literals, and every party computes the same ones.
"""

import math
import re
from abc import abstractmethod
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.errors import InvalidQuery, InvalidValue

MAX_BITS = 32
MAX_LISTED = 1 << 22
# Fifteen decimal digits survive a double, and so does arithmetic on them.
MAX_EXACT = 10**15

Kind = Literal["float", "integer", "date"]
Floats = NDArray[np.float64]
Index = NDArray[np.int64]

_EPOCH = date(1970, 1, 1).toordinal()


# What people write in a CSV file; not "1_000", "nan" or digits of other scripts, which float() would take.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# What a campaign calls a day; `fromisoformat` takes weeks, and any character between a day and a time.
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _short(value: object) -> str:
    """A value in an error message."""
    if isinstance(value, int) and abs(value) > MAX_EXACT:
        return "a huge number"
    return str(value)[:40] if isinstance(value, np.generic | float) else repr(value)[:40]


@dataclass(frozen=True)
class OnGrid:
    """Values on a grid: their indices, how many lay below its first and above its last threshold, and are missing."""

    index: Index
    below: int
    above: int
    missing: int = 0


def day_number(text: str) -> int:
    """Days since 1970-01-01 of an ISO date; of a date with a time, its day."""
    try:
        return (date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)).toordinal() - _EPOCH
    except ValueError:
        raise InvalidValue(f"{_short(text)} is not a date like 2026-03-31") from None


def _plain(x: float | str) -> float:
    return day_number(x) if isinstance(x, str) else x


def _exact(x: object) -> object:
    """Numbers of a grid are doubles: 1 and 1.0 are the same campaign, and -0.0 is 0.0."""
    if isinstance(x, int) and not isinstance(x, bool):
        if abs(x) > MAX_EXACT:
            raise ValueError(f"whole numbers of a grid are at most {MAX_EXACT}")
        return float(x)
    if isinstance(x, float):
        if not math.isfinite(x):
            raise ValueError("numbers of a grid must be finite")
        return x + 0.0
    if isinstance(x, str) and not _DAY.fullmatch(x):
        raise ValueError("a date is written like 2026-03-31")
    return x


Number = Annotated[float, BeforeValidator(_exact)]
End = Annotated[float | str, BeforeValidator(_exact)]


class _Grid(BaseModel):
    """What all grids have in common. `values` says what is measured: any number, whole numbers, or dates."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    values: Kind = "float"

    def __eq__(self, other: object) -> bool:
        # By its fields: a list of thresholds that was computed and kept says nothing more, and is no truth value.
        return isinstance(other, _Grid) and self.model_dump() == other.model_dump()

    @property
    @abstractmethod
    def size(self) -> int:
        """How many thresholds."""

    @abstractmethod
    def thresholds(self, index: Index) -> Floats:
        """The thresholds at these indices, as numbers; dates are days since 1970-01-01."""

    @abstractmethod
    def _first_at_least(self, x: Floats) -> Index:
        """The smallest index whose threshold is at least x, or `size` where there is none."""

    @property
    def bits(self) -> int:
        """Bits of an index."""
        return max(1, (self.size - 1).bit_length())

    @cached_property
    def all_thresholds(self) -> Floats:
        if self.size > MAX_LISTED:
            raise InvalidQuery(f"this grid has {self.size} thresholds; at most {MAX_LISTED} are listed at once")
        return self.thresholds(np.arange(self.size))

    def to_indices(self, values: Values, first_row: int = 1) -> OnGrid:
        """The indices of many values; a bad one is an error that names its row."""
        x = self.numbers(values, first_row)
        ends = self.thresholds(np.array([0, self.size - 1]))
        index = np.minimum(self._first_at_least(x), self.size - 1)
        return OnGrid(index, int((x < ends[0]).sum()), int((x > ends[1]).sum()))

    def numbers(self, values: Values, first_row: int = 1) -> Floats:
        """Values as numbers, or an error that names the first row that is not one of this grid's kind."""
        values = many(values)
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and self.values != "date":
            x = values.astype(np.float64)
        else:
            x = np.array([self._number(v, row) for row, v in enumerate(values, first_row)], np.float64)
        bad = ~np.isfinite(x)
        if self.values != "float":
            bad |= x != np.floor(x)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidValue(f"row {row + first_row}: {_short(values[row])} is not {self._what()}")
        return x

    def is_value(self, text: object) -> bool:
        """Whether this is something that the grid can hold, on it or off its ends."""
        try:
            self.numbers([text])
        except InvalidValue:
            return False
        return True

    def _what(self) -> str:
        return {"float": "a finite number", "integer": "a whole number", "date": "a date"}[self.values]

    def _number(self, value: object, row: int) -> float:
        # A value that is refused never reaches a server, and its owner has to find it: name it.
        try:
            if self.values == "date":
                if isinstance(value, date):
                    return value.toordinal() - _EPOCH
                return day_number(value.strip()) if isinstance(value, str) else math.nan
            if isinstance(value, str):
                return float(value) if _NUMBER.fullmatch(value.strip()) else math.nan
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                raise ValueError
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidValue(f"row {row}: {_short(value)} is not {self._what()}") from None

    def label(self, index: int) -> str:
        """A threshold as people write it."""
        x = float(self.thresholds(np.array([index]))[0])
        if self.values == "date":
            return date.fromordinal(int(x) + _EPOCH).isoformat()
        return str(int(x)) if self.values == "integer" else f"{x:.10g}"

    def labels(self, index: Index) -> list[float | int | str]:
        """Thresholds as JSON values: numbers, or ISO dates."""
        if self.values == "date":
            return [self.label(int(i)) for i in index]
        values = self.thresholds(index).tolist()
        return [int(v) for v in values] if self.values == "integer" else values

    def index_at(self, thresholds: Values) -> Index:
        """The largest index whose threshold is at most each given value, or -1: between thresholds F is flat."""
        x = self.numbers(thresholds)
        at = self._first_at_least(x)
        exact = (at < self.size) & (self.thresholds(np.minimum(at, self.size - 1)) == x)
        return np.where(exact, at, at - 1)


class LinearGrid(_Grid):
    """from, from + step, ..., to."""

    kind: Literal["linear"] = "linear"
    start: End = Field(alias="from")
    stop: End = Field(alias="to")
    step: Number = 1.0

    @model_validator(mode="after")
    def _valid(self) -> Self:
        whole = self.values != "float"
        numbers = [_plain(self.start), _plain(self.stop), self.step]
        if self.values == "date" and not (isinstance(self.start, str) and isinstance(self.stop, str)):
            raise ValueError("a date grid runs from one ISO date to another")
        if self.values != "date" and (isinstance(self.start, str) or isinstance(self.stop, str)):
            raise ValueError('only a grid of values = "date" has dates for ends')
        if whole and any(x != int(x) for x in numbers):
            raise ValueError("from, to and step must be whole numbers")
        if self.step <= 0:
            raise ValueError(f"step must be positive, got {self.step}")
        first, last, step, _ = self._scaled
        if max(abs(first), abs(last)) > MAX_EXACT:
            raise ValueError("from, to and step have too many digits: 15 in all are exact")
        if last <= first or (last - first) % step:
            raise ValueError("to must be from plus a positive whole number of steps")
        if self.size > 1 << MAX_BITS:
            raise ValueError(f"a grid has at most 2^{MAX_BITS} thresholds, this one {self.size}")
        return self

    @cached_property
    def _scaled(self) -> tuple[int, int, int, int]:
        """from, to and step as integers over a common power of ten: their decimal literals, exactly."""
        exact = [Fraction(repr(_plain(x))) for x in (self.start, self.stop, self.step)]
        for scale in (10**digits for digits in range(23)):
            if all((x * scale).denominator == 1 for x in exact):
                first, last, step = (int(x * scale) for x in exact)
                return first, last, step, scale
        raise ValueError("from, to and step have at most 22 decimal places")

    @property
    def size(self) -> int:
        first, last, step, _ = self._scaled
        return (last - first) // step + 1

    def thresholds(self, index: Index) -> Floats:
        # Both operands are exact in a double, so the quotient is the decimal number, correctly rounded.
        first, _, step, scale = self._scaled
        return np.asarray((first + index * step) / float(scale))

    def _first_at_least(self, x: Floats) -> Index:
        first, _, step, scale = self._scaled
        guess = np.ceil((np.clip(x, *self.thresholds(np.array([0, self.size - 1]))) * scale - first) / step)
        at = np.clip(guess.astype(np.int64), 0, self.size - 1)
        # The guess is off by at most one step, by rounding; the thresholds themselves decide.
        at = np.where((at > 0) & (self.thresholds(np.maximum(at - 1, 0)) >= x), at - 1, at)
        return np.where(self.thresholds(at) < x, at + 1, at)


class _ListedGrid(_Grid):
    """A grid whose thresholds are kept as an array."""

    @property
    @abstractmethod
    def _list(self) -> Floats: ...

    @property
    def size(self) -> int:
        return self._list.size

    def thresholds(self, index: Index) -> Floats:
        return np.asarray(self._list[index])

    def _first_at_least(self, x: Floats) -> Index:
        return np.searchsorted(self._list, x, side="left")


class LogGrid(_ListedGrid):
    """`count` thresholds from `from` to `to`, each the same factor above the last."""

    kind: Literal["logarithmic"]
    values: Literal["float"] = "float"
    start: Number = Field(alias="from")
    stop: Number = Field(alias="to")
    count: int

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if not 2 <= self.count <= MAX_LISTED:
            raise ValueError(f"count must be 2 to {MAX_LISTED}, got {self.count}")
        if not 0 < self.start < self.stop:
            raise ValueError(f"0 < from < to must hold, got from {self.start} to {self.stop}")
        if not (np.diff(self._list) > 0).all():
            raise ValueError(f"{self.count} thresholds from {self.start} to {self.stop} are not all different doubles")
        return self

    @cached_property
    def _list(self) -> Floats:
        # In decimal, because logarithms in binary floating point differ between machines.
        with localcontext(Context(prec=50)):
            tau, stop = Decimal(repr(self.start)), Decimal(repr(self.stop))
            factor = ((stop / tau).ln() / (self.count - 1)).exp()
            thresholds = []
            for _ in range(self.count - 1):
                thresholds.append(float(tau))
                tau *= factor
        return np.array([*thresholds, float(stop)])


class ExplicitGrid(_ListedGrid):
    """Thresholds one by one, strictly increasing."""

    kind: Literal["explicit"]
    at: Annotated[tuple[End, ...], FailFast()]

    @model_validator(mode="before")
    @classmethod
    def _tuple(cls, data: object) -> object:
        if isinstance(data, dict) and isinstance(data.get("at"), list):
            return {**data, "at": tuple(data["at"])}
        return data

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if not 2 <= len(self.at) <= MAX_LISTED:
            raise ValueError(f"a grid has 2 to {MAX_LISTED} thresholds, this one {len(self.at)}")
        if any(isinstance(x, str) != (self.values == "date") for x in self.at):
            raise ValueError('thresholds are numbers, or ISO dates if values = "date"')
        if self.values == "integer" and (self._list % 1).any():
            raise ValueError(f"every threshold must be {self._what()}")
        down = np.flatnonzero(np.diff(self._list) <= 0)
        if down.size:
            raise ValueError(f"thresholds must increase; {self.at[down[0] + 1]} follows {self.at[down[0]]}")
        return self

    @cached_property
    def _list(self) -> Floats:
        return np.array([_plain(x) for x in self.at], np.float64)


Grid = Annotated[LinearGrid | LogGrid | ExplicitGrid, Field(discriminator="kind")]
