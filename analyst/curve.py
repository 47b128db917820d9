"""One stratum's published curve, and what follows from it alone: fractions, quantiles, a histogram, the mean.

Counts come from the servers with noise. `raw` keeps them; `counts` is what they became by smoothing, which costs no
privacy. What is public is used: all values of a single stratum are at or below the last threshold, so its last count
is n.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from analyst import quantile, smooth, uncertainty
from analyst.options import QUARTILES, Smoothing
from analyst.quantile import Quantiles
from analyst.table import Columns, Tabular, plain
from campaign.errors import InvalidQuery, TooNoisy
from campaign.spec import Campaign

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


def smoothed(campaign: Campaign, raw: Floats, n: int, how: Smoothing, at: Index | None = None) -> Floats:
    """A stratum's counts after smoothing: at all thresholds, or at these indices, which increase."""
    if how not in get_args(Smoothing):
        raise InvalidQuery(f"smoothing is one of {', '.join(get_args(Smoothing))}, got {how!r}")
    if how == "none":
        return raw
    if how == "isotonic":
        return smooth.isotonic(raw, n)
    single = len(campaign.strata) == 1
    # The noise of the last cells of a grid that does not fill its tree is not known to cancel.
    whole = single and campaign.grid.size == 1 << campaign.grid.bits
    return smooth.tree(
        raw,
        n,
        norm=int(how[1]),
        mechanism=campaign.mechanism,
        at=at,
        depth=campaign.grid.bits,
        total_is_public=whole,
    )


def _target(level: float, total: float) -> float:
    """The count that a quantile must reach; 0.07 of 100 values are 7, not a little more by rounding."""
    return level * total * (1 - 1e-12)


def as_labels(thresholds: Sequence[object]) -> list[Any]:
    """What was asked for, in JSON's types."""
    return [plain(x) if isinstance(x, int | float | str | np.generic) else str(x) for x in thresholds]


def describe(campaign: Campaign, stratum: str, n: int, smoothing: Smoothing) -> dict[str, Any]:
    return {
        "stratum": stratum,
        "n": n,
        "epsilon": campaign.epsilon,
        "mechanism": campaign.mechanism,
        "smoothing": smoothing,
    }


def total(campaign: Campaign, stratum: str, last: float) -> float:
    """A stratum's total, given its last count."""
    if last < 1:
        error = uncertainty.count_errors(campaign, stratum, np.array([campaign.grid.size - 1]))[0]
        raise TooNoisy(
            f"stratum {stratum!r} has {last:.0f} values, give or take {error:.0f}: no fraction of them can be told. "
            "Join strata, or take a larger epsilon or more parties"
        )
    return float(last)


