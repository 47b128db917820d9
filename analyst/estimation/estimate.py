"""A number with two intervals, and where both come from.

"noise": how far the published number may be from that of the very people who took part. "population": how far it may
be from that of the population they are a sample of, with the noise. A statistic is a function of how many values lie
in each cell of the grid. To first order it is a weighted sum of them, with its slopes as weights: the noise of such a
sum is known exactly, and its sampling variance is sum c g^2 - (sum c g)^2 / n (the infinitesimal jackknife), from
smoothed cells c and slopes g.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analyst.estimation import uncertainty
from analyst.present.table import Columns, Tabular
from fss_ecdf.campaign.errors import InvalidQuery

if TYPE_CHECKING:
    from analyst.statistics.curve import Curve

Floats = NDArray[np.float64]
Interval = Literal["noise", "population"]
INTERVALS: tuple[Interval, ...] = ("noise", "population")
ANY = (-math.inf, math.inf)
SHARE = (0.0, 1.0)
FEW_THRESHOLDS = 64  # on so few, noise is seen to be whole numbers
BENT = 0.1  # what a statistic that is not linear may be off besides, of such a step
_NEARLY = 1e-6  # what is so near to a whole number is one


def check_interval(kind: str) -> None:
    if kind not in INTERVALS:
        raise InvalidQuery(f"an interval is one of {', '.join(INTERVALS)}, got {kind!r}")


@dataclass(frozen=True)
class Estimate:
    """A value, the standard errors of its noise and of its sampling, and where it can lie at all."""

    name: str
    value: float
    noise_error: float
    sampling_error: float
    bounds: tuple[float, float] = ANY
    p_value: float | None = None
    step: float = field(default=0.0, kw_only=True)  # noise is whole numbers of it, where that matters

    @property
    def population_error(self) -> float:
        return math.hypot(self.noise_error, self.sampling_error)

    def error(self, kind: Interval) -> float:
        check_interval(kind)
        return self.noise_error if kind == "noise" else self.population_error

    def interval(self, kind: Interval = "population", confidence: float = 0.95) -> tuple[float, float]:
        half = _up(uncertainty.z_score(confidence) * self.error(kind), self.step) + BENT * self.step
        return max(self.bounds[0], self.value - half), min(self.bounds[1], self.value + half)


@dataclass(frozen=True)
class IntervalEstimate(Estimate):
    """An estimate whose intervals were found in another way than by standard errors, for one confidence."""

    ranges: Mapping[Interval, tuple[float, float]] = field(default_factory=dict)
    confidence: float = 0.95

    def interval(self, kind: Interval = "population", confidence: float = 0.95) -> tuple[float, float]:
        check_interval(kind)
        if confidence != self.confidence:
            raise InvalidQuery(f"this interval was made for a confidence of {self.confidence}, not {confidence}")
        return self.ranges[kind]


Part = tuple["Curve", Floats]

# Of a number between 0 and 1: a 95 % interval of a larger noise error is as wide as all that it can be.
MOST_ERROR = 0.25
# A number is not told where its noise, or that of what it is divided by, is above this share of its size.
MOST_NOISE = 0.5


def hidden(found: Estimate, confidence: float = 0.95) -> IntervalEstimate:
    """Its intervals around the value that it would have, and no value."""
    ranges = {kind: found.interval(kind, confidence) for kind in INTERVALS}
    errors = found.noise_error, found.sampling_error
    return IntervalEstimate(found.name, math.nan, errors[0], errors[1], found.bounds, None, ranges, confidence)


def untold(rows: Sequence[Estimate]) -> list[str]:
    """A note for every row that has no value."""
    return [
        f"{row.name}: the noise at this n and epsilon leaves no number to tell; its interval has what is known"
        for row in rows
        if math.isnan(row.value)
    ]


def estimate(
    name: str,
    value: float,
    parts: Sequence[Part],
    *,
    bounds: tuple[float, float] = ANY,
    sampling_variance: float | None = None,
    wider: float | None = None,
) -> Estimate:
    """An estimate from its slopes by the cells of each curve that it depends on.

    `wider`: what its noise error is multiplied by, if it is not the curves' totals that decide whether it is shown.
    """
    variance = sample_variance(parts) if sampling_variance is None else sampling_variance
    noise = uncertainty.error_of_sum(parts[0][0].campaign, weights(parts))
    noise *= caution(parts) if wider is None else wider
    by_sampling = math.sqrt(max(variance, 0.0))
    return Estimate(name, float(np.clip(value, *bounds)), noise, by_sampling, bounds, step=lattice(parts))


def lattice(parts: Sequence[Part]) -> float:
    """The least by which noise moves a sum over cells, on a grid so small that this matters; 0 on others.

    Counts are off by whole numbers, and a sum by these times how much the slopes of two neighbours differ.
    """
    if parts[0][1].size > FEW_THRESHOLDS:
        return 0.0
    steps = np.concatenate([np.abs(np.diff(slopes)) for _, slopes in parts])
    steps = steps[steps > 1e-9 * float(steps.max(initial=0.0))]
    return float(steps.min()) if steps.size else 0.0


def caution(parts: Sequence[Part]) -> float:
    """That of the curve nearest to its guard."""
    return max(curve.caution for curve, _ in parts)


def weights(parts: Sequence[Part]) -> dict[str, Floats]:
    """What each cell of each stratum counts; a pooled curve's slopes are those of all its strata."""
    by_stratum: dict[str, Floats] = {}
    for curve, slopes in parts:
        for stratum in curve.strata:
            by_stratum[stratum] = by_stratum[stratum] + slopes if stratum in by_stratum else slopes
    return by_stratum


