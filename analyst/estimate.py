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

from analyst import uncertainty
from analyst.table import Columns, Tabular
from campaign.errors import InvalidQuery

if TYPE_CHECKING:
    from analyst.curve import Curve

Floats = NDArray[np.float64]
Interval = Literal["noise", "population"]
INTERVALS: tuple[Interval, ...] = ("noise", "population")
ANY = (-math.inf, math.inf)
SHARE = (0.0, 1.0)


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

    @property
    def population_error(self) -> float:
        return math.hypot(self.noise_error, self.sampling_error)

    def error(self, kind: Interval) -> float:
        check_interval(kind)
        return self.noise_error if kind == "noise" else self.population_error

    def interval(self, kind: Interval = "population", confidence: float = 0.95) -> tuple[float, float]:
        half = uncertainty.z_score(confidence) * self.error(kind)
        return max(self.bounds[0], self.value - half), min(self.bounds[1], self.value + half)


@dataclass(frozen=True)
class Ranged(Estimate):
    """An estimate whose intervals were found in another way than by standard errors, for one confidence."""

    ranges: Mapping[Interval, tuple[float, float]] = field(default_factory=dict)
    confidence: float = 0.95

    def interval(self, kind: Interval = "population", confidence: float = 0.95) -> tuple[float, float]:
        check_interval(kind)
        if confidence != self.confidence:
            raise InvalidQuery(f"this interval was made for a confidence of {self.confidence}, not {confidence}")
        return self.ranges[kind]


Part = tuple["Curve", Floats]


def estimate(
    name: str,
    value: float,
    parts: Sequence[Part],
    *,
    bounds: tuple[float, float] = ANY,
    sampling_variance: float | None = None,
) -> Estimate:
    """An estimate from its slopes by the cells of each curve that it depends on."""
    variance = sample_variance(parts) if sampling_variance is None else sampling_variance
    noise = uncertainty.error_of_sum(parts[0][0].campaign, weights(parts))
    return Estimate(name, float(np.clip(value, *bounds)), noise, math.sqrt(max(variance, 0.0)), bounds)


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


def ratio_interval(
    top: ArrayLike, bottom: ArrayLike, variance: Sequence[ArrayLike], z: float, bounds: tuple[float, float] = SHARE
) -> tuple[Floats, Floats]:
    """All m with (top - m bottom)^2 <= z^2 (v0 + v1 m + v2 m^2), within bounds: Fieller's set for a ratio of two sums.

    With the binomial variance bottom m (1 - m) and no noise it is Wilson's interval for a share. Where the bottom may
    be zero the set has no end, and the bounds are given.
    """
    t, b = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    # Noise may carry the top below any it can have. The interval of the nearest one it can have is wider, never empty.
    t = np.where(b > 0, np.clip(t, bounds[0] * np.maximum(b, 0.0), bounds[1] * np.maximum(b, 0.0)), t)
    v0, v1, v2 = (z * z * np.asarray(v, np.float64) for v in variance)
    a2, a1, a0 = b * b - v2, -2 * t * b - v1, t * t - v0
    inside = a1 * a1 - 4 * a2 * a0
    root = np.sqrt(np.maximum(inside, 0.0))
    safe = np.where(a2 > 0, a2, 1.0)
    low, high = (-a1 - root) / (2 * safe), (-a1 + root) / (2 * safe)
    return (
        np.clip(np.where(a2 > 0, low, bounds[0]), *bounds),
        np.clip(np.where(a2 > 0, high, bounds[1]), *bounds),
    )


def moved(difference: str, first: Ranged, second: Ranged) -> Ranged:
    """second - first, from the intervals of both, by squares of their arms (Zou and Donner's MOVER)."""
    value, ranges = second.value - first.value, {}
    for kind in INTERVALS:
        (a, b), (c, d) = first.ranges[kind], second.ranges[kind]
        below = math.hypot(second.value - c, b - first.value)
        above = math.hypot(d - second.value, first.value - a)
        ranges[kind] = value - below, value + above
    return Ranged(difference, value, math.nan, math.nan, ranges=ranges, confidence=first.confidence)


@dataclass(frozen=True)
class Estimates(Tabular):
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

    def about(self) -> dict[str, Any]:
        return {**self.description, "confidence": self.confidence}


def limits_as_columns(both: Mapping[Interval, Sequence[Sequence[Any] | Floats]]) -> dict[str, Any]:
    """Lower and upper ends of both intervals as columns that say which they are."""
    return {f"{kind}_{end}": both[kind][i] for kind in INTERVALS for i, end in enumerate(("lower", "upper"))}
