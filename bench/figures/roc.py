"""ROC curves of three data sets under noise, and the area between them and the true one."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analyst.statistics.roc import Roc
from bench.figures import release
from bench.figures.data import SOURCES, load
from bench.figures.figure import STYLES, Claim, Figure, Options, Row, draw_lines, means, save, spread

EXAMPLES = {"heart": 0.5, "bank": 0.2, "diabetes": 0.05}
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
TREES = "paper-tree: two trees at epsilon / 2; slice-tree: one over both strata"
PAPER_WAYS, OUR_WAYS = ("1-norm", "2-norm", "isotonic"), ("isotonic", "2-norm")


def area_between(first: Roc, second: Roc) -> float:
    """The area of the symmetric difference of what lies under two ROC curves that do not decrease."""
    at = np.linspace(0, 1, 5001)
    curves = [np.interp(at, roc.false_positive_rate, roc.true_positive_rate) for roc in (first, second)]
    return float(np.trapezoid(np.abs(curves[0] - curves[1]), at))


def example_job(name: str, folder: Path | None, epsilon: float, seed: int) -> list[Row]:
    data = load(name, folder)
    curves = {
        "true": release.exact(data).roc(smoothing="none"),
        "paper-tree, raw": release.papers_roc(data, epsilon, seed, "raw"),
        "paper-tree, 1-norm": release.papers_roc(data, epsilon, seed, "1-norm"),
        "paper-tree, 2-norm": release.papers_roc(data, epsilon, seed, "2-norm"),
        "slice-tree, isotonic": release.ours(data, epsilon, seed).roc(),
    }
    return [
        {"method": method, "epsilon": epsilon, "false_positive_rate": x, "true_positive_rate": y, "auc": roc.auc}
        for method, roc in curves.items()
        for x, y in zip(roc.false_positive_rate.tolist(), roc.true_positive_rate.tolist(), strict=True)
    ]


def _example(name: str) -> Figure:
    epsilon, title = EXAMPLES[name], SOURCES[name].title

    def compute(options: Options) -> list[Row]:
        return example_job(name, options.data_dir, epsilon, options.seed)

    def draw(rows: list[Row], options: Options) -> None:
        def on(axes: Axes) -> None:
            for method in dict.fromkeys(row["method"] for row in rows):
                mine = [row for row in rows if row["method"] == method]
                mine = mine[::8] if method.endswith("raw") else mine
                style = {"color": "black", "linestyle": "-", "linewidth": 2.2} if method == "true" else STYLES[method]
                line: Any = {key: value for key, value in style.items() if key != "marker"}
                x, y = ([row[c] for row in mine] for c in ("false_positive_rate", "true_positive_rate"))
                # A raw curve crosses itself; its area means nothing.
                area = "" if method.endswith("raw") else f" (AUC {mine[0]['auc']:.3f})"
                thin = {"linewidth": 0.5, "alpha": 0.7} if method.endswith("raw") else {"linewidth": 1.4}
                axes.plot(x, y, label=method + area, **{**thin, **line})
            axes.set_xlabel("false positive rate")
            axes.set_ylabel("true positive rate")
            axes.legend(loc="lower right", fontsize=8, frameon=True, framealpha=0.95, edgecolor="white")
            axes.set_title(f"{title}, epsilon = {epsilon:g}")

        save(options, f"roc-{name}", on, TREES, square=True)

    def claims(rows: list[Row]) -> list[Claim]:
        areas = {row["method"]: row["auc"] for row in rows}
        off = {name: abs(area - areas["true"]) for name, area in areas.items() if name != "true"}
        measured = ", ".join(f"{name} {value:.4f}" for name, value in off.items())
        text = f"smoothed curves stay closer to the true ROC curve than the raw one ({title}; error of the AUC)"
        smoothed = min(off["paper-tree, 1-norm"], off["paper-tree, 2-norm"])
        return [Claim(f"roc-{name}", text, measured, smoothed <= off["paper-tree, raw"])]

    return Figure(f"roc-{name}", f"ROC curves on {title}, epsilon = {epsilon:g}", compute, draw, claims)


def error_job(folder: Path | None, epsilon: float, seed: int) -> list[Row]:
    data = load("bank", folder)
    truth = release.exact(data).roc(smoothing="none")
    curves = {f"paper-tree, {how}": release.papers_roc(data, epsilon, seed, how) for how in PAPER_WAYS}
    published = release.ours(data, epsilon, seed)
    curves |= {f"slice-tree, {how}": published.roc(smoothing=release.SHORT[how]) for how in OUR_WAYS}
    return [
        {"method": method, "epsilon": epsilon, "seed": seed, "area": area_between(roc, truth)}
        for method, roc in curves.items()
    ]


def _compute_error(options: Options) -> list[Row]:
    load("bank", options.data_dir)
    settings = [(options.data_dir, e, options.seed + run) for run in range(options.runs) for e in EPSILONS]
    return spread(error_job, settings, options, "roc-error")


def _draw_error(rows: list[Row], options: Options) -> None:
    def draw(axes: Axes) -> None:
        draw_lines(axes, means(rows, "epsilon", "area"))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("epsilon")
        axes.set_ylabel("area between the true and the DP ROC curve")
        axes.legend()
        axes.set_title("Error of ROC curves (Bank)")

    save(
        options,
        "roc-error",
        draw,
        f"{options.runs} runs; {TREES}",
    )


def _error_claims(rows: list[Row]) -> list[Claim]:
    lines = means(rows, "epsilon", "area")
    one, two, ours = (lines[f"{k}"] for k in ("paper-tree, 1-norm", "paper-tree, 2-norm", "slice-tree, isotonic"))
    ratios = [a / b for a, b in zip(one[1], two[1], strict=True)]
    gains = [a / b for a, b in zip(two[1], ours[1], strict=True)]
    return [
        Claim(
            "roc-error",
            "the error of the ROC curve decreases with epsilon",
            "2-norm: " + ", ".join(f"{y:.4f} at {x:g}" for x, y in zip(two[0], two[1], strict=True)),
            bool((np.diff(two[1]) < 0).all()),
        ),
        Claim(
            "roc-error",
            "1-norm and 2-norm smoothing perform about equally well for ROC",
            f"1-norm over 2-norm between {min(ratios):.2f} and {max(ratios):.2f}",
            min(ratios) > 0.67 and max(ratios) < 1.5,
        ),
        Claim(
            "roc-error",
            "(ours) one slice-tree over both strata has a smaller error than two paper-trees",
            f"2-norm paper-tree over isotonic slice-tree: {min(gains):.1f} to {max(gains):.1f}",
            min(gains) > 1,
        ),
    ]


FIGURES = [
    *(_example(name) for name in EXAMPLES),
    Figure("roc-error", "area between true and DP ROC curves (Bank)", _compute_error, _draw_error, _error_claims),
]
