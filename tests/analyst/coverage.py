"""How often intervals and bands hold the truth: python -m tests.analyst.coverage --runs 400 --out FOLDER --docs.

Every run draws a sample of a population that is known exactly, and publishes it with fresh noise of two servers. An
interval of kind "noise" must hold the number of this sample, one of kind "population" that of the population. Coverage
is counted over the runs in which a number was told: what is shown must be right as often as it says.

A run depends on its seed and nothing else. What is done is kept in --out, so that a run that was stopped goes on.
"""

import argparse
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.stats import binom

from analyst.estimation.estimate import INTERVALS, Estimate, Interval, IntervalEstimate, mover_interval
from analyst.release import Release
from analyst.statistics import compare, distribution, survival
from analyst.statistics.compare import kolmogorov_smirnov_p, mann_whitney_p, quantile_estimates
from analyst.statistics.logistic import fit
from bench.docs import write_between
from fss_ecdf.campaign.errors import TooNoisy
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.simulate import both_servers
from tests.analyst.coverage_cases import (
    SCORE_CASES,
    SPECIFICITY,
    SURVIVAL_CASES,
    THRESHOLD,
    VALUE_CASES,
    Array,
    Case,
    population,
    true_scores,
    true_values,
)

START, END = "<!-- coverage: made by python -m tests.analyst.coverage --docs -->", "<!-- end of coverage -->"
LEAST, FALSE_ALARM = 0.92, 0.05
_CHUNK = 50
Held = dict[str, dict[str, float]]


def sample(case: Case, seed: int) -> tuple[Release, Array]:
    """What was published of a sample, and how many are at each position."""
    spec, shares = population(case)
    rng = np.random.default_rng([seed, case.n])
    cells = rng.multinomial(case.n, shares / shares.sum())
    noise = both_servers(spec.noise, 1, spec.bits, rng)[0]
    return Release.from_curve(spec, case.n, np.cumsum(cells) + noise, on_grid=True), cells.astype(np.float64)


def of_scores(release: Release) -> dict[str, Callable[[], Estimate]]:
    """Numbers of two strata, one by one: what is too noisy to tell is left out."""
    first, second = (release.curve(name, smoothing="isotonic") for name in ("no", "yes"))
    model = release.performance()
    return {
        "sensitivity": lambda: model.at(THRESHOLD)[0],
        "specificity": lambda: model.at(THRESHOLD)[1],
        "positive predictive value": lambda: model.at(THRESHOLD)[2],
        "mean of a stratum": second.mean_estimate,
        "difference of means": lambda: compare.difference_of_means(first, second),
        "difference of medians": lambda: compare.difference_of_quantiles(first, second)[0],
        "0.9 quantile of a stratum": lambda: quantile_estimates(second, [0.9])[0],
        "standardised mean difference": lambda: distribution.standardised_difference(first, second),
        "Kolmogorov-Smirnov distance": lambda: compare.ks_distance(first, second)[0],
        "AUC": lambda: release.roc().area,
        "average precision": lambda: release.roc().average_precision,
        "Brier score": lambda: model.brier,
        "scaled Brier score": lambda: model.scaled_brier,
        "observed over expected": lambda: model.observed_over_expected,
        "calibration slope": lambda: model.regression()[1],
        "calibration in the large": lambda: model.regression()[2],
        "Youden index": lambda: model.youden()[1],
        "sensitivity at specificity 0.9": lambda: model.sensitivity_at(SPECIFICITY),
        "net benefit at 0.3": lambda: model.net_benefit(THRESHOLD),
    }


