"""Survival from strata arm x {event, censored} on a grid of times: Kaplan-Meier, Nelson-Aalen, log-rank.

With d_j events and c_j censored in cell j, Y_i = sum over j >= i of (d_j + c_j) are at risk at time i: whoever is
censored in a cell is at risk for the events in it, as usual. S = prod (1 - d/Y), from smoothed cells. Every statistic
is, to first order, a weighted sum over the cells of both strata of an arm, which gives its noise; its sampling variance
is Greenwood's. A time is taken as its threshold, up to which an event is known to have happened.

Where fewer are at risk than one, or than two standard errors of their number, curves end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import bands, uncertainty
from analyst.estimation.estimate import INTERVALS, SHARE, Interval, Part, check_interval, weights
from analyst.statistics.curve import Curve
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

LEAST_AT_RISK = 1.0
# A band is simulated at so many times at most; between them the curve hardly moves.
_BAND_TIMES = 60


@dataclass(frozen=True)
class Arm:
    """One arm: curves of the times of those with the event and of those without, censored."""

    name: str
    event: Curve
    censored: Curve

    @cached_property
    def events(self) -> Floats:
        return np.maximum(self.event.cells, 0.0)

    @cached_property
    def at_risk(self) -> Floats:
        """How many are under observation just before each time."""
        cells = self.events + np.maximum(self.censored.cells, 0.0)
        return np.asarray(np.cumsum(cells[::-1])[::-1])

    @cached_property
    def at_risk_errors(self) -> Floats:
        """Standard errors of the number at risk, by the noise."""
        return uncertainty.CountNoise(self.event.campaign, (*self.event.strata, *self.censored.strata)).rest_errors

    @property
    def total(self) -> float:
        return float(self.at_risk[0])

    @property
    def times(self) -> Floats:
        return self.event.thresholds

    @cached_property
    def last(self) -> int:
        """The last index at which enough are at risk to tell anything."""
        least = np.maximum(LEAST_AT_RISK, 2 * self.at_risk_errors)
        enough = np.flatnonzero(self.at_risk >= least - 1e-6)
        if not enough.size or self.at_risk[0] < least[0]:
            raise TooNoisy(
                f"arm {self.name!r} has {self.total:.0f} patients, give or take {least[0] / 2:.0f}: its survival "
                "cannot be told. Join arms, or take a larger epsilon or more patients"
            )
        few = np.flatnonzero(self.at_risk < least - 1e-6)
        return int(few[0]) - 1 if few.size else self.times.size - 1

    @cached_property
    def caution(self) -> float:
        """What noise errors are multiplied by, since an arm is shown only if enough are at risk at its start."""
        error = float(self.at_risk_errors[0])
        return uncertainty.caution(self.total / error - 2) if error > 1e-9 else 1.0

    @cached_property
    def _rates(self) -> tuple[Floats, Floats]:
        """d / Y, and who is left after each time; at least half a patient, so that nothing is divided by zero."""
        safe = np.maximum(self.at_risk, 0.5)
        return self.events / safe, np.maximum(self.at_risk - self.events, 0.5)

    @cached_property
    def survival(self) -> Floats:
        """Kaplan and Meier's estimate just after each time."""
        return np.asarray(np.cumprod(np.clip(1 - self._rates[0], 0.0, 1.0)), np.float64)

    @cached_property
    def hazard(self) -> Floats:
        """Nelson and Aalen's cumulative hazard."""
        return np.cumsum(self._rates[0])

    @cached_property
    def greenwood(self) -> Floats:
        """The sampling variance of log S."""
        rates, left = self._rates
        return np.cumsum(rates / left)

    def slopes(self, index: Index) -> tuple[Floats, Floats]:
        """Of log S at some indices, by each event and each censored cell: (times, cells) twice."""
        rates, left = self._rates
        gained = np.cumsum(rates / left)  # one more at risk at all times so far
        cell = np.arange(self.times.size)
        waiting = gained[np.minimum(cell, index[:, np.newaxis])]
        return waiting - np.where(cell <= index[:, np.newaxis], 1 / left, 0.0), waiting

    def hazard_slopes(self, index: Index) -> tuple[Floats, Floats]:
        """The same of the cumulative hazard."""
        safe = np.maximum(self.at_risk, 0.5)
        gained, cell = np.cumsum(self.events / safe**2), np.arange(self.times.size)
        waiting = -gained[np.minimum(cell, index[:, np.newaxis])]
        return waiting + np.where(cell <= index[:, np.newaxis], 1 / safe, 0.0), waiting

    def rows(self, slopes: tuple[Floats, Floats]) -> dict[str, Floats]:
        """Slopes as weights of the strata's cells."""
        return weights(self.parts(slopes))

    def parts(self, slopes: tuple[Floats, Floats]) -> list[Part]:
        return [(self.event, slopes[0]), (self.censored, slopes[1])]

    @cached_property
    def _known(self) -> dict[bytes, Floats]:
        return {}

    def noise_errors(self, index: Index) -> Floats:
        """Standard errors of S by the noise; kept, since both kinds of interval need them."""
        key = index.tobytes()
        if key not in self._known:
            self._known[key] = self._noise_errors(index)
        return self._known[key]

    def _noise_errors(self, index: Index) -> Floats:
        variance = uncertainty.variances(self.event.campaign, self.rows(self.slopes(index)))
        return np.asarray(self.caution * self.survival[index] * np.sqrt(variance))

    def errors(self, index: Index, kind: Interval) -> Floats:
        """Standard errors of S."""
        check_interval(kind)
        noise = self.noise_errors(index)
        if kind == "noise":
            return noise
        return np.asarray(np.hypot(noise, self.survival[index] * np.sqrt(self.greenwood[index])))

    def limits(self, index: Index, kind: Interval, factor: float) -> tuple[Floats, Floats]:
        """So many standard errors to both sides of S at some indices, each for itself."""
        half, middle = factor * self.errors(index, kind), self.survival[index]
        return np.clip(middle - half, *SHARE), np.clip(middle + half, *SHARE)

    def band(self, kind: Interval, confidence: float = 0.95, seed: int = 0) -> tuple[Index, Floats, Floats]:
        """Indices, and limits between which the whole of S lies; as narrow as a curve that falls allows."""
        index = self.band_times()
        low, high = self.limits(index, kind, self.band_factor(kind, confidence, seed))
        return index, np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)

    def _widest(self, index: Index, kind: Interval, factor: float) -> tuple[Floats, Floats]:
        """Limits at increasing indices that fall: every index whose own limits hold a level is between them."""
        low, high = self.limits(index, kind, factor)
        return np.minimum.accumulate(low), np.maximum.accumulate(high[::-1])[::-1]

    def band_times(self) -> Index:
        return np.unique(np.linspace(0, self.last, min(self.last + 1, _BAND_TIMES)).astype(np.int64))

    def band_factor(self, kind: Interval, confidence: float = 0.95, seed: int = 0) -> float:
        """How many standard errors hold the whole curve, from the joint covariance of noise and sampling."""
        index = self.band_times()
        sampling = self.greenwood[np.minimum.outer(index, index)] if kind == "population" else None
        return bands.joint_factor(self.event.campaign, self.rows(self.slopes(index)), confidence, sampling, seed)

    def median(self, kind: Interval, confidence: float = 0.95, level: float = 0.5) -> tuple[float, float, float]:
        """The first time at which S is at most 1/2, and where its limits are; infinite where it is not reached."""
        coarse, z = self.band_times(), uncertainty.z_score(confidence)
        ends = []
        for side, curve in enumerate(self._widest(coarse, kind, z)):
            reached = np.flatnonzero(curve <= level)
            if not reached.size:
                ends.append(math.inf)
                continue
            # between the last time at which it was not reached and the first at which it was
            before = coarse[reached[0] - 1] + 1 if reached[0] else 0
            fine = np.arange(before, coarse[reached[0]] + 1)
            ends.append(_first(self.times[fine], self._widest(fine, kind, z)[side] <= level))
        return _first(self.times, self.survival[: self.last + 1] <= level), ends[0], ends[1]

    def horizon(self, wanted: float | None) -> float:
        last = float(self.times[self.last])
        if wanted is not None and not 0 < wanted <= last:
            raise InvalidQuery(f"arm {self.name!r} can be followed from 0 to {last:g}, not to {wanted:g}")
        return last if wanted is None else wanted

    def restricted_mean(self, horizon: float) -> tuple[float, list[Part], float]:
        """The mean time up to a horizon, its slopes, and its sampling variance (Greenwood's)."""
        index = np.flatnonzero(self.times < horizon)
        ends = np.append(self.times[index][1:], horizon)
        widths = ends - self.times[index]
        start = min(float(self.times[0]), horizon)  # until the first time everybody lives
        areas = self.survival[index] * widths
        first, second = self.slopes(index)
        after = np.cumsum(areas[::-1])[::-1]
        steps = np.diff(self.greenwood[index], prepend=0.0)
        return start + float(areas.sum()), self.parts((areas @ first, areas @ second)), float(after**2 @ steps)


