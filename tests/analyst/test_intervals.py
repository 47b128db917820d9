"""Intervals that must hold where it is hard: wide grids, few thresholds, ties, rare strata, and numbers near a guard.

Coverage is that of 95 % intervals over simulated releases with fixed seeds. Each test says how far below 95 % it lets
pass, and with which probability an interval of exactly 95 % would fall below that.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from analyst.estimation import bands, public_constraints, uncertainty
from analyst.estimation.estimate import INTERVALS, Estimate, IntervalEstimate, mover_interval
from analyst.release import Release
from analyst.statistics import compare, distribution
from analyst.statistics.logistic import fit
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.simulate import both_servers
from tests.analyst import coverage
from tests.analyst.coverage_cases import Case, population, true_values
from tests.analyst.helpers import SCORES
from tests.campaign.helpers import campaign

pytestmark = pytest.mark.slow

Array = np.ndarray[Any, Any]
WHOLE = {"kind": "linear", "values": "integer", "from": 0}


def releases(spec: Campaign, cells: Array, runs: int, seed: int = 0) -> Iterator[Release]:
    """One set of people, published so many times with fresh noise."""
    whole = np.zeros(1 << spec.bits)
    whole[: cells.size] = cells
    counts, n = np.cumsum(whole), int(cells.sum())
    for noise in both_servers(spec.noise, runs, spec.bits, np.random.default_rng(seed)):
        yield Release.from_curve(spec, n, counts + noise, on_grid=True)


def held(rows: Iterator[Estimate], right: float, kind: str = "noise") -> float:
    """The share of intervals that hold the truth, among the numbers that are told."""
    ends = [row.interval(kind) for row in rows if not np.isnan(row.value)]  # type: ignore[arg-type]
    return float(np.mean([low - 1e-9 <= right <= high + 1e-9 for low, high in ends])) if ends else 1.0


def skewed(size: int, n: int) -> Array:
    shares = np.exp(-np.arange(size) / (size / 40))
    return np.random.default_rng(1).multinomial(n, shares / shares.sum()).astype(float)


def two(no: Array, yes: Array) -> Array:
    return np.concatenate([no, np.zeros(27), yes, np.zeros(27)])


def scored(n: int, epsilon: float, shape: Callable[[Array], Array], seed: int = 1) -> tuple[Campaign, Array, Array]:
    """A campaign and cells of a calibrated model."""
    spec = campaign(grid=SCORES, strata=["no", "yes"], epsilon=epsilon)
    x = np.clip(spec.variable.grid.all_thresholds, 0.005, 0.995)
    shares = shape(x) / shape(x).sum()
    drawn = np.random.default_rng(seed).multinomial(n, np.concatenate([shares * (1 - x), shares * x])).astype(float)
    return spec, drawn[:101], drawn[101:]


@pytest.mark.parametrize(("n", "epsilon", "told"), [(2000, 0.2, False), (60_000, 1.0, True)])
def test_a_wide_grid_does_not_blow_up_the_deviation(n: int, epsilon: float, told: bool) -> None:
    """Noise at the far end counts most in squares. 150 releases, at least 88 % held: a false alarm of 4e-4.

    Where noise hides it, there is no value, and it is said; decided alike in nearly every release.
    """
    spec, cells = campaign(grid={**WHOLE, "to": 999}, epsilon=epsilon), skewed(1000, n)
    right = true_values(cells, np.arange(1000.0))
    deviations, ginis = [], []
    for release in releases(spec, cells, 150):
        curve = release.curve(smoothing="isotonic")
        deviations.append(distribution.deviation(curve))
        ginis.append(distribution.gini(curve))
    for rows, name in ((deviations, "standard deviation"), (ginis, "Gini coefficient")):
        ends = [row.interval("noise") for row in rows]
        assert np.mean([low <= right[name] <= high for low, high in ends]) >= 0.88, name
    assert np.mean([not np.isnan(row.value) for row in deviations]) == pytest.approx(float(told), abs=0.1)
    if told:
        assert np.mean([row.value for row in deviations]) == pytest.approx(right["standard deviation"], rel=0.1)
        assert held(iter(deviations), right["standard deviation"]) >= 0.88
    else:
        notes = release.summary().metadata()["notes"]
        assert any(note.startswith("standard deviation: the noise") for note in notes)


def test_a_standardised_difference_of_a_rare_stratum_is_held_or_not_told() -> None:
    """1.3 % positives, skewed values on a wide grid: 100 releases, at least 88 % of the intervals hold, a false alarm
    of 3e-3. Spreads of smoothed cells, with noise at the far end, held 85 % and had a value all the same."""
    grid, rng = {**WHOLE, "to": 999}, np.random.default_rng(3)
    spec, x = campaign(grid=grid, strata=["no", "yes"]), np.arange(1000.0)
    shares = [np.exp(-x / 60), np.exp(-0.5 * ((x - 140) / 50) ** 2)]
    no, yes = (rng.multinomial(n, p / p.sum()).astype(float) for n, p in zip((11_844, 156), shares, strict=True))
    means = [c @ x / c.sum() for c in (no, yes)]
    spread = [c @ (x - m) ** 2 / c.sum() for c, m in zip((no, yes), means, strict=True)]
    right, rows = (means[1] - means[0]) / np.sqrt(sum(spread) / 2), []
    for release in releases(spec, np.concatenate([no, np.zeros(24), yes]), 100):
        curve = release.curve("yes", smoothing="isotonic")
        if float(curve.raw[-1]) > 2 * curve.total_error and release.totals["yes"] > 2 * curve.total_error:
            rows.append(distribution.standardised_difference(release.curve("no", smoothing="isotonic"), curve))
    assert len(rows) > 50
    ends = [row.interval("noise") for row in rows]
    assert np.mean([low <= right <= high for low, high in ends]) >= 0.88
    assert held(iter(rows), right) >= 0.88
    assert np.mean([np.isnan(row.value) for row in rows]) > 0.7


@pytest.mark.parametrize(("size", "epsilon"), [(2, 2.9), (4, 3.0), (7, 4.0)])
def test_few_thresholds_have_noise_on_a_lattice(size: int, epsilon: float) -> None:
    """300 releases: F, bins and mean each hold in at least 91 %: a false alarm of 2e-3 each, were it 95 %.

    Ends between two counts held 80 % at two thresholds and epsilon 2.9.
    """
    spec, cells = campaign(grid={**WHOLE, "to": size - 1}, epsilon=epsilon), np.full(size, 60.0)
    right = np.cumsum(cells) / cells.sum()
    points, bins, means = [], [], []
    for release in releases(spec, cells, 300):
        low, high = release.curve().fraction_limits("noise", 0.95)
        points.append((low - 1e-9 <= right) & (right <= high + 1e-9))
        low, high = release.histogram(size).ranges["noise"]
        bins.append((low - 1e-9 <= 1 / size) & (1 / size <= high + 1e-9))
        means.append(release.mean()["mean"])
    assert np.mean(points, axis=0).min() >= 0.91
    assert np.mean(bins, axis=0).min() >= 0.91
    assert held(iter(means), (size - 1) / 2) >= 0.91


@pytest.mark.parametrize("specificity", [0.92, 0.76])
def test_sensitivity_at_a_specificity_holds_with_ties(specificity: float) -> None:
    """Five scores, n = 2000, a specificity that one of them just has: 150 releases, at least 88 % hold (a false alarm
    of 4e-4 at 95 %, by construction it is more). A slope of the ROC curve, which has none there, held 62 to 77 %."""
    case = Case("ties", 2000, 1.0, "ties")

    def right(cells: Array) -> float:
        no, yes = cells[:101], cells[128 : 128 + 101]
        at = int(np.searchsorted(np.cumsum(no), specificity * no.sum() * (1 - 1e-12)))
        return 1 - float(yes[: at + 1].sum() / yes.sum())

    found: dict[str, list[bool]] = {kind: [] for kind in INTERVALS}
    for seed in range(150):
        release, cells = coverage.sample(case, 5000 + seed)
        row = release.performance().sensitivity_at(specificity)
        for kind, people in zip(INTERVALS, (cells, population(case)[1]), strict=True):
            low, high = row.interval(kind)
            found[kind].append(low - 1e-9 <= right(people) <= high + 1e-9)
    assert min(np.mean(held) for held in found.values()) >= 0.88


def test_average_precision_holds_where_few_have_the_highest_scores() -> None:
    """8 % positives, epsilon 4: 400 releases, at least 92 % hold: a false alarm of 4e-3. Simulated errors held 88 %."""
    spec, no, yes = scored(4000, 4.0, lambda x: x**0.2 * (1 - x) ** 13)
    true, false = np.cumsum(yes[::-1]), np.cumsum(no[::-1])
    right = float(yes[::-1] @ (true / np.maximum(true + false, 1e-9))) / yes.sum()
    rows = [release.roc().average_precision for release in releases(spec, two(no, yes), 400)]
    assert np.mean([not np.isnan(row.value) for row in rows]) > 0.9
    assert held(iter(rows), right) >= 0.92


def test_a_survival_band_has_the_factor_of_the_noise_itself() -> None:
    """3000 other draws of the noise: at least 93 % stay within the factor (a false alarm of 1e-4 for 1000 simulated
    curves of exactly 95 %); a Gaussian's factor, 3.28, holds 92.5 %."""
    release, _ = coverage.sample(Case("trial", 20_000, 1.0, "survival"), 1)
    arm, spec = release.arms()[0], release.campaign
    index = arm.band_times()
    rows = uncertainty.weights_over_positions(spec, arm.rows(arm.slopes(index)))
    errors = np.sqrt(uncertainty.variances(spec, arm.rows(arm.slopes(index))))
    noise = np.concatenate(
        [bands._given_facts(public_constraints.public_constraints(spec), 500, 99, k) for k in range(6)]
    )
    off = np.abs(np.diff(noise, axis=1, prepend=0.0) @ rows[:, : noise.shape[1]].T)[:, errors > 0] / errors[errors > 0]
    assert np.mean(off.max(axis=1) <= arm.band_factor("noise")) >= 0.93


