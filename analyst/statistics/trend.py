"""A campaign of waves over time: quantiles and shares of every wave, what changed or left its limits, running curves.

Waves are of different people and have noise of their own: statistics of two waves are independent, and the variances of
their difference and of their sum are the sums of theirs. Everything is post-processing of what was published.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import uncertainty
from analyst.estimation.estimate import INTERVALS, Interval, IntervalEstimate, mover_interval
from analyst.present.table import Columns, Tabular
from analyst.release import Release, Stratum
from analyst.statistics.compare import Weighted, quantile_estimates, rank_p
from analyst.statistics.curve import Curve
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from fss_ecdf.campaign.json_messages import WaveSummary
from fss_ecdf.campaign.release import Release as PlannedRelease
from fss_ecdf.campaign.release import ReleaseName, cumulative

Floats = NDArray[np.float64]
MEDIAN = (0.5,)


@dataclass(frozen=True)
class TrendTable(Tabular):
    """A table with a row, or several, for every wave."""

    rows: Sequence[Mapping[str, Any]]
    description: Mapping[str, Any]
    campaign: Campaign

    def columns(self) -> Columns:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        return {name: [row.get(name) for row in self.rows] for name in names}

    def metadata(self) -> dict[str, Any]:
        return dict(self.description)


@dataclass(frozen=True)
class QuantileTrend(TrendTable, picture="over_time"):
    """Quantiles of every wave."""


@dataclass(frozen=True)
class FractionTrend(TrendTable, picture="fractions"):
    """The share at or below one value in every wave, and whether it has left its limits."""

    @property
    def alerts(self) -> list[int]:
        """Waves whose share is outside its limits, whatever the noise."""
        return [int(row["wave"]) for row in self.rows if row.get("outside")]

    @property
    def warnings(self) -> list[str]:
        return [f"alert: the share of wave {wave} is outside its limits" for wave in self.alerts]


@dataclass(frozen=True)
class WaveChanges(TrendTable):
    """Every wave against the one before it."""


@dataclass(frozen=True)
class Trend:
    """The releases of a campaign's waves, in their order, and those of its pools."""

    campaign: Campaign
    plans: Sequence[PlannedRelease]
    releases: Mapping[ReleaseName, Release] = field(repr=False)
    closes: Mapping[int, str | None] = field(default_factory=dict)  # when each wave ended, where that is known

    @property
    def waves(self) -> list[PlannedRelease]:
        return [plan for plan in self.plans if plan.kind == "wave"]

    @property
    def pooled(self) -> list[PlannedRelease]:
        return [plan for plan in self.plans if plan.kind == "pooled"]

    def release(self, plan: PlannedRelease) -> Release:
        return self.releases[plan.name]

    def cumulative(self, through: int | None = None) -> Release:
        """Everybody up to a wave, from the releases that have the least noise together; its errors are exact."""
        last = max((plan.through for plan in self.plans), default=0) if through is None else through
        chosen = cumulative(self.plans, last)
        if not chosen:
            raise InvalidQuery(f"nothing was released up to wave {last}")
        return sum_releases(self.campaign, [(plan.epsilon, self.release(plan)) for plan in chosen])

    def quantiles(
        self, levels: Sequence[float] = (0.25, 0.5, 0.75), stratum: Stratum = None, *, confidence: float = 0.95
    ) -> QuantileTrend:
        """Quantiles of every wave, each with both intervals."""
        rows = [row for plan in self.waves for row in self._quantile_rows(plan, levels, stratum, confidence)]
        return QuantileTrend(rows, self._about(stratum, confidence=confidence), self.campaign)

    def _quantile_rows(
        self, plan: PlannedRelease, levels: Sequence[float], stratum: Stratum, confidence: float
    ) -> Iterable[dict[str, Any]]:
        release, curve = self.release(plan), self.release(plan).curve(stratum)
        head = {"wave": plan.through, "closes": self.closes.get(plan.through), "n": release.n}

        def known() -> list[dict[str, Any]]:
            found = curve.quantile(levels, confidence)
            ends = {f"{kind}_{end}": found.ranges[kind][i] for kind in INTERVALS for i, end in enumerate(_ENDS)}
            return [
                {"level": level, "value": found.thresholds[i]} | {name: column[i] for name, column in ends.items()}
                for i, level in enumerate(levels)
            ]

        return [{**head, **row} for row in _or([{"level": level} for level in levels], known)]

    def fractions(
        self,
        at: float | str,
        stratum: Stratum = None,
        *,
        limits: tuple[float, float] | None = None,
        confidence: float = 0.95,
        interval: Interval = "population",
    ) -> FractionTrend:
        """The share at or below a value in every wave, and whether it is outside its limits.

        Alerts hold together: a false one comes up at all with a probability of at most 1 - confidence. So each wave's
        interval for the alert is made for all the waves that the campaign has.
        """
        if limits is not None and not 0 <= limits[0] <= limits[1] <= 1:
            raise InvalidQuery(f"limits are two shares between 0 and 1, the lower one first, got {limits}")
        count = self.campaign.waves.count if self.campaign.waves is not None else 1
        strict = 1 - (1 - confidence) / count
        rows = []
        for plan in self.waves:
            curve = self.release(plan).curve(stratum)

            def row(curve: Curve = curve) -> list[dict[str, Any]]:
                found, alert = curve.at([at], confidence), curve.at([at], strict)
                told: dict[str, Any] = {"share": float(found.fractions[0])}
                for kind in INTERVALS:
                    told |= {f"{kind}_{end}": float(found.ranges[kind][i][0]) for i, end in enumerate(_ENDS)}
                if limits is not None:
                    low, high = (float(end[0]) for end in alert.ranges[interval])
                    told["outside"] = high < limits[0] or low > limits[1]
                return [told]

            rows += [{"wave": plan.through, "closes": self.closes.get(plan.through), **one} for one in _or([{}], row)]
        about = {**self._about(stratum, confidence=confidence), "at_or_below": at}
        if limits is not None:
            about |= {
                "limits": f"{limits[0]:g} to {limits[1]:g}",
                "alerts_by": f"{interval}, all {count} waves together",
            }
        return FractionTrend(rows, about, self.campaign)

    def changes(self, stratum: Stratum = None, *, confidence: float = 0.95) -> WaveChanges:
        """Every wave against the one before it: medians, and whether the difference of the curves is chance.

        p-values are two-sided, for the population, with the noise of both; `p_adjusted` are Holm's, for all rows.
        """
        rows, ps = list[dict[str, Any]](), list[float]()
        for before, after in zip(self.waves, self.waves[1:], strict=False):
            curves = [self.release(plan).curve(stratum, smoothing="isotonic") for plan in (before, after)]

            def known(curves: Sequence[Curve] = curves) -> list[dict[str, Any]]:
                return [_change(curves[0], curves[1], confidence)]

            (row,) = _or([{}], known)
            rows.append({"wave": after.through, "against": before.through, **row})
            ps.append(row.get("p_value", math.nan))
        for row, p in zip(rows, _holm(ps), strict=True):
            row["p_adjusted"] = p
        return WaveChanges(rows, self._about(stratum, confidence=confidence), self.campaign)

    def _about(self, stratum: Stratum, **more: Any) -> dict[str, Any]:
        strata = next(iter(self.releases.values())).strata(stratum) if self.releases else ()
        about = {"value": self.campaign.variable.label, "stratum": " + ".join(strata), "waves": len(self.waves)}
        return {**about, "epsilon": self.campaign.epsilon, "mechanism": self.campaign.variable.mechanism, **more}


