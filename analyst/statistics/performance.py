"""How good a prediction model is: the grid variable is its score, two strata are the outcomes.

Whoever has a score above a threshold is called positive. Sums over cells are taken from raw counts, in which they are
linear; shapes (the best threshold, a regression, a smooth curve) from smoothed ones. Every number is an estimate with
slopes by the cells of both strata, and so has both intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import uncertainty
from analyst.estimation.bias import biases
from analyst.estimation.estimate import (
    ANY,
    INTERVALS,
    MOST_ERROR,
    SHARE,
    Estimate,
    Estimates,
    IntervalEstimate,
    Part,
    caution,
    estimate,
    hidden,
    limits_as_columns,
    quotient,
    ratio_interval,
    weights,
)
from analyst.present.table import Columns, Tabular
from analyst.statistics.calibration import check_scores
from analyst.statistics.curve import Curve, about_outcomes
from analyst.statistics.logistic import fit, logit
from analyst.statistics.partial_auc import partial_area
from analyst.statistics.quantile import inverse
from analyst.statistics.specificity import sensitivity_at
from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

# With a larger noise error a slope of 1, a calibrated model's, is not told from 0, a useless one's; with a larger share
# of noise in what the slope is divided by, its error is not known.
_MOST_SLOPE_ERROR, _MOST_INFORMATION_NOISE = 0.3, 0.25
_NAN = (math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class ModelPerformance(Tabular, picture="decision_curve"):
    """A prediction model, seen through the scores of those without and with the outcome."""

    negative: Curve
    positive: Curve
    confidence: float = 0.95
    threshold: float = 0.5
    specificity: float = 0.9

    def __post_init__(self) -> None:
        check_scores(self.negative, self.positive)
        _ = self.negative.total, self.positive.total

    @property
    def scores(self) -> Floats:
        return self.negative.values

    @property
    def total(self) -> float:
        return self.negative.raw_total + self.positive.raw_total

    @property
    def prevalence(self) -> float:
        return self.positive.raw_total / self.total

    def _sum(self, first: Floats, second: Floats) -> float:
        """Over raw cells: what each without and each with the outcome counts."""
        return float(first @ self.negative.raw_cells + second @ self.positive.raw_cells)

    def _parts(self, first: Floats, second: Floats) -> list[Part]:
        return [(self.negative, first), (self.positive, second)]

    @cached_property
    def brier(self) -> Estimate:
        """The mean squared distance of score and outcome."""
        squares = self.scores**2, (1 - self.scores) ** 2
        value = self._sum(*squares) / self.total
        return estimate("Brier score", value, self._parts(*((s - value) / self.total for s in squares)), bounds=SHARE)

    @cached_property
    def scaled_brier(self) -> IntervalEstimate:
        """1 - Brier score over that of a model that says the prevalence of everybody."""
        share, b, one = self.prevalence, self.brier.value, np.ones_like(self.scores)
        spread = share * (1 - share)
        outcome = -share * one / self.total, (1 - share) * one / self.total
        squares = self.scores**2, (1 - self.scores) ** 2
        tops = [(s - b) / self.total for s in squares]
        bottoms = [(1 - 2 * share) * d for d in outcome]
        parts = [self._parts(*tops), self._parts(*bottoms)]
        of_both = quotient("scaled Brier score", parts, (b, spread), math.inf, (0.0, math.inf), self.confidence)
        ranges = {kind: (1 - high, 1 - low) for kind, (low, high) in of_both.ranges.items()}
        return replace(of_both, value=1 - of_both.value, ranges=ranges, bounds=(-math.inf, 1.0))

    @cached_property
    def observed_over_expected(self) -> Estimate:
        """Outcomes over the sum of all scores."""
        expected = self._sum(self.scores, self.scores)
        ratio = self.positive.raw_total / expected
        slopes = -ratio * self.scores / expected, (1 - ratio * self.scores) / expected
        return estimate("observed over expected", ratio, self._parts(*slopes), bounds=(0.0, math.inf))

    def regression(self) -> list[Estimate]:
        """Intercept and slope of the outcome on logit(score), and the intercept alone with a slope of 1.

        From raw cells, in which the equations of the regression are linear: smoothed ones leave noise at both ends of
        the scores, which flattens the slope. No value where the noise is too large for it.
        """
        names = ("calibration intercept", "calibration slope"), ("calibration in the large",)
        rows: list[Estimate] = []
        raw = self.negative.raw_cells, self.positive.raw_cells
        for name, slope in zip(names, (True, False), strict=True):
            try:
                values, (first, second) = fit(self.scores, *raw, slope=slope)
            except TooNoisy:
                nothing = dict.fromkeys(INTERVALS, ANY)
                rows += [IntervalEstimate(n, *_NAN, ranges=nothing, confidence=self.confidence) for n in name]
                continue
            found = [estimate(n, values[i], self._parts(first[i], second[i])) for i, n in enumerate(name)]
            rows += [hidden(row, self.confidence) if slope and self._slope_is_hidden else row for row in found]
        return rows

    @cached_property
    def _slope_is_hidden(self) -> bool:
        """Whether the noise is too large for a calibration slope: for a model that is right on average, of slope 1.

        By smoothed cells, not by the slope that was found: its own error is large just where the slope is, and would
        let pass those that noise made small.
        """
        z, cells = logit(self.scores), np.maximum(self.negative.cells, 0.0) + np.maximum(self.positive.cells, 0.0)
        odds = math.log(max(self.positive.total, 0.5) / max(float(cells @ (1 / (1 + np.exp(-z)))), 0.5))
        mean = 1 / (1 + np.exp(-(z + odds)))
        weight = mean * (1 - mean)
        away = z - float(weight * cells @ z) / max(float(weight @ cells), 1e-300)
        size = max(float(weight * cells @ away**2), 1e-300)
        slopes = [(-mean * away / size, (1 - mean) * away / size), (weight * away**2 / size,) * 2]
        campaign = self.negative.campaign
        errors = [uncertainty.error_of_sum(campaign, weights(self._parts(*rows))) for rows in slopes]
        return errors[0] > _MOST_SLOPE_ERROR or errors[1] > _MOST_INFORMATION_NOISE

    def ratio(self, name: str, top: tuple[Floats, Floats], bottom: tuple[Floats, Floats]) -> IntervalEstimate:
        """A share: of those that `bottom` counts, those that `top` counts, with Fieller's and Wilson's intervals."""
        parts = self._parts(np.vstack([top[0], bottom[0]]), np.vstack([top[1], bottom[1]]))
        noise = caution(parts) ** 2 * uncertainty.covariance(self.negative.campaign, weights(parts))
        above, below = self._sum(*top), self._sum(*bottom)
        smooth = [float(w[0] @ self.negative.cells + w[1] @ self.positive.cells) for w in (top, bottom)]
        value = float(np.clip(smooth[0] / smooth[1], *SHARE)) if smooth[1] > 0 else math.nan
        z, ranges = uncertainty.z_score(self.confidence), {}
        for kind in INTERVALS:
            binomial = max(below, 0.0) if kind == "population" else 0.0
            quadratic = noise[0, 0], binomial - 2 * noise[0, 1], noise[1, 1] - binomial
            low, high = ratio_interval(above, below, quadratic, z, whole=True)
            ranges[kind] = float(np.fmin(low, value)), float(np.fmax(high, value))
        return IntervalEstimate(name, value, math.nan, math.nan, SHARE, None, ranges, self.confidence)

    def at(self, threshold: float) -> list[Estimate]:
        """Sensitivity, specificity and predictive values when scores above a threshold are called positive."""
        called = self._called(threshold)
        nothing, one = np.zeros_like(called), np.ones_like(called)
        return [
            self.ratio(f"sensitivity above {threshold:g}", (nothing, called), (nothing, one)),
            self.ratio(f"specificity up to {threshold:g}", (1 - called, nothing), (one, nothing)),
            self.ratio(f"positive predictive value above {threshold:g}", (nothing, called), (called, called)),
            self.ratio(
                f"negative predictive value up to {threshold:g}", (1 - called, nothing), (1 - called, 1 - called)
            ),
        ]

    def _called(self, threshold: float) -> Floats:
        index = self.negative.campaign.variable.grid.index_at([threshold])[0]
        return np.asarray(np.arange(self.scores.size) > index, np.float64)

    @cached_property
    def _best(self) -> int:
        return int(np.argmax(self.negative.fractions - self.positive.fractions))

    def youden(self) -> list[Estimate]:
        """The threshold at which sensitivity + specificity - 1 is largest, and that largest value.

        The largest of many noisy differences is too large. By how much is seen in simulated releases of the smoothed
        curves, and taken off; the lower ends of the intervals go down by as much. The range of the threshold is no
        interval of one: it has all thresholds whose index is not told from the best.
        """
        k = self._best
        above = (np.arange(self.scores.size) > k).astype(np.float64)
        false, true = 1 - self.negative.fractions[k], 1 - self.positive.fractions[k]
        slopes = -(above - false) / self.negative.total, (above - true) / self.positive.total
        found = estimate("Youden index", true - false, self._parts(*slopes), bounds=SHARE)
        best = self._less_bias(found)
        at, nan = float(self.negative.thresholds[k]), (math.nan, math.nan)
        return [
            IntervalEstimate(
                "threshold of the Youden index (range: as good)",
                at,
                *nan,
                SHARE,
                None,
                self._plateau(best),
                self.confidence,
            ),
            best,
        ]

    def _less_bias(self, found: Estimate) -> IntervalEstimate:
        """Without what noise adds to it on average; lower ends of intervals go down by as much."""
        bias = biases((self.negative, self.positive), lambda rates: float((rates[0] - rates[1]).max()))
        ends = {kind: found.interval(kind, self.confidence) for kind in INTERVALS}
        ranges = {kind: (max(low - max(bias[kind], 0.0), 0.0), high) for kind, (low, high) in ends.items()}
        value = max(found.value - max(bias["noise"], 0.0), 0.0) if found.noise_error <= MOST_ERROR else math.nan
        errors = found.noise_error, found.sampling_error
        return IntervalEstimate(found.name, value, *errors, SHARE, None, ranges, self.confidence)

    def _plateau(self, best: Estimate) -> dict[Any, tuple[float, float]]:
        """Thresholds whose index is not told from the best: within an interval's arm of it."""
        index, tau, ranges = self.negative.fractions - self.positive.fractions, self.negative.thresholds, {}
        for kind in INTERVALS:
            near = np.flatnonzero(index >= best.interval(kind, self.confidence)[0])
            ranges[kind] = float(tau[near[0]]), float(tau[near[-1]])
        return ranges

    def sensitivity_at(self, specificity: float) -> IntervalEstimate:
        """Sensitivity at the first threshold that has this specificity, a point of the ROC curve."""
        return sensitivity_at(self.negative, self.positive, specificity, self.confidence)

    def partial_area(self, specificity: float) -> Estimate:
        """The area of the ROC curve up to a false positive rate, standardised (McClish): 1/2 is chance, 1 the best."""
        if not 0 < specificity < 1:
            raise InvalidQuery(f"a specificity lies between 0 and 1, got {specificity}")
        most = 1 - specificity
        area, first, second = partial_area(self.negative.cells, self.positive.cells, most)
        scale = 0.5 / (most - most**2 / 2)
        value = 0.5 + (area - most**2 / 2) * scale
        parts = self._parts(first * scale, second * scale)
        return estimate(f"partial AUC, specificity above {specificity:g}", value, parts, bounds=SHARE)

    def net_benefit(self, threshold: float, *, everybody: bool = False) -> Estimate:
        """True positives less false ones, weighed by the threshold's odds, a person; of treating all, if wanted."""
        if not 0 < threshold < 1:
            raise InvalidQuery(f"a decision's threshold lies between 0 and 1, got {threshold}")
        called = np.ones_like(self.scores) if everybody else self._called(threshold)
        gains = -threshold / (1 - threshold) * called, called
        value = self._sum(*gains) / self.total
        name = "net benefit of treating all" if everybody else "net benefit"
        return estimate(f"{name} at {threshold:g}", value, self._parts(*((g - value) / self.total for g in gains)))

    def performance(self, threshold: float | None = None, specificity: float | None = None) -> Estimates:
        """All of it in one table; at other thresholds, if they are given."""
        threshold = self.threshold if threshold is None else threshold
        specificity = self.specificity if specificity is None else specificity
        rows = [self.brier, self.scaled_brier, self.observed_over_expected, *self.regression(), *self.at(threshold)]
        rows += [*self.youden(), self.sensitivity_at(specificity), self.partial_area(specificity)]
        rows += [self.net_benefit(threshold)] if 0 < threshold < 1 else []
        return Estimates(rows, self.description, self.confidence)

    @property
    def drawn(self) -> "DecisionCurve":
        return self.decision_curve()

    def columns(self) -> Columns:
        return self.performance().columns()

    def decision_curve(self, thresholds: Values | None = None) -> "DecisionCurve":
        """The decision curve; by default at 25 thresholds up to the 99th percentile of all scores."""
        if thresholds is None:
            pooled = self.negative.counts + self.positive.counts
            top = float(np.clip(self.scores[inverse(pooled, 0.99 * pooled[-1])], 0.02, 0.98))
            thresholds = np.linspace(top / 25, top, 25).tolist()
        thresholds = [float(t) for t in many(thresholds)]
        rows = [self.net_benefit(t) for t in thresholds]
        return DecisionCurve(self, list(thresholds), rows, [self.net_benefit(t, everybody=True) for t in thresholds])

    @property
    def description(self) -> dict[str, Any]:
        notes = [*self.negative.notes, *self.positive.notes]
        return {**about_outcomes(self.negative, self.positive), "notes": notes}

    def metadata(self) -> dict[str, Any]:
        return self.performance().metadata()


@dataclass(frozen=True)
class DecisionCurve(Tabular, picture="decision_curve"):
    """Net benefit of the model and of treating all, at each threshold; treating none has 0."""

    model: ModelPerformance
    thresholds: list[float]
    rows: Sequence[Estimate]
    everybody: Sequence[Estimate]

    def limits(self) -> dict[Any, tuple[Floats, Floats]]:
        ends = {kind: np.array([r.interval(kind, self.model.confidence) for r in self.rows]).T for kind in INTERVALS}
        return {kind: (low, high) for kind, (low, high) in ends.items()}

    def columns(self) -> Columns:
        return {
            "threshold": self.thresholds,
            "net_benefit": [r.value for r in self.rows],
            **limits_as_columns(self.limits()),
            "treat_all": [r.value for r in self.everybody],
            "treat_none": [0.0] * len(self.rows),
        }

    def metadata(self) -> dict[str, Any]:
        return {**self.model.description, "confidence": self.model.confidence}
