"""Calibration: the textbook's numbers without noise, an honest p-value with it, and defined behaviour at the edges."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from analyst import cli
from analyst.release import Release
from analyst.statistics import calibration
from analyst.statistics.calibration import Groups, hosmer_lemeshow
from fss_ecdf.campaign.errors import InvalidQuery
from tests.analyst.helpers import Array, publish, simulated, two_strata


def textbook(scores: Array, outcome: Array, ends: Array) -> float:
    """Hosmer and Lemeshow's statistic, one record at a time."""
    groups = [(0.0, 0.0, 0.0, 0.0)] * len(ends)
    for score, positive in zip(scores.tolist(), outcome.tolist(), strict=True):
        g = next(i for i, end in enumerate(ends) if score <= end)
        o0, o1, e0, e1 = groups[g]
        groups[g] = (o0 + (not positive), o1 + positive, e0 + 1 - score, e1 + score)
    return sum((o1 - e1) ** 2 / e1 + (o0 - e0) ** 2 / e0 for o0, o1, e0, e1 in groups)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", [10, [0.1, 0.25, 0.5, 1.0]])
def test_without_noise_it_is_the_textbook(seed: int, groups: int | list[float]) -> None:
    release, scores, outcome = two_strata(3000, seed)
    result = release.calibration(groups)
    expected = textbook(scores, outcome, result.groups.upper_ends)
    assert result.statistic == pytest.approx(expected, rel=1e-12)
    assert result.chi_square_p == pytest.approx(chi2.sf(expected, len(result.groups.upper_ends)), rel=1e-12)


def test_groups_are_half_open_and_hold_everybody_once() -> None:
    release, scores, outcome = two_strata(3000)
    result = release.calibration(10)
    assert result.groups.sizes.sum() == 3000
    assert result.groups.table[1].sum() == outcome.sum()
    assert result.groups.table[3].sum() == pytest.approx(scores.sum())
    assert result.groups.sizes.max() < 3 * 300


def without_noise(groups: Groups) -> Groups:
    return replace(groups, noise=np.zeros_like(groups.noise))


@pytest.mark.parametrize("fitted", [True, False])
def test_without_noise_the_simulated_p_value_is_chi_square_s(fitted: bool) -> None:
    release, *_ = two_strata(20_000)
    groups = without_noise(release.calibration(10).groups)
    result = hosmer_lemeshow(groups, fitted=fitted)
    assert result.degrees_of_freedom == (8 if fitted else 10)
    # a share of 9999 simulations: to 5 of its standard errors, at most 0.025
    assert abs(result.p_value - result.chi_square_p) < 0.025
    simulated = calibration._null(groups, fitted, 2000, np.random.default_rng(1))
    assert kstest(simulated, chi2(result.degrees_of_freedom).cdf).pvalue > 1e-4


@pytest.mark.slow
def test_the_p_value_with_noise_is_uniform_for_calibrated_models() -> None:
    """200 calibrated models with noise: our p-values are uniform (false alarm 1e-4), chi-square's are not at all."""
    ours, naive = [], []
    for seed in range(200):
        release, *_ = two_strata(6000, seed, noise_seed=seed, epsilon=0.7)
        result = release.calibration(8, fitted=False)
        ours.append(result.p_value)
        naive.append(result.chi_square_p)
    assert kstest(ours, "uniform").pvalue > 1e-4
    assert np.mean(np.array(naive) < 0.05) > 0.5
    assert np.mean(np.array(ours) < 0.05) < 0.13


def test_a_model_that_is_not_calibrated_is_found() -> None:
    release, scores, _ = two_strata(30_000, noise_seed=1)
    wrong = np.random.default_rng(2).random(scores.size) < scores**2
    lying = publish(release.campaign, scores, np.where(wrong, "yes", "no").tolist(), noise_seed=1)
    assert lying.calibration().p_value < 0.001
    assert release.calibration(fitted=False).p_value > 0.001
    assert lying.calibration().observed_over_expected < 0.7


def test_the_corrected_statistic_is_right_on_average() -> None:
    """120 releases of a model that is not calibrated: without the noise's share H is the true one to 5 standard errors
    of its mean, with it it is not."""
    release, scores, _ = two_strata(6000, epsilon=0.5)
    wrong = np.where(np.random.default_rng(2).random(scores.size) < scores**1.2, "yes", "no").tolist()
    exact = publish(release.campaign, scores, wrong)

    def both(published: Release) -> tuple[float, float]:
        curves = published.curve("no"), published.curve("yes")
        groups = calibration.from_curves(*curves, [0.1, 0.2, 0.3, 0.4, 0.5, 1.0])
        h = float(calibration.statistic(groups, groups.table[:2] - groups.table[2:]))
        return h, h - calibration.noise_in_statistic(groups)

    right, statistics = both(exact)[0], np.array([both(noisy) for noisy in simulated(exact, 120)])
    raw, corrected = statistics.mean(axis=0)
    error = statistics[:, 1].std() / np.sqrt(120)
    assert abs(corrected - right) < 5 * error
    assert raw - right > 5 * error


