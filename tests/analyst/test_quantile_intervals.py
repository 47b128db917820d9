"""Intervals of quantiles: narrow on wide grids, and still holding the truth."""

import numpy as np
import pytest

from analyst.estimation import uncertainty
from analyst.statistics import quantile
from analyst.statistics.curve import Curve
from tests.analyst.test_intervals import WHOLE, releases
from tests.campaign.helpers import campaign

pytestmark = pytest.mark.slow

LEVELS = (0.25, 0.5, 0.75)


def before(curve: Curve, level: float) -> tuple[int, int]:
    """By a test at each threshold alone: up to the last stray one."""
    reach = uncertainty.z_score(0.95) * np.sqrt(curve.noise.rate_variances(level))
    return quantile.interval(curve.raw, reach, quantile.target(level, curve.raw_total))


@pytest.mark.parametrize(("n", "scale"), [(200, 40), (200, 12), (300, 5)])
def test_the_band_cuts_off_what_strays(n: int, scale: float) -> None:
    """Skewed values on 1000 thresholds, epsilon 1, 40 releases: at most half as wide as before on average, and at least
    94 % of 120 intervals hold (by construction more than 95 % do)."""
    spec = campaign(grid={**WHOLE, "to": 999}, epsilon=1.0)
    shares = np.exp(-np.arange(1000) / scale)
    cells = np.random.default_rng(1).multinomial(n, shares / shares.sum()).astype(float)
    right = [int(np.searchsorted(np.cumsum(cells), level * n)) for level in LEVELS]
    widths, held = [], []
    for release in releases(spec, cells, 40, seed=n):
        curve = release.curve()
        found = curve.quantile(LEVELS)
        for i, level in enumerate(LEVELS):
            low, high = (ends[i] for ends in found.indices["noise"])
            old = before(curve, level)
            widths.append((high - low, old[1] - old[0]))
            held.append(low <= right[i] <= high)
            assert low <= found.index[i] <= high
    now, then = np.mean(widths, axis=0)
    assert now <= 0.5 * then
    assert np.mean(held) >= 0.94


def test_a_level_between_two_curves() -> None:
    lower, upper = np.array([0.0, 0.1, 0.4, 1.0]), np.array([0.3, 0.6, 0.9, 1.0])
    assert quantile.between(lower, upper, 0.5) == (1, 3)
    assert quantile.between(lower, upper, 0.1) == (0, 1)
    assert quantile.between(lower, upper, 1.0) == (3, 3)


def test_without_enough_curves_the_test_alone_is_used() -> None:
    """A confidence that no band is simulated for: wider, and no error."""
    release = next(releases(campaign(grid={**WHOLE, "to": 99}), np.full(100, 20.0), 1))
    curve = release.curve()
    wide, usual = (curve.quantile([0.5], confidence).indices["noise"] for confidence in (0.9999, 0.95))
    assert wide[0] <= usual[0]
    assert wide[1] >= usual[1]