def test_two_quantiles_off_by_one_make_a_difference_off_by_two() -> None:
    """Ages: 300 releases, the interquartile range is held in at least 92 % (a false alarm of 1e-2 at 95 %, but by
    construction it holds more often)."""
    spec = campaign(grid={**WHOLE, "to": 99}, epsilon=2.0)
    shares = np.exp(-0.5 * ((np.arange(100) - 52) / 14) ** 2)
    cells = np.random.default_rng(2).multinomial(500, shares / shares.sum()).astype(float)
    rows = []
    for release in releases(spec, cells, 300):
        first, third = compare.quantile_estimates(release.curve(), [0.25, 0.75])
        rows.append(mover_interval("interquartile range", first, third, release.curve().thresholds))
    assert held(iter(rows), true_values(cells, np.arange(100.0))["interquartile range"]) >= 0.92
    one = [
        IntervalEstimate("q", float(v), np.nan, np.nan, ranges=dict.fromkeys(INTERVALS, (v - 1.0, v + 1.0)))
        for v in (40, 60)
    ]
    assert mover_interval("d", one[0], one[1], np.arange(100.0)).interval("noise") == (18.0, 22.0)


def test_the_youden_index_is_not_too_large() -> None:
    """n = 1000, epsilon 1: 400 samples. At least 92 % of population intervals hold (false alarm 4e-3); the bias is at
    most 0.02 against the sample's own index. Without the correction 89 % held and the bias was above 0.03."""
    case, found, off = Case("youden", 1000, 1.0), [], []
    for seed in range(400):
        release, cells = coverage.sample(case, 7000 + seed)
        row = release.performance().youden()[1]
        low, high = row.interval("population")
        found.append(low <= coverage.true_of_population(case)["Youden index"] <= high)
        off.append(row.value - coverage._true(case, cells)["Youden index"])
    assert np.mean(found) >= 0.92
    assert abs(np.nanmean(off)) < 0.025


