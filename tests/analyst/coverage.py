"""How often intervals and bands hold the truth: python -m tests.analyst.coverage --runs 300 --docs.

Every run draws a sample of a population that is known exactly, and publishes it with fresh noise of two servers. An
interval of kind "noise" must hold the number of this sample, one of kind "population" that of the population.
`--docs` writes the table of docs/statistics.md.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from analyst import compare, distribution, survival
from analyst.compare import kolmogorov_smirnov_p, mann_whitney_p, quantile_estimates
from analyst.estimate import INTERVALS, Estimate
from analyst.release import Release
from bench.docs import write_between
from campaign.errors import TooNoisy
from campaign.noise.mechanism import SERVERS
from campaign.noise.simulate import both_servers
from campaign.spec import Campaign
from tests.campaign.helpers import campaign

Array = np.ndarray[Any, Any]
Held = dict[str, list[float]]
START, END = "<!-- coverage: made by python -m tests.analyst.coverage --docs -->", "<!-- end of coverage -->"
MANY = 10**8  # a release of so many stands for the population


@dataclass(frozen=True)
class Case:
    """A population on a grid, a sample size and an epsilon."""

    name: str
    n: int
    epsilon: float
    kind: str = "scores"  # scores, ties, rare or survival
    mechanism: str = "slice-tree"


CASES = (
    Case("300, 5", 300, 5.0),
    Case("1000, 1", 1000, 1.0),
    Case("4000, 1", 4000, 1.0),
    Case("4000, 1, paper-tree", 4000, 1.0, mechanism="paper-tree"),
    Case("45 000, 0.1", 45_000, 0.1),
    Case("45 000, 1", 45_000, 1.0),
    Case("4000, 1, ties", 4000, 1.0, "ties"),
    Case("4000, 1, rare", 4000, 1.0, "rare"),
)


@lru_cache(maxsize=16)
def population(case: Case) -> tuple[Campaign, Array]:
    """The campaign, and the probability of each position. The second stratum of `equal` strata is like the first."""
    if case.kind == "survival":
        return _trial(case)
    spec = campaign(
        grid={"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01},
        strata=["no", "yes"],
        epsilon=case.epsilon,
        mechanism=case.mechanism,
    )
    tau = spec.grid.all_thresholds
    edges = np.linspace(0, 1, 102)
    shape = (2, 4) if case.kind != "rare" else (1.2, 14)
    draws = np.random.default_rng(0).beta(shape[0], shape[1], 2_000_000)
    shares = np.histogram(draws, edges)[0] / draws.size
    if case.kind == "ties":
        shares = (
            np.where(np.arange(101) % 20 == 10, 1.0, 0.0)
            * np.array([0.3, 0.3, 0.2, 0.15, 0.05, 0])[np.arange(101) // 20]
        )
        shares /= shares.sum()
    whole = np.zeros(1 << spec.bits)
    whole[:101], whole[128 : 128 + 101] = shares * (1 - tau), shares * tau
    return spec, whole


def _trial(case: Case) -> tuple[Campaign, Array]:
    strata = [f"{arm}: {status}" for arm in ("placebo", "drug") for status in ("event", "censored")]
    grid = {"kind": "linear", "values": "integer", "from": 1, "to": 120}
    spec = campaign(kind="survival", grid=grid, strata=strata, epsilon=case.epsilon, mechanism=case.mechanism)
    whole, each = np.zeros(1 << spec.bits), 1 << spec.grid.bits
    hazard, lost = 1 / 90, 1 / 200
    alive = 1.0
    for day in range(120):
        event = alive * hazard
        censored = (alive - event) * (lost if day < 119 else 1.0)
        alive -= event + censored
        for arm in (0, 1):
            whole[2 * arm * each + day], whole[(2 * arm + 1) * each + day] = event / 2, censored / 2
    return spec, whole


@lru_cache(maxsize=16)
def truth(case: Case) -> Release:
    spec, shares = population(case)
    counts = np.floor(np.cumsum(shares) * MANY + 0.5)
    return Release.of_whole(spec, int(counts[-1]), counts, on_grid=True)


def sample(case: Case, seed: int) -> tuple[Release, Release]:
    """What was published of a sample, and the sample itself."""
    spec, shares = population(case)
    rng = np.random.default_rng([seed, case.n])
    counts = np.cumsum(rng.multinomial(case.n, shares / shares.sum()))
    noise = both_servers(spec.noise, 1, spec.bits, rng)[0]
    noisy, exact = (Release.of_whole(spec, case.n, c, on_grid=True) for c in (counts + noise, counts))
    return noisy, exact


def estimates(release: Release) -> dict[str, Callable[[], Estimate]]:
    """Numbers that have standard errors or ranges, one by one: what is too noisy to tell is left out."""
    first, second = release.curve("no"), release.curve("yes")
    model = release.model()
    return {
        "F of a stratum at 0.3": lambda: model.at(0.3)[0],
        "specificity": lambda: model.at(0.3)[1],
        "positive predictive value": lambda: model.at(0.3)[2],
        "mean": lambda: release.curve().mean_estimate(),
        "mean of a stratum": lambda: second.mean_estimate(),
        "median": lambda: quantile_estimates(release.curve(), [0.5])[0],
        "0.9 quantile of a stratum": lambda: quantile_estimates(second, [0.9])[0],
        "AUC": lambda: release.roc().area,
        "difference of means": lambda: compare.difference_of_means(first, second),
        "difference of medians": lambda: compare.difference_of_quantiles(first, second)[0],
        "standardised mean difference": lambda: distribution.standardised_difference(first, second),
        "Kolmogorov-Smirnov distance": lambda: compare.ks_distance(first, second)[0],
        "Wasserstein distance": lambda: distribution.wasserstein(first, second),
        "trimmed mean": lambda: distribution.trimmed_mean(release.curve()),
        "Gini coefficient": lambda: distribution.gini(release.curve()),
        "Brier score": lambda: model.brier,
        "scaled Brier score": lambda: model.scaled_brier,
        "observed over expected": lambda: model.observed_over_expected,
        "calibration slope": lambda: model.regression()[1],
        "calibration in the large": lambda: model.regression()[2],
        "Youden index": lambda: model.youden()[1],
        "sensitivity at specificity 0.9": lambda: model.sensitivity_at(0.9),
        "partial AUC": lambda: model.partial_area(0.8),
        "net benefit at 0.3": lambda: model.net_benefit(0.3),
        "average precision": lambda: _known(release.roc().average_precision),
        "share in a bin": lambda: _share(release),
    }


def _known(value: Estimate | None) -> Estimate:
    if value is None:
        raise TooNoisy("left out")
    return value


def _share(release: Release) -> Estimate:
    from analyst.estimate import Ranged

    bars = release.histogram([0.2, 0.4, 1.0])
    ends = {kind: (float(low[1]), float(high[1])) for kind, (low, high) in bars.ranges.items()}
    return Ranged("share", float(bars.shares[1]), np.nan, np.nan, ranges=ends)


def one(case: Case, seed: int) -> dict[str, dict[str, float]]:
    """Of one run: for each statistic and kind of interval, whether the truth was held."""
    if case.kind == "survival":
        return _one_trial(case, seed)
    noisy, exact = sample(case, seed)
    held: dict[str, dict[str, float]] = {}
    try:
        asked = estimates(noisy)
    except TooNoisy:
        return held
    right = estimates(exact)
    for name, ask in asked.items():
        try:
            row = ask()
        except TooNoisy:
            continue
        values = {"noise": right[name]().value, "population": _true_value(case, name)}
        held[name] = {}
        for kind in INTERVALS:
            low, high = row.interval(kind)
            held[name][kind] = float(low - 1e-9 <= values[kind] <= high + 1e-9)
    held |= _bands(case, noisy, exact)
    return held


@lru_cache(maxsize=1024)
def _true_value(case: Case, name: str) -> float:
    return estimates(truth(case))[name]().value


def _bands(case: Case, noisy: Release, exact: Release) -> dict[str, dict[str, float]]:
    held: dict[str, dict[str, float]] = {
        "band": {},
        "band of a stratum": {},
        "ROC region": {},
        "calibration curve": {},
    }
    whole = truth(case)
    smooth = noisy.calibration_curve()
    for kind, right in (("noise", exact), ("population", whole)):
        for name, stratum in (("band", None), ("band of a stratum", "yes")):
            low, high = noisy.curve(stratum).band(interval=kind)  # type: ignore[arg-type]
            held[name][kind] = _between(low, right.curve(stratum, smoothing="none").fractions, high)
        region, roc = noisy.roc().region(interval=kind), right.roc(smoothing="none")  # type: ignore[arg-type]
        held["ROC region"][kind] = _between(region.least_false, roc.false_positive_rate, region.most_false) * _between(
            region.least_true, roc.true_positive_rate, region.most_true
        )
        low, high = smooth.band(kind)  # type: ignore[arg-type]
        if kind == "population":
            # a calibrated model's smoothed curve is the diagonal
            held["calibration curve"][kind] = _between(low, smooth.scores, high)
    return held


def _between(low: Array, x: Array, high: Array) -> float:
    return float((low <= x + 1e-9).all() and (x <= high + 1e-9).all())


def _one_trial(case: Case, seed: int) -> dict[str, dict[str, float]]:
    noisy, exact = sample(case, seed)
    whole, covered = truth(case), dict[str, dict[str, float]]()
    arm, right, best = noisy.arms()[0], exact.arms()[0], whole.arms()[0]
    at = np.array([29, 59])
    low, high = {}, {}
    names = ["restricted mean to 90, placebo", "restricted mean, drug - placebo", "median, placebo"]
    table, of_sample, of_all = (r.survival_summary(90) for r in (noisy, exact, whole))
    for kind, other, rows in (("noise", right, of_sample), ("population", best, of_all)):
        low[kind], high[kind] = arm.limits(at, kind, 1.96)  # type: ignore[arg-type]
        for i, day in enumerate((30, 60)):
            held = low[kind][i] <= other.survival[at[i]] <= high[kind][i]
            covered.setdefault(f"survival at {day}", {})[kind] = float(held)
        for name in names:
            a, b = table[name].interval(kind)  # type: ignore[arg-type]
            held = a - 1e-9 <= rows[name].value <= b + 1e-9
            covered.setdefault(name.replace(", placebo", ""), {})[kind] = float(held)
        times, under, over = arm.band(kind)  # type: ignore[arg-type]
        covered.setdefault("survival band", {})[kind] = _between(under, other.survival[times], over)
    return covered


def sizes(case: Case, seed: int) -> dict[str, float]:
    """Whether tests of a true null hypothesis reject it at 5 %."""
    if case.kind == "survival":
        noisy, _ = sample(case, seed)
        return {"log-rank": float(survival.log_rank(*noisy.arms())[1] < 0.05)}
    spec, shares = population(case)
    rng = np.random.default_rng([seed, case.n, 1])
    pooled, each = shares[:128] + shares[128:], np.zeros_like(shares)
    each[:128], each[128:] = 0.7 * pooled, 0.3 * pooled
    counts = np.cumsum(rng.multinomial(case.n, each / each.sum()))
    noisy = Release.of_whole(spec, case.n, counts + both_servers(spec.noise, 1, spec.bits, rng)[0], on_grid=True)
    try:
        first, second = noisy.curve("no"), noisy.curve("yes")
        p_values = {
            "Mann-Whitney": mann_whitney_p(first, second),
            "Kolmogorov-Smirnov": kolmogorov_smirnov_p(first, second),
        }
        calibrated, _ = sample(case, seed)
        p_values["Hosmer-Lemeshow"] = calibrated.calibration(8, fitted=False).p_value
    except TooNoisy:
        return {}
    return {name: float(p < 0.05) for name, p in p_values.items() if not np.isnan(p)}


def run(case: Case, seed: int) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    return one(case, seed), sizes(case, seed)


def measure(case: Case, runs: int, first: int = 0, workers: int = 1, show: bool = False) -> dict[str, dict[str, float]]:
    """Mean coverage of everything that claims 95 %, and how often tests at 5 % reject what is true."""
    seeds = range(first, first + runs)
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            done = list(
                tqdm(pool.map(partial(run, case), seeds, chunksize=8), total=runs, desc=case.name, disable=not show)
            )
    else:
        done = [run(case, seed) for seed in tqdm(seeds, desc=case.name, disable=not show)]
    held: dict[str, dict[str, list[float]]] = {}
    for held_now, rejected in done:
        for name, kinds in held_now.items():
            for kind, value in kinds.items():
                held.setdefault(name, {}).setdefault(kind, []).append(value)
        for name, value in rejected.items():
            held.setdefault(f"{name} test", {}).setdefault("rejects", []).append(value)
    return {name: {kind: float(np.mean(v)) for kind, v in kinds.items()} for name, kinds in held.items()}


def table(columns: dict[str, dict[str, dict[str, float]]], runs: int) -> str:
    """noise / population for each statistic and case; tests with their size."""
    names = list(dict.fromkeys(name for column in columns.values() for name in column))

    def cell(kinds: dict[str, float] | None) -> str:
        if not kinds:
            return ""
        order = [kinds[k] for k in (*INTERVALS, "rejects") if k in kinds]
        return " / ".join(f"{100 * x:.0f}" for x in order)

    head = (
        f"`python -m tests.analyst.coverage --runs {runs} --docs`, {SERVERS} servers' noise; columns are n and epsilon."
    )
    rows = [f"| {name} | " + " | ".join(cell(c.get(name)) for c in columns.values()) + " |" for name in names]
    line = "| | " + " | ".join(columns) + " |"
    return "\n".join([head, "", line, "| --- |" + " ---: |" * len(columns), *rows])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.analyst.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", action="store_true", help="write the table of docs/statistics.md")
    args = parser.parse_args()
    trials = (Case("1000, 1", 1000, 1.0, "survival"), Case("4000, 1", 4000, 1.0, "survival"))
    parts = []
    for cases in (CASES, trials):
        columns = {c.name: measure(c, args.runs, workers=args.workers, show=True) for c in cases}
        parts.append(table(columns, args.runs))
    text = "\n\nSurvival, two arms:\n\n".join([parts[0], parts[1].split("\n\n", 1)[1]])
    print(text)
    if args.docs:
        write_between(Path(__file__).parents[2] / "docs" / "statistics.md", START, END, text)


if __name__ == "__main__":
    main()
