"""The default estimator of curves: proper always, isotonic regression where little is known, better where more is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyst.estimation.limited import GATE, limited
from analyst.estimation.smooth import isotonic
from bench.figures import estimators
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from tests.analyst.helpers import one_stratum, publish, two_strata
from tests.campaign.helpers import campaign

Array = np.ndarray[Any, Any]
# Bins of three cells over teeth seven cells apart: every split is uneven, and no two alike.
WORSE = {("bins", "comb", (61, 3000)): 1.1}


def variances(bits: int, epsilon: float = 1.0) -> Array:
    return np.asarray(SERVERS * SliceTree(bits, epsilon).level_variances)


@settings(max_examples=60, deadline=None)
@given(size=st.integers(2, 200), scale=st.floats(0.1, 1e5), seed=st.integers(0, 10**6))
def test_the_curve_never_falls_and_ends_at_the_total(size: int, scale: float, seed: int) -> None:
    rng, bits = np.random.default_rng(seed), max(1, (size - 1).bit_length())
    true = np.cumsum(rng.gamma(0.3, scale, size))
    raw = true + rng.normal(0, 30, size)
    raw[-1] = true[-1]
    found = limited(raw, float(true[-1]), variances(bits))
    assert found.shape == raw.shape
    assert (np.diff(found) >= 0).all()
    assert found[0] >= 0
    assert found[-1] == true[-1]


def test_below_the_gate_it_is_isotonic_regression() -> None:
    v = variances(8)
    error = float(np.sqrt(v @ (1 / 3 + 1 / (6 * 4.0 ** np.arange(8)))))
    shares, noise = np.full(256, 1 / 256), np.random.default_rng(1).normal(0, 10, 256)
    for share, same in ((0.99, True), (1.01, False)):
        total = share * GATE * error
        raw = np.cumsum(shares) * total + noise
        raw[-1] = total
        flat = isotonic(raw, total)
        flat[-1] = total
        assert np.allclose(limited(raw, total, v), flat) == same


def test_without_noise_to_speak_of_nothing_moves() -> None:
    """At epsilon 20 and a million values the curve is the true one to a few values."""
    true = np.cumsum(np.random.default_rng(1).poisson(1000, 1000)).astype(float)
    assert np.abs(limited(true, float(true[-1]), variances(10, 20.0)) - true).max() < 5


def test_pooled_strata_are_the_sum_of_their_curves() -> None:
    release, *_ = two_strata(5000, noise_seed=1)
    for smoothing in ("isotonic", "limited"):
        parts = [release.curve(name, smoothing=smoothing).counts for name in ("no", "yes")]
        whole = release.curve(smoothing=smoothing).counts
        assert whole == pytest.approx(sum(parts))


def test_pooling_curves_is_better_than_smoothing_the_pool() -> None:
    """Four strata, 100 releases: mean squared errors of the pooled curve, by ratio, which is .88 or so; below 1 but for
    one in a million draws."""
    strata = ["a", "b", "c", "d"]
    spec = campaign(strata=strata)
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.beta(2 + k, 4, 500) for k in range(4)])
    exact = publish(spec, values, np.repeat(strata, 500).tolist())
    true, errors = exact.curve(smoothing="none").counts, []
    for noise in both_servers(spec.noise, 100, spec.bits, rng):
        noisy = type(exact)(spec, exact.n, exact.published + noise[: exact.published.size])
        raw = noisy.curve(smoothing="none").counts
        both = noisy.curve(smoothing="isotonic").counts, isotonic(raw, 2000)
        errors.append([((counts - true) ** 2).mean() for counts in both])
    summed, whole = np.mean(errors, axis=0)
    assert summed < whole


def test_quantiles_stay_on_isotonic_regression_and_the_band_holds_the_estimate() -> None:
    for seed in range(5):
        release, _ = one_stratum(5000, noise_seed=seed)
        shown, flat = release.curve(), release.curve(smoothing="isotonic")
        assert shown.smoothing == "limited"
        assert not np.allclose(shown.counts, flat.counts)
        assert shown.quantile().index == flat.quantile().index
        for kind in ("noise", "population"):
            low, high = shown.band(interval=kind)
            assert (low <= shown.fractions).all()
            assert (shown.fractions <= high).all()
            low, high = shown.fraction_limits(kind, 0.95)
            assert (low <= shown.fractions).all()
            assert (shown.fractions <= high).all()


def test_a_paper_tree_has_isotonic_regression() -> None:
    release, _ = one_stratum(5000, noise_seed=1, mechanism="paper-tree")
    assert release.curve().counts == pytest.approx(release.curve(smoothing="isotonic").counts)


@pytest.mark.slow
@pytest.mark.parametrize("setting", estimators.SETTINGS)
def test_it_is_no_worse_than_isotonic_regression_on_shapes_never_seen(setting: tuple[int, int]) -> None:
    """200 releases of each of ten shapes: at most 5 % worse in mean squared error, of curves and of bins, but for the
    cells that are listed; better on average."""
    rows = [
        row
        for name in estimators.SHAPES
        for row in estimators.squared_errors(name, *setting, range(200), ("isotonic", "limited"))
    ]
    for what in ("curve", "bins"):
        found = estimators.cells(rows, "limited", what)
        for cell, value in found.items():
            assert value <= WORSE.get((what, *cell), estimators.NO_WORSE), cell
        assert np.mean(list(found.values())) < 0.97
