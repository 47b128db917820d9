"""Smoothing and the inverse on synthetic data: X_pois(lambda), Poisson(lambda) instances at each of N grid indices."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from analyst.estimation import smooth
from analyst.statistics.quantile import inverse
from bench.figures.figure import Claim, Figure, Options, Row, draw_lines, means, save, spread
from fss_ecdf.campaign.noise.registry import mechanism
from servers.release.noise import NoiseTree

Floats = NDArray[np.float64]

MECHANISMS = ("paper-tree", "slice-tree")
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
LAMBDAS = (0.1, 1.0, 3.0, 10.0, 100.0, 1000.0)


def published(name: str, levels: int, epsilon: float, rate: float, seed: int) -> tuple[Floats, Floats]:
    """A true curve of counts, and the same with one noise tree."""
    truth = np.cumsum(np.random.default_rng(seed).poisson(rate, 1 << levels)).astype(np.float64)
    noise = mechanism(name, levels, epsilon)
    tree = NoiseTree(seed.to_bytes(32, "little"), server=0, covers=bytes(32), mechanism=noise)
    return truth, truth + tree.curve()


def smoothed(name: str, curve: Floats, n: float) -> dict[str, Floats]:
    """The curve made proper in every way we have."""
    return {
        "isotonic": smooth.isotonic(curve, n),
        "1-norm": smooth.tree(curve, n, norm=1, mechanism=name),
        "2-norm": smooth.tree(curve, n, norm=2, mechanism=name),
    }


def smoothing_job(name: str, levels: int, epsilon: float, rate: float, seed: int) -> list[Row]:
    truth, raw = published(name, levels, epsilon, rate, seed)
    error = max(((raw - truth) ** 2).mean(), 1e-9)  # at a large epsilon a short curve may have no noise at all
    setting = {"epsilon": epsilon, "lambda": rate, "seed": seed, "raw_mse": error}
    curves = smoothed(name, raw, truth[-1])
    return [
        {"method": f"{name}, {how}", **setting, "ratio": ((curve - truth) ** 2).mean() / error}
        for how, curve in curves.items()
    ]


def _compute_smoothing(options: Options, epsilons: tuple[float, ...], rates: tuple[float, ...], what: str) -> list[Row]:
    settings = [
        (name, options.levels, epsilon, rate, options.seed + run)
        for run in range(options.runs)
        for name in MECHANISMS
        for epsilon in epsilons
        for rate in rates
    ]
    return spread(smoothing_job, settings, options, what)


def _draw_ratio(rows: list[Row], options: Options, x: str, name: str, about: str) -> None:
    def draw(axes: Axes) -> None:
        axes.axhline(1.0, color="#555555", linewidth=0.8)
        draw_lines(axes, means(rows, x, "ratio"))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("epsilon" if x == "epsilon" else "lambda (mean number of instances at an index)")
        axes.set_ylabel("squared error after smoothing / before")
        axes.legend(ncols=2)
        axes.set_title("Effect of smoothing on the error by DP noise (below 1: it helps)")

    save(options, name, draw, f"N = 2^{options.levels}, {about}, {options.runs} runs, one noise tree")


def _at(rows: list[Row], x: str, y: str, method: str) -> dict[float, float]:
    line = means(rows, x, y)[method]
    return dict(zip(line[0], line[1], strict=True))


def _epsilon_claims(rows: list[Row]) -> list[Claim]:
    one, two = (_at(rows, "epsilon", "ratio", f"paper-tree, {norm}") for norm in ("1-norm", "2-norm"))
    helps = [e for e in two if two[e] < 1]
    last = max(two)
    ours, paper = (_at(rows, "epsilon", "raw_mse", f"{name}, isotonic") for name in ("slice-tree", "paper-tree"))
    name = "smoothing-epsilon"
    return [
        Claim(
            name,
            "2-norm smoothing reduces the error for epsilon >= 0.2",
            "error ratio " + ", ".join(f"{two[e]:.2f} at {e:g}" for e in two),
            all(e in helps for e in two if e >= 0.2),
        ),
        Claim(
            name,
            "2-norm outperforms 1-norm smoothing, especially for small epsilon",
            "1-norm over 2-norm: " + ", ".join(f"{one[e] / two[e]:.2f} at {e:g}" for e in two),
            all(one[e] >= two[e] for e in two) and one[min(one)] / two[min(two)] > one[last] / two[last],
        ),
        Claim(
            name,
            "the effect of smoothing vanishes as epsilon grows",
            f"2-norm ratio {two[last]:.2f} at epsilon = {last:g}",
            two[last] > 0.9,
        ),
        Claim(
            name,
            "(ours) slice-tree needs no smoothing to beat the paper's mechanism",
            f"mean squared error of paper-tree over slice-tree, raw, epsilon = 1: {paper[1.0] / ours[1.0]:.1f}",
            paper[1.0] > ours[1.0],
        ),
    ]


def _lambda_claims(rows: list[Row]) -> list[Claim]:
    two = _at(rows, "lambda", "ratio", "paper-tree, 2-norm")
    text = "2-norm ratio " + ", ".join(f"{v:.2f} at {k:g}" for k, v in two.items())
    large, moderate = max(two), [v for k, v in two.items() if 1 <= k <= 10]
    return [
        Claim("smoothing-lambda", "for large lambda smoothing matters little", text, abs(two[large] - 1) < 0.2),
        Claim("smoothing-lambda", "for moderate lambda smoothing improves the error", text, max(moderate) < 1),
    ]


def inverse_job(name: str, levels: int, epsilon: float, seed: int) -> list[Row]:
    """Squared errors of F at random thresholds and of its inverse at random levels, all on the scale [0, 1]."""
    truth, raw = published(name, levels, epsilon, 3.0, seed)
    rng, n, size = np.random.default_rng(seed), truth[-1], truth.size
    at, targets = rng.integers(0, size, 1000), rng.random(1000) * n
    right = np.array([inverse(truth, t) for t in targets])
    rows = [{"method": f"{name}, F", "error": float((((raw - truth)[at] / n) ** 2).mean())}]
    for how, curve in {"raw": raw, "isotonic": smooth.isotonic(raw, n)}.items():
        off = np.array([inverse(curve, t) for t in targets]) - right
        rows.append({"method": f"{name}, inverse of {how}", "error": float(((off / size) ** 2).mean())})
    return [{**row, "epsilon": epsilon, "seed": seed} for row in rows]


def _compute_inverse(options: Options) -> list[Row]:
    settings = [
        (name, options.levels, epsilon, options.seed + run)
        for run in range(options.runs)
        for name in MECHANISMS
        for epsilon in EPSILONS
    ]
    return spread(inverse_job, settings, options, "inverse")


def _draw_inverse(rows: list[Row], options: Options) -> None:
    marks = {"F": "o", "inverse of raw": "x", "inverse of isotonic": "^"}

    def draw(axes: Axes) -> None:
        for method, (x, y, error) in means(rows, "epsilon", "error").items():
            name, what = method.split(", ")
            paper = name == "paper-tree"
            style: Any = {"color": "#7a1f1f" if paper else "#1b3a5c", "linestyle": "--" if paper else "-"}
            axes.errorbar(x, y, error, label=method, marker=marks[what], markersize=5, capsize=2, **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("epsilon")
        axes.set_ylabel("mean squared error (F and x on [0, 1])")
        axes.legend(ncols=2)
        axes.set_title("Evaluating F and its inverse (Algorithm 1)")

    save(options, "inverse", draw, f"N = 2^{options.levels}, lambda = 3, {options.runs} runs, one noise tree")


def _inverse_claims(rows: list[Row]) -> list[Claim]:
    what = ("F", "inverse of raw", "inverse of isotonic")
    f, raw, mono = (_at(rows, "epsilon", "error", f"paper-tree, {name}") for name in what)
    worst = max(max(raw[e], mono[e]) / min(raw[e], mono[e]) for e in raw)
    order = max(max(f[e], raw[e], mono[e]) / min(f[e], raw[e], mono[e]) for e in raw)
    return [
        Claim(
            "inverse",
            "a raw curve, which may decrease, hardly confuses binary search",
            f"raw and smoothed differ at most by a factor of {worst:.2f}",
            worst < 2,
        ),
        Claim(
            "inverse",
            "errors of F and of both inverses are of the same order of magnitude",
            f"at most a factor of {order:.2f} between the three",
            order < 10,
        ),
    ]


FIGURES = [
    Figure(
        "smoothing-epsilon",
        "smoothing effect against epsilon, lambda = 3",
        lambda options: _compute_smoothing(options, EPSILONS, (3.0,), "smoothing-epsilon"),
        lambda rows, options: _draw_ratio(rows, options, "epsilon", "smoothing-epsilon", "lambda = 3"),
        _epsilon_claims,
    ),
    Figure(
        "smoothing-lambda",
        "smoothing effect against lambda, epsilon = 1",
        lambda options: _compute_smoothing(options, (1.0,), LAMBDAS, "smoothing-lambda"),
        lambda rows, options: _draw_ratio(rows, options, "lambda", "smoothing-lambda", "epsilon = 1"),
        _lambda_claims,
    ),
    Figure("inverse", "error of F and of its inverse", _compute_inverse, _draw_inverse, _inverse_claims),
]
