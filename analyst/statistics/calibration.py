"""Are the scores the probabilities that they claim to be? Calibration and the Hosmer-Lemeshow statistic.

The grid variable is itself the predicted probability. So what is observed and what is expected in any group of scores
is linear in the two published curves: O_1 counts the positives of a group, E_1 adds up the scores of everybody in it,
O_0 and E_0 the rest. All of it is post-processing of the one release. `from_sums` takes the same numbers from a query
for sums instead (Algorithm 2 of the paper, corrected), which costs epsilon from the reserve.

H = sum over groups of (O_1 - E_1)^2 / E_1 + (O_0 - E_0)^2 / E_0. Noise in O - E adds its own squares, whose mean is
known: `corrected` takes it off. Without noise H has about a chi-square distribution with Q - 2 degrees of freedom if
the model was fitted to these people, and with Q if it was not. With noise that p-value is too small. `p_value`
includes the noise: it is the share of simulated calibrated models whose H, noise included, is at least as large.

What the test can find is said with it: `power`, the probability that it rejects a model whose calibration slope is
0.6, at this n and with this noise. Below a quarter H and its p-value tell nothing, and are not shown.

Defined behaviour: a group in which E_0 or E_1 is below 1 after noise is left out of H and of Q and marked; with fewer
than three groups left H and its p-values are not numbers, and a note says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc  # scipy.stats takes a second to load

from analyst.estimation import smooth, uncertainty
from analyst.estimation.cells import cells
from analyst.estimation.estimate import INTERVALS, Interval, limits_as_columns, ratio_interval
from analyst.estimation.noisy import Noisy
from analyst.present.table import Columns, Tabular
from analyst.statistics.curve import Curve
from analyst.statistics.quantile import inverse
from fss_ecdf.campaign.array_inputs import Values
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.score_groups import ScoreGroupSums

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

LEAST_EXPECTED = 1.0
_RUNS = 9999
WRONG_SLOPE = 0.6  # of a model that is badly off: its logits are too far apart
LEAST_POWER = 0.25
_POWER_RUNS = 2000


@dataclass(frozen=True)
class Groups:
    """Of each group: what was observed and expected, rows O_0, O_1, E_0, E_1; and the noise's covariance (4 Q, 4 Q).

    `expected` are E_0 and E_1 as H divides by them: of smoothed curves, where there are any.
    """

    upper_ends: Floats
    table: Floats
    expected: Floats
    noise: Floats
    n: int
    epsilon: float
    delta: float

    @property
    def sizes(self) -> Floats:
        """Values in each group: the observed ones are the less noisy."""
        return np.asarray(self.table[0] + self.table[1])

    @property
    def used(self) -> NDArray[np.bool_]:
        return np.asarray((self.expected >= LEAST_EXPECTED).all(axis=0) & (self.sizes >= LEAST_EXPECTED))

    @cached_property
    def of_differences(self) -> Floats:
        """The noise's covariance of O - E, rows as those of `table`: (2 Q, 2 Q)."""
        k = 2 * self.upper_ends.size
        return self.noise[:k, :k] + self.noise[k:, k:] - self.noise[:k, k:] - self.noise[k:, :k]


def check_scores(negative: Curve, positive: Curve) -> None:
    """Two groups of one campaign whose grid is one of probabilities."""
    if negative.campaign.digest != positive.campaign.digest or set(negative.strata) & set(positive.strata):
        raise InvalidQuery("calibration needs two different strata of one campaign")
    grid = negative.campaign.variable.grid
    if grid.values != "float" or grid.all_thresholds[0] < 0 or grid.all_thresholds[-1] > 1:
        raise InvalidQuery("calibration needs a grid of scores between 0 and 1")


