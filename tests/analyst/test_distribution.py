"""Summaries of distributions: the textbook's numbers without noise, slopes that are derivatives, midpoints, edges."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import trim_mean, wasserstein_distance

from analyst import plots
from analyst.estimation.cells import on_simplex, representatives
from analyst.estimation.estimate import INTERVALS, Estimate, Estimates, IntervalEstimate, mover_interval, ratio_interval
from analyst.present.report import page_table
from analyst.statistics import distribution
from analyst.statistics.curve import Curve
from fss_ecdf.campaign.errors import InvalidQuery
from tests.analyst.helpers import Array, one_stratum, publish, two_strata
from tests.campaign.helpers import campaign


def test_without_noise_it_is_the_textbook() -> None:
    release, values = one_stratum(2000, epsilon=20.0)
    summary = release.summary()
    assert summary["mean"].value == pytest.approx(values.mean())
    assert summary["0.1 trimmed mean"].value == pytest.approx(trim_mean(values, 0.1))
    # what the noise would take from a square is given back, though there is none here: little at this epsilon
    assert summary["standard deviation"].value == pytest.approx(values.std(), rel=1e-5)
    quartiles = np.quantile(values, [0.25, 0.75], method="inverted_cdf")
    assert summary["interquartile range"].value == pytest.approx(quartiles[1] - quartiles[0])
    apart = np.abs(np.subtract.outer(values, values)).mean()
    assert summary["Gini coefficient"].value == pytest.approx(apart / (2 * values.mean()), rel=1e-5)
    lorenz = distribution.Lorenz(release.curve(smoothing="isotonic")).columns()
    ordered = np.cumsum(np.sort(values)) / values.sum()
    at = np.rint(np.asarray(lorenz["share_of_people"])[1:] * values.size).astype(int) - 1
    keep = at >= 0
    assert np.asarray(lorenz["share_of_total"])[1:][keep] == pytest.approx(ordered[at[keep]])


def test_two_strata_without_noise() -> None:
    release, scores, outcome = two_strata(2000, epsilon=20.0)
    comparison = release.compare("no", "yes")
    first, second = scores[~outcome], scores[outcome]
    assert comparison["difference of means"].value == pytest.approx(second.mean() - first.mean())
    pooled = np.sqrt((first.var() + second.var()) / 2)
    standardised = comparison["standardised mean difference"].value
    assert standardised == pytest.approx((second.mean() - first.mean()) / pooled, rel=1e-4)
    assert comparison["Wasserstein distance"].value == pytest.approx(wasserstein_distance(first, second))
    medians = [np.quantile(x, 0.5, method="inverted_cdf") for x in (first, second)]
    assert comparison["difference of medians"].value == pytest.approx(medians[1] - medians[0])
    everybody = release.curve(smoothing="isotonic")
    assert everybody.counts.tolist() == [(scores <= t).sum() for t in everybody.thresholds]


@pytest.mark.parametrize("name", ["0.1 trimmed mean", "standard deviation", "Gini coefficient"])
def test_sampling_errors_are_those_of_resampled_data(name: str) -> None:
    """400 resampled data sets: the deviation of the estimate is its sampling error to 15 % (4 standard errors)."""
    release, values = one_stratum(3000)
    curve, rng, resampled = release.curve(smoothing="isotonic"), np.random.default_rng(1), []
    for _ in range(400):
        cells = np.bincount(np.rint(rng.choice(values, values.size) * 100).astype(int), minlength=101)
        counts = np.cumsum(cells).astype(float)
        resampled.append(_one(replace(curve, raw=counts, counts=counts), name).value)
    assert np.std(resampled) == pytest.approx(_one(curve, name).sampling_error, rel=0.15)


def _one(curve: Curve, name: str) -> Estimate:
    makers = {"0.1": distribution.trimmed_mean, "standard": distribution.deviation, "Gini": distribution.gini}
    return makers[name.split(" ")[0]](curve)


def test_values_between_thresholds_are_in_the_middle() -> None:
    """The mean of continuous values is off by half a step at their thresholds, and not in the middle of the cells."""
    values = np.random.default_rng(1).beta(2, 4, 20_000)
    spec = campaign(grid={"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.1})
    on_grid = publish(spec, values, None)
    between = replace(on_grid, on_grid=False, _curves={})
    assert on_grid.mean()["mean"].value == pytest.approx(values.mean() + 0.05, abs=0.003)
    assert between.mean()["mean"].value == pytest.approx(values.mean(), abs=0.003)


def test_what_a_cell_stands_for() -> None:
    spec = campaign(grid={"kind": "linear", "values": "integer", "from": 0, "to": 20, "step": 10})
    assert representatives(spec.variable.grid).tolist() == [0.0, 5.5, 15.5]
    assert representatives(spec.variable.grid, on_grid=True).tolist() == [0.0, 10.0, 20.0]
    days = campaign(grid={"kind": "linear", "values": "integer", "from": 3, "to": 9})
    assert representatives(days.variable.grid).tolist() == list(range(3, 10))


def test_bins_and_edges() -> None:
    spec = campaign(grid={"kind": "linear", "values": "integer", "from": 1, "to": 14})
    release = publish(spec, np.arange(1, 15).repeat(10), None)
    bars = release.histogram(14)
    assert bars.counts.tolist() == [10.0] * 14
    assert release.histogram(100).counts.size == 14
    assert any("14 bins, not 100" in note for note in release.histogram(100).metadata()["notes"])
    tenths = one_stratum(500)[0].histogram([0.123, 0.5, 0.9])
    notes = tenths.metadata()["notes"]
    assert notes[0] == "the edge 0.123 is no threshold of the grid and was moved to 0.12"
    assert any("above the last edge" in note for note in notes)
    assert len(notes) <= 2


def test_wilson_and_fieller() -> None:
    """Without noise the share's interval is Wilson's; a ratio whose bottom may be zero has no end."""
    low, high = ratio_interval(30.0, 100.0, (0.0, 100.0, -100.0), 1.96)
    centre, half = (0.3 + 1.96**2 / 200) / (1 + 1.96**2 / 100), 1.96 / (1 + 1.96**2 / 100)
    half *= np.sqrt(0.21 / 100 + 1.96**2 / 40_000)
    assert (float(low), float(high)) == pytest.approx((centre - half, centre + half))
    below, nought = (ratio_interval(top, 100.0, (9.0, 0.0, 0.0), 1.96) for top in (-20.0, 0.0))
    assert [float(end) for end in below] == [float(end) for end in nought] == pytest.approx([0.0, 0.0588])
    low, high = ratio_interval(3.0, 1.0, (1.0, 0.0, 1.0), 1.96)
    assert (float(low), float(high)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("totals", "expected"),
    [([3.0, 7.0], [3.0, 7.0]), ([-2.0, 12.0], [0.0, 10.0]), ([4.0, 8.0], [3.0, 7.0]), ([-5.0, -5.0], [5.0, 5.0])],
)
def test_totals_are_made_to_add_up(totals: list[float], expected: list[float]) -> None:
    assert on_simplex(np.array(totals), 10.0).tolist() == pytest.approx(expected)


def test_the_arms_of_a_difference_are_those_that_point_its_way() -> None:
    """MOVER: the lower arm of b - a is the lower one of b and the upper one of a."""
    first, second = (
        IntervalEstimate("x", value, np.nan, np.nan, ranges=dict.fromkeys(INTERVALS, ends))
        for value, ends in ((1.0, (0.0, 4.0)), (10.0, (6.0, 22.0)))
    )
    assert mover_interval("d", first, second).interval("noise") == pytest.approx((9 - 5.0, 9 + np.hypot(12, 1)))


def test_a_lorenz_curve_is_drawn(tmp_path: Path) -> None:
    release, *_ = two_strata(2000, noise_seed=1)
    curves = [distribution.Lorenz(release.curve(name)) for name in ("no", "yes")]
    drawn = plots.lorenz(*curves)
    legend = drawn.axes[0].get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[0].startswith(f"no: Gini {curves[0].gini.value:.3f} (95% population: ")
    assert len(drawn.axes[0].get_lines()) == 3
    plots.save(drawn, tmp_path / "lorenz.svg")
    assert "<svg" in (tmp_path / "lorenz.svg").read_text()
    below = publish(campaign(grid={"kind": "linear", "from": -1.0, "to": 1.0, "step": 0.5}), np.array([0.5] * 50), None)
    with pytest.raises(InvalidQuery, match="not negative"):
        distribution.Lorenz(below.curve())


def test_tables_of_a_page() -> None:
    """Both ends of an interval in one cell, as many decimals as a column needs, places of the grid as they are."""
    release, *_ = two_strata(2000, noise_seed=1)
    bins = page_table(release.histogram(4, "no"))
    assert list(bins) == ["above", "up to", "count", "count noise error", "share", "noise", "population"]
    assert bins["up to"] == ["0.25", "0.5", "0.75", "1"]
    assert all(re.fullmatch(r"0\.\d{3} to [01]\.\d{3}", cell) for cell in bins["population"])
    compared = page_table(release.compare("no", "yes"))
    assert compared["p"][1] == "< 0.0001"
    assert compared["p"][2] == ""
    ends = IntervalEstimate("median", 3.0, np.nan, np.nan, ranges=dict.fromkeys(INTERVALS, (2.5, np.inf)))
    assert page_table(Estimates([ends], {}))["noise"] == ["from 2.50 on"]
    assert page_table(release.curve("no")) == {}


def test_clipped_values_are_counted_as_far_as_they_are_known() -> None:
    """300 of 2000 lie above the grid, none below: the note has them with the noise's interval, and only those."""
    spec = campaign(grid={"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01})
    values = np.concatenate([np.random.default_rng(1).uniform(0.2, 0.8, 1700), np.full(300, 1.0)])
    release = publish(spec, values, None, noise_seed=1)
    for table in (release.summary(), release.mean(), distribution.Lorenz(release.curve(smoothing="isotonic"))):
        (note,) = [note for note in table.metadata()["notes"] if "clipped" in note]
        low, high = (int(end) for end in re.findall(r"\((\d+) to (\d+)\)", note)[0])
        assert "last cell of the grid" in note
        assert low <= 300 <= high < 400


def test_bad_questions() -> None:
    curve = one_stratum(200)[0].curve()
    with pytest.raises(InvalidQuery, match="share to trim"):
        distribution.trimmed_mean(curve, 0.5)
    release, *_ = two_strata(200)
    with pytest.raises(InvalidQuery, match="name each stratum once"):
        release.curve(["no", "no"])


def noisy_totals(seed: int) -> Array:
    release, *_ = two_strata(700, noise_seed=seed, strata=["no", "yes", "unknown"], epsilon=0.5)
    assert sum(release.totals.values()) == pytest.approx(700)
    assert min(release.totals.values()) >= 0
    return np.array([release.curve(name).counts[-1] for name in release.campaign.strata])


def test_strata_add_up_to_n_in_every_release() -> None:
    for seed in range(20):
        assert noisy_totals(seed).sum() == pytest.approx(700)
