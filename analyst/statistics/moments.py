"""Means, standard deviations and standardised differences from weighted sums, with far less noise than from a curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation import uncertainty
from analyst.estimation.estimate import ANY, INTERVALS, MOST_NOISE, Interval, IntervalEstimate, ratio_interval
from analyst.estimation.noisy import GUARD, Noisy, noise_factor
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 20_000  # squares of so many fit a weight


@dataclass(frozen=True, eq=False)
class MomentWeights:
    """Integer weights for the count, the sum and the sum of squares of values around a centre, in steps.

    `values`: what each grid index stands for. A centre near the mean, for example the published median, and values
    clipped to where nearly all are make the weights, and so the noise, small.
    """

    values: Floats
    centre: float
    step: float

    @classmethod
    def over(cls, values: ArrayLike, centre: float | None = None, steps: int = STEPS) -> "MomentWeights":
        """For values of this range, in so many steps. Fine steps cost nothing: noise is proportional to the range."""
        x = np.asarray(values, np.float64)
        if x.ndim != 1 or x.size < 2 or not float(np.ptp(x)) > 0 or steps < 1:
            raise InvalidQuery("moments need at least two different values of the grid")
        middle = float(x.min() + x.max()) / 2 if centre is None else centre
        return cls(x, middle, float(np.ptp(x)) / steps)

    @property
    def whole(self) -> Integers:
        return np.rint((self.values - self.centre) / self.step).astype(np.int64)

    def rows(self, stratum: int, strata: int) -> Integers:
        """Count, sum and sum of squares over the cells of one stratum of several."""
        w = self.whole
        found = np.zeros((3, strata, w.size), np.int64)
        found[:, stratum] = np.ones_like(w), w, w * w
        return found.reshape(3, -1)


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy count, sum and sum of squares of one stratum, and the shape of its values.

    Without a noisy count (`n` known), the count's noise is 0. Skewness and kurtosis only enter sampling errors of
    standard deviations and standardised differences; take them from the published curve.
    """

    sums: Noisy
    weights: MomentWeights
    skewness: float = 0.0
    kurtosis: float = 3.0

    @classmethod
    def of_known_n(cls, n: int, sums: Noisy, weights: MomentWeights, **shape: float) -> "Moments":
        """From sum and sum of squares of all n values."""
        covariance = np.zeros((3, 3))
        covariance[1:, 1:] = sums.covariance
        return cls(Noisy(np.concatenate([[float(n)], sums.values]), covariance), weights, **shape)

    @property
    def _count(self) -> float:
        count, error = float(self.sums.values[0]), math.sqrt(max(float(self.sums.covariance[0, 0]), 0.0))
        return count if count > GUARD * error and count > 0 else math.nan

    @property
    def _wider(self) -> float:
        error = math.sqrt(max(float(self.sums.covariance[0, 0]), 0.0))
        return 1.0 if error == 0 else uncertainty.caution(self._count / error - GUARD)

    def central(self) -> tuple[float, float]:
        """Mean and variance in steps; the square of a noisy mean is too large by its noise's variance."""
        n = self._count
        mean, square = (float(v) / n for v in self.sums.values[1:])
        slopes = np.array([-mean, 1.0, 0.0]) / n
        return mean, square - mean**2 + float(slopes @ self.sums.covariance @ slopes)

    def slopes(self) -> Floats:
        """Of mean and variance by count, sum and sum of squares."""
        n = self._count
        mean, square = (float(v) / n for v in self.sums.values[1:])
        return np.array([[-mean, 1.0, 0.0], [2 * mean**2 - square, -2 * mean, 1.0]]) / n

    def noise(self) -> Floats:
        """The covariance of mean and variance by the noise, in steps."""
        return np.asarray(self._wider**2 * self.slopes() @ self.sums.covariance @ self.slopes().T)

    def sampling(self) -> Floats:
        """The same by the sample."""
        n, v = self._count, max(self.central()[1], 0.0)
        both = self.skewness * v**1.5
        return np.array([[v, both], [both, max(self.kurtosis - 1, 0.0) * v**2]]) / n

    def mean(self, confidence: float = 0.95) -> IntervalEstimate:
        """With Fieller's intervals: sum and count are both noisy."""
        n, step, centre = self._count, self.weights.step, self.weights.centre
        low, high = (float(v) for v in (self.weights.whole.min(), self.weights.whole.max()))
        bounds = centre + step * low, centre + step * high
        if math.isnan(n):
            return IntervalEstimate("mean", n, n, n, bounds, None, dict.fromkeys(INTERVALS, bounds), confidence)
        value, variance = self.central()
        c = (self._wider * noise_factor(confidence)) ** 2 * self.sums.covariance
        ranges: dict[Interval, tuple[float, float]] = {}
        for kind in INTERVALS:
            by_sample = n * max(variance, 0.0) if kind == "population" else 0.0
            quadratic = c[1, 1] + by_sample, -2 * c[0, 1], c[0, 0]
            z = uncertainty.z_score(confidence)
            ends = ratio_interval(float(self.sums.values[1]), n, quadratic, z, (low, high))
            ranges[kind] = min(float(ends[0]), value), max(float(ends[1]), value)
        scaled = {k: (centre + step * a, centre + step * b) for k, (a, b) in ranges.items()}
        errors = [step * math.sqrt(max(float(m[0, 0]), 0.0)) for m in (self.noise(), self.sampling())]
        inside = float(np.clip(centre + step * value, *bounds))
        return IntervalEstimate("mean", inside, errors[0], errors[1], bounds, None, scaled, confidence)

    def deviation(self, confidence: float = 0.95) -> IntervalEstimate:
        """The standard deviation: the root of the variance and of its limits. No value where noise hides it."""
        everything: dict[Interval, tuple[float, float]] = dict.fromkeys(INTERVALS, (0.0, math.inf))
        if math.isnan(self._count):
            return IntervalEstimate(
                "standard deviation", math.nan, math.nan, math.nan, everything[INTERVALS[0]], None, everything
            )
        v, step, z = self.central()[1], self.weights.step, uncertainty.z_score(confidence)
        noise = noise_factor(confidence) ** 2 * float(self.noise()[1, 1])
        sampling = float(self.sampling()[1, 1])
        ranges: dict[Interval, tuple[float, float]] = {}
        for kind in INTERVALS:
            half = z * math.sqrt(noise + (sampling if kind == "population" else 0.0))
            ranges[kind] = step * math.sqrt(max(v - half, 0.0)), step * math.sqrt(max(v + half, 0.0))
        hidden = v <= 0 or math.sqrt(noise) > MOST_NOISE * v
        root = math.nan if hidden else math.sqrt(v)
        errors = [step * math.sqrt(max(float(m[1, 1]), 0.0)) / (2 * root) for m in (self.noise(), self.sampling())]
        return IntervalEstimate(
            "standard deviation", step * root, errors[0], errors[1], (0.0, math.inf), None, ranges, confidence
        )