def from_curves(negative: Curve, positive: Curve, groups: Values = 10) -> Groups:
    """Groups of about equal size, or up to given scores, from two strata of a release."""
    check_scores(negative, positive)
    grid = negative.campaign.variable.grid
    if isinstance(groups, int | np.integer):
        ends = even_ends(negative.counts + positive.counts, int(groups))
    else:
        ends = grid.index_at(groups)
    if ends.size < 3 or not (np.diff(np.concatenate([[-1], ends])) > 0).all():
        raise InvalidQuery("calibration needs at least 3 groups, whose upper ends increase by a step of the grid")
    member, score = _membership(ends, grid.size), negative.values
    nothing, above, below = np.zeros_like(member), member * score, member * (1 - score)
    rows = [
        (negative, np.vstack([member, nothing, below, above])),
        (positive, np.vstack([nothing, member, below, above])),
    ]
    # The raw counts: in them everything is linear, and the covariance of the noise exact.
    table = np.asarray(sum(w @ curve.raw_cells for curve, w in rows)).reshape(4, -1)
    # Both strata smoothed together: apart, each would spread its own noise into the tails.
    everybody = negative.counts[-1] + positive.counts[-1]
    pooled = cells(smooth.isotonic(negative.raw + positive.raw, everybody))
    weights = {stratum: w for curve, w in rows for stratum in curve.strata}
    noise = uncertainty.covariance(negative.campaign, weights)
    expected = np.vstack([below @ pooled, above @ pooled])
    return Groups(
        grid.thresholds(ends), table, expected, noise, negative.n, negative.epsilon, negative.campaign.noise.delta
    )


def from_sums(sums: Noisy, asked: ScoreGroupSums, n: int, epsilon: float, delta: float) -> Groups:
    """The result of a query for sums, in which every number has noise of its own."""
    scaled = sums.combine(np.diag(1 / asked.scale))
    table = scaled.values.reshape(4, -1)
    return Groups(asked.upper_ends, table, table[2:], scaled.covariance, n, epsilon, delta)


def even_ends(counts: Floats, groups: int) -> Index:
    """Upper ends of groups of about equal size, by a smoothed curve of all; fewer where many have the same score."""
    if not 3 <= groups <= 1000:
        raise InvalidQuery(f"calibration needs 3 to 1000 groups, got {groups}")
    ends = [inverse(counts, q * counts[-1] / groups) for q in range(1, groups)]
    return np.unique([*ends, counts.size - 1])


def _membership(ends: Index, size: int) -> Floats:
    """Row q is 1 where an index belongs to group q: above the end before it and up to its own."""
    return np.equal.outer(np.arange(ends.size), np.searchsorted(ends, np.arange(size))).astype(np.float64)


def statistic(groups: Groups, differences: Floats) -> Floats:
    """H of differences O - E, (2, Q) or many (..., 2, Q)."""
    terms = differences**2 / np.maximum(groups.expected, LEAST_EXPECTED) * groups.used
    return np.asarray(terms.sum(axis=(-2, -1)))


def noise_in_statistic(groups: Groups) -> float:
    """What the noise adds to H on average: its variance in each difference, over what is expected."""
    variance = np.diag(groups.of_differences).reshape(2, -1)
    return float((variance / np.maximum(groups.expected, LEAST_EXPECTED) * groups.used).sum())


