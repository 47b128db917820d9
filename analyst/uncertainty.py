"""How far an answer may be from the truth: from the campaign's public parameters, never from the data.

All errors are those of the noise: of the published curve against the curve of the very people who took part. What
other people would have answered is a matter of sampling, which no function here adds, unless it says so.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from campaign.errors import InvalidQuery
from campaign.noise.mechanism import SERVERS, mechanism
from campaign.noise.simulate import both_servers
from campaign.spec import Campaign

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

# A simultaneous band is a quantile over this many simulated curves, fewer where a curve is long.
_MOST_CURVES, _FEWEST_CURVES, _NUMBERS = 1000, 100, 1 << 23
_AT_ONCE = 1 << 21
_MOST_WEIGHTS = 1 << 26


def z_score(confidence: float) -> float:
    """How many standard errors to both sides hold a normal variable with this probability."""
    if not 0 < confidence < 1:
        raise InvalidQuery(f"a confidence level lies between 0 and 1, got {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def count_errors(campaign: Campaign, stratum: str, index: Index | None = None) -> Floats:
    """Standard errors of a stratum's counts, at all thresholds or some. The last of a single stratum is n, exactly."""
    return np.sqrt(_count_variances(campaign, stratum, _all(campaign) if index is None else index))


def bin_errors(campaign: Campaign, stratum: str, above: ArrayLike, up_to: ArrayLike) -> Floats:
    """Standard errors of the counts above one index (-1: from the start) and up to another."""
    start, last = _start(campaign, stratum), campaign.grid.size - 1
    low, high = np.asarray(above, np.int64), np.asarray(up_to, np.int64)
    if len(campaign.strata) == 1:
        # n minus the count below: nothing at the upper end is noisy
        variance = campaign.noise.difference_variance(np.where(high == last, -1, high), low)
    else:
        variance = campaign.noise.difference_variance(start + high, start + low)
    return np.sqrt(SERVERS * variance)


def rate_errors(campaign: Campaign, stratum: str, rates: Floats, total: float, index: Index | None = None) -> Floats:
    """Standard errors of the counts as fractions of the stratum's total, which is noisy if there are other strata.

    With noise e_i in the count and e in the total, a fraction is off by (e_i - F_i e) / total.
    """
    at, last = _all(campaign) if index is None else index, np.array([campaign.grid.size - 1])
    variance = _count_variances(campaign, stratum, at)
    if len(campaign.strata) > 1:
        of_total = _count_variances(campaign, stratum, last)
        shared = (variance + of_total - bin_errors(campaign, stratum, at, last) ** 2) / 2
        variance = np.maximum(variance - 2 * rates * shared + rates**2 * of_total, 0.0)
    return np.asarray(np.sqrt(variance) / total)


def covariance(campaign: Campaign, weights: Mapping[str, Floats]) -> Floats:
    """The covariance of k sums over cells: `weights` maps strata to what each cell counts, (k, size)."""
    k = next(iter(weights.values())).shape[0]
    if k << campaign.bits > _MOST_WEIGHTS:
        raise InvalidQuery(f"{k} sums over 2^{campaign.bits} positions need too much memory; take fewer groups")
    rows = np.zeros((k, 1 << campaign.bits))
    for stratum, w in weights.items():
        start = _start(campaign, stratum)
        rows[:, start : start + campaign.grid.size] = w
    if len(campaign.strata) == 1:
        # The last cell is what is missing to n, so its noise is minus that of all others.
        last = campaign.grid.size - 1
        rows[:, :last] -= rows[:, last : last + 1]
        rows[:, last:] = 0.0
    return SERVERS * campaign.noise.functional_covariance(rows)


def error_of_sum(campaign: Campaign, weights: Mapping[str, Floats]) -> float:
    """The standard error of one sum over cells."""
    return math.sqrt(covariance(campaign, {name: w[np.newaxis] for name, w in weights.items()})[0, 0])


def simultaneous_factor(campaign: Campaign, rates: Mapping[str, Floats], confidence: float, seed: int = 0) -> float:
    """c such that all fractions of all these strata lie within c standard errors of the truth, together.

    The quantile of the largest standardised deviation of simulated curves, whose noise is distributed as that of two
    servers. `rates` are the fractions that the errors depend on where a stratum's total is noisy.
    """
    z_score(confidence)
    errors = {name: rate_errors(campaign, name, r, 1.0) for name, r in rates.items()}
    positions = 1 << campaign.bits
    count = min(_MOST_CURVES, max(_FEWEST_CURVES, _NUMBERS // positions))
    rank = math.ceil((count + 1) * confidence)
    if rank > count:
        raise InvalidQuery(
            f"a band over {positions} positions is simulated with {count} curves, enough for a confidence of at most "
            f"{count / (count + 1):.4f}, got {confidence}"
        )
    batch = min(count, max(1, _AT_ONCE // positions))
    largest: list[float] = []
    while len(largest) < count:
        number = len(largest) // batch
        noise = _both_servers(
            campaign.mechanism, campaign.bits, campaign.epsilon, campaign.max_instances, batch, seed, number
        )
        parts = [_standardised(campaign, noise, name, rates[name], errors[name]) for name in rates]
        largest.extend(np.max(parts, axis=0)[: count - len(largest)])
    # The order statistic whose coverage is at least the wanted one; noise is integer, and its own value must be inside.
    return float(np.sort(largest)[rank - 1]) * (1 + 1e-9)


@lru_cache(maxsize=4)
def _both_servers(name: str, depth: int, epsilon: float, instances: int, count: int, seed: int, number: int) -> Floats:
    """Simulated noise of both servers at all positions. Kept, because the bands of one release share it."""
    noise, rng = mechanism(name, depth, epsilon, instances), np.random.default_rng([seed, number])
    return both_servers(noise, count, depth, rng)


def _standardised(campaign: Campaign, noise: Floats, stratum: str, rates: Floats, errors: Floats) -> Floats:
    """The largest deviation of each simulated curve, in standard errors."""
    start = _start(campaign, stratum)
    part = noise[:, start : start + campaign.grid.size]
    if len(campaign.strata) > 1:
        part = part - (noise[:, start - 1 : start] if start else 0.0)
        part = part - rates * part[:, -1:]
    known = errors > 1e-9
    return np.asarray(np.abs(part[:, known] / errors[known]).max(axis=1, initial=0.0))


def _start(campaign: Campaign, stratum: str) -> int:
    return campaign.stratum(stratum) << campaign.grid.bits


def _all(campaign: Campaign) -> Index:
    return np.arange(campaign.grid.size)


def _count_variances(campaign: Campaign, stratum: str, index: Index) -> Floats:
    return bin_errors(campaign, stratum, np.full_like(index, -1), index) ** 2
