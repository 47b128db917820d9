"""The plan's errors are those of real noise."""

import math

import numpy as np
import pytest

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.planning import expected_errors, required_epsilon, required_n
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from servers.release.noise import NoiseTree


@pytest.mark.slow
def test_point_error_and_band_against_two_real_noise_trees() -> None:
    """200 campaigns: the band must hold 95 % of whole curves; 89 % or fewer has a probability below 1e-3."""
    errors = expected_errors(n=1000, thresholds=1024, epsilon=1.0)
    m = SliceTree(10, 1.0)
    noise = np.stack(
        [
            sum(NoiseTree(seed.to_bytes(32, "big"), server=s, covers=bytes(32), mechanism=m).curve() for s in (0, 1))
            for seed in range(200)
        ]
    )
    assert (np.abs(noise).max(axis=1) <= errors.band * 1000).mean() > 0.89
    assert math.sqrt((noise**2.0).mean()) == pytest.approx(errors.point * 1000, rel=0.1)


def test_plans_are_consistent() -> None:
    n = required_n(0.01, thresholds=500, epsilon=0.5, strata=2)
    assert expected_errors(n=n, thresholds=500, epsilon=0.5, strata=2).point == pytest.approx(0.01, rel=1e-2)
    epsilon = required_epsilon(0.01, n=n, thresholds=500, strata=2)
    assert epsilon == pytest.approx(0.5, rel=1e-2)
    tiny = required_epsilon(0.1, n=10**7, thresholds=500)
    assert tiny < 0.05


def test_more_of_anything_costs_or_helps_as_it_should() -> None:
    base = expected_errors(n=1000, thresholds=256, epsilon=1.0)
    assert expected_errors(n=2000, thresholds=256, epsilon=1.0).point == pytest.approx(base.point / 2)
    assert expected_errors(n=1000, thresholds=256, epsilon=2.0).point == pytest.approx(base.point / 2, rel=0.05)
    assert expected_errors(n=1000, thresholds=4096, epsilon=1.0).point > base.point
    assert expected_errors(n=1000, thresholds=256, epsilon=1.0, strata=4).point > base.point
    assert expected_errors(n=1000, thresholds=256, epsilon=1.0, name="paper-tree").point > 2 * base.point
    assert base.point < base.worst < base.band


def test_strata_are_planned_as_they_are_published() -> None:
    """F_c is a difference of two points; the plan must know its exact variance."""
    m = SliceTree(8 + 4, 1.0)
    starts = np.arange(16)[:, np.newaxis] << 8
    exact = m.difference_variance(starts + np.arange(256), starts - 1).mean()
    plan = expected_errors(n=1000, thresholds=256, epsilon=1.0, strata=16)
    assert (plan.point * 1000) ** 2 == pytest.approx(2 * exact, rel=0.02)
    assert plan.band > plan.worst


def test_bad_plans() -> None:
    with pytest.raises(InvalidCampaign, match="at least 2 thresholds"):
        expected_errors(n=10, thresholds=1, epsilon=1.0)
    with pytest.raises(InvalidCampaign, match="got n = 0"):
        expected_errors(n=0, thresholds=16, epsilon=1.0)
    with pytest.raises(InvalidCampaign, match="between 0 and 1, got 2"):
        required_n(2, thresholds=16, epsilon=1.0)
    with pytest.raises(InvalidCampaign, match="no epsilon up to 20"):
        required_epsilon(1e-40, n=10, thresholds=16)
