"""Quantiles, histograms and a page of them where the grid is too large for whole curves: by asking points.

Algorithm 1 of the paper is a binary search, so a quantile needs one count for every bit of the grid. What is needed
next is yielded as grid indices and comes back as published counts; who asks, and how, is the clients' matter.

Intervals come from two more searches, for the first index whose count may have reached the target and the first whose
count must have. The way of a binary search to the true index is fixed, at most one midpoint a bit; a search that errs
must meet a count that is off by z standard errors at one of them. So z is chosen for all of them together
(Bonferroni), and the interval holds at least as often as it says.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from analyst.estimation import uncertainty
from analyst.estimation.estimate import INTERVALS, Interval, ratio_interval
from analyst.options import QUARTILES
from analyst.statistics import ecdf_points
from analyst.statistics.ecdf_points import Floats, Index, Points
from analyst.statistics.histogram import Histogram, bin_ends
from analyst.statistics.quantile import Quantiles, target
from fss_ecdf.campaign.array_inputs import Values, many, names
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from fss_ecdf.campaign.noise.mechanism import SERVERS

R = TypeVar("R")
Answered = tuple[int, Mapping[int, int]]  # n, and published counts by grid index
Steps = Generator[Index, Answered, R]

DRAWN = 101  # points of a curve that is drawn
NOTE = "asked point by point; intervals hold for all steps of the search together"


@dataclass(frozen=True)
class PointRelease:
    """What a report has of such a campaign: of each stratum some points, quantiles and a histogram, or why not."""

    campaign: Campaign
    n: int
    parts: Mapping[str, tuple[Points, Quantiles, Histogram] | str]


def one_stratum(campaign: Campaign, stratum: Any) -> str:
    chosen = campaign.strata if stratum is None else names(stratum)
    if len(chosen) != 1:
        raise InvalidQuery("this grid is too large for whole curves: name one stratum")
    campaign.stratum(chosen[0])
    return chosen[0]


@dataclass(frozen=True)
class _Search:
    """Where count + factor * error reaches the target of a level."""

    level: float
    kind: Interval
    factor: float


def quantiles(campaign: Campaign, stratum: str, levels: Values, confidence: float) -> Steps[Quantiles]:
    """Where the curve reaches each level, with both intervals."""
    levels = [float(level) for level in many(levels)]
    if not all(0 <= level <= 1 for level in levels):
        raise InvalidQuery(f"levels lie between 0 and 1, got {list(levels)}")
    z = uncertainty.z_score(1 - (1 - confidence) / campaign.variable.index_bits)
    last = campaign.variable.grid.size - 1
    n, answered = yield np.array([last])
    total = ecdf_points.total_of(campaign, stratum, n, answered[last])
    searches = [_Search(level, "noise", 0.0) for level in levels]
    searches += [_Search(level, kind, sign * z) for kind in INTERVALS for sign in (1, -1) for level in levels]
    found = yield from _crossings(campaign, stratum, total, searches)
    rows = [found[i : i + len(levels)] for i in range(0, len(found), len(levels))]
    middle, grid = rows[0], campaign.variable.grid
    indices: dict[Interval, tuple[list[int], list[int]]] = {
        kind: (np.minimum(rows[1 + 2 * i], middle).tolist(), np.maximum(rows[2 + 2 * i], middle).tolist())
        for i, kind in enumerate(INTERVALS)
    }
    labels = {kind: (grid.labels(np.array(a)), grid.labels(np.array(b))) for kind, (a, b) in indices.items()}
    about = {**ecdf_points.about(campaign, stratum, n, total, smoothing=False), "notes": [NOTE]}
    return Quantiles(about, confidence, list(levels), middle.tolist(), grid.labels(middle), labels, indices)


def _crossings(campaign: Campaign, stratum: str, total: float, searches: list[_Search]) -> Steps[Index]:
    """All binary searches at once, one step of each with every question."""
    low, high = np.zeros(len(searches), np.int64), np.full(len(searches), campaign.variable.grid.size - 1)
    goal = np.array([target(s.level, total) for s in searches])
    factor = np.array([s.factor for s in searches])
    rate = np.array([s.level for s in searches])
    sampling = np.array([total * s.level * (1 - s.level) if s.kind == "population" else 0.0 for s in searches])
    while (low < high).any():
        middle = (low + high) // 2
        _, answered = yield np.unique(middle[low < high])
        counts = np.array([answered.get(int(i), 0) for i in middle], np.float64)
        errors = np.sqrt(ecdf_points.rate_variances(campaign, stratum, middle, rate) + sampling)
        reached = (counts + factor * errors >= goal) | (low >= high)
        low, high = np.where(reached, low, middle + 1), np.where(reached, np.minimum(middle, high), high)
    return low


def some(campaign: Campaign, stratum: str, at: Values, smoothing: bool) -> Steps[Points]:
    """F at some values."""
    index = campaign.variable.grid.index_at(at)
    n, answered = yield np.union1d(index[index >= 0], [campaign.variable.grid.size - 1])
    return ecdf_points.points(campaign, stratum, n, at, answered, smoothing)


Page = tuple[Points, Quantiles, Histogram] | str


def page(campaign: Campaign, stratum: str) -> Steps[tuple[int, Page]]:
    """n, and what a report says of one stratum; words, if the noise does not allow it."""
    n, _ = yield np.array([campaign.variable.grid.size - 1])
    try:
        curve = yield from some(campaign, stratum, drawn(campaign), True)
        levels = yield from quantiles(campaign, stratum, QUARTILES, 0.95)
        bins = yield from histogram(campaign, stratum, 20, 0.95)
    except TooNoisy as problem:
        return n, problem.detail
    return n, (curve, levels, bins)


def histogram(campaign: Campaign, stratum: str, edges: Values, confidence: float) -> Steps[Histogram]:
    """Counts of bins, from counts at their edges."""
    grid, z = campaign.variable.grid, uncertainty.z_score(confidence)
    index, notes = bin_ends(grid, edges)
    last = grid.size - 1
    n, answered = yield np.union1d(index, [last])
    total = ecdf_points.total_of(campaign, stratum, n, answered[last])
    raw_ends = np.array([total if i == last else answered[int(i)] for i in index])
    raw = np.diff(raw_ends, prepend=0.0)
    counts = np.diff(ecdf_points.monotone(raw_ends, total), prepend=0.0)
    variance, shared, of_total = _bin_variances(campaign, stratum, index)
    shares, ranges = counts / total, {}
    for kind in INTERVALS:
        binomial = total if kind == "population" else 0.0
        quadratic = variance, binomial - 2 * shared, of_total - binomial
        low, high = ratio_interval(raw, total, quadratic, z, whole=True)
        ranges[kind] = np.minimum(low, shares), np.maximum(high, shares)
    if index[-1] < last:
        notes.append(f"about {total - raw_ends[-1]:.0f} values lie above the last edge, in no bin")
    about = {**ecdf_points.about(campaign, stratum, n, total, smoothing=True), "confidence": confidence, "notes": notes}
    above: list[Any] = [None, *grid.labels(index[:-1])]
    return Histogram(
        about, above, grid.labels(index), grid.thresholds(index), counts, np.sqrt(variance), shares, ranges
    )


def _bin_variances(campaign: Campaign, stratum: str, index: Index) -> tuple[Floats, Floats, float]:
    """Of counts between indices, their covariances with the total, and its variance."""
    start, last = campaign.position(campaign.stratum(stratum), 0), campaign.variable.grid.size - 1
    below = np.concatenate([[-1], index[:-1]])
    variance = SERVERS * campaign.noise.difference_variance(start + index, start + below)
    if campaign.total_is_public:  # all values lie at or below the last threshold, and n is public
        at_end = SERVERS * campaign.noise.difference_variance(start + below, start - 1)
        return np.where(index == last, at_end, variance), np.zeros(index.size), 0.0
    with_total = ecdf_points.variances(campaign, stratum, np.append(index, last))[1]
    return variance, np.diff(with_total[:-1], prepend=0.0), float(with_total[-1])


def drawn(campaign: Campaign) -> list[Any]:
    """Thresholds at which a curve is drawn, from the first to the last."""
    return campaign.variable.grid.labels(
        np.unique(np.linspace(0, campaign.variable.grid.size - 1, DRAWN).astype(np.int64))
    )