@pytest.mark.parametrize("positives", [20, 40])
def test_what_is_shown_near_the_guard_holds(positives: int) -> None:
    """A stratum of 1.6 and 3.3 standard errors: shown in a third of the releases and in nearly all. Among those shown
    at least 90 % hold (at least 100 of 300: a false alarm of 2e-2 at 95 %, by construction it is more). Before, 56 %
    of the scaled Brier scores did: those that noise had made large enough to be shown."""
    spec, rng = campaign(grid=SCORES, strata=["no", "yes"]), np.random.default_rng(3)
    x = np.clip(spec.variable.grid.all_thresholds, 0.005, 0.995)
    shares = x * (1 - x) ** 8, x**3 * (1 - x) ** 5
    no, yes = (
        rng.multinomial(n, p / p.sum()).astype(float)
        for n, p in zip((3000 - positives, positives), shares, strict=True)
    )
    tau, n1 = spec.variable.grid.all_thresholds, float(positives)
    brier = (no @ tau**2 + yes @ (1 - tau) ** 2) / 3000
    right = {
        "scaled Brier score": 1 - brier / (n1 / 3000 * (1 - n1 / 3000)),
        "difference of means": yes @ tau / n1 - no @ tau / (3000 - n1),
        "positive predictive value": yes[tau > 0.3].sum() / (no + yes)[tau > 0.3].sum(),
    }
    rows: dict[str, list[Estimate]] = {name: [] for name in right}
    for release in releases(spec, two(no, yes), 300):
        curve = release.curve("yes", smoothing="isotonic")
        if min(release.totals["yes"], float(curve.raw[-1])) < 2 * curve.total_error:
            continue
        model = release.performance()
        rows["scaled Brier score"].append(model.scaled_brier)
        rows["difference of means"].append(
            compare.difference_of_means(release.curve("no", smoothing="isotonic"), curve)
        )
        rows["positive predictive value"].append(model.at(0.3)[2])
    for name, value in right.items():
        assert len(rows[name]) > 80
        intervals = [row.interval("noise") for row in rows[name]]
        assert np.mean([low <= value <= high for low, high in intervals]) >= 0.9, name
        assert held(iter(rows[name]), value) >= 0.9, name


