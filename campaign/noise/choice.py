"""The mechanisms that a campaign can choose, and the noise of several of their releases together."""

from collections.abc import Sequence

from campaign.errors import InvalidCampaign
from campaign.noise.mechanism import Mechanism
from campaign.noise.paper_tree import ExactPaperTree, PaperTree
from campaign.noise.slice_tree import SliceTree
from campaign.noise.summed import SummedPaperTree, SummedSliceTree

MECHANISMS: dict[str, type[Mechanism]] = {m.name: m for m in (SliceTree, PaperTree, ExactPaperTree)}


def mechanism(name: str, depth: int, epsilon: float, instances: int = 1) -> Mechanism:
    """The mechanism of this name."""
    if name not in MECHANISMS:
        raise InvalidCampaign(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")
    return MECHANISMS[name](depth, epsilon, instances)


def summed(name: str, depth: int, parts: Sequence[tuple[float, int]], instances: int = 1) -> Mechanism:
    """The noise of independent releases, so many at each epsilon, added up."""
    if len(parts) == 1 and parts[0][1] == 1:
        return mechanism(name, depth, parts[0][0], instances)
    each = [(mechanism(name, depth, epsilon, instances), times) for epsilon, times in parts]
    return SummedSliceTree(each) if name == SliceTree.name else SummedPaperTree(each)
