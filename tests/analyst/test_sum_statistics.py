"""Statistics of categories and sums: without noise the textbook's, with noise as far off as they say."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analyst.estimation.noisy import Noisy, noise_factor, proportion
from analyst.statistics.categories import CategoryCounts, compare_categories
from analyst.statistics.cutoff import Cutoffs, cutoff_rows
from analyst.statistics.moments import Moments, MomentWeights, stack_rows, standardised_difference
from analyst.statistics.pairs import PairedAreas, Placements, RankCorrelation, curve_remainder
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from fss_ecdf.campaign.noise.flat import Flat
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.sums import read_sums
from tests.analyst import sum_coverage
from tests.analyst.sum_coverage import BINS, BITS, CASES, Case, area, below_claim, measure, paired

Array = np.ndarray[Any, Any]


def exact(values: Any) -> Noisy:
    array = np.asarray(values, np.float64).ravel()
    return Noisy(array, np.zeros((array.size, array.size)))


def wilson(k: float, n: float) -> tuple[float, float]:
    z = stats.norm.ppf(0.975)
    middle, half = k + z**2 / 2, z * math.sqrt(k * (n - k) / n + z**2 / 4)
    return (middle - half) / (n + z**2), (middle + half) / (n + z**2)


def test_noise_of_two_servers_lies_within_its_limits() -> None:
    """400 000 sums of two Laplace variables: 95 % are known to 0.035 %, and 0.2 % are six of that."""
    noise = np.random.default_rng(1).laplace(size=(2, 400_000)).sum(axis=0)
    for confidence in (0.9, 0.95, 0.99):
        limit = noise_factor(confidence) * stats.norm.ppf((1 + confidence) / 2) * 2
        assert (np.abs(noise) <= limit).mean() == pytest.approx(confidence, abs=0.003)
    assert noise_factor(0.5) == 1.0  # where a normal variable's limits are the wider ones


def test_a_known_total_takes_variance_off() -> None:
    given = Noisy(np.array([10.0, 20.0, 34.0]), 4 * np.eye(3)).given(np.ones(3), 60)
    assert given.values.sum() == pytest.approx(60)
    assert np.diag(given.covariance) == pytest.approx([8 / 3] * 3)
    assert given.given(np.ones(3), 60) is given
    with pytest.raises(InvalidQuery, match="3 values with a covariance"):
        Noisy(np.ones(3), np.eye(2))


def test_proportions_without_noise_are_wilsons() -> None:
    made = proportion("x", exact([30, 200]))
    assert made.value == 0.15
    low, high = wilson(30, 200)
    # rounded outwards to whole counts
    assert made.interval("population") == (math.floor(low * 200) / 200, math.ceil(high * 200) / 200)
    assert made.interval("noise") == (0.15, 0.15)


def test_a_total_that_is_lost_in_the_noise_has_no_proportion() -> None:
    made = proportion("x", Noisy(np.array([3.0, 5.0]), np.diag([9.0, 9.0])))
    assert math.isnan(made.value)
    assert made.interval("noise") == made.interval("population") == (0.0, 1.0)


def test_noise_of_categories_is_that_of_the_mechanism() -> None:
    """From 20 000 simulated releases; the variance of a total is known to 2 %, and 10 % are five of that."""
    m = Flat(4, 1.0, size=3, strata=3)
    noise = np.diff(both_servers(m, 20_000, 4, np.random.default_rng(3)), axis=1, prepend=0)
    used = noise.reshape(-1, 4, 4)[:, :3, :3].reshape(-1, 9)
    claimed = Noisy.from_cells(np.zeros(9), m).covariance
    assert np.cov(used.T) == pytest.approx(claimed, abs=0.1 * claimed[0, 0])
    counts = CategoryCounts(Noisy.from_cells(np.arange(9.0), m), ("a", "b", "c"), ("x", "y", "z"))
    assert counts.table.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert counts.count("b", "z").value == 5
    assert counts.count("b", "z").noise_error == pytest.approx(noise_factor(0.95) * math.sqrt(claimed[0, 0]))
    assert [row.name for row in counts.proportions()][3] == "b: x"


@pytest.mark.parametrize("table", [[[20, 30, 50], [30, 30, 40]], [[5, 90], [10, 60], [30, 40]]])
def test_the_comparison_without_noise_is_pearsons(table: list[list[int]]) -> None:
    strata, categories = "abc"[: len(table)], "xyz"[: len(table[0])]
    made = compare_categories(CategoryCounts(exact(table), tuple(strata), tuple(categories)))
    theirs = stats.chi2_contingency(table, correction=False)
    assert (made.statistic, made.degrees, made.p_value) == pytest.approx((theirs[0], theirs[2], theirs[1]))
    assert made.least_expected == pytest.approx(theirs[3].min())
    assert made.metadata()["p_value"] == made.p_value


def test_a_comparison_that_ignores_the_noise_rejects_equal_strata() -> None:
    """1000 releases of equal strata, n = 600, epsilon 0.5: with the noise 5 %, known to 0.7 %; without it, far more."""
    m, rng = Flat(3, 0.5, size=4, strata=2), np.random.default_rng(4)
    noise = np.diff(both_servers(m, 1000, 3, rng), axis=1, prepend=0)
    cells = rng.multinomial(600, np.tile([0.4, 0.3, 0.2, 0.1], 2) / 2, 1000) + noise
    names = ("a", "b"), ("w", "x", "y", "z")
    with_noise = [compare_categories(CategoryCounts(Noisy.from_cells(c, m), *names)).p_value for c in cells]
    without = [compare_categories(CategoryCounts(exact(c), *names)).p_value for c in cells]
    assert 0.02 < np.mean(np.array(with_noise) < 0.05) < 0.085
    assert np.mean(np.array(without) < 0.05) > 0.2


def test_comparisons_that_cannot_be_made() -> None:
    counts = CategoryCounts(exact([5, 6, -3, -4]), ("a", "b"), ("x", "y"))
    with pytest.raises(TooNoisy, match="lost in the noise"):
        compare_categories(counts)
    for chosen in (["a"], ["a", "a"]):
        with pytest.raises(InvalidQuery, match="two or more strata"):
            compare_categories(counts, chosen)
    with pytest.raises(InvalidQuery, match="there is no 'q'"):
        counts.proportion("q", "x")
    with pytest.raises(InvalidQuery, match="3 counts for 2 categories of 2 strata"):
        CategoryCounts(exact([1, 2, 3]), ("a", "b"), ("x", "y"))


def values(seed: int) -> tuple[Array, Array, Array]:
    """Two strata of values on a grid, as values and as counts of cells."""
    rng, grid = np.random.default_rng(seed), np.arange(0.0, 201.0)
    people = [np.clip(np.rint(rng.gamma(4, 15, n) + shift), 0, 200) for n, shift in ((900, 0), (400, 12))]
    return grid, np.array([np.bincount(p.astype(int), minlength=201) for p in people]), np.array(people, object)


def test_moments_without_noise_are_those_of_the_values() -> None:
    grid, cells, people = values(1)
    weights = MomentWeights.over(grid, centre=60.0, steps=200)
    rows = stack_rows(weights, (0, 1), 2)
    sums = exact(rows @ cells.ravel())
    both = [Moments(sums.combine(np.eye(6)[3 * s : 3 * s + 3]), weights) for s in (0, 1)]
    for made, theirs in zip(both, people, strict=True):
        x = theirs.astype(float)
        assert made.mean().value == pytest.approx(x.mean())
        assert made.mean().sampling_error == pytest.approx(x.std() / math.sqrt(x.size))
        assert made.deviation().value == pytest.approx(x.std())
        low, high = made.mean().interval("population")
        assert (low, high) == pytest.approx([x.mean() - 1.96 * x.std() / x.size**0.5 * s for s in (1, -1)], abs=0.01)
        shaped = Moments(made.sums, weights, float(stats.skew(x)), float(stats.kurtosis(x, fisher=False)))
        fourth = math.sqrt(((x - x.mean()) ** 4).mean() - x.var() ** 2)
        assert shaped.deviation().sampling_error == pytest.approx(fourth / (2 * x.std() * x.size**0.5))
    a, b = (p.astype(float) for p in people)
    apart = standardised_difference(both[0], both[1], sums)
    assert apart.value == pytest.approx((b.mean() - a.mean()) / math.sqrt((a.var() + b.var()) / 2))


def test_moments_of_all_values_need_no_count() -> None:
    grid, cells, _ = values(2)
    weights = MomentWeights.over(grid, steps=200)
    pooled = cells.sum(axis=0)
    query = read_sums(weights.rows(0, 1)[1:], 1.0, cells=201)
    made = Moments.of_known_n(int(pooled.sum()), Noisy.from_sums(query.weights @ pooled, query), weights)
    mean = float(grid @ pooled / pooled.sum())
    assert made.mean().value == pytest.approx(mean)
    assert made.mean().noise_error == pytest.approx(query.errors[0] * weights.step / pooled.sum())
    low, high = made.mean().interval("noise")
    assert low < mean < high


def test_a_mean_by_a_sum_has_less_noise_than_from_a_curve() -> None:
    """200 thresholds, one stratum, the same epsilon: exact variances of both."""
    query = read_sums(MomentWeights.over(np.arange(200.0), centre=100.0, steps=199).rows(0, 1)[1:2], 1.0, cells=200)
    m = SliceTree(8, 1.0)
    weights = np.zeros((1, 256))
    weights[0, :200] = np.arange(200.0)
    weights[0, 200:] = 199.0
    by_curve = math.sqrt(SERVERS * float(m.functional_covariance(weights)[0, 0]))
    by_sum = float(query.errors[0])
    assert by_sum == pytest.approx(398, rel=1e-3)
    assert 0.15 < by_sum / by_curve < 0.25


def test_noise_that_hides_a_deviation() -> None:
    weights = MomentWeights.over(np.arange(100.0))
    made = Moments(Noisy(np.array([50.0, 0.0, 50 * 1e4]), np.diag([1.0, 1e4, 1e12])), weights)
    assert math.isnan(made.deviation().value)
    nobody = Moments(Noisy(np.array([1.0, 0.0, 50.0]), np.diag([4.0, 1.0, 1.0])), weights)
    assert math.isnan(nobody.mean().value)
    assert math.isnan(nobody.deviation().value)
    with pytest.raises(InvalidQuery, match="two different values"):
        MomentWeights.over([3.0, 3.0])
    with pytest.raises(InvalidQuery, match="the same weights"):
        standardised_difference(made, Moments(made.sums, MomentWeights.over(np.arange(50.0))), exact(np.zeros(6)))


def test_cutoffs_without_noise_are_those_of_a_table() -> None:
    _, cells, people = values(3)
    rows = cutoff_rows([60, 90], 201)
    assert rows.shape == (6, 402)
    assert (rows.sum(axis=0) == 1).all()
    query = read_sums(rows, 1.0, cells=402, units=[1] * 6)
    assert query.sensitivity.value == 2
    made = Cutoffs.from_sums(exact(rows @ cells.ravel()), 1300, ["60", "90"])
    no, yes = (p.astype(float) for p in people)
    for label, at in (("60", 60), ("90", 90)):
        sens, spec = (yes >= at).mean(), (no < at).mean()
        tp, fp, tn, fn = (yes >= at).sum(), (no >= at).sum(), (no < at).sum(), (yes < at).sum()
        found = made.at(label)
        true = [sens, spec, tp / (tp + fp), tn / (tn + fn), sens / (1 - spec), (1 - sens) / spec]
        assert [row.value for row in found] == pytest.approx(true)
        assert all(low <= row.value <= high for row in found for low, high in [row.interval("population")])
        # the usual interval of a likelihood ratio, by logarithms
        half = 1.96 * math.sqrt((1 - sens) / tp + spec / fp)
        theirs = [true[4] * math.exp(-half), true[4] * math.exp(half)]
        assert found[4].interval("population") == pytest.approx(theirs, rel=0.03)


def test_cutoffs_that_cannot_be_asked() -> None:
    for bad in ([], [0], [5, 5], [7, 3], [201]):
        with pytest.raises(InvalidQuery, match="increasing indices from 1 to 200"):
            cutoff_rows(bad, 201)
    with pytest.raises(InvalidQuery, match="4 counts for 2 cut-offs"):
        Cutoffs.from_sums(exact([1, 2, 3, 4]), 10, ["a", "b"])


def test_a_cutoff_that_nobody_reaches_has_no_ratio() -> None:
    found = Cutoffs.from_sums(exact([50, 0, 20, 5]), 75, ["x"]).at("x")
    assert math.isnan(found[4].value)
    low, high = found[4].interval("population")
    assert 0 < low < 10
    assert high == math.inf


def pairs_of(n: int, seed: int) -> Array:
    shares = paired()
    return np.random.default_rng(seed).multinomial(n, shares.ravel()).reshape(shares.shape)


def delong(cells: Array) -> tuple[float, float]:
    """Difference of two AUCs of the same people and its variance, from each person's own placements."""
    people = [np.repeat(np.argwhere(c >= 0), c.ravel(), axis=0) for c in cells]
    controls, cases = people
    placed = []
    for score in (0, 1):
        x, y = cases[:, score][:, np.newaxis], controls[:, score][np.newaxis]
        wins = (x > y) + 0.5 * (x == y)
        placed.append((wins.mean(axis=1), wins.mean(axis=0)))
    of_cases, of_controls = (placed[0][i] - placed[1][i] for i in (0, 1))
    return float(of_cases.mean()), float(of_cases.var() / len(cases) + of_controls.var() / len(controls))