def standardised_difference(
    first: Moments, second: Moments, shared: Noisy, confidence: float = 0.95
) -> IntervalEstimate:
    """Second mean - first, over the root mean square of both standard deviations.

    `shared`: all six sums together, the first stratum's before the second's, with the covariance between them.
    """
    if first.weights.step != second.weights.step or first.weights.centre != second.weights.centre:
        raise InvalidQuery("both strata need the same weights")
    (m1, v1), (m2, v2) = first.central(), second.central()
    pooled = (v1 + v2) / 2
    name = "standardised mean difference"
    if not pooled > 0:
        return IntervalEstimate(
            name, math.nan, math.nan, math.nan, ANY, None, dict.fromkeys(INTERVALS, ANY), confidence
        )
    root = math.sqrt(pooled)
    value = (m2 - m1) / root
    by = np.array([-1 / root, -value / (4 * pooled), 1 / root, -value / (4 * pooled)])
    slopes = np.zeros((4, 6))
    slopes[:2, :3], slopes[2:, 3:] = first.slopes(), second.slopes()
    wider = max(first._wider, second._wider)
    noise = float(by @ slopes @ shared.covariance @ slopes.T @ by) * wider**2
    sampling = float(by[:2] @ first.sampling() @ by[:2] + by[2:] @ second.sampling() @ by[2:])
    spread = math.sqrt(float(first.noise()[1, 1] + second.noise()[1, 1])) / 2
    if spread > MOST_NOISE * pooled:
        return IntervalEstimate(
            name, math.nan, math.nan, math.nan, ANY, None, dict.fromkeys(INTERVALS, ANY), confidence
        )
    errors, z = (math.sqrt(max(noise, 0.0)), math.sqrt(max(sampling, 0.0))), uncertainty.z_score(confidence)
    by_noise = noise_factor(confidence) * errors[0]
    # what bends the quotient: a relative error of the variance of s moves it by 3/8 s^2 of itself
    bend = abs(value) * 0.375 * (z * spread / pooled) ** 2
    halves = {"noise": z * by_noise + bend, "population": z * math.hypot(by_noise, errors[1]) + bend}
    ranges: dict[Interval, tuple[float, float]] = {k: (value - halves[k], value + halves[k]) for k in INTERVALS}
    return IntervalEstimate(name, value, errors[0], errors[1], ANY, None, ranges, confidence)


def stack_rows(weights: MomentWeights, strata: Sequence[int], count: int) -> Integers:
    """The rows of several strata of `count`, one below the other, for one query."""
    return np.vstack([weights.rows(stratum, count) for stratum in strata])
