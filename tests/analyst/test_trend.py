"""Waves over time, from simulated releases: sums with exact errors, tests of the right size, alerts that hold."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from analyst.release import Release
from analyst.statistics.curve import Curve
from analyst.statistics.trend import Trend, mann_whitney_p, sum_releases
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.release import ReleaseName, releases_of
from tests.campaign.helpers import campaign

DAYS = {"kind": "linear", "values": "integer", "from": 0, "to": 60, "step": 1}


def weekly(count: int, pooled: list[dict[str, Any]] | None = None, **changes: Any) -> Campaign:
    waves = {"every": "manual", "count": count, "pooled": pooled or []}
    return campaign(waves=waves, grid=DAYS, min_uploads=10, **changes)


@cache
def drawn(epsilon: float, bits: int) -> Iterator[np.ndarray[Any, Any]]:
    """Noise of both servers, one release after the other: drawn together, which is much faster."""
    noise = mechanism("slice-tree", bits, epsilon)
    return iter(both_servers(noise, 3000, bits, np.random.default_rng(int(1000 * epsilon))))


def simulated(of: Campaign, values: np.ndarray[Any, Any], epsilon: float) -> Release:
    counts = np.cumsum(np.bincount(of.to_positions(values).positions, minlength=1 << of.bits))
    published = counts + next(drawn(epsilon, of.bits))
    return Release.from_curve(of.released(((epsilon, 1),)), len(values), published, True)


def trend_of(of: Campaign, weeks: list[np.ndarray[Any, Any]]) -> Trend:
    assert of.waves is not None
    plans = releases_of(of.waves, of.epsilon, of.min_uploads, [len(week) for week in weeks])
    releases = {
        plan.name: simulated(of, np.concatenate([weeks[k - 1] for k in plan.waves]), plan.epsilon) for plan in plans
    }
    return Trend(of, plans, releases)


def waits(count: int, mean: float, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return np.minimum(rng.gamma(4, mean / 4, count).round(), 60)


def test_running_sums_have_exactly_the_errors_of_their_parts() -> None:
    rng = np.random.default_rng(0)
    of = weekly(4, [{"through": 2, "epsilon": 5.0}])
    trend = trend_of(of, [waits(200, 20, rng) for _ in range(4)])
    whole = trend.cumulative()
    parts = [trend.releases[ReleaseName.parse(name)] for name in ("pooled 2", "wave 3", "wave 4")]
    np.testing.assert_array_equal(whole.published, sum(part.published for part in parts))
    assert whole.n == 800
    variance = sum(part.campaign.noise.variance(np.arange(61)) for part in parts)
    np.testing.assert_allclose(whole.campaign.noise.variance(np.arange(61)), variance)
    np.testing.assert_allclose(
        whole.curve().standard_errors ** 2,
        sum(part.curve().standard_errors ** 2 for part in parts),
        rtol=0.05,
        atol=1e-9,
    )
    assert trend.cumulative(1) is trend.releases[ReleaseName("wave", 1)]
    with pytest.raises(InvalidQuery):
        trend.cumulative(0)


def test_the_error_of_a_running_curve_is_what_it_says() -> None:
    """2000 sums of five releases: a variance is off by 15 % about once in 10^5 runs, were they Gaussian."""
    of = weekly(5)
    noise = both_servers(of.noise, 10_000, of.bits, np.random.default_rng(3)).reshape(2000, 5, -1)
    errors = []
    for row in noise:
        parts = [(1.0, Release.from_curve(of, 0, one)) for one in row]
        errors.append(sum_releases(of, parts).published[[10, 31, 44]])
    found = np.var(errors, axis=0)
    np.testing.assert_allclose(found, 2 * 5 * of.noise.variance([10, 31, 44]), rtol=0.15)


def test_a_change_is_found_and_no_change_is_not() -> None:
    """Under one distribution the test rejects in at most 5 %: of 300 pairs more than 27 once in 1000 runs."""
    rng, of = np.random.default_rng(4), weekly(2, epsilon=0.5)
    rejected = ignoring = 0
    for _ in range(300):
        before, after = (simulated(of, waits(60, 20, rng), 0.5).curve() for _ in range(2))
        rejected += mann_whitney_p(before, after) < 0.05
        ignoring += _without_noise(before, after) < 0.05
    assert rejected <= 27
    assert ignoring > 40  # a test that leaves the noise out would cry wolf
    trend = trend_of(weekly(3), [waits(400, mean, rng) for mean in (20, 20, 30)])
    changes = trend.changes()
    assert [row["wave"] for row in changes.rows] == [2, 3]
    assert changes.rows[0]["p_adjusted"] > 0.05 > changes.rows[1]["p_adjusted"]
    assert changes.rows[1]["population_lower"] > 0 < changes.rows[1]["change_of_median"]


def _without_noise(before: Curve, after: Curve) -> float:
    """The same score, its variance without the noise."""
    pooled = np.maximum(before.cells, 0.0) + np.maximum(after.cells, 0.0)
    n = pooled.sum()
    rank = (np.cumsum(pooled) - pooled / 2) / n - 0.5
    score = float((after.raw_cells - before.raw_cells) @ rank) / 2
    return math.erfc(abs(score) / math.sqrt(2 * n * float(pooled @ rank**2) / n / 4))


@pytest.mark.slow
def test_alerts_come_when_a_share_leaves_its_limits_and_rarely_otherwise() -> None:
    """Half wait at most 20 days. Of 60 quiet years of 6 waves at most 5 % may alert: more than 9 once in 1000."""
    rng, of = np.random.default_rng(6), weekly(6)
    false = 0
    for _ in range(60):
        weeks = [np.where(rng.random(150) < 0.5, 10, 40) for _ in range(6)]
        false += bool(trend_of(of, weeks).fractions(20, limits=(0.5, 1.0)).alerts)
    assert false <= 9
    weeks = [np.where(rng.random(400) < share, 10, 40) for share in (0.6, 0.6, 0.6, 0.3, 0.6, 0.6)]
    told = trend_of(of, weeks).fractions(20, limits=(0.5, 1.0))
    assert told.alerts == [4]
    assert told.columns()["outside"] == [False, False, False, True, False, False]
    with pytest.raises(InvalidQuery):
        trend_of(of, weeks).fractions(20, limits=(0.9, 0.1))


def test_quantiles_over_time_and_waves_that_are_too_noisy() -> None:
    rng = np.random.default_rng(8)
    of = weekly(3, strata=["urgent", "other"])
    weeks = [(waits(300, 20, rng), ["urgent" if k % 2 else "other"] * 300) for k in range(3)]
    releases, plans = {}, releases_of(of.waves, 1.0, 10, [300] * 3)  # type: ignore[arg-type]
    for plan, (values, strata) in zip(plans, weeks, strict=True):
        counts = np.cumsum(np.bincount(of.to_positions(values, strata).positions, minlength=1 << of.bits))
        noise = both_servers(of.noise, 1, of.bits, np.random.default_rng(plan.through))[0]
        releases[plan.name] = Release.from_curve(of, 300, counts + noise, True)
    trend = Trend(of, plans, releases, {1: "2026-01-08T00:00:00Z"})
    table = trend.quantiles([0.5], "urgent")
    assert [row.get("value") is None for row in table.rows] == [True, False, True]
    assert table.rows[0]["closes"] == "2026-01-08T00:00:00Z"
    row = table.rows[1]
    assert (
        row["population_lower"] <= row["noise_lower"] <= row["value"] <= row["noise_upper"] <= row["population_upper"]
    )
    assert abs(row["value"] - np.median(weeks[1][0])) <= 4
    assert "nan" not in table.to_csv()
    display = table.plot()
    assert display.ax_.get_xlabel() == "wave"
    assert all(tick == round(tick) for tick in display.ax_.get_xticks())
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend()
    assert legend is not None
    assert legend.get_window_extent().x0 >= display.ax_.get_window_extent().x1
    assert trend.fractions(20, "urgent").plot().ax_.get_ylabel() == "share at or below 20"