@pytest.mark.slow
def test_the_noise_of_the_groups_is_as_predicted() -> None:
    """200 releases: every one of the 4 Q numbers varies as its variance says, to 5 standard errors of a deviation."""
    truth = two_strata(4000, 1)[0].calibration([0.2, 0.4, 1.0]).groups
    z = []
    for seed in range(200):
        release, *_ = two_strata(4000, 1, noise_seed=seed, epsilon=2.0)
        groups = release.calibration([0.2, 0.4, 1.0]).groups
        z.append((groups.table - truth.table).ravel() / np.sqrt(np.diag(groups.noise)))
    assert np.abs(np.std(z, axis=0) - 1).max() < 5 / np.sqrt(400)


def test_empty_groups_are_left_out_and_marked() -> None:
    release, scores, outcome = two_strata(3000)
    result = release.calibration([0.2, 0.4, 0.6, 0.99, 1.0], fitted=True)
    used = result.groups.used
    assert used.tolist() == [True, True, True, True, False]
    assert result.degrees_of_freedom == 2
    assert np.isnan(result.observed[-1])
    assert any("left out" in note for note in result.notes)
    assert "-" in result.to_text().splitlines()[-1]
    inside = scores <= 0.99
    assert result.statistic == pytest.approx(textbook(scores[inside], outcome[inside], result.groups.upper_ends[:-1]))


def test_nothing_left_is_no_statistic() -> None:
    release, *_ = two_strata(3000)
    result = release.calibration([0.00, 0.01, 0.4, 1.0])
    assert result.groups.used.sum() == 2
    assert np.isnan([result.statistic, result.p_value, result.chi_square_p]).all()
    assert any("no statistic" in note for note in result.notes)
    assert json.loads(result.to_json())["hosmer_lemeshow"] is None


@pytest.mark.parametrize("negative", ["no", "yes"])
def test_two_different_strata_are_needed(negative: str) -> None:
    release, *_ = two_strata(500)
    with pytest.raises(InvalidQuery, match="two different strata"):
        release.calibration(5, negative, negative)


@pytest.mark.slow
def test_the_p_value_stays_honest_where_noise_drowns_the_counts() -> None:
    """100 calibrated models, n = 800, epsilon = 0.5: p-values are near uniform (false alarm 1e-4)."""
    p_values = [
        two_strata(800, s, noise_seed=s, epsilon=0.5)[0].calibration(5, fitted=False).p_value for s in range(100)
    ]
    known = [p for p in p_values if not np.isnan(p)]
    assert len(known) > 50
    assert kstest(known, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    ("groups", "message"), [(2, "3 to 1000"), ([0.5, 0.4, 1.0], "increase"), ([0.5, 1.0], "at least 3")]
)
def test_bad_groups(groups: int | list[float], message: str) -> None:
    release, *_ = two_strata(500)
    with pytest.raises(InvalidQuery, match=message):
        release.calibration(groups)


def test_the_model_comes_from_elsewhere_unless_it_is_said() -> None:
    release, *_ = two_strata(3000)
    assert release.calibration(8).degrees_of_freedom == int(release.calibration(8).groups.used.sum())
    assert not release.calibration(8).metadata()["fitted_on_these_people"]
    assert release.calibration(8, fitted=True).degrees_of_freedom == release.calibration(8).degrees_of_freedom - 2
    options = cli._parser().parse_args(["calibration", "https://a.example/x", "--fitted-here"])
    assert options.fitted
    assert not cli._parser().parse_args(["calibration", "https://a.example/x"]).fitted


def test_scores_must_be_probabilities() -> None:
    grid = {"kind": "linear", "from": 0.0, "to": 2.0, "step": 0.01}
    release, *_ = two_strata(500, grid=grid)
    with pytest.raises(InvalidQuery, match="between 0 and 1"):
        release.calibration()


def test_the_corrected_statistic_is_the_raw_one_less_the_noise_s_share() -> None:
    """Through the class that people see: never above the raw one, and never below zero."""
    lower = 0
    for seed in range(4):
        result = two_strata(6000, noise_seed=seed)[0].calibration(6)
        expected = max(0.0, result.statistic - calibration.noise_in_statistic(result.groups))
        assert result.corrected == pytest.approx(expected)
        assert 0 <= result.corrected < result.statistic
        lower += result.corrected > 0
    assert lower  # else the sign would not show
