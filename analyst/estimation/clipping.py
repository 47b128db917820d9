"""How many values lie at the ends of the grid, where those outside it were put."""

import math
from typing import TYPE_CHECKING

from analyst.estimation import uncertainty

if TYPE_CHECKING:
    from analyst.statistics.curve import Curve


def clipped(curve: "Curve") -> list[str]:
    """A note for each end of the grid whose cell holds anybody: as many at most were clipped.

    How many of them were, only the parties know. Where the noise allows that nobody is there, nothing is said.
    """
    last, told = curve.raw.size - 1, []
    errors = curve.caution * curve.noise.bin_errors([-1, last - 1], [0, last])
    for index, which, error in ((0, "first", errors[0]), (last, "last", errors[1])):
        count, half = float(curve.raw_cells[index]), uncertainty.z_score(0.95) * float(error)
        if count > max(half, 0.5):
            low, high = math.floor(count - half), math.ceil(count + half)
            at = curve.campaign.variable.grid.label(index)
            told.append(
                f"about {count:.0f} values ({low} to {high}) are in the {which} cell of the grid, that of {at}: values "
                "outside the grid were clipped to it, as many of these at most, and count as that cell's value"
            )
    return told