def test_paired_areas_without_noise_are_delongs() -> None:
    cells = pairs_of(3000, 1)
    placed = [Placements.from_cells(*cells.sum(axis=axis)) for axis in (2, 1)]
    areas = PairedAreas(placed[0], placed[1], float(cells[0].sum()), float(cells[1].sum()))
    made = areas.difference(
        exact(areas.difference_row() @ cells.ravel()), exact(areas.squares_row() @ cells.ravel()), 0.0
    )
    value, variance = delong(cells)
    assert made.value == pytest.approx(value, abs=2e-4)
    assert made.sampling_error == pytest.approx(math.sqrt(variance), rel=0.02)
    assert area(*cells.sum(axis=2)) - area(*cells.sum(axis=1)) == pytest.approx(value, abs=1e-12)


@pytest.mark.slow
def test_wrong_references_matter_at_second_order_only() -> None:
    """Curves of one score off by up to 30 %: the reference is off by far more than what the sum makes of it."""
    cells, tilt = pairs_of(20_000, 2), np.linspace(0.7, 1.3, BINS)
    right, wrong = (
        Placements.from_cells(*cells.sum(axis=1)),
        Placements.from_cells(*(cells.sum(axis=2) * [tilt, 1 / tilt])),
    )
    areas = PairedAreas(wrong, right, float(cells[0].sum()), float(cells[1].sum()))
    made = areas.difference(exact(areas.difference_row() @ cells.ravel()), exact(np.zeros(1)), 0.0)
    true = delong(cells)[0]
    assert abs(areas.reference - true) > 0.04
    assert abs(made.value - true) < 0.1 * abs(areas.reference - true)


