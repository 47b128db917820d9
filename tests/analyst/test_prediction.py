"""Prediction models: scikit-learn's and the textbook's numbers without noise, slopes that are derivatives."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, confusion_matrix, roc_auc_score

from analyst.statistics.logistic import fit, local_rates, logit
from analyst.statistics.partial_auc import partial_area
from analyst.statistics.performance import ModelPerformance
from fss_ecdf.campaign.errors import InvalidQuery
from tests.analyst.helpers import Array, scored, simulated, two_strata


def model(n: int = 3000, seed: int = 0) -> tuple[ModelPerformance, Array, Array]:
    release, scores, outcome = two_strata(n, seed)
    return release.performance(), scores, outcome


@pytest.mark.parametrize("seed", range(3))
def test_without_noise_it_is_scikit_learn(seed: int) -> None:
    mine, scores, outcome = model(seed=seed)
    brier = brier_score_loss(outcome, scores)
    assert mine.brier.value == pytest.approx(brier, abs=1e-12)
    share = outcome.mean()
    assert mine.scaled_brier.value == pytest.approx(1 - brier / (share * (1 - share)), abs=1e-12)
    assert mine.observed_over_expected.value == pytest.approx(outcome.sum() / scores.sum(), abs=1e-12)
    for threshold in (0.1, 0.3, 0.65):
        table = confusion_matrix(outcome, scores > threshold).astype(float)
        (tn, fp), (fn, tp) = table
        values = [row.value for row in mine.at(threshold)]
        assert values == pytest.approx([tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), tn / (tn + fn)], abs=1e-12)
        odds = threshold / (1 - threshold)
        assert mine.net_benefit(threshold).value == pytest.approx((tp - fp * odds) / table.sum(), abs=1e-12)
        everybody = mine.net_benefit(threshold, everybody=True).value
        assert everybody == pytest.approx(share - (1 - share) * odds, abs=1e-12)
    for specificity in (0.6, 0.9):
        right = roc_auc_score(outcome, scores, max_fpr=1 - specificity)
        assert mine.partial_area(specificity).value == pytest.approx(right, abs=1e-12)


def test_the_regression_is_scikit_learn() -> None:
    mine, scores, outcome = model()
    x = np.clip(scores, 0.005, 0.995)
    features = np.log(x / (1 - x))[:, np.newaxis]
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, outcome)
    intercept, slope, large = (row.value for row in mine.regression())
    assert (intercept, slope) == pytest.approx((theirs.intercept_[0], theirs.coef_[0, 0]), abs=1e-5)
    residual = outcome - 1 / (1 + np.exp(-(features[:, 0] + large)))
    assert abs(residual.sum()) < 1e-6


def test_the_best_threshold_and_a_point_of_the_curve_are_those_of_a_loop() -> None:
    release, scores, outcome = two_strata(3000, epsilon=20.0)
    mine = release.performance()
    tau = mine.negative.thresholds
    index = [(scores[outcome] > t).mean() - (scores[~outcome] > t).mean() for t in tau]
    at, best = mine.youden()
    # the largest of many is too large by what it is in simulated releases, little at this epsilon
    assert max(index) - 0.003 < best.value <= max(index)
    assert at.value == tau[int(np.argmax(index))]
    low, high = at.interval("population")
    as_good = tau[np.array(index) >= best.interval("population")[0]]
    assert (low, high) == (as_good[0], as_good[-1])
    assert low < at.value < high
    t = np.quantile(scores[~outcome], 0.9, method="inverted_cdf")
    assert mine.sensitivity_at(0.9).value == pytest.approx((scores[outcome] > t).mean(), abs=1e-12)


def test_the_smooth_curve_is_a_weighted_regression() -> None:
    release, scores, outcome = two_strata(2000)
    curve = release.calibration_curve()
    for i in (3, 25, 44):
        kernel = np.exp(-0.5 * ((scores - curve.scores[i]) / curve.width) ** 2)
        line = np.polyfit(scores - curve.scores[i], outcome.astype(float), 1, w=np.sqrt(kernel))
        assert curve.rates[i] == pytest.approx(line[1], abs=1e-8)
    for kind in ("noise", "population"):
        low, high = curve.band(kind)
        assert (low <= curve.rates).all()
        assert (curve.rates <= high).all()
    assert (curve.errors["noise"] < curve.errors["population"]).all()


def derivatives(function: Callable[[Array, Array], float], cells: tuple[Array, Array]) -> list[Array]:
    slopes = []
    for which in (0, 1):
        out = np.zeros(cells[which].size)
        for i in range(out.size):
            values = []
            for sign in (1, -1):
                moved = [c.copy() for c in cells]
                moved[which][i] += sign * 1e-4
                values.append(function(*moved))
            out[i] = (values[0] - values[1]) / 2e-4
        slopes.append(out)
    return slopes


def some_cells() -> tuple[Array, Array, Array]:
    scores, outcome = scored(5000, 3)
    edges = np.arange(102) / 100 - 0.005
    return (
        np.arange(101) / 100,
        np.histogram(scores[~outcome], edges)[0] + 1.0,
        np.histogram(scores[outcome], edges)[0] + 1.0,
    )


def row(fitted: tuple[Array, tuple[Array, Array]], i: int) -> tuple[float, Array, Array]:
    values, (first, second) = fitted
    return float(values[i]), first[i], second[i]


@pytest.mark.parametrize("which", ["partial", "intercept", "slope", "large", "local"])
def test_slopes_are_derivatives(which: str) -> None:
    x, negative, positive = some_cells()
    functions: dict[str, Callable[[Array, Array], tuple[float, Array, Array]]] = {
        "partial": lambda a, b: partial_area(a, b, 0.237),
        "intercept": lambda a, b: row(fit(x, a, b, slope=True), 0),
        "slope": lambda a, b: row(fit(x, a, b, slope=True), 1),
        "large": lambda a, b: row(fit(x, a, b, slope=False), 0),
        "local": lambda a, b: row(local_rates(x, a, b, np.array([0.3]), 0.05), 0),
    }
    function = functions[which]
    _, *slopes = function(negative, positive)
    theirs = derivatives(lambda a, b: function(a, b)[0], (negative, positive))
    for mine, right in zip(slopes, theirs, strict=True):
        assert mine == pytest.approx(right, abs=1e-7, rel=1e-4)


@pytest.mark.slow
def test_slopes_of_estimates_are_derivatives_too() -> None:
    """Through the product's own classes: what a sampling error says agrees with 150 resampled data sets, to 25 %."""
    rows = ["Brier score", "scaled Brier score", "observed over expected", "calibration slope", "Youden index"]
    rows += ["partial AUC, specificity above 0.9", "net benefit at 0.3"]
    whole, scores, outcome = model(4000)
    table, rng = whole.performance(0.3), np.random.default_rng(1)
    again: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(150):
        pick = rng.integers(0, scores.size, scores.size)
        other = ModelPerformance(
            *(
                _counted(curve, scores[pick], outcome[pick] == k)
                for k, curve in enumerate((whole.negative, whole.positive))
            )
        )
        resampled = other.performance(0.3)
        for name in rows:
            again[name].append(resampled[name].value)
    for name in rows:
        expected = table[name].sampling_error
        assert np.std(again[name]) == pytest.approx(expected, rel=0.25), name


