"""Which epsilon, and how many parties, do I need?

Errors of a campaign before it exists: from the size of the grid, the number of strata, epsilon and n, nothing else.
Both servers' noise is counted. The data's own sampling error is not: these are errors of the published curve against
the curve of the very people who took part.

>>> errors = expected_errors(n=5000, thresholds=1000, epsilon=1.0)
>>> f"{errors.point:.1%} {errors.band:.1%} {errors.quantile_steps:.1f}"
'0.4% 1.8% 4.2'
>>> required_n(0.01, thresholds=1000, epsilon=1.0), round(required_epsilon(0.01, n=5000, thresholds=1000), 2)
(2114, 0.42)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.mechanism import MAX_EPSILON, MIN_EPSILON_EACH, SERVERS, Mechanism
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.simulate import both_servers

Floats = NDArray[np.float64]
BAND = 0.95

# The band is the quantile of the largest deviation of so many simulated curves, at so many (2^) places at most.
_CURVES = 2000
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


def _variances(noise: Mechanism, strata: int) -> Floats:
    """The variance of a stratum's curve at a sample of places: what is published is S(t) less S at its beginning."""
    each = noise.positions >> (strata - 1).bit_length()
    starts = np.unique(np.linspace(0, strata - 1, min(strata, 16)).astype(np.int64)) * each
    # places that differ in every bit, so that no level is seen at its best or worst only
    within = np.unique((np.arange(4096) * 0.6180339887498949 % 1 * each).astype(np.int64))
    return noise.difference_variance(starts[:, np.newaxis] + within, starts[:, np.newaxis] - 1)


def _band(noise: Mechanism, strata: int) -> float:
    """The quantile of the largest deviation of a stratum's whole curve, both servers, averaged over strata."""
    levels = min(noise.depth, max(_LEVELS, (strata - 1).bit_length() + 4))
    rng, count = np.random.default_rng(0), _CURVES >> max(0, levels - _LEVELS)
    curves = both_servers(noise, count, levels, rng)
    parts = curves.reshape(len(curves), 1 << (strata - 1).bit_length(), -1)[:, :strata]
    parts[:, 1:] -= parts[:, :-1, -1:].copy()
    return float(np.quantile(np.abs(parts).max(axis=2), BAND, axis=0).mean())


def expected_errors(
    *, n: int, thresholds: int, epsilon: float, strata: int = 1, values_per_person: int = 1, name: str = "slice-tree"
) -> Errors:
    """The errors of a campaign of n values in all."""
    if n < 1:
        raise InvalidCampaign(f"a plan needs at least 1 value, got n = {n}")
    noise = mechanism(name, _depth(thresholds, strata), epsilon, values_per_person)
    variances = _variances(noise, strata)
    point = math.sqrt(SERVERS * variances.mean())
    return Errors(
        n=n,
        epsilon=noise.epsilon,
        point=point / n,
        worst=math.sqrt(SERVERS * variances.max()) / n,
        band=_band(noise, strata) / n,
        quantile_rank=point / n,
        quantile_steps=point * thresholds / n,
    )


def required_n(
    target_error: float,
    *,
    thresholds: int,
    epsilon: float,
    strata: int = 1,
    values_per_person: int = 1,
    name: str = "slice-tree",
) -> int:
    """The smallest n at which a point of the curve has this standard error, as a fraction of n."""
    _check(target_error)
    noise = mechanism(name, _depth(thresholds, strata), epsilon, values_per_person)
    return math.ceil(math.sqrt(SERVERS * _variances(noise, strata).mean()) / target_error)


def required_epsilon(
    target_error: float,
    *,
    n: int,
    thresholds: int,
    strata: int = 1,
    values_per_person: int = 1,
    name: str = "slice-tree",
) -> float:
    """The smallest epsilon at which a point of the curve has this standard error, as a fraction of n."""
    _check(target_error)
    depth, wanted = _depth(thresholds, strata), (target_error * n) ** 2 / SERVERS
    low, high = math.log(min(0.05 * values_per_person, MAX_EPSILON)), math.log(MAX_EPSILON)

    def variance(log_epsilon: float) -> float:
        epsilon = min(math.exp(log_epsilon), MAX_EPSILON)
        return float(_variances(mechanism(name, depth, epsilon, values_per_person), strata).mean())

    if variance(high) > wanted:
        raise InvalidCampaign(f"no epsilon up to {MAX_EPSILON:g} reaches a standard error of {target_error:g}")
    if variance(low) < wanted:
        # Below, the noise is on so fine a scale that its variance is proportional to 1 / epsilon^2.
        return max(MIN_EPSILON_EACH * values_per_person, math.exp(low) * math.sqrt(variance(low) / wanted))
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if variance(middle) <= wanted else (middle, high)
    return math.exp(high)


def _check(accuracy: float) -> None:
    if not 0 < accuracy < 1:
        raise InvalidCampaign(f"accuracy is a standard error as a fraction of n, between 0 and 1, got {accuracy}")