@dataclass(frozen=True)
class Curve(Tabular):
    """How many of a stratum's values are at or below each threshold of the grid."""

    campaign: Campaign
    stratum: str
    n: int
    raw: Floats
    counts: Floats
    smoothing: Smoothing

    @classmethod
    def make(cls, campaign: Campaign, stratum: str, n: int, raw: Floats, how: Smoothing = "isotonic") -> "Curve":
        """From the counts that a server sent."""
        noisy = np.array(raw, np.float64)
        if noisy.shape != (campaign.grid.size,) or not np.isfinite(noisy).all():
            raise InvalidQuery(f"a curve of this campaign has {campaign.grid.size} finite counts, got {noisy.size}")
        if len(campaign.strata) == 1:
            noisy[-1] = n
        counts = smoothed(campaign, noisy, n, how)
        noisy.flags.writeable = counts.flags.writeable = False
        return cls(campaign, stratum, n, noisy, counts, how)

    def __repr__(self) -> str:
        return f"<Curve of {self.stratum!r}: {self.counts.size} thresholds, n = {self.n}, epsilon = {self.epsilon:g}>"

    @property
    def epsilon(self) -> float:
        return self.campaign.epsilon

    @property
    def thresholds(self) -> Floats:
        return self.campaign.grid.all_thresholds

    @cached_property
    def standard_errors(self) -> Floats:
        """Of the raw counts; smoothing makes them smaller on average."""
        return uncertainty.count_errors(self.campaign, self.stratum)

    @cached_property
    def total(self) -> float:
        """How many values the stratum has: n if it is the only one, else a noisy count, which must be positive."""
        return total(self.campaign, self.stratum, self.counts[-1])

    @property
    def notes(self) -> list[str]:
        """What to know before believing a fraction."""
        error = float(self.standard_errors[-1])
        if len(self.campaign.strata) > 1 and self.total < 3 * error:
            return [f"the total of {self.stratum!r}, {self.total:.0f}, is within three standard errors of zero"]
        return []

    @cached_property
    def fractions(self) -> Floats:
        """F: the counts divided by the total."""
        return self.counts / self.total

    @cached_property
    def fraction_errors(self) -> Floats:
        """Standard errors of the fractions, the noise of the total included."""
        return uncertainty.rate_errors(self.campaign, self.stratum, self.fractions, self.total)

    @cached_property
    def raw_total(self) -> float:
        """The total that raw fractions are of: with it, the error of a fraction is exactly (e_i - F_i e) / total."""
        return total(self.campaign, self.stratum, self.raw[-1])

    def limits(self, factor: float) -> tuple[Floats, Floats]:
        """Curves that lie `factor` standard errors below and above the raw one, as F would have to between them.

        Around the raw curve, since that is what the noise is known of; then as narrow as F being non-decreasing and
        between 0 and 1 allows.
        """
        errors = uncertainty.rate_errors(self.campaign, self.stratum, self.fractions, self.raw_total)
        middle, half = self.raw / self.raw_total, factor * errors
        lower = np.maximum.accumulate(np.clip(middle - half, 0.0, 1.0))
        upper = np.minimum.accumulate(np.clip(middle + half, 0.0, 1.0)[::-1])[::-1]
        return lower, upper

    def band(self, confidence: float = 0.95, seed: int = 0) -> tuple[Floats, Floats]:
        """Lower and upper curves between which the whole of F lies with this probability."""
        rates = {self.stratum: self.fractions}
        return self.limits(uncertainty.simultaneous_factor(self.campaign, rates, confidence, seed))

    def at(self, thresholds: Sequence[object]) -> "Points":
        """F at any values; between thresholds of the grid it is flat."""
        index = self.campaign.grid.index_at(thresholds)
        known = np.maximum(index, 0)
        columns = [self.counts, self.standard_errors, self.fractions, self.fraction_errors]
        counts, errors, fractions, fraction_errors = (np.where(index < 0, 0.0, c[known]) for c in columns)
        return Points(self.about(), as_labels(thresholds), counts, errors, fractions, fraction_errors)

    def quantile(self, levels: Sequence[float] = QUARTILES, confidence: float = 0.95) -> Quantiles:
        """Where the curve reaches each level, by Algorithm 1, with intervals."""
        if not all(0 <= level <= 1 for level in levels):
            raise InvalidQuery(f"levels lie between 0 and 1, got {list(levels)}")
        z = uncertainty.z_score(confidence)
        middle, lower, upper = [], [], []
        for level in levels:
            even = np.full(self.counts.size, float(level))
            errors = uncertainty.rate_errors(self.campaign, self.stratum, even, 1.0)
            low, high = quantile.interval(self.raw, errors, _target(level, self.raw_total), z)
            found = quantile.inverse(self.counts, _target(level, self.total))
            middle.append(found)
            lower.append(min(low, found))
            upper.append(max(high, found))
        labels = [self.campaign.grid.labels(np.array(i, np.int64)) for i in (middle, lower, upper)]
        return Quantiles(self.stratum, self.n, self.epsilon, self.smoothing, confidence, list(levels), middle, *labels)

    def histogram(self, edges: Sequence[object] | SupportsIndex = 20) -> "Histogram":
        """Counts above one edge and up to the next; the first bin has no lower edge. A number gives even bins."""
        grid = self.campaign.grid
        if isinstance(edges, SupportsIndex):
            bins = int(edges)
            if bins < 1:
                raise InvalidQuery(f"a histogram has at least 1 bin, got {bins}")
            index = np.unique(np.linspace(0, grid.size - 1, bins + 1)[1:].round().astype(np.int64))
        else:
            index = grid.index_at(edges)
        below = np.concatenate([[-1], index[:-1]])
        if not index.size or not (index > below).all():
            raise InvalidQuery("the edges of a histogram must increase by at least one step of the grid")
        errors = uncertainty.bin_errors(self.campaign, self.stratum, below, index)
        counts = np.diff(self.counts[index], prepend=0.0)
        above: list[Any] = [None, *grid.labels(index[:-1])]
        return Histogram(self.about(), above, grid.labels(index), grid.thresholds(index), counts, errors)

    def mean(self) -> "Mean":
        """The mean of the values, each taken as its threshold, with the standard error of the noise.

        From the raw counts, in which the sum of all values is linear: with a single stratum the noise makes the mean
        neither larger nor smaller on average.
        """
        cells = np.diff(self.raw, prepend=0.0)
        tau, count = self.thresholds, self.raw_total
        mean = float(tau @ cells) / count
        weights = {self.stratum: (tau - mean) / count}
        return Mean(self.about(), mean, uncertainty.error_of_sum(self.campaign, weights))

    def columns(self) -> Columns:
        return {
            "threshold": self.campaign.grid.labels(np.arange(self.counts.size)),
            "count": self.counts,
            "standard_error": self.standard_errors,
            "fraction": self.fractions,
        }

    def about(self) -> dict[str, Any]:
        return describe(self.campaign, self.stratum, self.n, self.smoothing)