@dataclass(frozen=True)
class Calibration(Tabular, picture="calibration"):
    """Groups, and H with two p-values: chi-square's, which knows no noise, and one that includes it."""

    groups: Groups
    fitted: bool
    statistic: float
    corrected: float  # without what the noise adds to it on average, and not below 0
    degrees_of_freedom: int
    chi_square_p: float
    p_value: float
    null_mean: float  # what H is on average for a calibrated model, noise included
    corrected_error: float  # the standard error of `corrected` by the noise
    power: float  # against a model whose calibration slope is `WRONG_SLOPE`

    @property
    def informative(self) -> bool:
        """Whether the test would find a model that is badly off; from n, epsilon and the scores, not from H."""
        return bool(self.power >= LEAST_POWER)

    def corrected_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """For H of these very people, without the noise."""
        half = uncertainty.z_score(confidence) * self.corrected_error
        return max(0.0, self.corrected - half), self.corrected + half

    @property
    def predicted(self) -> Floats:
        """The mean score of each group."""
        return _ratio(self.groups.table[3], self.groups.sizes, self.groups.used)

    @property
    def observed(self) -> Floats:
        """The share of positives in each group."""
        return np.clip(_ratio(self.groups.table[1], self.groups.sizes, self.groups.used), 0.0, 1.0)

    @property
    def observed_over_expected(self) -> float:
        """Calibration in the large: all positives over all expected ones."""
        return float(self.groups.table[1].sum() / max(self.groups.table[3].sum(), LEAST_EXPECTED))

    def limits(self, confidence: float = 0.95) -> Mapping[Interval, tuple[Floats, Floats]]:
        """Both intervals of `observed`."""
        g, q, z, ends = self.groups, self.groups.upper_ends.size, uncertainty.z_score(confidence), {}
        of_both = g.noise[: 2 * q, : 2 * q]
        positive, negative = np.diag(of_both)[q:], np.diag(of_both)[:q]
        shared = np.diag(of_both[q:, :q])
        size_variance, with_size = positive + negative + 2 * shared, positive + shared
        for kind in INTERVALS:
            binomial = np.maximum(g.sizes, 0.0) if kind == "population" else np.zeros(q)
            quadratic = positive, binomial - 2 * with_size, size_variance - binomial
            low, high = ratio_interval(g.table[1], g.sizes, quadratic, z)
            ends[kind] = (
                np.where(g.used, np.fmin(low, self.observed), np.nan),
                np.where(g.used, np.fmax(high, self.observed), np.nan),
            )
        return ends

    def columns(self) -> Columns:
        g = self.groups
        return {
            "score_up_to": g.upper_ends,
            "size": g.sizes,
            "observed_positive": g.table[1],
            "expected_positive": g.table[3],
            "mean_score": self.predicted,
            "share_positive": self.observed,
            **limits_as_columns(self.limits()),
            "used": [bool(u) for u in g.used],
        }

    def metadata(self) -> dict[str, Any]:
        low, high = self.corrected_interval()
        shown = self.informative
        return {
            "n": self.groups.n,
            "epsilon": self.groups.epsilon,
            "delta": self.groups.delta,
            "hosmer_lemeshow": self.statistic if shown else None,
            "hosmer_lemeshow_corrected": self.corrected if shown else None,
            "hosmer_lemeshow_noise_lower": round(low, 3) if shown else None,
            "hosmer_lemeshow_noise_upper": round(high, 3) if shown else None,
            "degrees_of_freedom": self.degrees_of_freedom,
            "p_value": self.p_value if shown else None,
            "p_value_chi_square_ignoring_noise": self.chi_square_p if shown else None,
            "expected_statistic_if_calibrated": self.null_mean if shown else None,
            f"power_against_slope_{WRONG_SLOPE:g}".replace(".", "_"): self.power,
            "observed_over_expected": self.observed_over_expected,
            "fitted_on_these_people": self.fitted,
            "confidence": 0.95,
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        out = int((~self.groups.used).sum())
        told = [f"{out} groups with less than {LEAST_EXPECTED:g} expected are left out"] if out else []
        if np.isnan(self.statistic):
            return [*told, "fewer than three groups are left: no statistic. Take wider groups or a larger epsilon"]
        found = f"a model whose calibration slope is {WRONG_SLOPE:g} is found with probability {self.power:.2f}"
        if not self.informative:
            return [*told, f"Hosmer-Lemeshow tells nothing at this n and epsilon: {found}"]
        told.append(found)
        if self.null_mean > 1.25 * self.degrees_of_freedom:
            told.append(
                f"noise alone lifts H of a calibrated model from {self.degrees_of_freedom} to {self.null_mean:.1f}: "
                "trust the corrected H and the p-value that includes the noise, not chi-square's"
            )
        return told


def _ratio(above: Floats, below: Floats, used: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=used))


