"""How often intervals of categories and sums hold: python -m tests.analyst.sum_coverage --runs 400 --docs.

Every run draws a sample of a population that is known exactly and adds fresh noise of two servers, as queries would
have it. True values come from formulas of their own. A run depends on its seed and nothing else.
"""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from analyst.estimation import smooth
from analyst.estimation.estimate import INTERVALS, Estimate
from analyst.estimation.noisy import Noisy
from analyst.statistics.categories import CategoryCounts, compare_categories
from analyst.statistics.cutoff import Cutoffs, cutoff_rows
from analyst.statistics.moments import Moments, MomentWeights, stack_rows, standardised_difference
from analyst.statistics.pairs import PairedAreas, Placements, RankCorrelation, curve_remainder
from bench.docs import write_between
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from fss_ecdf.campaign.noise.flat import Flat
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.sums import SumQuery, read_sums
from tests.analyst.coverage import FALSE_ALARM, LEAST, Counted, all_cells, low_cells, table

Array = np.ndarray[Any, Any]
START, END = "<!-- sums: made by python -m tests.analyst.sum_coverage --docs -->", "<!-- end of sums -->"
SIZES, EPSILONS = (500, 5000, 50_000), (0.2, 1.0, 4.0)
BINS, BITS = 32, 5
Row = tuple[str, Estimate, dict[str, float]]  # what it is called, the estimate, and the truth for each interval


@dataclass(frozen=True)
class Case:
    n: int
    epsilon: float

    @property
    def name(self) -> str:
        return f"{self.n}, {self.epsilon:g}"


CASES = tuple(Case(n, epsilon) for n in SIZES for epsilon in EPSILONS)


def ask(query: SumQuery, cells: Array, rng: np.random.Generator) -> Noisy:
    """The result of a query: integer noise of both servers, by differences of geometric variables."""
    p = -np.expm1(-np.array(query.rates))
    noise = sum(rng.geometric(p) - rng.geometric(p) for _ in range(SERVERS))
    return Noisy.from_sums(query.weights @ cells + noise, query)


# Categories: four in each of three strata, the last one rare and small.
SHARES = np.array([[0.5, 0.3, 0.17, 0.03], [0.35, 0.4, 0.2, 0.05], [0.5, 0.3, 0.17, 0.03]]) * [[0.4], [0.4], [0.2]]


def categories(case: Case, rng: np.random.Generator) -> Iterator[Row]:
    m = Flat(4, case.epsilon, size=4, strata=3)
    cells = rng.multinomial(case.n, SHARES.ravel()).reshape(3, 4)
    noise = np.diff(both_servers(m, 1, 4, rng)[0], prepend=0).reshape(4, 4)[:3]
    counts = CategoryCounts(Noisy.from_cells((cells + noise).ravel(), m), ("a", "b", "c"), ("w", "x", "y", "z"))
    for name, s, c in (("common category", 0, 0), ("rare category", 1, 3), ("rare, small stratum", 2, 3)):
        truth = {"noise": cells[s, c] / max(cells[s].sum(), 1), "population": SHARES[s, c] / SHARES[s].sum()}
        yield name, counts.proportion("abc"[s], "wxyz"[c]), truth
    yield "count of a category", counts.count("a", "x"), {"noise": float(cells[0, 1])}


def rejects_equal(case: Case, rng: np.random.Generator) -> bool:
    """Strata a and c have the same proportions."""
    m = Flat(4, case.epsilon, size=4, strata=3)
    cells = rng.multinomial(case.n, SHARES.ravel()).reshape(3, 4)
    noise = np.diff(both_servers(m, 1, 4, rng)[0], prepend=0).reshape(4, 4)[:3]
    counts = CategoryCounts(Noisy.from_cells((cells + noise).ravel(), m), ("a", "b", "c"), ("w", "x", "y", "z"))
    return compare_categories(counts, ("a", "c")).p_value < 0.05


# Two strata of values on 200 thresholds: skewed, the second shifted.
VALUES = np.arange(200.0)


@lru_cache
def skewed() -> Array:
    shapes = [np.exp(-0.5 * ((np.log(VALUES + 5) - middle) / 0.45) ** 2) / (VALUES + 5) for middle in (4.0, 4.2)]
    return np.array([weight * shape / shape.sum() for weight, shape in zip((0.65, 0.35), shapes, strict=True)])


def _shape(shares: Array) -> tuple[float, float, float, float]:
    """Mean, standard deviation, skewness, kurtosis."""
    p = shares / shares.sum()
    mean = float(VALUES @ p)
    central = [float((VALUES - mean) ** k @ p) for k in (2, 3, 4)]
    return mean, central[0] ** 0.5, central[1] / central[0] ** 1.5, central[2] / central[0] ** 2


