"""The Hosmer-Lemeshow statistic under noise: the paper's Algorithm 2 (corrected), and ours, from the curves alone."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analyst import calibration, smooth
from analyst.calibration import Floats
from bench.figures import release
from bench.figures.data import SOURCES, STRATA, Scored, campaign, load
from bench.figures.figure import Claim, Figure, Options, Row, means, save, spread
from campaign.wire import GroupsQuery
from fss import field
from servers.compute.unnoised import Unnoised
from servers.release import groups, noised

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
GROUPS = 10
STYLE: dict[str, Any] = {
    "Algorithm 2, corrected": {"color": "#7a1f1f", "linestyle": "--", "marker": "s"},
    "from the curves (slice-tree)": {"color": "#1b3a5c", "linestyle": "-", "marker": "o"},
}


def algorithm_2(data: Scored, epsilon: float, seed: int) -> Floats:
    """The budget is split as in the paper: L + 1 parts for the curve, 8 for observed and expected counts."""
    spec = campaign("paper-tree", epsilon)
    size, bits = spec.grid.size, spec.grid.bits
    part = epsilon / (bits + 9)
    exact = release.exact(data)
    pooled = exact.counts[STRATA[0]] + exact.counts[STRATA[1]]
    curve = pooled + release.tree("paper-tree", part * (bits + 1), ("all",), seed, 0)[:size]
    ends = calibration.even_ends(smooth.isotonic(curve, data.labels.size), GROUPS)
    upper = spec.grid.thresholds(ends).tolist()
    asked = groups.read_groups(spec, GroupsQuery(upper_ends=upper, epsilon=8 * part))
    source = noised.Source(seed.to_bytes(32, "little"), 0, bytes(96), spec)
    counts = field.decode(noised.groups(Unnoised(field.encode(data.counts)), source, asked)).reshape(4, -1)
    return np.vstack([counts[:2], counts[2:] / groups.SCORE_UNIT])


def job(name: str, folder: Path | None, epsilon: float, seed: int) -> list[Row]:
    data = load(name, folder)
    exact = release.exact(data)
    truth = _statistic(calibration.from_curves(exact.curve(STRATA[0]), exact.curve(STRATA[1]), GROUPS).table)
    table = algorithm_2(data, epsilon, seed)
    made = release.ours(data, epsilon, seed)
    ours = calibration.from_curves(made.curve(STRATA[0]), made.curve(STRATA[1]), GROUPS)
    found = {"Algorithm 2, corrected": _statistic(table), "from the curves (slice-tree)": _statistic(ours.table)}
    return [
        {"method": method, "epsilon": epsilon, "seed": seed, "H": h, "true_H": truth, "relative": (h / truth - 1) ** 2}
        for method, h in found.items()
    ]


def _statistic(table: Floats) -> float:
    return float(calibration.statistic(table, np.asarray((table[2:] >= calibration.LEAST_EXPECTED).all(axis=0))))


def _figure(name: str) -> Figure:
    title = SOURCES[name].title

    def compute(options: Options) -> list[Row]:
        load(name, options.data_dir)
        settings = [(name, options.data_dir, e, options.seed + run) for run in range(options.runs) for e in EPSILONS]
        return spread(job, settings, options, f"hosmer-{name}")

    def draw(rows: list[Row], options: Options) -> None:
        def on(axes: Axes) -> None:
            for method, (x, y, error) in means(rows, "epsilon", "relative").items():
                middle = [
                    float(np.median([r["relative"] for r in rows if r["method"] == method and r["epsilon"] == e]))
                    for e in x
                ]
                axes.errorbar(x, y, error, label=f"{method}: mean", capsize=2, markersize=5, **STYLE[method])
                axes.plot(
                    x, middle, label=f"{method}: median", color=STYLE[method]["color"], linestyle=":", linewidth=1
                )
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("epsilon")
            axes.set_ylabel("squared relative error of H")
            axes.legend()
            axes.set_title(f"Hosmer-Lemeshow statistic under noise ({title}, H = {rows[0]['true_H']:.0f})")

        save(options, f"hosmer-{name}", on, f"{GROUPS} groups, {options.runs} runs, one server's noise")

    def claims(rows: list[Row]) -> list[Claim]:
        lines = means(rows, "epsilon", "relative")
        paper, ours = (lines[method][1] for method in STYLE)
        gain = [a / b for a, b in zip(paper, ours, strict=True)]
        return [
            Claim(
                f"hosmer-{name}",
                f"the error of H decreases with epsilon ({title})",
                "Algorithm 2: " + ", ".join(f"{y:.3g} at {e:g}" for e, y in zip(EPSILONS, paper, strict=True)),
                paper[-1] < paper[0],
            ),
            Claim(
                f"hosmer-{name}",
                f"(ours) H from the published curves beats Algorithm 2, at no further budget ({title})",
                "Algorithm 2 over ours: " + ", ".join(f"{g:.2g} at {e:g}" for e, g in zip(EPSILONS, gain, strict=True)),
                min(gain) > 1,
            ),
        ]

    return Figure(f"hosmer-{name}", f"error of the Hosmer-Lemeshow statistic ({title})", compute, draw, claims)


FIGURES = [_figure("bank"), _figure("diabetes")]
