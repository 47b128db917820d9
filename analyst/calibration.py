"""Are the scores the probabilities that they claim to be? Calibration and the Hosmer-Lemeshow statistic.

The grid variable is itself the predicted probability. So what is observed and what is expected in any group of scores
is linear in the two published curves: O_1 counts the positives of a group, E_1 adds up the scores of everybody in it,
O_0 and E_0 the rest. All of it is post-processing of the one release. `from_answer` takes the same numbers from the
servers' /groups instead (Algorithm 2 of the paper, corrected), which costs epsilon from the reserve.

H = sum over groups of (O_1 - E_1)^2 / E_1 + (O_0 - E_0)^2 / E_0. Without noise it has about a chi-square distribution
with Q - 2 degrees of freedom if the model was fitted to these people, and with Q if it was not. Noise makes H larger:
the chi-square p-value is then too small. `p_value` is one that includes the noise: the share of simulated calibrated
models whose H, noise included, is at least as large.

Defined behaviour: a group in which E_0 or E_1 is below 1 after noise is left out of H and of Q and marked; with fewer
than three groups left H and its p-values are not numbers, and a note says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc  # scipy.stats takes a second to load

from analyst import uncertainty
from analyst.curve import Curve
from analyst.quantile import inverse
from analyst.table import Columns, Tabular
from campaign.errors import InvalidQuery
from campaign.wire import GroupsAnswer

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

LEAST_EXPECTED = 1.0
_RUNS = 9999


@dataclass(frozen=True)
class Groups:
    """Of each group: what was observed and expected, rows O_0, O_1, E_0, E_1; and the noise's covariance (4 Q, 4 Q)."""

    upper_ends: Floats
    table: Floats
    noise: Floats
    n: int
    epsilon: float

    @property
    def sizes(self) -> Floats:
        """Values in each group: the observed ones are the less noisy."""
        return np.asarray(self.table[0] + self.table[1])

    @property
    def used(self) -> NDArray[np.bool_]:
        return np.asarray((self.table[2:] >= LEAST_EXPECTED).all(axis=0) & (self.sizes >= LEAST_EXPECTED))


def from_curves(negative: Curve, positive: Curve, groups: SupportsIndex | Sequence[float] = 10) -> Groups:
    """Groups of about equal size, or up to given scores, from two strata of a release."""
    if negative.campaign.digest != positive.campaign.digest or negative.stratum == positive.stratum:
        raise InvalidQuery("calibration needs two different strata of one campaign")
    grid = negative.campaign.grid
    if grid.values != "float" or grid.all_thresholds[0] < 0 or grid.all_thresholds[-1] > 1:
        raise InvalidQuery("calibration needs a grid of scores between 0 and 1")
    if isinstance(groups, SupportsIndex):
        ends = even_ends(negative.counts + positive.counts, int(groups))
    else:
        ends = grid.index_at(list(groups))
    if ends.size < 3 or not (np.diff(np.concatenate([[-1], ends])) > 0).all():
        raise InvalidQuery("calibration needs at least 3 groups, whose upper ends increase by a step of the grid")
    member = _membership(ends, grid.size)
    nothing, tau = np.zeros_like(member), grid.all_thresholds
    weights = {
        negative.stratum: np.vstack([member, nothing, member * (1 - tau), member * tau]),
        positive.stratum: np.vstack([nothing, member, member * (1 - tau), member * tau]),
    }
    # The raw counts: in them everything is linear, and the covariance of the noise exact.
    sums = sum(weights[curve.stratum] @ np.diff(curve.raw, prepend=0.0) for curve in (negative, positive))
    noise = uncertainty.covariance(negative.campaign, weights)
    table = np.asarray(sums).reshape(4, -1)
    return Groups(tau[ends], table, noise, negative.n, negative.epsilon)


def from_answer(answer: GroupsAnswer) -> Groups:
    """The servers' answer to /groups, in which every number has noise of its own."""
    rows = [answer.observed_negative, answer.observed_positive, answer.expected_negative, answer.expected_positive]
    errors = np.repeat([answer.observed_error, answer.expected_error], 2 * len(answer.upper_ends))
    table = np.array(rows, np.float64)
    return Groups(np.array(answer.upper_ends), table, np.diag(errors**2), answer.n, answer.epsilon)


def even_ends(counts: Floats, groups: int) -> Index:
    """Upper ends of groups of about equal size, by a smoothed curve of all; fewer where many have the same score."""
    if not 3 <= groups <= 1000:
        raise InvalidQuery(f"calibration needs 3 to 1000 groups, got {groups}")
    ends = [inverse(counts, q * counts[-1] / groups) for q in range(1, groups)]
    return np.unique([*ends, counts.size - 1])


def _membership(ends: Index, size: int) -> Floats:
    """Row q is 1 where an index belongs to group q: above the end before it and up to its own."""
    return np.equal.outer(np.arange(ends.size), np.searchsorted(ends, np.arange(size))).astype(np.float64)


def statistic(table: Floats, used: NDArray[np.bool_]) -> Floats:
    """H of one table (4, Q) or of many (..., 4, Q)."""
    observed, expected = table[..., :2, :], table[..., 2:, :]
    terms = np.divide((observed - expected) ** 2, expected, out=np.zeros_like(expected), where=used)
    return np.asarray(terms.sum(axis=(-2, -1)))


