"""One stratum's published curve, or that of several pooled: fractions, bands, quantiles, the mean.

Counts come from the servers with noise. `raw` are these counts given what is public
(analyst/estimation/public_constraints.py); `counts` is what they became by smoothing, which costs no privacy and ends
at the stratum's total.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation import bands, smooth, uncertainty
from analyst.estimation.cells import cells, representatives
from analyst.estimation.clipping import clipped
from analyst.estimation.estimate import (
    INTERVALS,
    Estimate,
    Estimates,
    Interval,
    IntervalEstimate,
    check_interval,
    limits_as_columns,
    ratio_interval,
)
from analyst.estimation.limited import limited
from analyst.options import QUARTILES, Smoothing
from analyst.present.table import Columns, Tabular, as_labels
from analyst.statistics import quantile
from analyst.statistics.ecdf_points import Points
from analyst.statistics.histogram import Histogram, histogram
from analyst.statistics.quantile import Quantiles
from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.slice_tree import SliceTree

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

# A total below so many standard errors is not told from nothing.
LEAST_TOTAL = 2.0


def smoothed(campaign: Campaign, raw: Floats, total: float, how: Smoothing) -> Floats:
    """A stratum's counts at all thresholds after smoothing, from 0 to its total."""
    if how not in get_args(Smoothing):
        raise InvalidQuery(f"smoothing is one of {', '.join(get_args(Smoothing))}, got {how!r}")
    if how == "none":
        return raw
    counts = _smoothed(campaign, raw, total, how)
    counts[-1] = total  # every value lies at or below the last threshold
    return counts


def _smoothed(campaign: Campaign, raw: Floats, total: float, how: Smoothing) -> Floats:
    if how == "isotonic":
        return smooth.isotonic(raw, total)
    noise = campaign.noise
    if how == "limited":
        if not isinstance(noise, SliceTree):  # its splits have no noise of their own: nothing better is known
            return smooth.isotonic(raw, total)
        return limited(raw, total, SERVERS * noise.level_variances[: campaign.variable.index_bits])
    # The noise of the last cells of a grid that does not fill its tree is not known to cancel.
    whole = campaign.total_is_public and campaign.variable.grid.size == 1 << campaign.variable.index_bits
    return smooth.tree(
        raw,
        total,
        norm=int(how[1]),
        mechanism=campaign.variable.mechanism,
        depth=campaign.variable.index_bits,
        total_is_public=whole,
    )


def label(strata: Sequence[str]) -> str:
    return " + ".join(strata)