def _counted(curve, scores: Array, mine: Array):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    cells = np.bincount(np.rint(scores[mine] * 100).astype(int), minlength=101)
    counts = np.cumsum(cells).astype(float)
    return replace(curve, raw=counts, counts=counts)


def test_the_decision_curve() -> None:
    release, *_ = two_strata(4000, noise_seed=1)
    curve = release.performance().decision_curve()
    assert len(curve.thresholds) == 25
    columns = curve.columns()
    assert set(columns["treat_none"]) == {0.0}
    for kind in ("noise", "population"):
        low, high = curve.limits()[kind]
        assert (low <= columns["net_benefit"]).all()
        assert (high >= columns["net_benefit"]).all()
    for wrong in (0.0, 1.0):
        with pytest.raises(InvalidQuery, match="between 0 and 1"):
            release.performance().net_benefit(wrong)
        with pytest.raises(InvalidQuery, match="specificity lies"):
            release.performance().sensitivity_at(wrong)


def test_scores_of_nought_and_one_are_inside() -> None:
    assert np.isfinite(logit(np.array([0.0, 0.5, 1.0]))).all()


def test_shares_have_fieller_s_intervals_with_the_noise_of_top_and_bottom() -> None:
    """200 releases: a predictive value, whose top and bottom share their noise, is held in 95 %; 90 % or 99.5 % is a
    false alarm of 1e-3. With the wrong sign of what they share it is held nearly always."""
    held = []
    release, *_ = two_strata(3000)
    right = release.performance().at(0.4)[2].value
    for noisy in simulated(release, 200):
        low, high = noisy.performance().at(0.4)[2].interval("noise")
        held.append(low <= right <= high)
    assert 0.9 <= np.mean(held) < 0.995
