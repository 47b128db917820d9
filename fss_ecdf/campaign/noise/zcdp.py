"""Zero-concentrated differential privacy: what rho means as (epsilon, delta), and how it adds up.

A mechanism is rho-zCDP if the Renyi divergence of order alpha between its results on two neighbouring data sets is at
most alpha rho, for all alpha > 1. Independent releases of the same people add their rho. It implies (epsilon, delta)-DP
for every epsilon, with

    delta  =  min over alpha > 1 of  exp((alpha - 1) (alpha rho - epsilon)) (1 - 1 / alpha)^alpha / (alpha - 1),

the tight conversion from Renyi divergences (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
Privacy", 2020, Proposition 12 and Corollary 13). Every alpha gives a valid delta, so an inexact minimum is safe.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from fss_ecdf.campaign.errors import InvalidCampaign

MAX_RHO = 10.0
# What is found by bisection is moved to the safe side by this, relatively: far more than the rounding of a formula.
_MARGIN = 1e-12
_STEPS = 100


def _check(rho: float, delta: float) -> None:
    if not 0 < rho <= MAX_RHO:
        raise InvalidCampaign(f"rho must be above 0 and at most {MAX_RHO:g}, got {rho:g}")
    if not 0 < delta < 1:
        raise InvalidCampaign(f"delta must be between 0 and 1, got {delta:g}")


def delta_at(rho: float, epsilon: float) -> float:
    """The delta that rho-zCDP has at an epsilon."""
    low, high = math.log(1e-15), math.log((epsilon + 1) / (2 * rho) + 1)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        alpha = 1 + math.exp(middle)
        # the derivative of the logarithm by alpha, which increases
        slope = (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)
        low, high = (middle, high) if slope < 0 else (low, middle)
    return min(1.0, math.exp(log_delta(rho, epsilon, 1 + math.exp(high))))


def log_delta(rho: float, epsilon: float, alpha: float) -> float:
    """The logarithm of the delta that the divergence of one order gives."""
    return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)


def epsilon_at(rho: float, delta: float) -> float:
    """The smallest epsilon at which rho-zCDP has this delta, rounded up."""
    _check(rho, delta)
    # the conversion of Bun and Steinke, which always suffices
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(rho, middle) > delta else (low, middle)
    return high * (1 + _MARGIN)


def rho_at(epsilon: float, delta: float) -> float:
    """The largest rho that is (epsilon, delta)-DP, rounded down."""
    if not epsilon > 0:
        raise InvalidCampaign(f"epsilon must be above 0, got {epsilon:g}")
    _check(MAX_RHO, delta)
    low, high = 0.0, MAX_RHO
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle, epsilon) <= delta else (low, middle)
    return low * (1 - 10 * _MARGIN)  # more than epsilon_at adds, so that what it says is kept


def split_rho(total: float, weights: Sequence[float]) -> tuple[float, ...]:
    """The rho of each variable, in proportion to its weight; together not above the total, exactly."""
    if not weights or not all(0 < weight < math.inf for weight in weights):
        raise InvalidCampaign(f"weights of variables must be above 0, got {list(weights)}")
    whole = math.fsum(weights)
    parts = [total * (weight / whole) for weight in weights]
    while sum(map(Fraction, parts)) > Fraction(total):
        parts = [math.nextafter(part, 0.0) for part in parts]
    return tuple(parts)
