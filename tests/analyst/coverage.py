"""How often intervals and bands hold the truth: python -m tests.analyst.coverage --runs 1000.

Each run publishes the same values with fresh noise of two servers, exactly as drawn by them.
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from tests.analyst.helpers import one_stratum, two_strata

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
    f = truth.fractions
    return {
        "points": float(held[:-1].mean()),
        "band": float((lower <= f + 1e-9).all() and (f <= upper + 1e-9).all()),
        "quantiles": float(np.mean(inside)),
    }


def double(seed: int, mechanism: str) -> dict[str, float]:
    """Two strata: fractions of a noisy total, the area under the ROC curve, and the region of the whole ROC curve."""
    release, scores, outcome = two_strata(4000, 1, noise_seed=seed, mechanism=mechanism, epsilon=2.0)
    truth, roc = two_strata(4000, 1)[0].roc(), release.roc(smoothing="none")
    wide, high = roc.band()
    low, top = roc.auc_interval()
    x, y = np.abs(roc.false_positive_rate - truth.false_positive_rate), roc.true_positive_rate
    quantiles, right = roc.positive.quantile(LEVELS), truth.positive.quantile(LEVELS)
    inside = [a <= t <= b for a, t, b in zip(quantiles.lower, right.thresholds, quantiles.upper, strict=True)]
    return {
        "AUC": float(low <= roc_auc_score(outcome, scores) <= top),
        "ROC region": float((x <= wide + 1e-9).all() and (np.abs(y - truth.true_positive_rate) <= high + 1e-9).all()),
        "quantiles of a stratum": float(np.mean(inside)),
    }


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
