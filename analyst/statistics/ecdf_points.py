"""A curve at some values: from the whole of it, or from counts at these values alone, where the grid is too large."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import smooth, uncertainty
from analyst.estimation.estimate import INTERVALS, Interval, limits_as_columns, ratio_interval
from analyst.present.table import Columns, Tabular, as_labels
from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import TooNoisy
from fss_ecdf.campaign.noise.mechanism import SERVERS

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Points(Tabular, picture="points"):
    """The curve at some values, with both intervals of its fractions."""

    description: Mapping[str, Any]
    thresholds: list[Any]
    counts: Floats
    standard_errors: Floats
    fractions: Floats
    fraction_errors: Floats
    ranges: Mapping[Interval, tuple[Floats, Floats]]

    def columns(self) -> Columns:
        return {
            "threshold": self.thresholds,
            "count": self.counts,
            "count_noise_error": self.standard_errors,
            "fraction": self.fractions,
            **limits_as_columns(self.ranges),
        }

    def metadata(self) -> dict[str, Any]:
        return dict(self.description)


def points(
    campaign: Campaign, stratum: str, n: int, at: Values, answered: Mapping[int, int], smoothing: bool
) -> Points:
    """F at some values from counts at their indices and at the last one: no curve is needed. Smoothed among them.

    Padding was not asked for: of what is public only the n of a single stratum is used.
    """
    at = many(at)
    known = np.array(sorted(answered))
    raw = np.array([answered[i] for i in known.tolist()], np.float64)
    variance, shared = variances(campaign, stratum, known)
    total = raw[-1] = total_of(campaign, stratum, n, raw[-1])
    if campaign.total_is_public:
        variance[-1], shared[:] = 0.0, 0.0
    total_variance = float(variance[-1])
    counts = monotone(raw, total) if smoothing else raw
    rates = counts / total
    errors = np.sqrt(np.maximum(variance - 2 * rates * shared + rates**2 * total_variance, 0.0)) / total
    z = uncertainty.z_score(0.95)
    ranges: dict[Interval, tuple[Floats, Floats]] = {}
    for kind in INTERVALS:
        binomial = total if kind == "population" else 0.0
        quadratic = variance, binomial - 2 * shared, total_variance - binomial
        low, high = ratio_interval(raw, total, quadratic, z, whole=True)
        ranges[kind] = np.minimum(low, rates), np.maximum(high, rates)
    index = campaign.variable.grid.index_at(at)
    place = np.searchsorted(known, np.maximum(index, 0))

    def pick(column: Floats) -> Floats:
        return np.where(index < 0, 0.0, column[np.minimum(place, known.size - 1)])

    told = {**about(campaign, stratum, n, total, smoothing=smoothing), "confidence": 0.95}
    both = {kind: (pick(low), pick(high)) for kind, (low, high) in ranges.items()}
    return Points(told, as_labels(at), pick(counts), pick(np.sqrt(variance)), pick(rates), pick(errors), both)


def about(campaign: Campaign, stratum: str, n: int, total: float, *, smoothing: bool) -> dict[str, Any]:
    return {
        "value": campaign.variable.label,
        "stratum": stratum,
        "n": n,
        "n_stratum": total,
        "epsilon": campaign.epsilon,
        "mechanism": campaign.variable.mechanism,
        "smoothing": "isotonic" if smoothing else "none",
    }


def monotone(raw: Floats, total: float) -> Floats:
    """Counts at increasing indices, smoothed among themselves."""
    return smooth.isotonic(raw, total)


def total_of(campaign: Campaign, stratum: str, n: int, last: float) -> float:
    """How many values a stratum has: n if it is the only one, else the published count at its end, clear of zero."""
    if campaign.total_is_public:
        return float(n)
    error = float(variances(campaign, stratum, np.array([campaign.variable.grid.size - 1]))[0][0]) ** 0.5
    if last < max(1.0, 2 * error):
        raise TooNoisy(
            f"stratum {stratum!r} has {last:.0f} values, give or take {error:.0f}: no fraction of them "
            "can be told. Join strata, or take a larger epsilon or more parties"
        )
    return float(last)


def rate_variances(campaign: Campaign, stratum: str, index: Index, rates: Floats) -> Floats:
    """Variances of count - rate * total at indices, by the noise."""
    variance, shared = variances(campaign, stratum, np.append(index, campaign.variable.grid.size - 1))
    if campaign.total_is_public:
        return np.asarray(np.where(index == campaign.variable.grid.size - 1, 0.0, variance[:-1]))
    found = variance[:-1] - 2 * rates * shared[:-1] + rates**2 * variance[-1]
    return np.asarray(np.maximum(found, 0.0))


def variances(campaign: Campaign, stratum: str, index: Index) -> tuple[Floats, Floats]:
    """Of the published counts at indices, and their covariances with the last."""
    start, last = campaign.position(campaign.stratum(stratum), 0), campaign.variable.grid.size - 1
    noise = campaign.noise
    variance = SERVERS * noise.difference_variance(start + index, np.full_like(index, start - 1))
    of_last = SERVERS * noise.difference_variance([start + last], [start - 1])
    between = SERVERS * noise.difference_variance(np.full_like(index, start + last), start + index)
    return np.asarray(variance), np.asarray((variance + of_last - between) / 2)
