"""What a statistic may need of a campaign. What a campaign supports is decided by these and nowhere else.

This module loads nothing else, because the command line's help needs it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fss_ecdf.campaign.campaign import Campaign

    Says = Callable[[Campaign], str]


def _nothing(campaign: "Campaign") -> str:  # noqa: ARG001
    return ""


@dataclass(frozen=True)
class Need:
    """`words`: what is needed. `remedy`: how to change the campaign. `naming`: what the analyst must name besides."""

    words: str
    is_met: "Callable[[Campaign], bool]"
    remedy: "Says" = _nothing
    naming: "Says" = _nothing

    def missing(self, campaign: "Campaign") -> str:
        """Why the campaign does not have it, and what to change; nothing if it has it."""
        if self.is_met(campaign):
            return ""
        return "; ".join(part for part in (f"it needs {self.words}", self.remedy(campaign)) if part)


def _ends(campaign: "Campaign") -> list[float]:
    import numpy as np

    return [float(x) for x in campaign.variable.grid.thresholds(np.array([0, campaign.variable.grid.size - 1]))]


def _are_probabilities(campaign: "Campaign") -> bool:
    first, last = _ends(campaign)
    return campaign.variable.grid.values == "float" and first >= 0 and last <= 1


def _has_whole_curves(campaign: "Campaign") -> bool:
    from fss_ecdf.campaign.noise.expected_errors import asked_by_points

    return not asked_by_points(campaign)


def _smaller(campaign: "Campaign") -> str:
    """How to get below the size up to which servers make whole curves."""
    from fss_ecdf.campaign.noise.mechanism import CURVE_BITS

    most = 1 << (CURVE_BITS - campaign.stratum_bits)
    why = f"2^{campaign.bits} positions are more than 2^{CURVE_BITS}"
    if campaign.variable.is_categorical:
        return f"{why}; take fewer categories or strata"
    if campaign.variable.grid.kind != "linear":
        return f"{why}; take at most {most} thresholds, or fewer strata"
    first, last = _ends(campaign)
    return f"{why}; take a step of at least {_round_up((last - first) / (most - 1)):g}, or fewer strata"


def _round_up(x: float) -> float:
    """To 1, 2 or 5 and zeros."""
    power = 10.0 ** math.floor(math.log10(x))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= x * (1 - 1e-9))


def _naming(count: int, word: str) -> "Says":
    return lambda campaign: f"of {word} strata that are named" if len(campaign.strata) > count else ""


NUMBERS = Need("a grid", lambda campaign: not campaign.variable.is_categorical, lambda _: "categories have no order")
CATEGORIES = Need("categories, or missing = true", lambda campaign: bool(campaign.variable.cells))
TWO_OR_MORE_STRATA = Need("two strata", lambda campaign: len(campaign.strata) >= 2)
WHOLE_CURVES = Need("whole curves", _has_whole_curves, _smaller)
DISTRIBUTION = Need(
    'kind = "distribution"',
    lambda campaign: campaign.kind == "distribution",
    lambda _: "strata of a survival campaign say whether the event was seen",
)
SURVIVAL = Need('kind = "survival" and strata "event" and "censored"', lambda campaign: campaign.kind == "survival")
WAVES = Need("a campaign with [waves]", lambda campaign: campaign.waves is not None)
TWO_STRATA = Need("two strata", lambda campaign: len(campaign.strata) >= 2, naming=_naming(2, "two"))
FOUR_STRATA = Need("four strata", lambda campaign: len(campaign.strata) >= 4, naming=_naming(0, "four"))
ONLY_TWO_STRATA = Need("exactly two strata, without and with the event", lambda campaign: len(campaign.strata) == 2)
PROBABILITIES = Need("scores between 0 and 1", _are_probabilities, lambda _: "a grid from 0 to 1 has them")
AMOUNTS = Need("values that are not negative", lambda campaign: _ends(campaign)[0] >= 0)
RESERVE = Need(
    "a reserve of epsilon", lambda campaign: campaign.reserve > 0, lambda _: "reserve = 0 leaves nothing to spend"
)
