"""What a campaign will be good for, before anybody uploads: errors of its statistics for an expected n.

By both servers' noise alone, for values spread evenly over the grid, in strata of expected proportions: the errors of
the rarest stratum, relative to its own number of values. Sampling error is not counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.mechanism import CURVE_BITS, SERVERS
from fss_ecdf.campaign.noise.proportions import BINS, Layout, area_error, check_proportions

__all__ = [
    "BINS",
    "LEVELS",
    "POINTS",
    "ExpectedErrors",
    "asked_by_points",
    "campaign_errors",
    "category_errors",
    "quantile_questions",
]

POINTS = 14  # in one question to servers with any number of uploads
LEVELS = 5  # of quantiles that are usually asked for


@dataclass(frozen=True)
class ExpectedErrors:
    """Standard errors: of fractions of the rarest stratum's values, of its quantiles in steps, of the AUC."""

    n: int
    point: float
    band: float
    quantile_steps: float
    bin_share: float
    total_share: float
    auc: float | None


def campaign_errors(
    campaign: Campaign, expected: Sequence[int], proportions: Sequence[float] | None = None
) -> list[ExpectedErrors]:
    """For each n. Noise does not depend on n, so that all errors are proportional to 1 / n.

    `proportions`: the expected share of each stratum; equal ones unless they are given. The AUC is that of the rarest
    stratum against the largest.
    """
    if not expected or min(expected) < 1:
        raise InvalidCampaign(f"a plan needs at least 1 value, got n = {min(expected, default=0)}")
    shares = check_proportions(proportions, len(campaign.strata))
    variable = campaign.variable
    layout = Layout(campaign.noise, variable.grid.size, 1 << variable.index_bits, len(shares), variable.size)
    rarest = len(shares) - 1 - shares[::-1].index(min(shares))
    largest = shares.index(max(shares))
    errors, share = layout.errors(rarest), shares[rarest]
    area = area_error(layout, largest, rarest, (shares[largest], share)) if len(shares) > 1 else None
    return [
        ExpectedErrors(
            n=n,
            point=errors.point / (n * share),
            band=errors.band / (n * share),
            quantile_steps=errors.point / (n * share) * variable.grid.size,
            bin_share=errors.bin / (n * share),
            total_share=errors.total / (n * share),
            auc=None if area is None else area / n,
        )
        for n in expected
    ]


def category_errors(
    campaign: Campaign, expected: Sequence[int], proportions: Sequence[float] | None = None
) -> list[ExpectedErrors]:
    """The same for categories, which have no curve: `bin_share` is the error of a proportion."""
    if not expected or min(expected) < 1:
        raise InvalidCampaign(f"a plan needs at least 1 value, got n = {min(expected, default=0)}")
    share = min(check_proportions(proportions, len(campaign.strata)))
    total = campaign.noise.difference_variance([campaign.position(0, campaign.variable.size - 1)], [-1])
    cell, of_total = (math.sqrt(SERVERS * float(v[0])) for v in (campaign.noise.variance([0]), total))
    none = math.nan
    return [ExpectedErrors(n, none, none, none, cell / (n * share), of_total / (n * share), None) for n in expected]


def quantile_questions(campaign: Campaign) -> int:
    """At most: five searches for each level, for itself and both ends of two intervals, one point a bit, in batches."""
    return 1 + campaign.variable.index_bits * -(-5 * LEVELS // POINTS)


def asked_by_points(campaign: Campaign) -> bool:
    """Whether no whole curve is ever made of it, by servers as they come."""
    return campaign.bits > CURVE_BITS
