"""A campaign's release: the curves of all its strata. Every statistic is computed from it, without asking again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import public_constraints
from analyst.estimation.cells import on_simplex
from analyst.estimation.estimate import Estimates
from analyst.estimation.uncertainty import CountNoise
from analyst.options import QUARTILES, Smoothing
from analyst.statistics import calibration, distribution, survival_tables
from analyst.statistics.calibration import Calibration
from analyst.statistics.calibration_curve import CalibrationCurve, calibration_curve
from analyst.statistics.compare import Comparison, auc_difference, compare
from analyst.statistics.curve import Curve, smoothed
from analyst.statistics.histogram import Histogram
from analyst.statistics.performance import ModelPerformance
from analyst.statistics.quantile import Quantiles
from analyst.statistics.roc import Roc
from analyst.statistics.survival import Arm
from analyst.statistics.survival_tables import Survival
from fss_ecdf.campaign.array_inputs import Values, names
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]
Stratum = str | int | np.integer[Any] | Sequence[str] | Sequence[int] | None


@dataclass(frozen=True)
class Release:
    """What the servers published: noisy counts at all positions, strata one after the other, padding included.

    `on_grid` says that values were measured in steps of the grid, so that a cell's values are its threshold.
    """

    campaign: Campaign
    n: int
    published: Floats
    on_grid: bool = False
    _curves: dict[tuple[tuple[str, ...], str], Curve] = field(default_factory=dict, repr=False)
    _arms: dict[str, list[Arm]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_curve(cls, campaign: Campaign, n: int, whole: NDArray[Any], on_grid: bool = False) -> "Release":
        """From counts over all positions, as servers and simulations have them."""
        released = campaign.position(len(campaign.strata), 0)
        return cls(campaign, n, whole[:released].astype(np.float64), on_grid)

    @classmethod
    def from_strata(cls, campaign: Campaign, n: int, parts: Sequence[Floats], on_grid: bool = False) -> "Release":
        """From each stratum's counts up to the end of its padding."""
        before = np.cumsum([0.0, *(part[-1] for part in parts[:-1])])
        return cls(campaign, n, np.concatenate([p + b for p, b in zip(parts, before, strict=True)]), on_grid)

    @property
    def counts(self) -> Mapping[str, Floats]:
        """Each stratum's counts as they were published."""
        return {name: self._part(self.published, name) for name in self.campaign.strata}

    @cached_property
    def adjusted(self) -> Floats:
        """The published counts given what is public."""
        return public_constraints.public_constraints(self.campaign).adjust(self.published, float(self.n))

    @cached_property
    def totals(self) -> Mapping[str, float]:
        """How many values each stratum has; not negative, and n in all."""
        last = np.array([self._part(self.adjusted, name)[-1] for name in self.campaign.strata])
        return dict(zip(self.campaign.strata, on_simplex(last, float(self.n)).tolist(), strict=True))

    def _part(self, whole: Floats, stratum: str) -> Floats:
        start = self.campaign.position(self.campaign.stratum(stratum), 0)
        return whole[start : start + self.campaign.variable.grid.size] - (whole[start - 1] if start else 0.0)

    def strata(self, stratum: Stratum) -> tuple[str, ...]:
        """The strata that are meant: those named, each once, or all."""
        chosen = self.campaign.strata if stratum is None else names(stratum)
        if not chosen or len(set(chosen)) != len(chosen):
            raise InvalidQuery(f"name each stratum once, got {', '.join(map(repr, chosen)) or 'none'}")
        for name in chosen:
            self.campaign.stratum(name)
        return tuple(chosen)

    def curve(self, stratum: Stratum = None, *, smoothing: Smoothing = "limited") -> Curve:
        """A stratum's curve, that of several pooled, or, if none is named, that of all."""
        chosen = self.strata(stratum)
        if (chosen, smoothing) not in self._curves:
            raw = np.sum([self._part(self.adjusted, name) for name in chosen], axis=0)
            counts = self._smoothed(chosen, smoothing)
            inverted = self._smoothed(chosen, "isotonic") if smoothing == "limited" else None
            raw.flags.writeable = False
            error = CountNoise(self.campaign, chosen).total_variance ** 0.5
            error = 0.0 if error < 1e-6 else error
            about = self.campaign, chosen, self.n, raw, counts, smoothing, error, self.on_grid
            self._curves[chosen, smoothing] = Curve(*about, inverted)
        return self._curves[chosen, smoothing]

    def _smoothed(self, chosen: tuple[str, ...], how: Smoothing) -> Floats:
        """The sum of the strata's smoothed curves: nearer to the truth than their smoothed sum, and it adds up."""
        each = [smoothed(self.campaign, self._part(self.adjusted, s), self.totals[s], how) for s in chosen]
        counts = np.asarray(np.sum(each, axis=0))
        counts.flags.writeable = False
        return counts

    def quantile(
        self,
        levels: Values = QUARTILES,
        stratum: Stratum = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
    ) -> Quantiles:
        """Where the curve reaches each level, with intervals."""
        return self.curve(stratum, smoothing=smoothing).quantile(levels, confidence)

    def histogram(
        self,
        edges: Values = 20,
        stratum: Stratum = None,
        *,
        smoothing: Smoothing = "limited",
        confidence: float = 0.95,
    ) -> Histogram:
        """Counts and shares of bins."""
        return self.curve(stratum, smoothing=smoothing).histogram(edges, confidence)

    def mean(self, stratum: Stratum = None, *, confidence: float = 0.95) -> Estimates:
        """The mean of the values."""
        return self.curve(stratum, smoothing="isotonic").mean(confidence)

    def compare(
        self, first: Stratum, second: Stratum, *, smoothing: Smoothing = "isotonic", confidence: float = 0.95
    ) -> Comparison:
        """Kolmogorov-Smirnov, Mann-Whitney, differences of means and medians of two strata."""
        curves = self.curve(first, smoothing=smoothing), self.curve(second, smoothing=smoothing)
        more = [
            distribution.standardised_difference(*curves, confidence),
            distribution.wasserstein(*curves, confidence),
        ]
        comparison = compare(*curves, confidence)
        return replace(comparison, rows=[*comparison.rows, *more])

    def roc(self, negative: Stratum = None, positive: Stratum = None, *, smoothing: Smoothing = "isotonic") -> Roc:
        """ROC and precision-recall curves; by default the first stratum is negative, the second positive."""
        return Roc(*self._two(negative, positive, smoothing))

    def compare_auc(
        self, first: tuple[Stratum, Stratum], second: tuple[Stratum, Stratum], *, confidence: float = 0.95
    ) -> Estimates:
        """The difference of two AUCs, each of a negative and a positive stratum."""
        one, two = self.roc(*first), self.roc(*second)
        areas = [type(r.area)(f"AUC {r.positive.stratum} / {r.negative.stratum}", *_numbers(r)) for r in (one, two)]
        about = {"n": self.n, "epsilon": self.campaign.epsilon, "smoothing": "isotonic"}
        return Estimates([*areas, auc_difference(one, two)], about, confidence)

    def calibration(
        self,
        groups: Values = 10,
        negative: Stratum = None,
        positive: Stratum = None,
        *,
        fitted: bool = False,
    ) -> Calibration:
        """Calibration and the Hosmer-Lemeshow statistic. `fitted`: the model was fitted to these very people."""
        counted = calibration.from_curves(*self._two(negative, positive, "isotonic"), groups)
        return calibration.hosmer_lemeshow(counted, fitted=fitted)

    def performance(
        self, negative: Stratum = None, positive: Stratum = None, *, confidence: float = 0.95
    ) -> ModelPerformance:
        """A prediction model: Brier score, calibration slope, sensitivity, net benefit."""
        return ModelPerformance(*self._two(negative, positive, "isotonic"), confidence)

    def calibration_curve(
        self, negative: Stratum = None, positive: Stratum = None, *, confidence: float = 0.95
    ) -> CalibrationCurve:
        """The share of positives near each score, with a band."""
        return calibration_curve(*self._two(negative, positive, "isotonic"), confidence)

    def summary(self, stratum: Stratum = None, *, trim: float = 0.1, confidence: float = 0.95) -> Estimates:
        """Mean, quartiles, reference interval and the like."""
        return distribution.summary(self.curve(stratum, smoothing="isotonic"), trim, confidence)

    def survival(
        self,
        at: Values | None = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
        hazard: bool = False,
    ) -> Survival:
        """Kaplan-Meier curves of all arms, or their cumulative hazards, at some times."""
        return survival_tables.survival(self.arms(smoothing), at, confidence, hazard)

    def survival_summary(
        self, horizon: float | None = None, *, smoothing: Smoothing = "isotonic", confidence: float = 0.95
    ) -> Estimates:
        """Medians, restricted means, survival at the horizon, and log-rank tests."""
        return survival_tables.summary(self.arms(smoothing), horizon, confidence)

    def arms(self, smoothing: Smoothing = "isotonic") -> list[Arm]:
        """The arms of a campaign of kind = "survival"."""
        if self.campaign.kind != "survival":
            raise InvalidQuery('survival needs a campaign of kind = "survival"; this one is about a distribution')
        if smoothing not in self._arms:
            self._arms[smoothing] = [
                Arm(name, self.curve(event, smoothing=smoothing), self.curve(censored, smoothing=smoothing))
                for name, (event, censored) in self.campaign.arms.items()
            ]
        return self._arms[smoothing]

    def _two(self, negative: Stratum, positive: Stratum, smoothing: Smoothing) -> tuple[Curve, Curve]:
        strata = self.campaign.strata
        if len(strata) != 2 and (negative is None or positive is None):
            raise InvalidQuery(
                "name the negative and the positive stratum: this campaign has " + ", ".join(map(repr, strata))
            )
        chosen = strata[0] if negative is None else negative, strata[1] if positive is None else positive
        below, above = (self.curve(stratum, smoothing=smoothing) for stratum in chosen)
        return below, above


def _numbers(roc: Roc) -> tuple[float, float, float, tuple[float, float]]:
    area = roc.area
    return area.value, area.noise_error, area.sampling_error, area.bounds
