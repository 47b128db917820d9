"""Algorithm 2 of the paper, corrected, as a query for sums: observed and expected counts of score groups.

For each group, from one score, exclusive, to another: O_0 and O_1 count the values of both strata, E_1 adds up their
scores and E_0 one minus their scores, in thousandths. A value adds 1 to one O and p + (1 - p) = 1 to two E, so that
replacing it changes all of them by at most 4 together, in units of 1 and of a thousand thousandths.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.sums import Integers

# Expected counts are sums of scores in units of one thousandth; rounded before they are added up.
SCORE_UNIT = 1000


@dataclass(frozen=True, eq=False)
class ScoreGroupSums:
    """Weights over the cells of both strata and units: rows O_0, O_1, E_0, E_1, each for every group."""

    upper_ends: NDArray[np.float64]
    weights: Integers
    units: tuple[int, ...]

    @property
    def scale(self) -> NDArray[np.float64]:
        """What a sum is divided by to be a number of values."""
        return np.array(self.units, np.float64)


def score_group_sums(campaign: Campaign, upper_ends: Sequence[float]) -> ScoreGroupSums:
    """Of groups up to these scores. Raises InvalidQuery where a campaign or its grid has no such groups."""
    if len(campaign.strata) != 2:
        raise InvalidQuery(
            f"groups need a campaign of two strata (negative, positive), this one has {len(campaign.strata)}"
        )
    grid = campaign.variable.grid
    if grid.values != "float" or grid.all_thresholds[0] < 0 or grid.all_thresholds[-1] > 1:
        raise InvalidQuery("groups need a grid of scores between 0 and 1")
    ends = grid.index_at([float(x) for x in upper_ends])
    if not ends.size or not (np.diff(ends, prepend=-1) > 0).all():
        raise InvalidQuery("the upper ends of groups must increase by at least one step of the grid")
    index, score = np.arange(grid.size), np.rint(grid.all_thresholds * SCORE_UNIT).astype(np.int64)
    starts = np.concatenate([[-1], ends[:-1]])
    inside = ((index <= ends[:, np.newaxis]) & (index > starts[:, np.newaxis])).astype(np.int64)
    nobody = np.zeros((ends.size, campaign.variable.size), np.int64)  # missing values are in no group
    more = campaign.variable.size - grid.size
    score, inside = np.pad(score, (0, more)), np.pad(inside, ((0, 0), (0, more)))
    observed = [np.hstack([inside, nobody]), np.hstack([nobody, inside])]
    expected = [np.tile(inside * p, 2) for p in (SCORE_UNIT - score, score)]
    units = np.repeat([1, SCORE_UNIT], 2 * ends.size)
    return ScoreGroupSums(grid.thresholds(ends), np.vstack([*observed, *expected]), tuple(units.tolist()))
