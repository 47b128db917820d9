"""Bands that hold a whole curve at once: quantiles of the largest deviation of simulated curves.

The noise is simulated as the servers draw it, given what is public: at the ends of a curve few nodes add up, and a
Gaussian of the same variance has too light tails there. For the population, the noise's band and that of Dvoretzky,
Kiefer, Wolfowitz and Massart share what a band may miss evenly, and their widths add up.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import public_constraints
from analyst.estimation.uncertainty import CountNoise, weights_over_positions, z_score
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.simulate import both_servers, largest_deviations
from fss_ecdf.campaign.noise.slice_tree import SliceTree

Floats = NDArray[np.float64]
Strata = tuple[str, ...]

# A simultaneous band is a quantile over this many simulated curves, fewer where a curve is long.
_MOST_CURVES, _FEWEST_CURVES, _NUMBERS = 1000, 100, 1 << 23
_AT_ONCE = 1 << 21
# On more positions than these the factor is that of the whole tree: so many places hardly differ in it.
_MOST_POSITIONS = 1 << 16
# Of so many positions nearly every curve deviates further somewhere, and the wanted quantile lies above.
_FLOOR = 4.8


def curves_for(campaign: Campaign) -> int:
    return min(_MOST_CURVES, max(_FEWEST_CURVES, _NUMBERS >> campaign.bits))


def is_simulated(campaign: Campaign, confidence: float) -> bool:
    """Whether enough curves are simulated for a band of this confidence."""
    count = curves_for(campaign)
    return math.ceil((count + 1) * confidence) <= count


def simultaneous_factor(campaign: Campaign, rates: Mapping[Strata, Floats], confidence: float, seed: int = 0) -> float:
    """c such that all fractions of all these strata lie within c standard errors of the truth, together.

    `rates` are the fractions that the errors depend on where a stratum's total is noisy.
    """
    z_score(confidence)
    count = curves_for(campaign)
    rank = math.ceil((count + 1) * confidence)
    if rank > count:
        raise InvalidQuery(
            f"a band over {1 << campaign.bits} positions is simulated with {count} curves, enough for a confidence of "
            f"at most {count / (count + 1):.4f}, got {confidence}"
        )
    if 1 << campaign.bits > _MOST_POSITIONS and isinstance(campaign.noise, SliceTree):
        about = campaign.bits, campaign.epsilon, campaign.max_values_per_person, count, seed
        largest = _of_whole_tree(*about, _FLOOR)
        if np.sort(largest)[rank - 1] <= _FLOOR:
            largest = _of_whole_tree(*about, 0.0)
    else:
        largest = _largest(campaign, rates, seed)
    # The order statistic whose coverage is at least the wanted one; noise is integer, and its own value must be inside.
    return float(np.sort(largest)[rank - 1]) * (1 + 1e-9)


@lru_cache(maxsize=4)
def _of_whole_tree(depth: int, epsilon: float, instances: int, count: int, seed: int, floor: float) -> Floats:
    noise = mechanism(SliceTree.name, depth, epsilon, instances)
    assert isinstance(noise, SliceTree)
    return largest_deviations(noise, count, np.random.default_rng(seed), floor)


def _largest(campaign: Campaign, rates: Mapping[Strata, Floats], seed: int) -> Floats:
    """The largest deviation of each simulated curve, in standard errors, over all strata."""
    variances = {strata: CountNoise(campaign, strata).rate_variances(r) for strata, r in rates.items()}
    largest: list[float] = []
    for noise in simulated(campaign, seed):
        parts = [_standardised(campaign, noise, s, rates[s], np.sqrt(v)) for s, v in variances.items()]
        largest.extend(np.max(parts, axis=0))
    return np.array(largest)


def simulated(campaign: Campaign, seed: int = 0) -> Iterator[Floats]:
    """Noise of both servers at all released positions given what is public, (some, positions) at a time.

    Bands, tests and errors by simulation of a release all use the same: it is drawn once.
    """
    count = curves_for(campaign)
    batch = min(count, max(1, _AT_ONCE >> campaign.bits))
    for number, start in enumerate(range(0, count, batch)):
        yield _given_facts(public_constraints.public_constraints(campaign), min(batch, count - start), seed, number)


def simulated_parts(
    campaign: Campaign, strata: Sequence[Strata], most: int, seed: int = 0
) -> Iterator[tuple[Floats, ...]]:
    """The noise of the counts of several strata, one simulated release after the other, up to so many."""
    left = most
    for noise in simulated(campaign, seed):
        parts = [stratum_part(campaign, noise[:left], chosen) for chosen in strata]
        yield from zip(*parts, strict=True)
        left -= len(noise)
        if left <= 0:
            return


@lru_cache(maxsize=4)
def _given_facts(facts: public_constraints.PublicConstraints, count: int, seed: int, number: int) -> Floats:
    """Kept, because the bands and tests of one release share it."""
    rng = np.random.default_rng([seed, number])
    noise = both_servers(facts.noise, count, facts.noise.depth, rng)
    return facts.adjust(noise[:, : facts.released], 0.0)


def stratum_part(campaign: Campaign, noise: Floats, strata: Strata) -> Floats:
    """The noise of the counts of strata, pooled, at all thresholds, from that at all positions."""
    size, total = campaign.variable.grid.size, np.zeros((len(noise), campaign.variable.grid.size))
    for name in strata:
        start = campaign.position(campaign.stratum(name), 0)
        total += noise[:, start : start + size] - (noise[:, start - 1 : start] if start else 0.0)
    return total


def _standardised(campaign: Campaign, noise: Floats, strata: Strata, rates: Floats, errors: Floats) -> Floats:
    part = stratum_part(campaign, noise, strata)
    part = part - rates * part[:, -1:]
    known = errors > 1e-6 * max(errors.max(), 1e-9)
    return np.asarray(np.abs(part[:, known] / errors[known]).max(axis=1, initial=0.0))


def dkw(total: float, confidence: float) -> float:
    """Half the width of a band that holds the population's F around that of a sample of this size (Massart)."""
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * max(total, 1.0)))