def sample_variance(parts: Sequence[Part]) -> float:
    """Of a statistic of a sample of this size, to first order in its cells."""
    squares = sum(float(np.maximum(curve.cells, 0.0) @ g**2) for curve, g in parts)
    mean = sum(float(curve.cells @ g) for curve, g in parts)
    return max(squares - mean**2 / max(parts[0][0].n, 1), 0.0)


def sample_covariance(parts: Sequence[Part]) -> Floats:
    """The same of several statistics, from rows of slopes."""
    squares = sum((g * np.maximum(curve.cells, 0.0)) @ g.T for curve, g in parts)
    mean = sum(g @ curve.cells for curve, g in parts)
    return np.asarray(squares - np.outer(mean, mean) / max(parts[0][0].n, 1))


def ratio_interval(
    top: ArrayLike,
    bottom: ArrayLike,
    variance: Sequence[ArrayLike],
    z: ArrayLike,
    bounds: tuple[float, float] = SHARE,
    *,
    whole: bool = False,
) -> tuple[Floats, Floats]:
    """All m with (top - m bottom)^2 <= z^2 (v0 + v1 m + v2 m^2), within bounds: Fieller's set for a ratio of two sums.

    With the binomial variance bottom m (1 - m) and no noise it is Wilson's interval for a share. Where the bottom may
    be zero the set has no end, and the bounds are given. `whole`: the top is a count. Counts and their noise are whole
    numbers, so an end between two counts is moved outwards to the next one.
    """
    t, b = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    # Noise may carry the top below any it can have. The interval of the nearest one it can have is wider, never empty.
    t = np.where(b > 0, np.clip(t, bounds[0] * np.maximum(b, 0.0), bounds[1] * np.maximum(b, 0.0)), t)
    squared = np.square(np.asarray(z, np.float64))
    v0, v1, v2 = (squared * np.asarray(v, np.float64) for v in variance)
    a2, a1, a0 = b * b - v2, -2 * t * b - v1, t * t - v0
    inside = a1 * a1 - 4 * a2 * a0
    root = np.sqrt(np.maximum(inside, 0.0))
    safe = np.where(a2 > 0, a2, 1.0)
    low, high = (-a1 - root) / (2 * safe), (-a1 + root) / (2 * safe)
    if whole:
        unit = 1 / np.where(b > 0, b, 1.0)
        low, high = np.floor(low / unit + _NEARLY) * unit, np.ceil(high / unit - _NEARLY) * unit
    return (
        np.clip(np.where(a2 > 0, low, bounds[0]), *bounds),
        np.clip(np.where(a2 > 0, high, bounds[1]), *bounds),
    )