def test_the_noise_of_a_paired_difference_is_as_planned() -> None:
    """n = 5000, 1000 cases, epsilon 1 (curves 2 x 0.25, sum 0.4, squares 0.1): beside a sampling error of 0.0054."""
    cells = 5000 * paired()
    noise = SliceTree(BITS + 1, 0.25)
    placed = [Placements.from_cells(*cells.sum(axis=axis)) for axis in (2, 1)]
    areas = PairedAreas(placed[0], placed[1], 4000.0, 1000.0)
    sums = [(areas.difference_row(), 0.4), (areas.squares_row(), 0.1)]
    results = [
        Noisy.from_sums(q.weights @ cells.ravel(), q) for q in (read_sums(r, e, cells=2 * BINS**2) for r, e in sums)
    ]
    left = np.linalg.norm([curve_remainder(noise, p, (4000.0, 1000.0), BITS) for p in placed])
    made = areas.difference(results[0], results[1], float(left))
    assert made.noise_error == pytest.approx(0.0072, rel=0.2)
    assert 0.005 < made.sampling_error < 0.008


def test_rank_correlation_without_noise_is_spearmans() -> None:
    cells = pairs_of(2000, 3).sum(axis=0)
    reference = RankCorrelation.from_cells(cells.sum(axis=1), cells.sum(axis=0))
    made = reference.estimate(exact(reference.row() @ cells.ravel()), 2000)
    people = np.repeat(np.argwhere(cells >= 0), cells.ravel(), axis=0)
    assert made.value == pytest.approx(stats.spearmanr(people[:, 0], people[:, 1]).statistic, abs=1e-3)
    low, high = made.interval("population")
    assert low < made.value < high
    assert high - made.value < made.value - low  # Fisher's transform is not symmetric
    with pytest.raises(InvalidQuery, match="some of them above 0"):
        RankCorrelation.from_cells(np.zeros(4), np.ones(4))


SOME = [CASES[1], CASES[3], CASES[8]]


@pytest.mark.slow
@pytest.mark.parametrize("case", SOME, ids=[case.name for case in SOME])
def test_intervals_hold_as_often_as_they_say(case: Case) -> None:
    """400 runs with seeds of their own; a cell significantly below 95 % by a binomial test, false alarm 5 % in all."""
    columns = {case.name: measure(case, 400, seed=7)}
    assert not below_claim(columns, 400)
    rejected, shown = columns[case.name]["comparison of categories"]["rejects"]
    assert stats.binom.sf(rejected - 1, shown, 0.05) > 0.001


def test_intervals_without_their_noise_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What judges coverage can fail: with a third of the noise error, cells are significantly below 95 %."""
    honest = Noisy.from_sums
    monkeypatch.setattr(
        Noisy,
        "from_sums",
        lambda results, query: Noisy(honest(results, query).values, honest(results, query).covariance / 9),
    )
    monkeypatch.setattr(sum_coverage, "KINDS", (sum_coverage.moments,))
    assert any("mean" in words for words in below_claim({"x": measure(Case(500, 1.0), 60)}, 60))