@dataclass(frozen=True)
class Calibration(Tabular):
    """Groups, and H with two p-values: chi-square's, which knows no noise, and one that includes it."""

    groups: Groups
    fitted: bool
    statistic: float
    degrees_of_freedom: int
    chi_square_p: float
    p_value: float
    null_mean: float  # what H is on average for a calibrated model, noise included

    @property
    def predicted(self) -> Floats:
        """The mean score of each group."""
        return _ratio(self.groups.table[3], self.groups.sizes, self.groups.used)

    @property
    def observed(self) -> Floats:
        """The share of positives in each group."""
        return _ratio(self.groups.table[1], self.groups.sizes, self.groups.used)

    @property
    def observed_errors(self) -> Floats:
        """Standard errors of `observed` by the noise, to first order."""
        count, g = self.groups.upper_ends.size, self.groups
        rate = np.nan_to_num(self.observed)
        weights = np.hstack([np.diag(-rate), np.diag(1 - rate)])
        variance = np.diag(weights @ g.noise[: 2 * count, : 2 * count] @ weights.T)
        return _ratio(np.sqrt(variance), g.sizes, g.used)

    @property
    def observed_over_expected(self) -> float:
        """Calibration in the large: all positives over all expected ones."""
        return float(self.groups.table[1].sum() / max(self.groups.table[3].sum(), LEAST_EXPECTED))

    def columns(self) -> Columns:
        g = self.groups
        return {
            "score_up_to": g.upper_ends,
            "size": g.sizes,
            "observed_positive": g.table[1],
            "expected_positive": g.table[3],
            "mean_score": self.predicted,
            "share_positive": self.observed,
            "share_error": self.observed_errors,
            "used": [bool(u) for u in g.used],
        }

    def about(self) -> dict[str, Any]:
        return {
            "n": self.groups.n,
            "epsilon": self.groups.epsilon,
            "hosmer_lemeshow": self.statistic,
            "degrees_of_freedom": self.degrees_of_freedom,
            "p_value": self.p_value,
            "p_value_chi_square_ignoring_noise": self.chi_square_p,
            "expected_statistic_if_calibrated": self.null_mean,
            "observed_over_expected": self.observed_over_expected,
            "fitted_on_these_people": self.fitted,
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        out = int((~self.groups.used).sum())
        found = [f"{out} groups with less than {LEAST_EXPECTED:g} expected are left out"] if out else []
        if np.isnan(self.statistic):
            return [*found, "fewer than three groups are left: no statistic. Take wider groups or a larger epsilon"]
        if self.null_mean > 1.25 * self.degrees_of_freedom:
            found.append(
                f"noise alone lifts H of a calibrated model from {self.degrees_of_freedom} to {self.null_mean:.1f}: "
                "trust the p-value that includes it, not chi-square's"
            )
        return found


def _ratio(above: Floats, below: Floats, used: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=used))


def hosmer_lemeshow(groups: Groups, *, fitted: bool = True, runs: int = _RUNS, seed: int = 0) -> Calibration:
    """Test calibration. `fitted` says that the model was fitted to these people, which costs two degrees of freedom."""
    used = groups.used
    freedom = int(used.sum()) - (2 if fitted else 0)
    if used.sum() < 3:
        return Calibration(groups, fitted, np.nan, freedom, np.nan, np.nan, np.nan)
    found = float(statistic(groups.table, used))
    simulated = _null(groups, fitted, runs, np.random.default_rng(seed))
    return Calibration(
        groups,
        fitted,
        found,
        freedom,
        float(chdtrc(freedom, found)),
        float((1 + (simulated >= found).sum()) / (runs + 1)),
        float(simulated.mean()),
    )


def _null(groups: Groups, fitted: bool, runs: int, rng: np.random.Generator) -> Floats:
    """H of calibrated models with these expected counts: binomial variation, normal as chi-square takes it, and noise.

    Fitting a model holds two combinations of the residuals at zero (an intercept and a slope), as it does in the
    chi-square distribution with Q - 2 degrees of freedom.
    """
    used, expected = groups.used, np.maximum(groups.table[2:], LEAST_EXPECTED)
    spread = np.sqrt(expected[0] * expected[1] / expected.sum(axis=0)) * used
    residual = rng.normal(size=(runs, used.size))
    if fitted:
        slope = np.log(expected[1] / expected[0])
        basis = np.linalg.qr(np.column_stack([spread, spread * slope]))[0]
        residual -= (residual @ basis) @ basis.T
    moved = residual * spread
    noise = rng.multivariate_normal(np.zeros(len(groups.noise)), groups.noise, runs, method="eigh").reshape(runs, 4, -1)
    # The published E stay what they are: they divide in H, too, and their noise enters by the differences O - E.
    tables = np.broadcast_to(np.vstack([expected, expected]), (runs, 4, used.size)).copy()
    tables[:, :2] += np.stack([-moved, moved], axis=1) + noise[:, :2] - noise[:, 2:]
    return statistic(tables, used)
