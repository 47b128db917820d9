"""The mechanisms that a campaign can choose."""

from campaign.errors import InvalidCampaign
from campaign.noise.mechanism import Mechanism
from campaign.noise.paper_tree import ExactPaperTree, PaperTree
from campaign.noise.slice_tree import SliceTree

MECHANISMS: dict[str, type[Mechanism]] = {m.name: m for m in (SliceTree, PaperTree, ExactPaperTree)}


def mechanism(name: str, depth: int, epsilon: float, instances: int = 1) -> Mechanism:
    """The mechanism of this name."""
    if name not in MECHANISMS:
        raise InvalidCampaign(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")
    return MECHANISMS[name](depth, epsilon, instances)
