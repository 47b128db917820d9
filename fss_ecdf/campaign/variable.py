"""Variable: one measured quantity of a campaign, on a grid or in categories, and the indices of its values.

>>> from fss_ecdf.campaign.grid import LinearGrid
>>> age = Variable(name="age", unit="years", grid=LinearGrid(**{"values": "integer", "from": 0, "to": 110}))
>>> age.label, age.index_bits, age.to_indices([42, 130])
('age (years)', 7, OnGrid(index=array([ 42, 110]), below=0, above=1, missing=0))
>>> smoker = Variable(name="smoker", categories=("never", "former", "current"), missing=True)
>>> smoker.cells, smoker.mechanism, smoker.scheme, smoker.to_indices(["former", ""]).index
(('never', 'former', 'current', 'missing'), 'flat', 'dpf', array([1, 3]))
"""

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from fss_ecdf.campaign.array_inputs import Values, many, names
from fss_ecdf.campaign.error_text import listed, short
from fss_ecdf.campaign.errors import InvalidQuery, InvalidValue
from fss_ecdf.campaign.fields import PLAIN, Name
from fss_ecdf.campaign.grid import Grid, Index, OnGrid
from fss_ecdf.campaign.missing import is_missing

MISSING = "missing"  # the category of values that are not known
MAX_CELLS = 4096  # categories of all strata: servers and analysts keep what each has to do with each other
FLAT = "flat"


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[Name, ...], FailFast(), BeforeValidator(_as_tuple)]


class Variable(BaseModel):
    """What is measured, on a grid or in categories, and by which scheme and mechanism. The campaign has its strata."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(min_length=1, max_length=80), PLAIN]
    unit: Annotated[str, Field(max_length=40), PLAIN] = ""
    weight: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)
    own_grid: Grid | None = Field(default=None, alias="grid")
    categories: Annotated[tuple[Name, ...] | None, BeforeValidator(_as_tuple)] = None
    missing: bool = False
    mechanism: Literal["slice-tree", "paper-tree", "paper-tree-exact", "flat"] = "slice-tree"
    scheme: Literal["dcf", "dpf"] = "dcf"

    @model_validator(mode="before")
    @classmethod
    def _of_categories(cls, data: object) -> object:
        """Categories have a mechanism of their own, and point keys unless others are named."""
        if isinstance(data, dict) and data.get("categories") is not None:
            return {"mechanism": FLAT, "scheme": "dpf", **data}
        return data

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if (self.own_grid is None) == (self.categories is None):
            raise ValueError(f"the variable {self.name!r} needs either a grid or categories")
        if (self.mechanism == FLAT) != self.is_categorical:
            raise ValueError(f'mechanism = "{FLAT}" is for categories, and categories have no other')
        if self.categories is not None:
            _check_categories(self.categories, self.missing)
            if self.unit:
                raise ValueError("categories have no unit")
        return self

    @property
    def is_categorical(self) -> bool:
        return self.categories is not None

    @property
    def grid(self) -> Grid:
        """The grid; a problem for whoever asks categories for what only numbers have."""
        if self.own_grid is None:
            raise InvalidQuery(
                f"the variable {short(repr(self.name))} has categories, not numbers: only counts and proportions of "
                "its categories can be queried"
            )
        return self.own_grid

    @property
    def cells(self) -> tuple[str, ...]:
        """What is counted besides a curve: the categories, and those that are missing."""
        return (*(self.categories or ()), *((MISSING,) if self.missing else ()))

    @property
    def label(self) -> str:
        """The name and the unit, as axes and tables show them."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def summary(self) -> str:
        """In one line and without words of others: the ends of the grid, or the number of categories."""
        told = f"{self.value_count} categories"
        if self.categories is None:
            told = f"{self.grid.size} thresholds from {self.grid.label(0)} to {self.grid.label(self.grid.size - 1)}"
        return f"{told}; missing values are counted" if self.missing else told

    @property
    def value_count(self) -> int:
        """How many thresholds or categories there are."""
        return self.grid.size if self.categories is None else len(self.categories)

    @property
    def size(self) -> int:
        """How many positions one stratum has; the last one is that of missing values, where they are counted."""
        return self.value_count + self.missing

    @property
    def index_bits(self) -> int:
        """Bits of a position within its stratum."""
        return max(1, (self.size - 1).bit_length())

    def is_value(self, text: object) -> bool:
        """Whether this is a value of the variable, on or off its grid; what is missing is none."""
        if self.categories is None:
            return self.grid.is_value(text)
        return names([text])[0].strip() in self.categories

    def to_indices(self, values: Values, first_row: int = 1) -> OnGrid:
        """The index of each value within its stratum; a bad value is an error that names its row."""
        if self.categories is None and not self.missing:
            return self.grid.to_indices(values, first_row)
        given = list(many(values))
        # A category may be called "none" or "-": what is a value is not missing.
        absent = np.array([self.missing and is_missing(v) and not self.is_value(v) for v in given], bool)
        known = [(row, v) for row, (v, gone) in enumerate(zip(given, absent, strict=True), first_row) if not gone]
        found = self._known_indices(known)
        index = np.full(len(given), self.value_count, np.int64)
        index[~absent] = found.index
        return OnGrid(index, found.below, found.above, int(absent.sum()))

    def _known_indices(self, rows: list[tuple[int, Any]]) -> OnGrid:
        """Of values that are not missing, with their rows."""
        if self.categories is None:
            try:
                return self.grid.to_indices([value for _, value in rows])
            except InvalidValue:
                for row, value in rows:
                    self.grid.numbers([value], row)  # names the right row
                raise
        at = {name: i for i, name in enumerate(self.categories)}
        index = np.zeros(len(rows), np.int64)
        for i, (row, value) in enumerate(rows):
            name = names([value])[0].strip()
            if name not in at:
                expected = listed([short(repr(known)) for known in self.cells], ", ")
                raise InvalidValue(f"row {row}: {short(repr(name))} is not one of {expected}")
            index[i] = at[name]
        return OnGrid(index, 0, 0)

    def labels(self, index: Index) -> list[Any]:
        """Thresholds or categories as JSON values."""
        if self.categories is None:
            return list(self.grid.labels(index))
        return [self.cells[int(i)] for i in index]


def _check_categories(categories: tuple[str, ...], missing: bool) -> None:
    if len(categories) < 2 or len(set(categories)) != len(categories):
        raise ValueError("categories are two or more different names")
    if missing and MISSING in categories:
        raise ValueError(f'missing = true adds the category "{MISSING}": leave it out of categories')


def _only_one(variables: tuple[Variable, ...]) -> tuple[Variable, ...]:
    if len(variables) != 1:
        raise ValueError(f"a campaign has exactly one variable, this one {len(variables)}")
    return variables


Variables = Annotated[
    tuple[Variable, ...],
    FailFast(),
    AfterValidator(_only_one),
    BeforeValidator(_as_tuple),
]