@dataclass(frozen=True)
class Curve(Tabular, picture="ecdf"):
    """How many of a stratum's values are at or below each threshold of the grid."""

    campaign: Campaign
    strata: tuple[str, ...]
    n: int
    raw: Floats
    counts: Floats
    smoothing: Smoothing
    total_error: float = 0.0
    on_grid: bool = False
    inverted: Floats | None = None  # isotonic counts, where `counts` were smoothed in a way that quantiles are not

    def __repr__(self) -> str:
        return f"<Curve of {self.stratum!r}: {self.counts.size} thresholds, n = {self.n}, epsilon = {self.epsilon:g}>"

    @property
    def stratum(self) -> str:
        return label(self.strata)

    @property
    def epsilon(self) -> float:
        return self.campaign.epsilon

    @property
    def thresholds(self) -> Floats:
        return self.campaign.variable.grid.all_thresholds

    @cached_property
    def noise(self) -> uncertainty.CountNoise:
        return uncertainty.CountNoise(self.campaign, self.strata)

    @cached_property
    def standard_errors(self) -> Floats:
        """Of the raw counts, by the noise; smoothing makes them smaller on average."""
        return self.noise.errors()

    @cached_property
    def total(self) -> float:
        """How many values the stratum has: n if it is the only one, else a noisy count that must be clear of zero."""
        return self._guarded(float(self.counts[-1]))

    @cached_property
    def raw_total(self) -> float:
        """The total that raw fractions are of: with it, the error of a fraction is exactly (e_i - F_i e) / total."""
        return self._guarded(float(self.raw[-1]))

    def _guarded(self, last: float) -> float:
        if last < max(1.0, LEAST_TOTAL * self.total_error):
            raise TooNoisy(
                f"stratum {self.stratum!r} has {last:.0f} values, give or take {self.total_error:.0f}: no fraction of "
                "them can be told. Join strata, or take a larger epsilon or more parties"
            )
        return last

    @cached_property
    def caution(self) -> float:
        """What noise errors are multiplied by, since numbers of this stratum are shown only above `LEAST_TOTAL`."""
        return uncertainty.caution(self.raw_total / self.total_error - LEAST_TOTAL) if self.total_error > 0 else 1.0

    @property
    def notes(self) -> list[str]:
        """What to know before believing a fraction."""
        if self.total < 4 * self.total_error:
            told = [f"the total of {self.stratum!r}, {self.total:.0f}, is within four standard errors of zero"]
            wider = f"{self.caution:.1f} times as wide" if self.caution < 10 else "as wide as can be"
            return [f"{told[0]}: noise intervals are {wider}, since a smaller one would not be shown"]
        return []

    @cached_property
    def fractions(self) -> Floats:
        """F: the counts divided by the total."""
        return self.counts / self.total

    @cached_property
    def fraction_errors(self) -> Floats:
        """Standard errors of the fractions by the noise, that of the total included."""
        return np.sqrt(self.noise.rate_variances(self.fractions)) / self.total

    @cached_property
    def cells(self) -> Floats:
        """Smoothed counts of single cells."""
        return cells(self.counts)

    @cached_property
    def raw_cells(self) -> Floats:
        return cells(self.raw)

    @cached_property
    def values(self) -> Floats:
        """What each cell stands for."""
        return representatives(self.campaign.variable.grid, self.on_grid)

    def limits(self, factor: float, more: float = 0.0) -> tuple[Floats, Floats]:
        """Curves that lie `factor` standard errors and `more` below and above the raw one, as F has to between them.

        Around the raw curve, since that is what the noise is known of; then as narrow as F being non-decreasing and
        between 0 and 1 allows.
        """
        errors = self.caution * np.sqrt(self.noise.rate_variances(self.fractions)) / self.raw_total
        middle, half = self.raw / self.raw_total, factor * errors + more
        half[-1] = 0.0  # F of the last threshold is 1
        lower = np.maximum.accumulate(np.clip(middle - half, 0.0, 1.0))
        upper = np.minimum.accumulate(np.clip(middle + half, 0.0, 1.0)[::-1])[::-1]
        return lower, upper

    def band(self, confidence: float = 0.95, seed: int = 0, interval: Interval = "population") -> tuple[Floats, Floats]:
        """Lower and upper curves between which the whole of F lies with this probability."""
        low, high = self._band(confidence, seed, interval)
        return np.minimum(low, self.fractions), np.maximum(high, self.fractions)

    def _band(self, confidence: float, seed: int, interval: Interval) -> tuple[Floats, Floats]:
        check_interval(interval)
        uncertainty.z_score(confidence)
        rates, half = {self.strata: self.fractions}, (1 + confidence) / 2
        if interval == "noise":
            return self.limits(bands.simultaneous_factor(self.campaign, rates, confidence, seed))
        factor = bands.simultaneous_factor(self.campaign, rates, half, seed)
        return self.limits(factor, bands.dkw(self.total, half))

    def fraction_limits(self, kind: Interval, confidence: float, index: Index | None = None) -> tuple[Floats, Floats]:
        """An interval for F at each threshold: Fieller's for the noise of count and total, Wilson's for the sample."""
        low, high = self.limits_within(kind, uncertainty.z_score(confidence), index)
        middle = self.fractions if index is None else self.fractions[index]
        return np.minimum(low, middle), np.maximum(high, middle)

    def limits_within(self, kind: Interval, z: ArrayLike, index: Index | None = None) -> tuple[Floats, Floats]:
        """All F that are within z standard errors of the raw counts, at each threshold."""
        variance, shared = (self.caution**2 * v for v in self.noise.variances(index))
        counts = self.raw if index is None else self.raw[index]
        binomial = self.raw_total if kind == "population" else 0.0
        quadratic = variance, binomial - 2 * shared, self.caution**2 * self.noise.total_variance - binomial
        return ratio_interval(counts, self.raw_total, quadratic, z, whole=True)

    def at(self, thresholds: Values, confidence: float = 0.95) -> Points:
        """F at any values; between thresholds of the grid it is flat."""
        thresholds = many(thresholds)
        index = self.campaign.variable.grid.index_at(thresholds)
        known = np.maximum(index, 0)
        ends = {kind: self.fraction_limits(kind, confidence, known) for kind in INTERVALS}
        columns = [self.counts[known], self.standard_errors[known], self.fractions[known], self.fraction_errors[known]]
        counts, errors, fractions, fraction_errors = (np.where(index < 0, 0.0, c) for c in columns)
        ranges = {k: (np.where(index < 0, 0.0, e[0]), np.where(index < 0, 0.0, e[1])) for k, e in ends.items()}
        about = {**self.metadata(), "confidence": confidence}
        return Points(about, as_labels(thresholds), counts, errors, fractions, fraction_errors, ranges)

    def quantile(self, levels: Values = QUARTILES, confidence: float = 0.95) -> Quantiles:
        """Where the curve reaches each level, by Algorithm 1, with both intervals by inverting a test."""
        levels = [float(level) for level in many(levels)]
        if not all(0 <= level <= 1 for level in levels):
            raise InvalidQuery(f"levels lie between 0 and 1, got {list(levels)}")
        counts = self.counts if self.inverted is None else self.inverted
        middle = [quantile.inverse(counts, quantile.target(level, self.total)) for level in levels]
        indices = {kind: self._quantile_limits(levels, middle, kind, confidence) for kind in INTERVALS}
        labels = {kind: (self._labels(low), self._labels(high)) for kind, (low, high) in indices.items()}
        return Quantiles(self.metadata(), confidence, list(levels), middle, self._labels(middle), labels, indices)

    def _quantile_limits(
        self, levels: Sequence[float], middle: list[int], kind: Interval, confidence: float
    ) -> tuple[list[int], list[int]]:
        """Where a test at each threshold and the band of the whole curve both allow the quantile to be.

        The test alone runs to the last stray threshold; the band alone is wide in the middle. Each takes half of what
        an interval may miss. Where too few curves are simulated for such a band, the test alone.
        """
        half = (1 + confidence) / 2
        banded = bands.is_simulated(self.campaign, half if kind == "noise" else (1 + half) / 2)
        band = self._band(half, 0, kind) if banded else None
        z, lower, upper = uncertainty.z_score(half if banded else confidence), [], []
        for level, index in zip(levels, middle, strict=True):
            sampling = self.raw_total * level * (1 - level) if kind == "population" else 0.0
            reach = z * np.sqrt(self.caution**2 * self.noise.rate_variances(level) + sampling)
            low, high = quantile.interval(self.raw, reach, quantile.target(level, self.raw_total))
            if band is not None:
                least, most = quantile.between(*band, level)
                low, high = max(low, least), min(high, most)
            lower.append(min(low, index))
            upper.append(max(high, index))
        return lower, upper

    def _labels(self, index: Sequence[int]) -> list[Any]:
        return self.campaign.variable.grid.labels(np.array(index, np.int64))

    def histogram(self, edges: Values = 20, confidence: float = 0.95) -> Histogram:
        """Counts above one edge and up to the next; the first bin has no lower edge. A number gives even bins."""
        return histogram(self, edges, confidence)

    def mean_estimate(self, confidence: float = 0.95) -> IntervalEstimate:
        """The mean of the values, with Fieller's intervals: those m that sum (value - m) count does not refute."""
        x, c = self.values, np.maximum(self.cells, 0.0)
        one = np.ones_like(x)
        top, bottom = float(x @ self.raw_cells), self.raw_total
        rows = {name: np.vstack([x, one]) for name in self.strata}
        noise = self.caution**2 * uncertainty.covariance(self.campaign, rows)
        moments = float(c @ x**2), float(c @ x), float(c.sum())
        z, ranges, bounds = uncertainty.z_score(confidence), {}, (float(x[0]), float(x[-1]))
        for kind in INTERVALS:
            sampled = moments if kind == "population" else (0.0, 0.0, 0.0)
            quadratic = noise[0, 0] + sampled[0], -2 * (noise[0, 1] + sampled[1]), noise[1, 1] + sampled[2]
            low, high = ratio_interval(top, bottom, quadratic, z, bounds)
            ranges[kind] = float(low), float(high)
        mean = float(np.clip(top / bottom, *bounds))
        # Counts are off by whole numbers, so their sum is off by whole steps: ends between two move outwards.
        step = float(np.diff(x).min()) / bottom
        ranges = {
            kind: (
                max(bounds[0], mean - math.ceil((mean - low) / step - 1e-6) * step),
                min(bounds[1], mean + math.ceil((high - mean) / step - 1e-6) * step),
            )
            for kind, (low, high) in ranges.items()
        }
        spread = max(noise[0, 0] - 2 * mean * noise[0, 1] + mean**2 * noise[1, 1], 0.0) ** 0.5 / bottom
        deviation = max(float(c @ (x - mean) ** 2), 0.0) ** 0.5 / bottom
        return IntervalEstimate("mean", mean, spread, deviation, bounds, None, ranges, confidence)

    def mean(self, confidence: float = 0.95) -> Estimates:
        """The mean, as a number (of days since 1970-01-01, for dates), from the raw counts, in which it is linear."""
        return self.table([self.mean_estimate(confidence)], confidence)

    def table(self, rows: Sequence[Estimate], confidence: float) -> Estimates:
        return Estimates(rows, {**self.metadata(), "notes": [*self.notes, *clipped(self)]}, confidence)

    def columns(self) -> Columns:
        ends = {kind: self.fraction_limits(kind, 0.95) for kind in INTERVALS}
        return {
            "threshold": self._labels(range(self.counts.size)),
            "count": self.counts,
            "count_noise_error": self.standard_errors,
            "fraction": self.fractions,
            **limits_as_columns(ends),
        }

    def metadata(self) -> dict[str, Any]:
        return {
            "value": self.campaign.variable.label,
            "stratum": self.stratum,
            "n": self.n,
            "n_stratum": float(self.counts[-1]),
            "epsilon": self.campaign.epsilon,
            "mechanism": self.campaign.variable.mechanism,
            "smoothing": self.smoothing,
        }


def about_outcomes(negative: Curve, positive: Curve) -> dict[str, Any]:
    """What two strata of one release, those without and those with an outcome, say of themselves."""
    return {
        "negative": negative.stratum,
        "positive": positive.stratum,
        "n": negative.n,
        "n_negative": negative.total,
        "n_positive": positive.total,
        "epsilon": negative.epsilon,
        "smoothing": negative.smoothing,
    }