def _first(times: Floats, reached: NDArray[np.bool_]) -> float:
    return float(times[np.argmax(reached)]) if reached.any() else math.inf


def log_rank(first: Arm, second: Arm) -> tuple[float, float]:
    """Statistic and p-value of equal hazards, noise included: chi-square with one degree of freedom.

    U = sum (d_2 - d p) with p = Y_2 / Y, whose variance is the hypergeometric one and that of the noise in U.
    """
    last = min(first.last, second.last)
    use = np.arange(first.times.size) <= last
    d1, d2 = first.events * use, second.events * use
    d, at_risk = d1 + d2, np.maximum(first.at_risk + second.at_risk, 1e-9)
    share = second.at_risk / at_risk
    score = float((d2 - d * share).sum())
    left = np.clip((at_risk - d) / np.maximum(at_risk - 1, 1e-9), 0.0, 1.0)
    variance = float((d * share * (1 - share) * left).sum())
    second_waits = -np.cumsum(d * (1 - share) / at_risk * use)
    first_waits = np.cumsum(d * share / at_risk * use)
    parts = [
        *first.parts((-share * use + first_waits, first_waits)),
        *second.parts(((1 - share) * use + second_waits, second_waits)),
    ]
    noise = uncertainty.error_of_sum(first.event.campaign, weights(parts))
    statistic = score**2 / max(variance + noise**2, 1e-300)
    return statistic, math.erfc(math.sqrt(statistic / 2))


def even_times(arms: Sequence[Arm], count: int = 11) -> Floats:
    """Times for a table: even ones of the grid, from its start to the longest that any arm can be followed."""
    last = max(arm.last for arm in arms)
    return np.asarray(arms[0].times[np.unique(np.linspace(0, last, count).round().astype(np.int64))])


def limits_at(arm: Arm, index: Index, confidence: float) -> dict[Interval, tuple[Floats, Floats]]:
    """Both pointwise intervals of S at some indices."""
    z = uncertainty.z_score(confidence)
    return {kind: arm.limits(index, kind, z) for kind in INTERVALS}
