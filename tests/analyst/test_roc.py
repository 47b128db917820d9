"""ROC, AUC, precision and recall, and comparisons: equal to scikit-learn and scipy without noise, honest with it."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, mannwhitneyu
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from analyst.estimation.estimate import INTERVALS
from analyst.statistics.compare import mann_whitney_p
from analyst.statistics.roc import Roc
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from tests.analyst.helpers import publish, scored, two_strata


@pytest.mark.parametrize("seed", range(5))
def test_without_noise_it_is_scikit_learn(seed: int) -> None:
    release, scores, outcome = two_strata(3000, seed)
    roc = release.roc()
    fpr, tpr, thresholds = roc_curve(outcome, scores, drop_intermediate=False)
    # Ours calls positive who is above t, theirs who is at or above t: the next higher threshold of the grid.
    tau = release.campaign.variable.grid.all_thresholds
    at = [tau.size - int(np.searchsorted(tau, t)) for t in thresholds[1:]]
    assert roc.false_positive_rate[at] == pytest.approx(fpr[1:], abs=1e-12)
    assert roc.true_positive_rate[at] == pytest.approx(tpr[1:], abs=1e-12)
    precision, recall, levels = precision_recall_curve(outcome, scores)
    at = [tau.size - int(np.searchsorted(tau, t)) for t in levels]
    assert roc.precision[at] == pytest.approx(precision[:-1], abs=1e-12)
    assert roc.recall[at] == pytest.approx(recall[:-1], abs=1e-12)
    assert roc.auc == pytest.approx(roc_auc_score(outcome, scores), abs=1e-12)
    assert roc.average_precision.value == pytest.approx(average_precision_score(outcome, scores), abs=1e-12)
    assert (roc.false_positive_rate[0], roc.true_positive_rate[-1]) == (0.0, 1.0)


def test_without_noise_a_comparison_is_scipy() -> None:
    release, scores, outcome = two_strata(3000)
    comparison = release.compare("no", "yes")
    apart = comparison.distance.value
    assert apart == pytest.approx(ks_2samp(scores[outcome], scores[~outcome]).statistic, abs=1e-12)
    u = mannwhitneyu(scores[outcome], scores[~outcome]).statistic
    assert comparison.superiority.value == pytest.approx(u / (outcome.sum() * (~outcome).sum()), abs=1e-12)
    for kind in INTERVALS:
        low, high = comparison.distance.interval(kind)
        assert low < apart < high


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["slice-tree", "paper-tree"])
def test_the_errors_of_the_area_are_as_predicted(mechanism: str) -> None:
    """300 noisy releases: the standardised error has mean 0 and deviation 1, to 5 of their standard errors."""
    z = []
    for seed in range(300):
        release, scores, outcome = two_strata(4000, 1, noise_seed=seed, mechanism=mechanism, epsilon=2.0)
        roc = release.roc(smoothing="none")
        z.append((roc.auc - roc_auc_score(outcome, scores)) / roc.auc_error)
    assert abs(np.mean(z)) < 5 / np.sqrt(300) + 0.1  # second-order bias is not in the error
    assert abs(np.std(z) - 1) < 5 / np.sqrt(600)


def test_an_empty_stratum_is_an_error_and_a_small_one_a_note() -> None:
    release, *_ = two_strata(500, strata=["no", "yes", "unknown"])
    with pytest.raises(TooNoisy, match="'unknown' has 0 values"):
        release.roc("no", "unknown")
    few, *_ = two_strata(400, noise_seed=5, epsilon=0.25)
    assert any("four standard errors" in note for note in few.roc().notes)


def test_nobody_called_positive_has_precision_one() -> None:
    release, *_ = two_strata(500)
    assert release.roc().precision[0] == 1.0


def test_what_cannot_be_asked() -> None:
    release, *_ = two_strata(100, strata=["no", "yes", "unknown"])
    with pytest.raises(InvalidQuery, match="name the negative and the positive"):
        release.roc()
    with pytest.raises(InvalidQuery, match="needs two strata"):
        release.roc("no", "no")
    other, *_ = two_strata(100, title="another", strata=["no", "yes"])
    with pytest.raises(InvalidQuery, match="same campaign"):
        Roc(release.curve("no"), other.curve("yes"))
    with pytest.raises(InvalidQuery, match="is not one of"):
        release.curve("perhaps")


def test_delong_is_the_textbook() -> None:
    """The variance of the placement values, one pair at a time."""
    release, scores, outcome = two_strata(600)
    positive, negative = scores[outcome], scores[~outcome]
    wins = (positive[:, np.newaxis] > negative) + 0.5 * (positive[:, np.newaxis] == negative)
    variance = wins.mean(axis=1).var(ddof=1) / positive.size + wins.mean(axis=0).var(ddof=1) / negative.size
    assert release.roc().area.sampling_error ** 2 == pytest.approx(variance, rel=1e-9)


def test_two_areas_of_four_strata() -> None:
    strata = ["no", "yes", "other no", "other yes"]
    spec = two_strata(10, strata=strata)[0].campaign
    scores, outcome = scored(6000, 3)
    group = np.random.default_rng(1).random(6000) < 0.5
    names = np.where(group, np.where(outcome, "yes", "no"), np.where(outcome, "other yes", "other no")).tolist()
    compared = publish(spec, scores, names).compare_auc(("no", "yes"), ("other no", "other yes"))
    areas = [roc_auc_score(outcome[mine], scores[mine]) for mine in (group, ~group)]
    assert [row.value for row in compared.rows] == pytest.approx([*areas, areas[1] - areas[0]])
    with pytest.raises(InvalidQuery, match="four different strata"):
        publish(spec, scores, names).compare_auc(("no", "yes"), ("no", "other yes"))


def test_mann_whitney_without_noise_is_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyst.estimation.uncertainty.error_of_sum", lambda *_: 0.0)
    rng = np.random.default_rng(1)
    scores = np.round(rng.beta(2, 4, 3000), 2)
    outcome = rng.random(3000) < 0.3
    spec = two_strata(10)[0].campaign
    release = publish(spec, scores, np.where(outcome, "yes", "no").tolist())
    theirs = mannwhitneyu(scores[outcome], scores[~outcome], use_continuity=False, method="asymptotic").pvalue
    assert mann_whitney_p(release.curve("no"), release.curve("yes")) == pytest.approx(theirs, rel=1e-3)


def test_tiny_groups_have_no_area_outside_its_range() -> None:
    """60 releases of 60 people: an area lies in [0, 1] or is refused."""
    for seed in range(60):
        release, *_ = two_strata(60, 1, noise_seed=seed, epsilon=2.0)
        try:
            area = release.roc(smoothing="none").area
        except TooNoisy:
            continue
        assert 0 <= area.value <= 1
