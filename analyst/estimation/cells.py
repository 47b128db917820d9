"""What a cell of the grid stands for, and counts of cells."""

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.grid import Grid

Floats = NDArray[np.float64]


def cells(counts: Floats) -> Floats:
    """How many values lie in each cell of the grid, from counts at or below its thresholds."""
    return np.diff(counts, prepend=0.0)


def representatives(grid: Grid, on_grid: bool = False) -> Floats:
    """The value that stands for a cell's values, which lie above one threshold and at or below the next.

    Its middle, since a value is rounded up to the grid: for whole numbers and dates the mean of those in the cell,
    exact where the grid has every number. The first cell also holds what was clipped, and is taken at its threshold.
    `on_grid` says that values were measured in steps of the grid, so that thresholds are exact.
    """
    tau = grid.all_thresholds
    if on_grid:
        return tau
    before = np.concatenate([tau[:1], tau[:-1]])
    if grid.values != "float":
        before = np.minimum(before + 1, tau)
    return np.asarray((before + tau) / 2)


def on_simplex(totals: Floats, n: float) -> Floats:
    """The nearest numbers that are not negative and add up to n."""
    ordered = np.sort(totals)[::-1]
    excess = (np.cumsum(ordered) - n) / np.arange(1, totals.size + 1)
    keep = np.flatnonzero(ordered > excess)
    return np.asarray(np.maximum(totals - excess[keep[-1] if keep.size else 0], 0.0))
