"""Errors from public parameters: exact where they say so, and intervals that hold the truth as often as they claim."""

import numpy as np
import pytest

from analyst.estimation import bands, uncertainty
from analyst.estimation.estimate import sample_variance
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.registry import mechanism
from tests.analyst import coverage
from tests.analyst.coverage_cases import SCORE_CASES, SURVIVAL_CASES, VALUE_CASES, Case
from tests.analyst.helpers import one_stratum, two_strata
from tests.campaign.helpers import campaign

MECHANISMS = ["slice-tree", "paper-tree", "paper-tree-exact"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_sums_over_positions_have_the_covariance_of_their_parts(name: str) -> None:
    """Against the covariance of single positions, written out."""
    noise = mechanism(name, 5, 1.0)
    at = np.arange(32)
    of_prefixes = noise.covariance(at[:, np.newaxis], at)
    steps = np.eye(32) - np.eye(32, k=-1)
    weights = np.random.default_rng(1).normal(size=(4, 32))
    assert noise.functional_covariance(weights) == pytest.approx(weights @ steps @ of_prefixes @ steps.T @ weights.T)
    assert noise.prefix_covariance(weights) == pytest.approx(weights @ steps @ of_prefixes)
    with pytest.raises(InvalidCampaign, match="rows over all 32 positions"):
        noise.functional_covariance(weights[:, :5])


@pytest.mark.parametrize("strata", [["all"], ["no", "yes"], ["a", "b", "c"]])
@pytest.mark.parametrize("name", MECHANISMS)
def test_all_ways_to_an_error_agree(strata: list[str], name: str) -> None:
    spec = campaign(strata=strata, mechanism=name)
    size, stratum = spec.variable.grid.size, strata[-1]
    index = np.array([0, 7, 50, size - 1])
    member = (np.arange(size) <= index[:, np.newaxis]).astype(float)
    noise = uncertainty.CountNoise(spec, (stratum,))
    by_sum = np.sqrt(np.maximum(np.diag(uncertainty.covariance(spec, {stratum: member})), 0.0))
    assert noise.errors(index) == pytest.approx(by_sum, abs=1e-4)
    assert noise.errors()[index] == pytest.approx(by_sum, abs=1e-4)
    between = noise.bin_errors([7], [50])[0]
    assert uncertainty.error_of_sum(spec, {stratum: member[2] - member[1]}) == pytest.approx(between)
    rates = np.array([0.0, 0.2, 0.7, 1.0])
    last = (np.arange(size) < size).astype(float)
    by_sum = np.diag(uncertainty.covariance(spec, {stratum: member - rates[:, np.newaxis] * last}))
    assert noise.rate_variances(rates, index) == pytest.approx(np.maximum(by_sum, 0.0), abs=1e-6)


def test_the_last_count_of_a_single_stratum_is_n() -> None:
    release, _ = one_stratum(500, noise_seed=1)
    curve = release.curve(smoothing="none")
    assert curve.counts[-1] == 500
    assert curve.standard_errors[-1] == pytest.approx(0, abs=1e-5)
    assert curve.histogram([0.5, 1.0]).standard_errors[0] == pytest.approx(
        curve.histogram([0.5, 1.0]).standard_errors[1]
    )


def test_an_error_is_that_of_two_servers() -> None:
    spec = campaign(grid={"kind": "linear", "from": 0.0, "to": 1.27, "step": 0.01})  # 128 thresholds: no padding
    at = np.array([3])
    assert uncertainty.CountNoise(spec, ("all",)).errors(at)[0] ** 2 == pytest.approx(SERVERS * spec.noise.variance(3))


@pytest.mark.slow
@pytest.mark.parametrize("case", [SCORE_CASES[2], VALUE_CASES[5], SURVIVAL_CASES[1]])
def test_intervals_and_bands_hold_the_truth(case: Case) -> None:
    """40 samples with noise. What claims 95 % holds in at least 80 %, and tests at 5 % reject what is true in at most
    20 %: a false alarm of 2e-4 each, for 60 of them."""
    held = coverage.measure(case, 40, first=10_000)
    assert len(held) > 5
    for name, kinds in held.items():
        for kind, (times, told) in kinds.items():
            share = times / told
            assert share <= 0.2 if kind == "rejects" else share >= 0.8, (name, kind, share)


def test_a_band_that_is_too_narrow_would_be_found() -> None:
    """The same check on half the width fails: it is able to."""
    held = 0
    for seed in range(40):
        curve = one_stratum(3000, 1, noise_seed=seed)[0].curve()
        truth = one_stratum(3000, 1)[0].curve().fractions
        lower, upper = curve.band(interval="noise")
        middle, half = (upper + lower) / 2, (upper - lower) / 4
        held += bool((np.abs(middle - truth) <= half + 1e-9).all())
    assert held < 20


def test_a_wider_band_for_more_confidence() -> None:
    curve = two_strata(2000, noise_seed=1)[0].curve("yes")
    widths = [np.mean(curve.band(confidence)[1] - curve.band(confidence)[0]) for confidence in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)
    with pytest.raises(InvalidQuery, match=r"enough for a confidence of at most 0\.9990"):
        curve.band(0.9999)
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidQuery, match="between 0 and 1"):
            curve.band(wrong)


def test_the_sampling_variance_of_a_count_is_binomial() -> None:
    """What statistics whose slopes add up to nothing cannot show: n p (1 - p), and nothing for everybody."""
    release, values = one_stratum(2000)
    curve = release.curve(smoothing="isotonic")
    share = (values <= 0.3).mean()
    slopes = (curve.thresholds <= 0.3).astype(float)
    assert sample_variance([(curve, slopes)]) == pytest.approx(2000 * share * (1 - share))
    assert sample_variance([(curve, np.ones_like(slopes))]) == pytest.approx(0, abs=1e-6)


def test_the_sample_s_band_is_massart_s_and_a_joint_one_lies_between_its_bounds() -> None:
    """sqrt(log(2 / alpha) / 2 n); and for k independent variables, Sidak's factor (1000 draws: to 5 %)."""
    assert bands.dkw(1000, 0.95) == pytest.approx(0.04294694)
    spec, nothing = campaign(), {"all": np.zeros((3, 101))}
    assert bands.joint_factor(spec, nothing, 0.95, np.diag([1.0, 4.0, 9.0])) == pytest.approx(2.3877, rel=0.05)
    assert bands.joint_factor(spec, nothing, 0.95, np.ones((3, 3))) == pytest.approx(1.96, rel=0.05)


def test_a_simultaneous_factor_is_a_high_quantile_of_the_largest_deviation() -> None:
    """Above the pointwise 1.96; of 1000 simulated curves, as many as wanted stay below it."""
    curve = two_strata(2000, noise_seed=1)[0].curve("yes")
    rates = {curve.strata: curve.fractions}
    largest = bands._largest(curve.campaign, rates, 0)
    for confidence in (0.5, 0.95):
        factor = bands.simultaneous_factor(curve.campaign, rates, confidence)
        assert np.mean(largest <= factor) == pytest.approx(confidence, abs=0.002)