def moments(case: Case, rng: np.random.Generator) -> Iterator[Row]:
    shares = skewed()
    cells = rng.multinomial(case.n, shares.ravel()).reshape(2, -1)
    weights = MomentWeights.over(VALUES, centre=60.0)
    whole = read_sums(weights.rows(0, 1)[1:], case.epsilon, cells=200)
    population, sample = shares.sum(axis=0), cells.sum(axis=0)
    _, _, skewness, kurtosis = _shape(population)
    one = Moments.of_known_n(case.n, ask(whole, sample, rng), weights, skewness=skewness, kurtosis=kurtosis)
    for name, made, at in (("mean", one.mean(), 0), ("standard deviation", one.deviation(), 1)):
        yield name, made, {"noise": _shape(sample)[at], "population": _shape(population)[at]}
    six = read_sums(stack_rows(weights, (0, 1), 2), case.epsilon, cells=400)
    sums = ask(six, cells.ravel(), rng)
    both = []
    for stratum in (0, 1):
        _, _, skewness, kurtosis = _shape(shares[stratum])
        part = sums.combine(np.eye(6)[3 * stratum : 3 * stratum + 3])
        both.append(Moments(part, weights, skewness=skewness, kurtosis=kurtosis))
    yield "mean of a stratum", both[1].mean(), {"noise": _shape(cells[1])[0], "population": _shape(shares[1])[0]}

    def smd(parts: Array) -> float:
        (m1, s1, *_), (m2, s2, *_) = (_shape(part) for part in parts)
        return (m2 - m1) / float(np.sqrt((s1**2 + s2**2) / 2))

    truth = {"noise": smd(cells), "population": smd(shares)}
    yield "standardised mean difference", standardised_difference(both[0], both[1], sums), truth


def cutoffs(case: Case, rng: np.random.Generator) -> Iterator[Row]:
    shares = skewed()
    cells = rng.multinomial(case.n, shares.ravel()).reshape(2, -1)
    query = read_sums(cutoff_rows([60, 90], 200), case.epsilon, cells=400, units=[1] * 6)
    found = Cutoffs.from_sums(ask(query, cells.ravel(), rng), case.n, ["60", "90"]).at("90")
    called = VALUES >= 90

    def true(parts: Array) -> list[float]:
        no, yes = parts[0], parts[1]
        tp, fn, fp, tn = yes[called].sum(), yes[~called].sum(), no[called].sum(), no[~called].sum()
        sens, spec = tp / (tp + fn), tn / (tn + fp)
        return [sens, spec, tp / (tp + fp), tn / (tn + fn), sens / max(1 - spec, 1e-300), (1 - sens) / spec]

    for made, mine, theirs in zip(found, true(cells), true(shares), strict=True):
        yield made.name.removesuffix(" at 90"), made, {"noise": mine, "population": theirs}


@lru_cache
def paired() -> Array:
    """Two scores of controls (80 %) and cases, normal with correlation 0.8, AUC 0.80 and 0.78, in 32 bins each."""
    edges = np.linspace(-2.2, 3.2, BINS - 1)
    nodes = np.linspace(-5, 6.5, 1200)
    parts = []
    for shift, weight in ((0.0, 0.8), (1.0, 0.2)):
        means = shift * norm.ppf(0.80) * 2**0.5, shift * norm.ppf(0.78) * 2**0.5
        density = norm.pdf(nodes - means[0])
        first = np.searchsorted(edges, nodes)
        rest = norm.cdf((edges - means[1] - 0.8 * (nodes - means[0])[:, np.newaxis]) / 0.6)
        rows = np.diff(np.concatenate([np.zeros((nodes.size, 1)), rest, np.ones((nodes.size, 1))], axis=1), axis=1)
        cells = np.zeros((BINS, BINS))
        np.add.at(cells, first, density[:, np.newaxis] * rows)
        parts.append(weight * cells / cells.sum())
    return np.array(parts)


def area(controls: Array, cases: Array) -> float:
    below = np.cumsum(controls) - controls / 2
    return float(below @ cases) / float(controls.sum() * cases.sum())


def isotonic_cells(curve: Array, size: int) -> Array:
    total = max(float(curve[-1]), 1.0)
    return np.diff(smooth.isotonic(curve[:size], total), prepend=0.0)


def pairs(case: Case, rng: np.random.Generator) -> Iterator[Row]:
    shares = paired()
    cells = rng.multinomial(case.n, shares.ravel()).reshape(shares.shape)
    noise = SliceTree(BITS + 1, case.epsilon / 4)
    placed, totals = [], []
    for axis in (2, 1):
        curve = np.cumsum(cells.sum(axis=axis).ravel()) + both_servers(noise, 1, BITS + 1, rng)[0]
        strata = curve[:BINS], curve[BINS:] - curve[BINS - 1]
        placed.append(Placements.from_cells(*(isotonic_cells(part, BINS) for part in strata)))
        totals.append([float(np.clip(part[-1], 10, case.n - 10)) for part in strata])
    controls, cases = np.mean(totals, axis=0)
    areas = PairedAreas(placed[0], placed[1], controls, cases)
    both = [read_sums(areas.difference_row(), 0.4 * case.epsilon, cells=2 * BINS**2)]
    both.append(read_sums(areas.squares_row(), 0.1 * case.epsilon, cells=2 * BINS**2))
    results = [ask(query, cells.ravel(), rng) for query in both]
    left = np.linalg.norm([curve_remainder(noise, p, (controls, cases), BITS) for p in placed])

    def difference(parts: Array) -> float:
        return area(*parts.sum(axis=2)) - area(*parts.sum(axis=1))

    truth = {"noise": difference(cells), "population": difference(shares)}
    yield "difference of AUCs", areas.difference(results[0], results[1], float(left)), truth


