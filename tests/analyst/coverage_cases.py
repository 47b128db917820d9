"""What coverage is measured on: populations that are known exactly, awkward ones among them, and their true numbers.

Every number here is computed from counts of cells by a formula of its own, not by the statistics that are measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fss_ecdf.campaign.campaign import Campaign
from tests.campaign.helpers import campaign

Array = np.ndarray[Any, Any]
SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}
SPECIFICITY, THRESHOLD = 0.9, 0.3


@dataclass(frozen=True)
class Case:
    """A population on a grid, a sample size and an epsilon."""

    name: str
    n: int
    epsilon: float
    kind: str = "scores"  # see `population`
    mechanism: str = "slice-tree"


SCORE_CASES = (
    Case("300, 5", 300, 5.0),
    Case("1000, 1", 1000, 1.0),
    Case("4000, 1", 4000, 1.0),
    Case("4000, 1, paper-tree", 4000, 1.0, mechanism="paper-tree"),
    Case("20 000, 0.2", 20_000, 0.2),
    Case("20 000, 4", 20_000, 4.0),
    Case("2000, 1, ties", 2000, 1.0, "ties"),
    Case("2000, 4, ties", 2000, 4.0, "ties"),
    Case("4000, 1, rare", 4000, 1.0, "rare"),
    Case("3000, 1, tiny", 3000, 1.0, "tiny"),
)
VALUE_CASES = (
    Case("two thresholds, 500, 2.9", 500, 2.9, "two"),
    Case("five thresholds, 500, 2", 500, 2.0, "five"),
    Case("ages, 500, 2", 500, 2.0, "ages"),
    Case("one value, 1000, 1", 1000, 1.0, "constant"),
    Case("both ends, 1000, 1", 1000, 1.0, "ends"),
    Case("heaped, 2000, 1", 2000, 1.0, "heaped"),
    Case("skewed, 2000, 0.2", 2000, 0.2, "skewed"),
    Case("skewed, 5000, 1", 5000, 1.0, "skewed"),
    Case("log grid, 2000, 1", 2000, 1.0, "log"),
)
SURVIVAL_CASES = (
    Case("1000, 1", 1000, 1.0, "survival"),
    Case("4000, 1", 4000, 1.0, "survival"),
    Case("20 000, 1", 20_000, 1.0, "survival"),
)


@lru_cache(maxsize=64)
def population(case: Case) -> tuple[Campaign, Array]:
    """The campaign, and the probability of each position."""
    if case.kind == "survival":
        return _trial(case)
    if case.kind in ("scores", "ties", "rare", "tiny"):
        return _scores(case)
    grid, shares = _values(case.kind)
    spec = campaign(grid=grid, epsilon=case.epsilon, mechanism=case.mechanism)
    whole = np.zeros(1 << spec.bits)
    whole[: shares.size] = shares / shares.sum()
    return spec, whole


def _scores(case: Case) -> tuple[Campaign, Array]:
    """A calibrated model; `ties`: five scores, `rare`: 8 % positives, `tiny`: 2 % of them, and not calibrated."""
    spec = campaign(grid=SCORES, strata=["no", "yes"], epsilon=case.epsilon, mechanism=case.mechanism)
    tau = spec.variable.grid.all_thresholds
    middle = np.clip(tau, 0.005, 0.995)
    shares = middle * (1 - middle) ** 3 if case.kind != "rare" else middle**0.2 * (1 - middle) ** 13
    if case.kind == "ties":
        five = np.array([0.3, 0.3, 0.2, 0.15, 0.05, 0])
        shares = np.where(np.arange(101) % 20 == 10, five[np.arange(101) // 20], 0.0)
    shares = shares / shares.sum()
    no, yes = shares * (1 - tau), shares * tau
    if case.kind == "tiny":
        no, yes = 0.98 * no / no.sum(), 0.02 * yes / yes.sum()
    whole = np.zeros(1 << spec.bits)
    whole[:101], whole[128 : 128 + 101] = no, yes
    return spec, whole


def _values(kind: str) -> tuple[dict[str, Any], Array]:
    """A grid, and the shares of its cells."""
    whole_numbers = {"kind": "linear", "values": "integer", "from": 0}
    if kind == "two":
        return {**whole_numbers, "to": 1}, np.array([0.4, 0.6])
    if kind == "five":
        return {**whole_numbers, "to": 4}, np.array([0.1, 0.3, 0.3, 0.2, 0.1])
    if kind == "ages":
        years = np.arange(100)
        return {**whole_numbers, "to": 99}, np.exp(-0.5 * ((years - 52) / 14) ** 2)
    if kind == "log":
        place = np.linspace(0, 1, 500)
        return {"kind": "logarithmic", "from": 1.0, "to": 1e5, "count": 500}, np.exp(-0.5 * ((place - 0.4) / 0.08) ** 2)
    x, grid = np.arange(1000), {**whole_numbers, "to": 999}
    shapes = {
        "constant": (x == 300).astype(float),
        "ends": np.where(x == 0, 0.5, np.where(x == 999, 0.4, 0.1 / 998)),
        "heaped": np.where(x % 50 == 0, 20.0, 0.2) * np.exp(-0.5 * ((x - 400) / 150) ** 2),
        "skewed": np.exp(-x / 60),
    }
    return grid, shapes[kind]


def _trial(case: Case) -> tuple[Campaign, Array]:
    strata = [f"{arm}: {status}" for arm in ("placebo", "drug") for status in ("event", "censored")]
    grid = {"kind": "linear", "values": "integer", "from": 1, "to": 120}
    spec = campaign(kind="survival", grid=grid, strata=strata, epsilon=case.epsilon, mechanism=case.mechanism)
    whole, each = np.zeros(1 << spec.bits), 1 << spec.variable.index_bits
    hazard, lost = 1 / 90, 1 / 200
    alive = 1.0
    for day in range(120):
        event = alive * hazard
        censored = (alive - event) * (lost if day < 119 else 1.0)
        alive -= event + censored
        for arm in (0, 1):
            whole[2 * arm * each + day], whole[(2 * arm + 1) * each + day] = event / 2, censored / 2
    return spec, whole


def _at_level(cells: Array, level: float) -> int:
    return int(np.searchsorted(np.cumsum(cells), level * cells.sum() * (1 - 1e-12)))


def true_values(cells: Array, x: Array) -> dict[str, float]:
    """Of one stratum: cells of the grid, and what each stands for."""
    shares, f = cells / cells.sum(), np.cumsum(cells) / cells.sum()
    middle = x.size // 3
    mean = float(x @ shares)
    kept = np.diff(np.clip(f, 0.1, 0.9), prepend=0.1)
    quartiles = [float(x[_at_level(cells, q)]) for q in (0.25, 0.75)]
    return {
        "F at a third of the grid": float(f[middle]),
        "share in a bin": float(shares[middle + 1 : 2 * x.size // 3 + 1].sum()),
        "mean": mean,
        "trimmed mean": float(x @ kept) / 0.8,
        "standard deviation": float(np.sqrt(shares @ (x - mean) ** 2)),
        "median": float(x[_at_level(cells, 0.5)]),
        "0.9 quantile": float(x[_at_level(cells, 0.9)]),
        "interquartile range": quartiles[1] - quartiles[0],
        "Gini coefficient": float((f * (1 - f))[:-1] @ np.diff(x)) / mean,
    }


def true_scores(
    no: Array, yes: Array, x: Array, slope: Callable[[Array, Array], tuple[float, float]]
) -> dict[str, float]:
    """Of two strata. `slope` gives a calibration slope and calibration in the large."""
    n0, n1 = no.sum(), yes.sum()
    n, share = n0 + n1, n1 / (n0 + n1)
    f0, f1 = np.cumsum(no) / n0, np.cumsum(yes) / n1
    called = x > THRESHOLD
    means = [float(c @ x / c.sum()) for c in (no, yes)]
    spreads = [float(c @ (x - m) ** 2 / c.sum()) for c, m in zip((no, yes), means, strict=True)]
    brier = float(no @ x**2 + yes @ (1 - x) ** 2) / n
    below = np.cumsum(no) - no / 2
    true, false = np.cumsum(yes[::-1]), np.cumsum(no[::-1])
    precision = np.divide(true, true + false, out=np.ones_like(f0), where=true + false > 0)
    at = _at_level(no, SPECIFICITY)
    slopes = slope(no, yes)
    return {
        "sensitivity": float(yes[called].sum() / n1),
        "specificity": float(no[~called].sum() / n0),
        "positive predictive value": float(yes[called].sum() / (yes + no)[called].sum()),
        "mean of a stratum": means[1],
        "difference of means": means[1] - means[0],
        "difference of medians": float(x[_at_level(yes, 0.5)] - x[_at_level(no, 0.5)]),
        "0.9 quantile of a stratum": float(x[_at_level(yes, 0.9)]),
        "standardised mean difference": (means[1] - means[0]) / float(np.sqrt(sum(spreads) / 2)),
        "Kolmogorov-Smirnov distance": float(np.abs(f0 - f1).max()),
        "AUC": float(below @ yes) / (n0 * n1),
        "average precision": float(yes[::-1] @ precision) / n1,
        "Brier score": brier,
        "scaled Brier score": 1 - brier / (share * (1 - share)),
        "observed over expected": n1 / float((no + yes) @ x),
        "calibration slope": slopes[0],
        "calibration in the large": slopes[1],
        "Youden index": float((f0 - f1).max()),
        "sensitivity at specificity 0.9": 1 - float(f1[at]),
        "net benefit at 0.3": float(yes[called].sum() - 3 / 7 * no[called].sum()) / n,
    }