def quotient(
    name: str,
    parts: Sequence[Sequence[Part]],
    values: tuple[float, float],
    size: float,
    bounds: tuple[float, float],
    confidence: float,
) -> IntervalEstimate:
    """Top over bottom, from their values and the slopes of both by the same curves, with Fieller's intervals.

    It has no value where the noise of the bottom is not small against `size`, about how large the bottom is.
    """
    campaign, z = parts[0][0][0].campaign, uncertainty.z_score(confidence)
    both = [(curve, np.vstack([g, h])) for (curve, g), (_, h) in zip(*parts, strict=True)]
    noise = caution(both) ** 2 * uncertainty.covariance(campaign, weights(both))
    sampling = sample_covariance(both)
    ranges: dict[Interval, tuple[float, float]] = dict.fromkeys(INTERVALS, bounds)
    for kind in INTERVALS if values[1] > 0 else ():
        c = noise if kind == "noise" else noise + sampling
        low, high = ratio_interval(*values, (c[0, 0], -2 * c[0, 1], c[1, 1]), z, bounds)
        ranges[kind] = float(low), float(high)
    if values[1] <= 0 or noise[1, 1] > (MOST_NOISE * size) ** 2:
        return IntervalEstimate(name, math.nan, math.nan, math.nan, bounds, None, ranges, confidence)
    value = values[0] / values[1]
    away = np.array([1.0, -value]) / values[1]
    step = lattice([(curve, away @ slopes) for curve, slopes in both])
    arms = {k: (_up(value - low, step), _up(high - value, step)) for k, (low, high) in ranges.items()}
    more = BENT * step  # as of an estimate
    ranges = {k: (max(bounds[0], value - a - more), min(bounds[1], value + b + more)) for k, (a, b) in arms.items()}
    by_noise, by_sampling = (math.sqrt(max(float(away @ c @ away), 0.0)) for c in (noise, sampling))
    return IntervalEstimate(
        name, float(np.clip(value, *bounds)), by_noise, by_sampling, bounds, None, ranges, confidence
    )


def mover_interval(
    difference: str, first: IntervalEstimate, second: IntervalEstimate, grid: Floats | None = None
) -> IntervalEstimate:
    """second - first, from the intervals of both, by squares of their arms (Zou and Donner's MOVER).

    `grid`: the thresholds that both are among. Quantiles are off by whole steps of it, so two arms of one step make
    one of two steps, not of 1.41: arms are rounded outwards to the finest step in reach.
    """
    value, ranges = second.value - first.value, {}
    for kind in INTERVALS:
        (a, b), (c, d) = first.ranges[kind], second.ranges[kind]
        unit = 0.0 if grid is None else _finest(grid, min(a, c), max(b, d))
        below = _up(math.hypot(second.value - c, b - first.value), unit)
        above = _up(math.hypot(d - second.value, first.value - a), unit)
        ranges[kind] = value - below, value + above
    return IntervalEstimate(difference, value, math.nan, math.nan, ranges=ranges, confidence=first.confidence)


def _finest(grid: Floats, low: float, high: float) -> float:
    """The smallest step between thresholds of a range; 0 if it has but one."""
    inside = grid[(grid >= low) & (grid <= high)]
    return float(np.diff(inside).min()) if inside.size > 1 else 0.0


def _up(length: float, unit: float) -> float:
    """A length rounded up to a multiple of a unit."""
    return math.ceil(length / unit - _NEARLY) * unit if unit > 0 and math.isfinite(length) else length


@dataclass(frozen=True)
class Estimates(Tabular, picture="forest"):
    """Estimates one below the other, each with both intervals."""

    rows: Sequence[Estimate]
    description: Mapping[str, Any]
    confidence: float = 0.95

    def __getitem__(self, name: str) -> Estimate:
        named = [row for row in self.rows if row.name == name]
        if not named:
            raise InvalidQuery(f"there is no {name!r} among {', '.join(repr(row.name) for row in self.rows)}")
        return named[0]

    def columns(self) -> Columns:
        both = {kind: [row.interval(kind, self.confidence) for row in self.rows] for kind in INTERVALS}
        table: dict[str, Any] = {"statistic": [r.name for r in self.rows], "value": [r.value for r in self.rows]}
        table |= limits_as_columns({kind: tuple(zip(*ends, strict=True)) for kind, ends in both.items()})
        if any(row.p_value is not None for row in self.rows):
            table["p_value"] = [row.p_value for row in self.rows]
        return table

    def metadata(self) -> dict[str, Any]:
        notes = [*self.description.get("notes", []), *untold(self.rows)]
        return {**self.description, "confidence": self.confidence, **({"notes": notes} if notes else {})}


def limits_as_columns(both: Mapping[Interval, Sequence[Sequence[Any] | Floats]]) -> dict[str, Any]:
    """Lower and upper ends of both intervals as columns that say which they are."""
    return {f"{kind}_{end}": both[kind][i] for kind in INTERVALS for i, end in enumerate(("lower", "upper"))}
