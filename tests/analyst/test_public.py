"""What is public: used exactly, worth what it should be, and in every number."""

import numpy as np
import pytest

from analyst.estimation import public_constraints, uncertainty
from analyst.options import Smoothing
from analyst.release import Release
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import TooNoisy
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.simulate import both_servers, largest_deviations
from tests.analyst.helpers import two_strata
from tests.campaign.helpers import campaign

MECHANISMS = ["slice-tree", "paper-tree", "paper-tree-exact"]


def rows(spec: Campaign, seed: int = 1) -> np.ndarray:
    """Weights of cells that hold values, none of the padding."""
    weights = np.zeros((5, 1 << spec.bits))
    rng = np.random.default_rng(seed)
    for number in range(len(spec.strata)):
        start = number << spec.variable.index_bits
        weights[:, start : start + spec.variable.grid.size] = rng.normal(size=(5, spec.variable.grid.size))
    return weights


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("strata", [1, 2, 3])
def test_conditioning_is_that_of_a_gaussian_written_out(name: str, strata: int) -> None:
    spec = campaign(
        grid={"kind": "linear", "from": 0.0, "to": 0.1, "step": 0.01},
        strata=["a", "b", "c"][:strata],
        mechanism=name,
    )
    facts, size, released = (
        public_constraints.public_constraints(spec),
        1 << spec.bits,
        strata << spec.variable.index_bits,
    )
    at = np.arange(size)
    prefixes = SERVERS * spec.noise.covariance(at[:, np.newaxis], at)
    steps = np.eye(size) - np.eye(size, k=-1)
    cells = steps @ prefixes @ steps.T
    known = np.array([(at > a) & (at <= b) for a, b in zip(facts.after, facts.up_to, strict=True)], float)
    gain = cells @ known.T @ np.linalg.inv(known @ cells @ known.T)
    weights = rows(spec)
    expected = weights @ (cells - gain @ known @ cells) @ weights.T
    assert facts.covariance(weights) == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())
    assert facts.variance(weights) == pytest.approx(np.diag(expected), abs=1e-6 * np.abs(expected).max())
    counts = np.random.default_rng(2).normal(0, 50, released)
    whole = np.append(counts, np.full(size - released, counts[-1]))
    off = known @ steps @ whole
    if facts.whole is not None:
        off[facts.whole] -= 40.0
    right = np.cumsum(steps @ whole - gain @ off)[:released]
    assert facts.adjust(counts, 40.0) == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("name", MECHANISMS)
def test_nobody_is_in_the_padding_and_everybody_somewhere(name: str) -> None:
    spec = campaign(strata=["no", "yes", "unknown"], mechanism=name)
    noise = both_servers(spec.noise, 1, spec.bits, np.random.default_rng(1))[0]
    release = Release.from_curve(spec, 500, 500 * np.arange(1, noise.size + 1) / noise.size + noise)
    if name == "slice-tree":
        release = Release(spec, 500, release.published)
    adjusted = release.adjusted
    for number in range(3):
        start = number << spec.variable.index_bits
        assert adjusted[start + 127] - adjusted[start + 100] == pytest.approx(0, abs=1e-6)
    assert adjusted[-1] == pytest.approx(500, abs=1e-6)
    assert sum(release.totals.values()) == pytest.approx(500)


@pytest.mark.parametrize(("thresholds", "most"), [(1001, 0.45), (731, 0.34)])
def test_what_public_facts_are_worth(thresholds: int, most: float) -> None:
    """The variance of a stratum's total falls to less than half."""
    spec = campaign(grid={"kind": "linear", "from": 0, "to": thresholds - 1}, strata=["no", "yes"])
    one = {"yes": np.ones((1, thresholds))}
    before = SERVERS * spec.noise.functional_covariance(uncertainty.weights_over_positions(spec, one))[0, 0]
    assert uncertainty.variances(spec, one)[0] < most * before


@pytest.mark.slow
def test_smoothed_totals_are_not_biased() -> None:
    """300 releases: the mean total of a small stratum is the true one to 4 of its standard errors."""
    deviations, error = [], 0.0
    for seed in range(300):
        release, _, outcome = two_strata(2000, 1, noise_seed=seed)
        curve = release.curve("yes")
        error = curve.total_error
        deviations.append(curve.counts[-1] - outcome.sum())
    assert abs(np.mean(deviations)) < 4 * error / np.sqrt(300)
    assert np.std(deviations) == pytest.approx(error, rel=0.2)


@pytest.mark.parametrize("smoothing", ["isotonic", "limited", "l1", "l2"])
def test_every_smoothed_curve_ends_at_its_stratum_s_total(smoothing: Smoothing) -> None:
    release, *_ = two_strata(700, noise_seed=3, epsilon=0.5)
    for name, total in release.totals.items():
        assert release.curve(name, smoothing=smoothing).counts[-1] == pytest.approx(total, abs=1e-9)


def test_an_empty_stratum_is_too_noisy() -> None:
    """40 releases: at most one in twenty of an empty stratum is told from nothing (7 of 40: false alarm 1e-3)."""
    told = 0
    for seed in range(40):
        release, *_ = two_strata(1000, 1, noise_seed=seed, strata=["no", "yes", "unknown"])
        try:
            _ = release.curve("unknown").fractions
            told += 1
        except TooNoisy:
            pass
    assert told < 7


def test_the_largest_deviation_without_whole_curves() -> None:
    """1500 curves of 2^10 positions, once whole and once only where they may be largest: the same distribution.

    Quantiles of both to 5 standard errors of their difference."""
    noise = mechanism("slice-tree", 10, 1.0)
    errors = np.sqrt(SERVERS * noise.variance(np.arange(1024)))
    known = errors > 1e-9
    whole = both_servers(noise, 1500, 10, np.random.default_rng(1))
    first = np.abs(whole[:, known] / errors[known]).max(axis=1)
    second = largest_deviations(noise, 1500, np.random.default_rng(2))  # type: ignore[arg-type]
    for level in (0.5, 0.9, 0.95):
        a, b = np.quantile(first, level), np.quantile(second, level)
        density = np.mean((first > a - 0.1) & (first < a + 0.1)) / 0.2
        assert abs(a - b) < 5 * np.sqrt(2 * level * (1 - level) / 1500) / density
    floored = largest_deviations(noise, 1500, np.random.default_rng(2), floor=3.5)  # type: ignore[arg-type]
    assert floored.min() == 3.5
    assert np.quantile(floored, 0.9) == pytest.approx(np.quantile(second, 0.9), rel=0.05)