def test_caution_makes_a_selected_number_hold() -> None:
    """A normal total, shown above a guard of 2: of those shown, 95 % hold the truth, wherever it is (to 1 %, five
    standard errors of 10 000 and more); at the usual width as few as 16 % do."""
    rng = np.random.default_rng(1)
    for truth, usual in ((0.5, 0.7), (1.5, 0.93), (3.0, 0.98), (8.0, 0.96)):
        seen = truth + rng.normal(size=200_000)
        shown = seen[seen > 2]
        grid = np.linspace(0, 6, 601)
        factor = np.interp(shown - 2, grid, [uncertainty.caution(d) for d in grid])
        assert np.mean(np.abs(shown - truth) <= 1.96 * factor) >= 0.94
        assert np.mean(np.abs(shown - truth) <= 1.96) < usual
    assert uncertainty.caution(10.0) == 1.0


def test_hosmer_lemeshow_says_what_it_can_find() -> None:
    """With few people and much noise H and p are not printed; with many the interval of H holds H without noise."""
    spec, no, yes = scored(2000, 0.5, lambda x: x * (1 - x) ** 3)
    about = next(releases(spec, two(no, yes), 1)).calibration().metadata()
    assert about["hosmer_lemeshow"] is None
    assert about["p_value"] is None
    assert about["power_against_slope_0_6"] < 0.25
    assert any("tells nothing" in note for note in about["notes"])
    spec, no, yes = scored(20_000, 2.0, lambda x: x * (1 - x) ** 3)
    ends = [0.1, 0.2, 0.3, 0.4, 0.5, 1.0]
    exact = Release.from_curve(spec, 20_000, np.cumsum(np.append(two(no, yes), 0)[:256]), on_grid=True)
    right = exact.calibration(ends).statistic
    found = []
    for release in releases(spec, two(no, yes), 200):
        result = release.calibration(ends)
        low, high = result.corrected_interval()
        found.append(low <= right <= high)
        assert result.informative
    # of 200, at least 88 %: a false alarm of 1e-4
    assert np.mean(found) >= 0.88


def test_the_power_of_hosmer_lemeshow_is_how_often_it_finds_a_wrong_slope() -> None:
    """200 samples of a model with slope 0.6, n = 2000, epsilon 4: rejected as often as foretold, to 0.15 (four standard
    errors)."""
    spec, no, yes = scored(2000, 4.0, lambda x: x * (1 - x) ** 3)
    foretold = next(releases(spec, two(no, yes), 1)).calibration(6).power
    x = np.clip(spec.variable.grid.all_thresholds, 0.005, 0.995)
    shares, logit = x * (1 - x) ** 3, np.log(x / (1 - x))
    rates = 1 / (1 + np.exp(-(0.6 * logit - 0.36)))
    both, rng, rejected = np.concatenate([shares * (1 - rates), shares * rates]), np.random.default_rng(5), []
    for seed in range(200):
        drawn = rng.multinomial(2000, both / both.sum()).astype(float)
        release = next(releases(spec, two(drawn[:101], drawn[101:]), 1, seed))
        rejected.append(release.calibration(6).p_value < 0.05)
    assert np.mean(rejected) == pytest.approx(foretold, abs=0.15)


def test_noise_does_not_flatten_the_calibration_slope() -> None:
    """n = 4238, epsilon 1, risks as in a heart study: 300 releases. The mean slope is the true one to 0.07; smoothed
    cells made it 0.09 too small. Where the noise is too large, no slope is told, and that is said."""
    spec, no, yes = scored(4238, 1.0, lambda x: x * (1 - x) ** 7)
    right = fit(spec.variable.grid.all_thresholds, no, yes, slope=True)[0][1]
    slopes = [release.performance().regression()[1] for release in releases(spec, two(no, yes), 300)]
    assert np.nanmean([row.value for row in slopes]) == pytest.approx(right, abs=0.07)
    assert held(iter(slopes), right) >= 0.91
    spec, no, yes = scored(1000, 0.5, lambda x: x * (1 - x) ** 7)
    table = next(releases(spec, two(no, yes), 1)).performance().performance(0.3)
    assert np.isnan(table["calibration slope"].value)
    assert any(note.startswith("calibration slope: the noise") for note in table.metadata()["notes"])
    other = next(releases(spec, two(no, yes), 1)).performance(confidence=0.9).performance(0.3)
    assert len(other.columns()["population_lower"]) == len(table.rows)
