"""Which epsilon, and how many parties, do I need?

Errors of a campaign before it exists: from the size of the grid, the number of strata, epsilon and n, nothing else.
Both servers' noise is counted. The data's own sampling error is not: these are errors of the published curve against
the curve of the very people who took part.

>>> errors = expected_errors(n=5000, thresholds=1000, epsilon=1.0)
>>> f"{errors.point:.1%} {errors.band:.1%} {errors.quantile_steps:.1f}"
'0.4% 1.7% 4.2'
>>> parties_for(0.01, thresholds=1000, epsilon=1.0), round(epsilon_for(0.01, n=5000, thresholds=1000), 2)
(2114, 0.42)
"""

import math
from dataclasses import dataclass

import numpy as np

from campaign.errors import InvalidCampaign
from campaign.mechanism import MAX_EPSILON, MIN_EPSILON, mechanism

SERVERS = 2
BAND = 0.95

# The band is the quantile of the largest deviation of so many simulated curves, at so many (2^) places at most.
_CURVES = 4000
_LEVELS = 10


@dataclass(frozen=True)
class Errors:
    """Expected errors; `point`, `worst` and `band` as fractions of n."""

    n: int
    epsilon: float
    point: float  # standard error of F at a threshold, root mean square over the grid
    worst: float  # the same at the noisiest threshold
    band: float  # half-width of a band that holds the whole curve with probability 95 %
    quantile_rank: float  # standard error of a quantile, on the probability scale
    quantile_steps: float  # the same in steps of the grid, for values spread evenly over it


def _depth(thresholds: int, strata: int) -> int:
    if thresholds < 2 or strata < 1:
        raise InvalidCampaign(f"a plan needs at least 2 thresholds and 1 stratum, got {thresholds} and {strata}")
    return max(1, (thresholds - 1).bit_length()) + (strata - 1).bit_length()


def expected_errors(
    *, n: int, thresholds: int, epsilon: float, strata: int = 1, instances: int = 1, name: str = "slice-tree"
) -> Errors:
    """The errors of a campaign of n values in all."""
    if n < 1:
        raise InvalidCampaign(f"a plan needs at least 1 value, got n = {n}")
    noise = mechanism(name, _depth(thresholds, strata), epsilon, instances)
    curves = noise.gaussian_curves(_CURVES, min(noise.depth, _LEVELS), np.random.default_rng(0))
    band = float(np.quantile(np.abs(curves).max(axis=1), BAND)) * math.sqrt(SERVERS)
    point = math.sqrt(SERVERS * noise.mean_variance())
    return Errors(
        n=n,
        epsilon=noise.epsilon,
        point=point / n,
        worst=math.sqrt(SERVERS * noise.worst_variance()) / n,
        band=band / n,
        quantile_rank=point / n,
        quantile_steps=point * thresholds / n,
    )


def parties_for(
    accuracy: float, *, thresholds: int, epsilon: float, strata: int = 1, instances: int = 1, name: str = "slice-tree"
) -> int:
    """The smallest n at which a point of the curve has this standard error, as a fraction of n."""
    _check(accuracy)
    noise = mechanism(name, _depth(thresholds, strata), epsilon, instances)
    return math.ceil(math.sqrt(SERVERS * noise.mean_variance()) / accuracy)


def epsilon_for(
    accuracy: float, *, n: int, thresholds: int, strata: int = 1, instances: int = 1, name: str = "slice-tree"
) -> float:
    """The smallest epsilon at which a point of the curve has this standard error, as a fraction of n."""
    _check(accuracy)
    depth, wanted = _depth(thresholds, strata), (accuracy * n) ** 2 / SERVERS
    low, high = math.log(0.05 * instances), math.log(MAX_EPSILON * instances)

    def variance(log_epsilon: float) -> float:
        epsilon = min(math.exp(log_epsilon), MAX_EPSILON * instances)
        return mechanism(name, depth, epsilon, instances).mean_variance()

    if variance(high) > wanted:
        raise InvalidCampaign(f"no epsilon up to {MAX_EPSILON * instances:g} reaches a standard error of {accuracy:g}")
    if variance(low) < wanted:
        # Below, the noise is on so fine a scale that its variance is proportional to 1 / epsilon^2.
        return max(MIN_EPSILON * instances, math.exp(low) * math.sqrt(variance(low) / wanted))
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if variance(middle) <= wanted else (middle, high)
    return math.exp(high)


def _check(accuracy: float) -> None:
    if not 0 < accuracy < 1:
        raise InvalidCampaign(f"accuracy is a standard error as a fraction of n, between 0 and 1, got {accuracy}")
