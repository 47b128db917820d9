"""Two scores of the same people: the difference of their AUCs, and their rank correlation, from sums over pairs.

A pair variable has a cell for each (stratum, bin of the first score, bin of the second). It is not released; sums over
it are. Weights come from the published curves of both scores, which costs nothing more (docs/privacy.md).

**AUC.** With F the distribution of a score among cases and G among controls, AUC(F, G) is linear in each. With
estimates F', G' from a curve, AUC(F, G) = AUC(F, G') + AUC(F', G) - AUC(F', G') + AUC(F - F', G - G'): the noise of
curves enters by the last term only, at second order. AUC(F, G') is the mean over cases of their placement among the
estimated controls, a weighted sum; the difference of two scores is one sum over pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation import uncertainty
from analyst.estimation.estimate import INTERVALS, MOST_ERROR, Interval, IntervalEstimate
from analyst.estimation.noisy import Noisy, noise_factor
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.mechanism import SERVERS, Mechanism
from fss_ecdf.campaign.noise.simulate import both_servers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Weights are multiples of 1 / UNIT. Noise is proportional to the range of weights, so that fine ones cost nothing.
UNIT = 100_000
CLIP = 0.6  # largest difference of two placements that counts in full
_RUNS = 400


def _distribution(cells: ArrayLike) -> Floats:
    counts = np.maximum(np.asarray(cells, np.float64), 0.0)
    if counts.ndim != 1 or not counts.sum() > 0:
        raise InvalidQuery("an estimated distribution needs counts of cells, some of them above 0")
    return np.asarray(counts / counts.sum())


@dataclass(frozen=True, eq=False)
class Placements:
    """Estimates of one score from its published curve: cells of controls and of cases."""

    controls: Floats
    cases: Floats

    @classmethod
    def from_cells(cls, controls: ArrayLike, cases: ArrayLike) -> "Placements":
        return cls(_distribution(controls), _distribution(cases))

    @property
    def of_cases(self) -> Floats:
        """For a case in each bin: the fraction of controls below it, ties by half."""
        return np.asarray(np.cumsum(self.controls) - self.controls / 2)

    @property
    def of_controls(self) -> Floats:
        """For a control in each bin: the fraction of cases above it, ties by half."""
        return np.asarray(1 - np.cumsum(self.cases) + self.cases / 2)

    @property
    def area(self) -> float:
        return float(self.of_cases @ self.cases)


@dataclass(frozen=True, eq=False)
class PairedAreas:
    """AUC of the first score less that of the second, on the same people: weights, and what follows from the sums."""

    first: Placements
    second: Placements
    controls: float  # how many there are, by the published curves
    cases: float

    @property
    def reference(self) -> float:
        """The difference that the curves alone give."""
        return self.first.area - self.second.area

    def _differences(self) -> tuple[Floats, Floats]:
        """Placement of the first score less that of the second, less the reference: controls, cases."""
        both = [
            np.subtract.outer(a, b) - self.reference
            for a, b in (
                (self.first.of_controls, self.second.of_controls),
                (self.first.of_cases, self.second.of_cases),
            )
        ]
        return np.clip(both[0], -CLIP, CLIP), np.clip(both[1], -CLIP, CLIP)

    def difference_row(self) -> Integers:
        """Weights of one sum over all pairs, controls first: controls count as cases over controls."""
        controls, cases = self._differences()
        scaled = np.concatenate([(self.cases / self.controls * controls).ravel(), cases.ravel()])
        return np.asarray(np.rint(UNIT * scaled).astype(np.int64)[np.newaxis])

    def squares_row(self) -> Integers:
        """Weights of one sum of squares, from which the paired sampling variance follows."""
        controls, cases = self._differences()
        scaled = np.concatenate([(self.cases / self.controls * controls).ravel(), cases.ravel()])
        return np.asarray(np.rint(UNIT * scaled**2).astype(np.int64)[np.newaxis])

    def difference(
        self, difference: Noisy, squares: Noisy, remainder: float, confidence: float = 0.95
    ) -> IntervalEstimate:
        """From the results of both sums. `remainder`: the standard error of what the curves' noise leaves.

        The sampling variance is DeLong's, from placements: sum of squares over the square of the number of cases. It is
        noisy itself, so that one standard error of it is added.
        """
        scale = UNIT * self.cases
        value = float(np.clip(self.reference + float(difference.values[0]) / scale, -1.0, 1.0))
        own = math.sqrt(float(difference.covariance[0, 0])) / scale
        noise = math.hypot(own, remainder)
        spread = math.sqrt(float(squares.covariance[0, 0]))
        variance = (max(float(squares.values[0]), 0.0) + spread) / (scale * self.cases)
        z, wide = uncertainty.z_score(confidence), noise_factor(confidence)
        halves = {"noise": z * wide * noise, "population": z * math.hypot(wide * noise, math.sqrt(variance))}
        ranges: dict[Interval, tuple[float, float]] = {
            kind: (max(-1.0, value - halves[kind]), min(1.0, value + halves[kind])) for kind in INTERVALS
        }
        error = math.hypot(noise, math.sqrt(variance))
        p_value = math.erfc(abs(value) / error / math.sqrt(2)) if error > 0 else None
        name = "difference of AUCs"
        if noise > MOST_ERROR:
            return IntervalEstimate(name, math.nan, noise, math.nan, (-1.0, 1.0), None, ranges, confidence)
        return IntervalEstimate(name, value, noise, math.sqrt(variance), (-1.0, 1.0), p_value, ranges, confidence)


def curve_remainder(noise: Mechanism, placements: Placements, sizes: tuple[float, float], bits: int) -> float:
    """The standard error of AUC(F - F', G - G') by the noise of a curve of two strata, by simulation (a fixed seed).

    `sizes`: controls and cases; `bits`: of a position within its stratum. Smoothed curves have less of it.
    """
    curves = both_servers(noise, _RUNS, noise.depth, np.random.default_rng(0))
    steps = np.diff(curves, axis=1, prepend=0.0).reshape(_RUNS, -1, 1 << bits)  # one stratum after the other
    off = []
    for stratum, (known, size) in enumerate(zip((placements.controls, placements.cases), sizes, strict=True)):
        cells = steps[:, stratum, : known.size]
        off.append((cells - cells.sum(axis=1, keepdims=True) * known) / size)
    below = np.cumsum(off[0], axis=1) - off[0] / 2
    return float(np.sqrt(np.mean(np.sum(below * off[1], axis=1) ** 2)))


@dataclass(frozen=True, eq=False)
class RankCorrelation:
    """Spearman's correlation by one sum of products of reference ranks, which come from the published curves."""

    first: Floats
    second: Floats

    @classmethod
    def from_cells(cls, first: ArrayLike, second: ArrayLike) -> "RankCorrelation":
        return cls(_distribution(first), _distribution(second))

    @staticmethod
    def ranks(shares: Floats) -> Floats:
        """Mid-ranks from -1/2 to 1/2."""
        return np.asarray(np.cumsum(shares) - shares / 2 - 0.5)

    def _spread(self, shares: Floats) -> float:
        return math.sqrt(float(shares @ self.ranks(shares) ** 2))

    def row(self) -> Integers:
        """Weights over all pairs of bins: products of ranks, from -1 to 1 in multiples of 1 / UNIT."""
        products = 4 * np.outer(self.ranks(self.first), self.ranks(self.second))
        return np.rint(UNIT * products).astype(np.int64).reshape(1, -1)

    def curve_error(self, value: float, noises: Sequence[Mechanism], n: int) -> float:
        """What the noise of both curves does to the correlation by moving reference ranks, to first order.

        With ranks off by d, the sum is off by the mean of d(x) R(y), and R(y) is on average value times R(x).
        """
        total = 0.0
        for shares, noise in zip((self.first, self.second), noises, strict=True):
            pull = shares * self.ranks(shares)
            slopes = np.zeros((1, noise.positions))
            slopes[0, : shares.size] = (pull.sum() - np.cumsum(pull) + pull / 2) / n
            variance = SERVERS * float(noise.functional_covariance(slopes)[0, 0])
            total += (value / self._spread(shares) ** 2) ** 2 * variance
        return math.sqrt(total)

    def estimate(
        self, result: Noisy, n: int, noises: Sequence[Mechanism] = (), confidence: float = 0.95
    ) -> IntervalEstimate:
        """Fisher's transform; the sampling error of Bonett and Wright. `noises`: of both curves."""
        scale = 4 * UNIT * n * self._spread(self.first) * self._spread(self.second)
        if not scale > 0:
            raise InvalidQuery("a rank correlation needs two scores that are not constant")
        value = float(np.clip(float(result.values[0]) / scale, -1.0, 1.0))
        own = math.sqrt(float(result.covariance[0, 0])) / scale
        noise = math.hypot(own, self.curve_error(value, noises, n) if noises else 0.0)
        inner = float(np.clip(value, -0.999999, 0.999999))
        sampling = math.sqrt((1 + inner**2 / 2) / max(n - 3, 1))
        z, wide, ranges = (
            uncertainty.z_score(confidence),
            noise_factor(confidence),
            dict[Interval, tuple[float, float]](),
        )
        for kind in INTERVALS:
            # noise moves the correlation itself; the sample moves its transform
            arms = [z * wide * noise, z * wide * noise]
            if kind == "population":
                ends = [math.tanh(math.atanh(inner) + sign * z * sampling) for sign in (-1, 1)]
                arms = [math.hypot(arm, abs(end - inner)) for arm, end in zip(arms, ends, strict=True)]
            ranges[kind] = max(-1.0, value - arms[0]), min(1.0, value + arms[1])
        by_sample = sampling * (1 - inner**2)
        shown = math.nan if noise > MOST_ERROR else value
        return IntervalEstimate("rank correlation", shown, noise, by_sample, (-1.0, 1.0), None, ranges, confidence)
