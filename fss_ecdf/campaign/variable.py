"""Variable: one measured quantity of a campaign, its grid, its scheme and mechanism, and the indices of its values.

>>> from fss_ecdf.campaign.grid import LinearGrid
>>> age = Variable(name="age", unit="years", grid=LinearGrid(**{"values": "integer", "from": 0, "to": 110}))
>>> age.label, age.index_bits, age.to_indices([42, 130])
('age (years)', 7, OnGrid(index=array([ 42, 110]), below=0, above=1))
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field

from fss_ecdf.campaign.array_inputs import Values
from fss_ecdf.campaign.fields import PLAIN
from fss_ecdf.campaign.grid import Grid, OnGrid


class Variable(BaseModel):
    """What is measured, on which grid, and by which scheme and mechanism. The campaign has its strata."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(min_length=1, max_length=80), PLAIN]
    unit: Annotated[str, Field(max_length=40), PLAIN] = ""
    weight: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)
    grid: Grid
    mechanism: Literal["slice-tree", "paper-tree", "paper-tree-exact"] = "slice-tree"
    scheme: Literal["dcf", "dpf"] = "dcf"

    @property
    def label(self) -> str:
        """The name and the unit, as axes and tables show them."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def size(self) -> int:
        """How many positions one stratum has."""
        return self.grid.size

    @property
    def index_bits(self) -> int:
        """Bits of a position within its stratum."""
        return self.grid.bits

    def to_indices(self, values: Values, first_row: int = 1) -> OnGrid:
        """The index of each value within its stratum; a bad value is an error that names its row."""
        return self.grid.to_indices(values, first_row)


def _only_one(variables: tuple[Variable, ...]) -> tuple[Variable, ...]:
    if len(variables) != 1:
        raise ValueError(f"a campaign has exactly one variable, this one {len(variables)}")
    return variables


Variables = Annotated[
    tuple[Variable, ...],
    FailFast(),
    AfterValidator(_only_one),
    BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
]
