"""The mechanisms that a campaign can choose, and the noise of several of their releases together."""

from collections.abc import Sequence

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.flat import Cells, Flat
from fss_ecdf.campaign.noise.gauss import GaussFlat, GaussTree
from fss_ecdf.campaign.noise.mechanism import Mechanism
from fss_ecdf.campaign.noise.paper_tree import ExactPaperTree, PaperTree
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.summed import SummedFlat, SummedPaperTree, SummedSliceTree

MECHANISMS: dict[str, type[Mechanism]] = {m.name: m for m in (SliceTree, PaperTree, ExactPaperTree)}
CATEGORY_MECHANISMS: dict[str, type[Flat]] = {m.name: m for m in (Flat, GaussFlat)}

# Mechanisms that no campaign can choose yet: of studies with many variables, whose budget is rho.
RHO_MECHANISMS: dict[str, type[GaussTree] | type[GaussFlat]] = {m.name: m for m in (GaussTree, GaussFlat)}


def mechanism(
    name: str, depth: int, epsilon: float, values_per_person: int = 1, cells: Cells | None = None
) -> Mechanism:
    """The mechanism of this name; that of categories, where their cells are given."""
    if cells is not None:
        return Flat(depth, epsilon, values_per_person, size=cells.size, strata=cells.strata)
    if name not in MECHANISMS:
        raise InvalidCampaign(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")
    return MECHANISMS[name](depth, epsilon, values_per_person)


def summed(
    name: str,
    depth: int,
    parts: Sequence[tuple[float, int]],
    values_per_person: int = 1,
    cells: Cells | None = None,
) -> Mechanism:
    """The noise of independent releases, so many at each epsilon, added up."""
    each = [(mechanism(name, depth, epsilon, values_per_person, cells), times) for epsilon, times in parts]
    if len(parts) == 1 and parts[0][1] == 1:
        return each[0][0]
    if cells is not None:
        return SummedFlat(each, cells)
    return SummedSliceTree(each) if name == SliceTree.name else SummedPaperTree(each)