def joint_factor(
    campaign: Campaign, weights: Mapping[str, Floats], confidence: float, sampling: Floats | None = None, seed: int = 0
) -> float:
    """c such that k sums over cells all lie within c standard errors of the truth, together.

    The noise is simulated as the servers draw it, since its tails are heavier than a Gaussian's where few nodes count;
    `sampling`, the covariance of the sums over samples, is taken as Gaussian. Of more than 2^16 positions, or where
    more confidence is wanted than so many curves can tell, the noise is Gaussian, too.
    """
    z_score(confidence)
    rows = weights_over_positions(campaign, weights)
    covariance = public_constraints.public_constraints(campaign).covariance(rows)
    whole = covariance if sampling is None else covariance + sampling
    errors = np.sqrt(np.maximum(np.diag(whole), 0.0))
    known = errors > 1e-12
    if not known.any():
        return 0.0
    count, rng = curves_for(campaign), np.random.default_rng([seed, 11])
    rank = math.ceil((count + 1) * confidence)
    if 1 << campaign.bits > _MOST_POSITIONS or rank > count:
        return float(np.quantile(_farthest(_gaussian(whole, 4000, rng), errors, known), confidence))
    largest: list[float] = []
    for noise in simulated(campaign, seed):
        draws = np.diff(noise, axis=1, prepend=0.0) @ rows[:, : noise.shape[1]].T
        if sampling is not None:
            draws = draws + _gaussian(sampling, len(draws), rng)
        largest.extend(_farthest(draws, errors, known))
    return float(np.sort(largest)[rank - 1])


def _farthest(draws: Floats, errors: Floats, known: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.abs(draws[:, known] / errors[known]).max(axis=1))


def _gaussian(covariance: Floats, runs: int, rng: np.random.Generator) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    scale = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(rng.normal(size=(runs, values.size)) @ scale.T)