_ENDS = ("lower", "upper")


def _or(otherwise: list[dict[str, Any]], make: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the noise does not allow of one wave is left empty; the others have theirs."""
    try:
        return make()
    except TooNoisy:
        return otherwise


def sum_releases(campaign: Campaign, parts: Sequence[tuple[float, Release]]) -> Release:
    """Several releases of different people as one: counts and variances of the noise add up."""
    if len(parts) == 1:
        return parts[0][1]
    seen = campaign.released(tuple(Counter(epsilon for epsilon, _ in parts).items()))
    releases = [release for _, release in parts]
    published = np.sum([release.published for release in releases], axis=0)
    return Release(seen, sum(release.n for release in releases), published, releases[0].on_grid)


def _change(before: Curve, after: Curve, confidence: float) -> dict[str, Any]:
    medians = [quantile_estimates(curve, MEDIAN, confidence)[0] for curve in (before, after)]
    change: IntervalEstimate = mover_interval("change of the median", medians[0], medians[1], before.thresholds)
    told: dict[str, Any] = {"change_of_median": change.value}
    for kind in INTERVALS:
        told |= {f"{kind}_{end}": change.ranges[kind][i] for i, end in enumerate(_ENDS)}
    return told | {"p_value": mann_whitney_p(before, after)}


def mann_whitney_p(before: Curve, after: Curve) -> float:
    """Two-sided, of two releases whose noise is independent."""
    return rank_p(before, after, _independent_noise)


def _independent_noise(parts: Weighted) -> float:
    each = ({name: weights for name in curve.strata} for curve, weights in parts)  # noqa: C420
    errors = (uncertainty.error_of_sum(curve.campaign, of) for (curve, _), of in zip(parts, each, strict=True))
    return sum(error**2 for error in errors)


def _holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values; those that are not known stay so."""
    known = sorted((p, i) for i, p in enumerate(ps) if math.isfinite(p))
    adjusted, least = [math.nan] * len(ps), 0.0
    for rank, (p, i) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p))
        adjusted[i] = least
    return adjusted


def closing_times(waves: Sequence[WaveSummary]) -> dict[int, str | None]:
    return {wave.number: wave.closes for wave in waves}