@dataclass(frozen=True)
class Points(Tabular):
    """The curve at some values."""

    description: dict[str, Any]
    thresholds: list[Any]
    counts: Floats
    standard_errors: Floats
    fractions: Floats
    fraction_errors: Floats

    def columns(self) -> Columns:
        return {
            "threshold": self.thresholds,
            "count": self.counts,
            "count_error": self.standard_errors,
            "fraction": self.fractions,
            "fraction_error": self.fraction_errors,
        }

    def about(self) -> dict[str, Any]:
        return self.description


def points(
    campaign: Campaign, stratum: str, n: int, at: Sequence[object], answered: Mapping[int, int], how: Smoothing
) -> Points:
    """F at some values from counts at their indices and at the last one: no curve is needed. Smoothed among them."""
    known = np.array(sorted(answered))
    raw = np.array([answered[i] for i in known.tolist()], np.float64)
    if len(campaign.strata) == 1:
        raw[-1] = n
    counts = dict(zip(known.tolist(), smoothed(campaign, raw, n, how, known), strict=True)) | {-1: 0.0}
    index = campaign.grid.index_at(at)
    found = np.array([counts[i] for i in index.tolist()])
    count = total(campaign, stratum, counts[campaign.grid.size - 1])
    errors = uncertainty.count_errors(campaign, stratum, index)
    rates = found / count
    about = describe(campaign, stratum, n, how)
    return Points(
        about, list(at), found, errors, rates, uncertainty.rate_errors(campaign, stratum, rates, count, index)
    )


@dataclass(frozen=True)
class Histogram(Tabular):
    """Counts of bins, each above its lower and at or below its upper edge; the first has no lower one."""

    description: dict[str, Any]
    above: list[Any]
    up_to: list[Any]
    edges: Floats
    counts: Floats
    standard_errors: Floats

    def columns(self) -> Columns:
        return {"above": self.above, "up_to": self.up_to, "count": self.counts, "standard_error": self.standard_errors}

    def about(self) -> dict[str, Any]:
        return self.description


@dataclass(frozen=True)
class Mean(Tabular):
    """A mean, as a number (of days since 1970-01-01, for dates), and the standard error of the noise in it."""

    description: dict[str, Any]
    value: float
    standard_error: float

    def columns(self) -> Columns:
        return {"mean": [self.value], "standard_error": [self.standard_error]}

    def about(self) -> dict[str, Any]:
        return self.description