def of_values(release: Release) -> dict[str, Callable[[], Estimate]]:
    """Numbers of one stratum."""
    shown, curve = release.curve(), release.curve(smoothing="isotonic")
    third = curve.thresholds.size // 3
    ends = [curve.thresholds[third], curve.thresholds[2 * curve.thresholds.size // 3]]

    def between() -> Estimate:
        first, third = quantile_estimates(curve, [0.25, 0.75])
        return mover_interval("interquartile range", first, third, curve.thresholds)

    def share() -> Estimate:
        bars = shown.histogram([*ends, curve.thresholds[-1]] if ends[1] < curve.thresholds[-1] else ends)
        return _ranged(float(bars.fractions[1]), {kind: (low[1], high[1]) for kind, (low, high) in bars.ranges.items()})

    def point() -> Estimate:
        found = shown.at([ends[0]])
        return _ranged(float(found.fractions[0]), {k: (low[0], high[0]) for k, (low, high) in found.ranges.items()})

    return {
        "F at a third of the grid": point,
        "share in a bin": share,
        "mean": curve.mean_estimate,
        "trimmed mean": lambda: distribution.trimmed_mean(curve),
        "standard deviation": lambda: distribution.deviation(curve),
        "median": lambda: quantile_estimates(curve, [0.5])[0],
        "0.9 quantile": lambda: quantile_estimates(curve, [0.9])[0],
        "interquartile range": between,
        "Gini coefficient": lambda: distribution.gini(curve),
    }


def _ranged(value: float, ranges: dict[Interval, tuple[float, float]]) -> IntervalEstimate:
    return IntervalEstimate("", value, np.nan, np.nan, ranges=ranges)


@lru_cache(maxsize=64)
def true_of_population(case: Case) -> dict[str, float]:
    return _true(case, population(case)[1])


def _true(case: Case, cells: Array) -> dict[str, float]:
    spec, _ = population(case)
    size, x = spec.variable.grid.size, spec.variable.grid.all_thresholds
    if len(spec.strata) == 1:
        return true_values(cells[:size], x)
    start = 1 << spec.variable.index_bits
    return true_scores(cells[:size], cells[start : start + size], x, lambda no, yes: _slopes(x, no, yes))


def _slopes(x: Array, no: Array, yes: Array) -> tuple[float, float]:
    with_slope, without = (fit(x, no, yes, slope=slope)[0] for slope in (True, False))
    return float(with_slope[1]), float(without[0])


def one(case: Case, seed: int) -> Held:
    """Of one run: for each statistic that was told, whether each kind of interval held the truth."""
    if case.kind == "survival":
        return _one_trial(case, seed)
    release, cells = sample(case, seed)
    held: Held = {}
    try:
        asked = of_values(release) if len(release.campaign.strata) == 1 else of_scores(release)
    except TooNoisy:
        return held
    right = {"noise": _true(case, cells), "population": true_of_population(case)}
    for name, ask in asked.items():
        try:
            row = ask()
        except TooNoisy:
            continue
        if np.isnan(row.value):
            continue
        ends = {kind: row.interval(kind) for kind in INTERVALS}
        held[name] = {k: float(low - 1e-9 <= right[k][name] <= high + 1e-9) for k, (low, high) in ends.items()}
    return held | _bands(case, release, cells)


def _bands(case: Case, release: Release, cells: Array) -> Held:
    spec, shares = population(case)
    held: Held = {}
    for stratum in (None, "yes") if len(spec.strata) == 2 else (None,):
        name = "band" if stratum is None else "band of a stratum"
        held[name] = {}
        for kind, people in (("noise", cells), ("population", shares)):
            parts = people.reshape(1 << spec.stratum_bits, -1)[:, : spec.variable.grid.size]
            f = np.cumsum(parts[spec.stratum(stratum)] if stratum else parts.sum(axis=0))
            low, high = release.curve(stratum).band(interval=kind)  # type: ignore[arg-type]
            held[name][kind] = _between(low, f / f[-1], high)
    if case.kind in ("scores", "ties", "rare"):
        # a calibrated model's smoothed curve is the diagonal
        smooth = release.calibration_curve()
        low, high = smooth.band("population")
        held["calibration curve"] = {"population": _between(low, smooth.scores, high)}
    return held


def _between(low: Array, x: Array, high: Array) -> float:
    return float((low <= x + 1e-9).all() and (x <= high + 1e-9).all())


def _exact(case: Case, cells: Array) -> Release:
    spec, _ = population(case)
    return Release.from_curve(spec, int(cells.sum()), np.cumsum(cells), on_grid=True)


@lru_cache(maxsize=8)
def _whole_trial(case: Case) -> Release:
    return _exact(case, np.round(population(case)[1] * 10**8))


def _one_trial(case: Case, seed: int) -> Held:
    noisy, cells = sample(case, seed)
    exact, whole, covered = _exact(case, cells), _whole_trial(case), Held()
    arm, right, best = noisy.arms()[0], exact.arms()[0], whole.arms()[0]
    at = np.array([29, 59])
    names = ["restricted mean to 90, placebo", "restricted mean, drug - placebo", "median, placebo"]
    table, of_sample, of_all = (r.survival_summary(90) for r in (noisy, exact, whole))
    kinds: list[tuple[Interval, survival.Arm, object]] = [("noise", right, of_sample), ("population", best, of_all)]
    for kind, other, rows in kinds:
        low, high = arm.limits(at, kind, 1.96)
        for i, day in enumerate((30, 60)):
            held = low[i] <= other.survival[at[i]] <= high[i]
            covered.setdefault(f"survival at {day}", {})[kind] = float(held)
        for name in names:
            a, b = table[name].interval(kind)
            held = a - 1e-9 <= rows[name].value <= b + 1e-9  # type: ignore[index]
            covered.setdefault(name.replace(", placebo", ""), {})[kind] = float(held)
        times, under, over = arm.band(kind)
        covered.setdefault("survival band", {})[kind] = _between(under, other.survival[times], over)
    return covered


def sizes(case: Case, seed: int) -> dict[str, float]:
    """Whether tests of a true null hypothesis reject it at 5 %."""
    if case.kind == "survival":
        return {"log-rank": float(survival.log_rank(*sample(case, seed)[0].arms())[1] < 0.05)}
    spec, shares = population(case)
    rng = np.random.default_rng([seed, case.n, 1])
    pooled, each = shares[:128] + shares[128:], np.zeros_like(shares)
    each[:128], each[128:] = 0.7 * pooled, 0.3 * pooled
    counts = np.cumsum(rng.multinomial(case.n, each / each.sum()))
    noisy = Release.from_curve(spec, case.n, counts + both_servers(spec.noise, 1, spec.bits, rng)[0], on_grid=True)
    try:
        first, second = (noisy.curve(name, smoothing="isotonic") for name in ("no", "yes"))
        found = {
            "Mann-Whitney": mann_whitney_p(first, second),
            "Kolmogorov-Smirnov": kolmogorov_smirnov_p(first, second),
        }
        found["Hosmer-Lemeshow"] = sample(case, seed)[0].calibration(8).p_value
    except TooNoisy:
        return {}
    return {name: float(p < 0.05) for name, p in found.items() if not np.isnan(p)}


# Tests take longest, and are no matter of shapes: their sizes are measured on these.
SIZED = (SCORE_CASES[2], SCORE_CASES[6], *SURVIVAL_CASES[:2])


def run(case: Case, seed: int) -> Held:
    rejected = sizes(case, seed) if case in SIZED else {}
    return one(case, seed) | {f"{name} test": {"rejects": value} for name, value in rejected.items()}


Counted = dict[str, dict[str, tuple[int, int]]]  # of each statistic and kind: held, and told


def measure(case: Case, runs: int, first: int = 0, keep: Path | None = None) -> Counted:
    """How often what claims 95 % held, and tests at 5 % rejected what is true, among the runs that told a number."""
    counted: Counted = {}
    for start in range(first, first + runs, _CHUNK):
        seeds = range(start, min(start + _CHUNK, first + runs))
        for name, kinds in _chunk(case, seeds, keep).items():
            for kind, (held, told) in kinds.items():
                before = counted.setdefault(name, {}).get(kind, (0, 0))
                counted[name][kind] = before[0] + held, before[1] + told
    return counted


def _chunk(case: Case, seeds: range, keep: Path | None) -> Counted:
    name = f"{case.kind}-{case.mechanism}-{case.n}-{case.epsilon:g}-{seeds.start}-{seeds.stop}.json"
    if keep is not None and (keep / name).exists():
        return {k: {a: (b[0], b[1]) for a, b in v.items()} for k, v in json.loads((keep / name).read_text()).items()}
    counted: Counted = {}
    for seed in seeds:
        for statistic, kinds in run(case, seed).items():
            for kind, value in kinds.items():
                held, told = counted.setdefault(statistic, {}).get(kind, (0, 0))
                counted[statistic][kind] = held + int(value), told + 1
    if keep is not None:
        (keep / name).write_text(json.dumps(counted))
    return counted


def all_cells(columns: dict[str, Counted]) -> list[tuple[str, str, str, int, int]]:
    """Column, statistic, kind, held and told of everything that claims 95 %."""
    return [
        (column, name, kind, held, told)
        for column, counted in columns.items()
        for name, kinds in counted.items()
        for kind, (held, told) in kinds.items()
        if kind != "rejects"
    ]


def low_cells(columns: dict[str, Counted], runs: int) -> tuple[list[str], list[str], int]:
    """Cells below LEAST, those significantly so, and how many there are in all.

    By a binomial test of each, at FALSE_ALARM over the number of cells: a false alarm comes up at all with a
    probability of at most FALSE_ALARM.
    """
    cells = [cell for cell in all_cells(columns) if cell[4] >= runs / 10]
    low = [cell for cell in cells if cell[3] < LEAST * cell[4]]
    words = [f"{name}, {kind}, {column}: {100 * held / told:.1f} % of {told}" for column, name, kind, held, told in low]
    surely = [binom.cdf(held, told, LEAST) < FALSE_ALARM / len(cells) for *_, held, told in low]
    return words, [w for w, sure in zip(words, surely, strict=True) if sure], len(cells)


def table(columns: dict[str, Counted], runs: int) -> str:
    """noise / population for each statistic and case, tests with their size; few that were told are marked."""
    names = list(dict.fromkeys(name for column in columns.values() for name in column))

    def cell(kinds: dict[str, tuple[int, int]] | None) -> str:
        order = [kinds[k] for k in (*INTERVALS, "rejects") if k in kinds] if kinds else []
        if not order or order[0][1] < runs / 10:
            return ""
        mark = f" ({order[0][1]})" if order[0][1] < runs else ""
        return " / ".join(f"{100 * held / told:.0f}" for held, told in order) + mark

    rows = [f"| {name} | " + " | ".join(cell(c.get(name)) for c in columns.values()) + " |" for name in names]
    return "\n".join(["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns), *rows])


def report(runs: int, keep: Path | None) -> str:
    heads = {"One stratum": VALUE_CASES, "Survival, two arms": SURVIVAL_CASES, "Two strata of scores": SCORE_CASES}
    command = f"`python -m tests.analyst.coverage --runs {runs} --docs`, {SERVERS} servers' noise; columns are n and"
    parts, everything = [f"{command} epsilon."], dict[str, Counted]()
    for head, cases in heads.items():
        columns = {case.name: measure(case, runs, keep=keep) for case in cases}
        everything |= {f"{head.split(',')[0].lower()} ({name})": counted for name, counted in columns.items()}
        parts += [f"{head}:", table(columns, runs)]
    low, surely, cells = low_cells(everything, runs)
    parts.append(
        f"Cells: {cells}; below {LEAST:.0%}: {len(low)}; significantly below: {len(surely)} (binomial test, "
        f"false-alarm rate {FALSE_ALARM:.0%} for all cells together)."
    )
    parts += ["\n".join(f"- {words}{' (significant)' if words in surely else ''}" for words in low)] if low else []
    seldom = [cell for cell in all_cells(everything) if cell[4] < runs / 10]
    told = [f"- {name}, {kind}, {column}: {held} of {told} held" for column, name, kind, held, told in seldom]
    parts += ["Told in less than a tenth of the runs, and not judged:", "\n".join(told)] if told else []
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.analyst.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep what is done, and go on from there")
    parser.add_argument("--docs", action="store_true", help="write the table of docs/statistics.md")
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    text = report(args.runs, args.out)
    print(text)
    if args.docs:
        write_between(Path(__file__).parents[2] / "docs" / "statistics.md", START, END, text)


if __name__ == "__main__":
    main()