def hosmer_lemeshow(groups: Groups, *, fitted: bool = False, runs: int = _RUNS, seed: int = 0) -> Calibration:
    """Test calibration. `fitted` says that the model was fitted to these people, which costs two degrees of freedom."""
    used = groups.used
    freedom = int(used.sum()) - (2 if fitted else 0)
    if used.sum() < 3:
        return Calibration(groups, fitted, np.nan, np.nan, freedom, *[np.nan] * 5)
    h = float(statistic(groups, groups.table[:2] - groups.table[2:]))
    simulated = _null(groups, fitted, runs, np.random.default_rng(seed))
    limit = float(np.quantile(simulated, 0.95))
    return Calibration(
        groups,
        fitted,
        h,
        max(0.0, h - noise_in_statistic(groups)),
        freedom,
        float(chdtrc(freedom, h)),
        float((1 + (simulated >= h).sum()) / (runs + 1)),
        float(simulated.mean()),
        _corrected_error(groups),
        float((_null(groups, fitted, _POWER_RUNS, np.random.default_rng([seed, 1]), _shift(groups)) > limit).mean()),
    )


def _corrected_error(groups: Groups) -> float:
    """The standard error of H by the noise e in d = O - E: that of sum (2 d e + e^2) / E.

    The squares of d that are published have the noise's variance in them, which is taken off.
    """
    scale = np.sqrt(groups.used / np.maximum(groups.expected, LEAST_EXPECTED)).ravel()
    noise = scale[:, np.newaxis] * groups.of_differences * scale
    d = scale * (groups.table[:2] - groups.table[2:]).ravel()
    of_squares, of_products = float((noise**2).sum()), float(d @ noise @ d)
    return float(np.sqrt(2 * of_squares + 4 * max(of_products - of_squares, 0.0)))


def _shift(groups: Groups) -> Floats:
    """O_1 - E_1 of each group for a model of the wrong slope, which is right on average."""
    size = np.maximum(groups.expected.sum(axis=0), LEAST_EXPECTED)
    score = np.clip(groups.expected[1] / size, 1e-3, 1 - 1e-3)
    logit = np.log(score / (1 - score))
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        rates = 1 / (1 + np.exp(-(middle + WRONG_SLOPE * logit)))
        low, high = (middle, high) if float(size @ rates) < float(size @ score) else (low, middle)
    return np.asarray(size * (1 / (1 + np.exp(-(low + WRONG_SLOPE * logit))) - score))


def _null(groups: Groups, fitted: bool, runs: int, rng: np.random.Generator, shift: Floats | float = 0.0) -> Floats:
    """H of calibrated models with these expected counts: binomial variation, normal as chi-square takes it, and noise.

    With a shift of O_1 - E_1, of models that are not calibrated.

    Fitting a model holds two combinations of the residuals at zero (an intercept and a slope), as it does in the
    chi-square distribution with Q - 2 degrees of freedom.
    """
    used, expected = groups.used, np.maximum(groups.expected, LEAST_EXPECTED)
    spread = np.sqrt(expected[0] * expected[1] / expected.sum(axis=0)) * used
    residual = rng.normal(size=(runs, used.size))
    if fitted:
        slope = np.log(expected[1] / expected[0])
        basis = np.linalg.qr(np.column_stack([spread, spread * slope]))[0]
        residual -= (residual @ basis) @ basis.T
    moved = residual * spread + shift
    covariance = groups.of_differences
    noise = rng.multivariate_normal(np.zeros(len(covariance)), covariance, runs, method="eigh", check_valid="ignore")
    return statistic(groups, np.stack([-moved, moved], axis=1) + noise.reshape(runs, 2, -1))
