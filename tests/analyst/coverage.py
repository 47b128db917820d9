"""How often intervals and bands hold the truth: python -m tests.analyst.coverage --runs 1000.

Each run publishes the same values with fresh noise of two servers, exactly as drawn by them.
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from tests.analyst.helpers import Array, one_stratum, two_strata

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def single(seed: int, mechanism: str) -> dict[str, float]:
    """One stratum: which shares of points and quantiles, and whether the whole curve, are held at 95 %."""
    release, _ = one_stratum(3000, 1, noise_seed=seed, mechanism=mechanism)
    truth = one_stratum(3000, 1)[0].curve(smoothing="none")
    curve = release.curve()
    lower, upper = curve.band()
    held = np.abs(curve.raw - truth.raw) <= 1.96 * curve.standard_errors + 1e-9
    quantiles, right = curve.quantile(LEVELS), truth.quantile(LEVELS)
    inside = [a <= t <= b for a, t, b in zip(quantiles.lower, right.thresholds, quantiles.upper, strict=True)]
    return {
        "points": float(held[:-1].mean()),
        "band": float(_between(lower, truth.fractions, upper)),
        "quantiles": float(np.mean(inside)),
    }


def double(seed: int, mechanism: str) -> dict[str, float]:
    """Two strata, a large and a small one, smoothed: fractions of noisy totals, the area, regions and distances."""
    release, scores, outcome = two_strata(4000, 1, noise_seed=seed, mechanism=mechanism, epsilon=2.0)
    exact = two_strata(4000, 1)[0]
    truth, roc = exact.roc(smoothing="none"), release.roc()
    low, top = roc.auc_interval()
    region, made = roc.region(), release.compare("no", "yes")
    lower, upper = roc.positive.band()
    quantiles, right = roc.positive.quantile(LEVELS), truth.positive.quantile(LEVELS)
    inside = [a <= t <= b for a, t, b in zip(quantiles.lower, right.thresholds, quantiles.upper, strict=True)]
    held = _between(region.least_false, truth.false_positive_rate, region.most_false) and _between(
        region.least_true, truth.true_positive_rate, region.most_true
    )
    distance = np.abs(truth.positive.fractions - truth.negative.fractions).max()
    return {
        "AUC": float(low <= roc_auc_score(outcome, scores) <= top),
        "band of a stratum": float(_between(lower, truth.positive.fractions, upper)),
        "ROC region": float(held),
        "Kolmogorov-Smirnov distance": float(made.distance_lower <= distance <= made.distance_upper),
        "quantiles of a stratum": float(np.mean(inside)),
    }


def _between(low: Array, x: Array, high: Array) -> bool:
    return bool((low <= x + 1e-9).all() and (x <= high + 1e-9).all())


def measure(runs: int, mechanism: str = "slice-tree", first: int = 0, show: bool = False) -> dict[str, float]:
    """Mean coverage of everything that claims 95 %."""
    seeds = tqdm(range(first, first + runs), desc=mechanism, disable=not show)
    found = [single(seed, mechanism) | double(seed, mechanism) for seed in seeds]
    return {name: float(np.mean([run[name] for run in found])) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.analyst.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    args = parser.parse_args()
    columns = {name: measure(args.runs, name, show=True) for name in ("slice-tree", "paper-tree")}
    print(f"{'coverage of 95 %, ' + str(args.runs) + ' runs':<36}" + "".join(f"{name:>12}" for name in columns))
    for what in columns["slice-tree"]:
        print(f"{what:<36}" + "".join(f"{column[what]:>12.3f}" for column in columns.values()))


if __name__ == "__main__":
    main()
