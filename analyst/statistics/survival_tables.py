"""Survival as tables: curves with both intervals and the number at risk, and summaries that compare arms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import uncertainty
from analyst.estimation.estimate import (
    INTERVALS,
    Estimate,
    Estimates,
    Interval,
    IntervalEstimate,
    Part,
    estimate,
    limits_as_columns,
)
from analyst.present.table import Columns, Tabular, plain
from analyst.statistics.survival import Arm, even_times, limits_at, log_rank
from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Survival(Tabular, picture="survival"):
    """Kaplan-Meier curves of all arms at some times."""

    arms: Sequence[Arm]
    times: Floats
    confidence: float = 0.95
    hazard: bool = False

    def __getitem__(self, name: str) -> Arm:
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise InvalidQuery(f"there is no arm {name!r} among {', '.join(repr(arm.name) for arm in self.arms)}")

    @cached_property
    def _rows(self) -> list[tuple[Arm, NDArray[np.int64]]]:
        """For each arm the indices of the times at which it can be told."""
        grid = self.arms[0].event.campaign.variable.grid
        index = grid.index_at(self.times.tolist())
        return [(arm, index[(index >= 0) & (index <= arm.last)]) for arm in self.arms]

    @cached_property
    def _untold(self) -> dict[str, Floats]:
        """For each arm the times at which too few are at risk; their rows are empty."""
        index = self.arms[0].event.campaign.variable.grid.index_at(self.times.tolist())
        return {arm.name: self.times[index > arm.last] for arm in self.arms}

    def columns(self) -> Columns:
        table: dict[str, list[Any]] = {"arm": [], "time": [], self._what: []}
        table |= {f"{kind}_{end}": [] for kind in INTERVALS for end in ("lower", "upper")}
        table |= {"at_risk": [], "at_risk_noise_error": []}
        for arm, index in self._rows:
            table["arm"] += [arm.name] * index.size
            table["time"] += arm.times[index].tolist()
            table[self._what] += (arm.hazard if self.hazard else arm.survival)[index].tolist()
            for name, ends in limits_as_columns(self._limits(arm, index)).items():
                table[name] += ends.tolist()
            table["at_risk"] += arm.at_risk[index].tolist()
            table["at_risk_noise_error"] += arm.at_risk_errors[index].tolist()
            for time in self._untold[arm.name].tolist():
                for name, column in table.items():
                    column.append({"arm": arm.name, "time": time}.get(name))
        return table

    @property
    def _what(self) -> str:
        return "cumulative_hazard" if self.hazard else "survival"

    def _limits(self, arm: Arm, index: NDArray[np.int64]) -> dict[Interval, tuple[Floats, Floats]]:
        if not self.hazard:
            return limits_at(arm, index, self.confidence)
        noise = arm.caution**2 * uncertainty.variances(arm.event.campaign, arm.rows(arm.hazard_slopes(index)))
        sampling = np.cumsum(arm.events / np.maximum(arm.at_risk, 0.5) ** 2)[index]
        z, middle, limits = uncertainty.z_score(self.confidence), arm.hazard[index], {}
        for kind in INTERVALS:
            half = z * np.sqrt(noise + (sampling if kind == "population" else 0.0))
            limits[kind] = np.maximum(middle - half, 0.0), middle + half
        return limits

    def metadata(self) -> dict[str, Any]:
        first = self.arms[0].event
        return {
            "n": first.n,
            "arms": {arm.name: round(arm.total, 1) for arm in self.arms},
            "medians": {arm.name: plain(float(arm.median("noise", self.confidence)[0])) for arm in self.arms},
            "epsilon": first.epsilon,
            "smoothing": first.smoothing,
            "confidence": self.confidence,
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        return [
            f"arm {arm.name!r} is followed up to {arm.times[arm.last]:g}: later too few are at risk"
            for arm in self.arms
            if arm.last < arm.times.size - 1
        ]


def survival(arms: Sequence[Arm], times: Values | None, confidence: float, hazard: bool = False) -> Survival:
    chosen = even_times(arms) if times is None else np.asarray(many(times), np.float64)
    if not chosen.size:
        raise InvalidQuery("a table of survival needs at least one time")
    return Survival(arms, chosen, confidence, hazard)


def summary(arms: Sequence[Arm], horizon: float | None = None, confidence: float = 0.95) -> Estimates:
    """Medians, restricted means and survival at the horizon of all arms, and each arm against the first."""
    end = min(arm.horizon(horizon) for arm in arms)
    rows: list[Estimate] = []
    for arm in arms:
        rows += [_median(arm, confidence), _mean(f"restricted mean to {end:g}, {arm.name}", [(1.0, arm)], end)]
        rows.append(_at(f"survival at {end:g}, {arm.name}", [(1.0, arm)], end))
    for arm in arms[1:]:
        pair, names = [(-1.0, arms[0]), (1.0, arm)], f"{arm.name} - {arms[0].name}"
        rows += [_mean(f"restricted mean, {names}", pair, end), _at(f"survival at {end:g}, {names}", pair, end)]
        statistic, p = log_rank(arms[0], arm)
        zero = dict.fromkeys(INTERVALS, (math.nan, math.nan))
        rows.append(
            IntervalEstimate(f"log-rank, {names}", statistic, math.nan, math.nan, (0, math.inf), p, zero, confidence)
        )
    table = Survival(arms, np.array([end]), confidence)
    return Estimates(rows, {**table.metadata(), "p_values": "for the population, noise included"}, confidence)


def _median(arm: Arm, confidence: float) -> IntervalEstimate:
    medians = {kind: arm.median(kind, confidence) for kind in INTERVALS}
    ranges = {kind: (low, high) for kind, (_, low, high) in medians.items()}
    return IntervalEstimate(
        f"median, {arm.name}", medians["noise"][0], math.nan, math.nan, (0, math.inf), None, ranges, confidence
    )


def _mean(name: str, signed: Sequence[tuple[float, Arm]], horizon: float) -> Estimate:
    value, parts, variance = 0.0, list[Part](), 0.0
    for sign, arm in signed:
        mean, slopes, sampling = arm.restricted_mean(horizon)
        value, variance = value + sign * mean, variance + sampling
        parts += [(curve, sign * g) for curve, g in slopes]
    bounds = (0.0, horizon) if len(signed) == 1 else (-horizon, horizon)
    wider = max(arm.caution for _, arm in signed)
    return estimate(name, value, parts, bounds=bounds, sampling_variance=variance, wider=wider)


def _at(name: str, signed: Sequence[tuple[float, Arm]], time: float) -> Estimate:
    value, parts, variance = 0.0, list[Part](), 0.0
    for sign, arm in signed:
        at = arm.event.campaign.variable.grid.index_at([time])
        here = float(arm.survival[at[0]])
        value, variance = value + sign * here, variance + here**2 * float(arm.greenwood[at[0]])
        first, second = arm.slopes(at)
        parts += [(curve, sign * here * g[0]) for curve, g in ((arm.event, first), (arm.censored, second))]
    bounds = (0.0, 1.0) if len(signed) == 1 else (-1.0, 1.0)
    wider = max(arm.caution for _, arm in signed)
    return estimate(name, value, parts, bounds=bounds, sampling_variance=variance, wider=wider)
