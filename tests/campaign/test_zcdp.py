"""What rho means as (epsilon, delta): against a dense search, known bounds, and the delta of known noise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise import zcdp

CASES = [(rho, delta) for rho in (1e-4, 0.01, 0.3, 5.0) for delta in (1e-9, 1e-6, 1e-3)]


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Of continuous Gaussian noise that is rho-zCDP, exactly (Balle and Wang): no conversion can be below it."""
    mu = math.sqrt(2 * rho)
    return float(np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def discrete_delta(rho: float, epsilon: float) -> float:
    """Of discrete Gaussian noise with a shift of one, by adding up P - e^epsilon P' where it is positive."""
    reach = int(math.sqrt(200 / rho)) + 10
    z = np.arange(-reach, reach + 1)
    p, q = np.exp(-rho * z**2.0), np.exp(-rho * (z - 1) ** 2.0)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum())


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_the_conversion_equals_a_dense_search(rho: float, delta: float) -> None:
    epsilon = zcdp.epsilon_at(rho, delta)
    alphas = 1 + np.exp(np.linspace(math.log(1e-6), math.log(1e7), 400_001))
    logs = (alphas - 1) * (alphas * rho - epsilon) + alphas * np.log1p(-1 / alphas) - np.log(alphas - 1)
    assert zcdp.delta_at(rho, epsilon) == pytest.approx(math.exp(logs.min()), rel=1e-6)
    assert delta * (1 - 1e-6) < zcdp.delta_at(rho, epsilon) <= delta


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_the_conversion_lies_between_what_is_known(rho: float, delta: float) -> None:
    """Below that of Bun and Steinke, above what Gaussian noise of this rho really has."""
    epsilon = zcdp.epsilon_at(rho, delta)
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert gaussian_delta(rho, epsilon) < delta
    assert discrete_delta(rho, epsilon) < delta


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("rho", [0.005, 0.1, 1.0])
def test_delta_bounds_that_of_discrete_noise_at_every_epsilon(rho: float, epsilon: float) -> None:
    assert discrete_delta(rho, epsilon) <= zcdp.delta_at(rho, epsilon)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_rho_is_the_largest_that_keeps_the_promise(epsilon: float, delta: float) -> None:
    rho = zcdp.rho_at(epsilon, delta)
    assert zcdp.epsilon_at(rho, delta) <= epsilon
    assert zcdp.epsilon_at(rho * 1.000001, delta) > epsilon
    # exact Gaussian accounting would allow more, by less than a half
    gaussian = brentq(lambda r: gaussian_delta(r, epsilon) - delta, 1e-9, 10)
    assert rho < gaussian < 1.5 * rho


def test_variables_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        weights = rng.integers(1, 10, int(rng.integers(1, 40))).astype(float).tolist()
        parts = zcdp.split_rho(0.0243, weights)
        assert Fraction(0.0243) * (1 - Fraction(1, 10**13)) < sum(map(Fraction, parts)) <= Fraction(0.0243)
        assert parts[0] / parts[-1] == pytest.approx(weights[0] / weights[-1])


def test_what_is_refused() -> None:
    with pytest.raises(InvalidCampaign, match="rho must be above 0 and at most 10, got 0"):
        zcdp.epsilon_at(0.0, 1e-6)
    with pytest.raises(InvalidCampaign, match="delta must be between 0 and 1, got 1"):
        zcdp.epsilon_at(0.1, 1.0)
    with pytest.raises(InvalidCampaign, match="epsilon must be above 0, got 0"):
        zcdp.rho_at(0.0, 1e-6)
    for weights in ([], [1.0, 0.0], [math.inf]):
        with pytest.raises(InvalidCampaign, match="weights of variables must be above 0"):
            zcdp.split_rho(0.1, weights)