def ranks(case: Case, rng: np.random.Generator) -> Iterator[Row]:
    shares = paired().sum(axis=0)
    cells = rng.multinomial(case.n, (shares / shares.sum()).ravel()).reshape(shares.shape)
    noise = SliceTree(BITS, case.epsilon / 4)
    margins = []
    for axis in (1, 0):
        curve = np.cumsum(cells.sum(axis=axis)) + both_servers(noise, 1, BITS, rng)[0]
        margins.append(isotonic_cells(curve, BINS))
    reference = RankCorrelation.from_cells(*margins)
    query = read_sums(reference.row(), case.epsilon / 2, cells=BINS**2)
    made = reference.estimate(ask(query, cells.ravel(), rng), case.n, (noise, noise))

    def spearman(parts: Array) -> float:
        p = parts / parts.sum()
        a, b = (np.cumsum(q) - q / 2 - 0.5 for q in (p.sum(axis=1), p.sum(axis=0)))
        return float(a @ p @ b / np.sqrt((p.sum(axis=1) @ a**2) * (p.sum(axis=0) @ b**2)))

    yield "rank correlation", made, {"noise": spearman(cells), "population": spearman(shares)}


def told(rows: Iterator[Row]) -> Iterator[Row]:
    """Those that could be computed at all."""
    try:
        yield from rows
    except (InvalidQuery, TooNoisy):
        return


KINDS = (categories, moments, cutoffs, pairs, ranks)


def measure(case: Case, runs: int, seed: int = 0) -> Counted:
    counted: Counted = {}
    for run in range(runs):
        for number, kind in enumerate(KINDS):
            rng = np.random.default_rng([seed, run, case.n, round(1000 * case.epsilon), number])
            for name, made, truth in told(kind(case, rng)):
                if np.isnan(made.value):
                    continue
                for interval in INTERVALS:
                    if interval in truth:
                        low, high = made.interval(interval)
                        held, shown = counted.setdefault(name, {}).get(interval, (0, 0))
                        inside = low - 1e-9 <= truth[interval] <= high + 1e-9
                        counted[name][interval] = held + int(inside), shown + 1
        rng = np.random.default_rng([seed, run, case.n, round(1000 * case.epsilon), 99])
        with suppress(TooNoisy):
            rejected = rejects_equal(case, rng)
            held, shown = counted.setdefault("comparison of categories", {}).get("rejects", (0, 0))
            counted["comparison of categories"]["rejects"] = held + int(rejected), shown + 1
    return counted


def below_claim(columns: dict[str, Counted], runs: int) -> list[str]:
    """Cells significantly below 95 %: a false alarm comes up at all with a probability of at most FALSE_ALARM."""
    cells = [cell for cell in all_cells(columns) if cell[4] >= runs / 10]
    return [
        f"{name}, {kind}, {column}: {held} of {shown}"
        for column, name, kind, held, shown in cells
        if binom.cdf(held, shown, 0.95) < FALSE_ALARM / len(cells)
    ]


def report(runs: int) -> str:
    columns = {case.name: measure(case, runs) for case in CASES}
    low, surely, cells = low_cells(columns, runs)
    high = [
        f"{name}, {kind} ({column})"
        for column, counted in columns.items()
        for name, kinds in counted.items()
        for kind, (held, shown) in kinds.items()
        if kind != "rejects" and shown >= runs / 10 and held > 0.99 * shown
    ]
    head = f"`python -m tests.analyst.sum_coverage --runs {runs} --docs`, {SERVERS} servers' noise; columns are n and"
    surely_95 = below_claim(columns, runs)
    verdict = (
        f"Cells: {cells}; below {LEAST:.0%}: {len(low)}; significantly below: {len(surely)} (binomial test, "
        f"false-alarm rate {FALSE_ALARM:.0%} for all cells together); significantly below 95%, by the same test: "
        f"{len(surely_95)}; above 99%: {len(high)}."
    )
    listed = ["\n".join(f"- {words} (significantly below 95%)" for words in surely_95)] if surely_95 else []
    listed += ["\n".join(f"- {words}{' (significant)' if words in surely else ''}" for words in low)] if low else []
    return "\n\n".join([f"{head} epsilon.", table(columns, runs), verdict, *listed])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.analyst.sum_coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--docs", action="store_true", help="write the table of docs/statistics.md")
    args = parser.parse_args()
    text = report(args.runs)
    print(text)
    if args.docs:
        write_between(Path(__file__).parents[2] / "docs" / "statistics.md", START, END, text)


if __name__ == "__main__":
    main()
