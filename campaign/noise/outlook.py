"""What a campaign will be good for, before anybody uploads: errors of its statistics for an expected n.

By both servers' noise alone, for values spread evenly over the grid and the strata; `planning` has the curve's own
errors. Sampling error is not counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from campaign.errors import InvalidCampaign
from campaign.noise import planning
from campaign.noise.mechanism import CURVE_BITS, SERVERS
from campaign.noise.simulate import both_servers
from campaign.spec import Campaign

BINS = 20
_CURVES, _LEVELS = 1000, 10


@dataclass(frozen=True)
class Outlook:
    """Standard errors: of fractions of a stratum's values, of a quantile in steps of the grid, of the AUC."""

    n: int
    point: float
    band: float
    quantile_steps: float
    bin_share: float
    total_share: float
    auc: float | None


def outlooks(campaign: Campaign, expected: Sequence[int]) -> list[Outlook]:
    """For each n. Noise does not depend on n, so that all errors are proportional to 1 / n."""
    if not expected or min(expected) < 1:
        raise InvalidCampaign(f"a plan needs at least 1 value, got n = {min(expected, default=0)}")
    strata = len(campaign.strata)
    about = {"thresholds": campaign.grid.size, "strata": strata, "instances": campaign.max_instances}
    errors = planning.expected_errors(n=1, epsilon=campaign.epsilon, name=campaign.mechanism, **about)
    area = _auc_error(campaign) if strata > 1 else None
    of_bins, of_totals = _bin_error(campaign), _total_error(campaign)
    return [
        Outlook(
            n=n,
            point=errors.point * share,
            band=errors.band * share,
            quantile_steps=errors.quantile_steps * share,
            bin_share=of_bins * share,
            total_share=of_totals * share,
            auc=None if area is None else area * share,
        )
        for n, share in ((n, strata / n) for n in expected)
    ]


def asked_by_points(campaign: Campaign) -> bool:
    """Whether no whole curve is ever made of it, by servers as they come."""
    return campaign.bits > CURVE_BITS


def _bin_error(campaign: Campaign) -> float:
    """Of the count in one of so many even bins, root mean square."""
    size = campaign.grid.size
    ends = np.unique(np.linspace(-1, size - 1, min(BINS, size) + 1).round().astype(np.int64))
    return math.sqrt(SERVERS * campaign.noise.difference_variance(ends[1:], ends[:-1]).mean())


def _total_error(campaign: Campaign) -> float:
    """Of how many values a stratum has; n is public, so that of a single stratum has none."""
    if len(campaign.strata) == 1:
        return 0.0
    starts = np.arange(min(len(campaign.strata), 16)) << campaign.grid.bits
    ends = starts + campaign.grid.size - 1
    return math.sqrt(SERVERS * campaign.noise.difference_variance(ends, starts - 1).mean())


def _auc_error(campaign: Campaign) -> float:
    """Of the area between two strata, times the number of values in each.

    The area is the mean, over positives, of the share of negatives below: its noise is the mean of that of both curves
    over the grid, less what their totals take along.
    """
    strata_bits = campaign.stratum_bits
    levels = min(campaign.bits, max(_LEVELS, strata_bits + 6))
    curves = both_servers(campaign.noise, _CURVES >> max(0, levels - 12), levels, np.random.default_rng(0))
    parts = curves.reshape(len(curves), 1 << strata_bits, -1)
    parts[:, 1:] -= parts[:, :-1, -1:].copy()
    used = max(1, round(parts.shape[2] * campaign.grid.size / (1 << campaign.grid.bits)))
    two = parts[:, :2, :used]
    rates = np.arange(1, used + 1) / used
    means = (two - rates * two[:, :, -1:]).mean(axis=2)
    return float((means[:, 0] - means[:, 1]).std())
