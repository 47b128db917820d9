"""The Hosmer-Lemeshow statistic under noise: the paper's Algorithm 2 (corrected), and ours, from the curves alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analyst.estimation import smooth
from analyst.estimation.noisy import Noisy
from analyst.release import Release
from analyst.statistics import calibration
from analyst.statistics.calibration import Groups
from analyst.statistics.curve import Floats
from bench.figures import release
from bench.figures.data import SOURCES, STRATA, Scored, campaign, load
from bench.figures.figure import Claim, Figure, Options, Row, means, save, spread
from fss import field
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.simulate import noise_curves
from fss_ecdf.campaign.noise.sums import read_sums
from fss_ecdf.campaign.score_groups import score_group_sums
from servers.compute.raw_share import RawShare
from servers.release import add_noise
from servers.release.sum_queries import used_positions

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
GROUPS = 10
# A run is cheap, and means of squared errors of H are heavy-tailed: so many times as many runs as other figures.
MORE_RUNS = 10
THEIRS, THEIRS_OFF, OURS, OURS_OFF = (
    "Algorithm 2",
    "Algorithm 2, noise taken off",
    "curves",
    "curves, noise taken off",
)
STYLE: dict[str, Any] = {
    THEIRS: {"color": "#7a1f1f", "linestyle": "--", "marker": "s"},
    THEIRS_OFF: {"color": "#d9822b", "linestyle": "--", "marker": "^"},
    OURS: {"color": "#7f9fbf", "linestyle": "-", "marker": "x"},
    OURS_OFF: {"color": "#1b3a5c", "linestyle": "-", "marker": "o"},
}


def curve_noise(epsilon: float, seeds: Sequence[int]) -> tuple[Floats, Floats]:
    """One server's noise for our curves and for Algorithm 2's, as many as seeds; simulated, which is quick for many."""
    bits = campaign("paper-tree", epsilon).variable.index_bits
    part = epsilon / (bits + 9)
    rng = np.random.default_rng([seeds[0], round(1000 * epsilon)])
    specs = campaign("slice-tree", epsilon), campaign("paper-tree", part * (bits + 1), ("all",))
    ours, theirs = (noise_curves(spec.noise, len(seeds), spec.bits, rng) for spec in specs)
    return ours, theirs


def algorithm_2(data: Scored, epsilon: float, seed: int, noise: Floats) -> Groups:
    """The budget is split as in the paper: L + 1 parts for the curve, 8 for observed and expected counts."""
    spec = campaign("paper-tree", epsilon)
    size, bits = spec.variable.grid.size, spec.variable.index_bits
    part = epsilon / (bits + 9)
    exact = release.exact(data)
    pooled = exact.counts[STRATA[0]] + exact.counts[STRATA[1]]
    curve = pooled + noise[:size]
    ends = calibration.even_ends(smooth.isotonic(curve, data.labels.size), GROUPS)
    upper = spec.variable.grid.thresholds(ends)
    asked, used = score_group_sums(spec, upper.tolist()), used_positions(spec)
    query = read_sums(asked.weights, 8 * part, cells=used.size, units=asked.units)
    source = add_noise.NoiseKey(seed.to_bytes(32, "little"), 0, bytes(96), spec)
    sums = field.decode(add_noise.noisy_sums(RawShare(field.encode(data.counts)), source, query, used))
    return calibration.from_sums(Noisy.from_sums(sums, query), asked, data.labels.size, epsilon, 0.0)


def from_curves(published: Release) -> Groups:
    return calibration.from_curves(published.curve(STRATA[0]), published.curve(STRATA[1]), GROUPS)


def both(groups: Groups) -> tuple[float, float]:
    """H as it is, and without what one server's noise adds to it on average."""
    h = float(calibration.statistic(groups, groups.table[:2] - groups.table[2:]))
    return h, max(0.0, h - calibration.noise_in_statistic(groups) / SERVERS)


def job(name: str, folder: Path | None, epsilon: float, seeds: Sequence[int]) -> list[Row]:
    data = load(name, folder)
    truth, rows = both(from_curves(release.exact(data)))[0], []
    spec = campaign("slice-tree", epsilon)
    for seed, noise, their_noise in zip(seeds, *curve_noise(epsilon, seeds), strict=True):
        published = Release.from_curve(spec, data.labels.size, data.counts + noise, on_grid=True)
        statistics = [*both(algorithm_2(data, epsilon, seed, their_noise)), *both(from_curves(published))]
        about = {"epsilon": epsilon, "seed": seed, "true_H": truth}
        rows += [
            {"method": method, **about, "H": h, "relative": (h / truth - 1) ** 2}
            for method, h in zip(STYLE, statistics, strict=True)
        ]
    return rows


def medians(rows: list[Row]) -> dict[str, list[float]]:
    """Of each method's squared relative errors, at each epsilon."""
    return {
        method: [
            float(np.median([r["relative"] for r in rows if r["method"] == method and r["epsilon"] == e]))
            for e in EPSILONS
        ]
        for method in STYLE
    }


def paired(rows: list[Row], theirs: str) -> list[tuple[float, float]]:
    """At each epsilon: how much larger their squared errors are than ours, on the same seeds, and its error."""
    gains = []
    for epsilon in EPSILONS:
        of = {
            method: np.array([r["relative"] for r in rows if r["method"] == method and r["epsilon"] == epsilon])
            for method in (theirs, OURS_OFF)
        }
        more = of[theirs] - of[OURS_OFF]
        gains.append((float(more.mean()), float(more.std(ddof=1) / np.sqrt(more.size))))
    return gains


def gain(name: str, rows: list[Row], theirs: str) -> Claim:
    """Ours is said to beat theirs where the paired difference is above two standard errors at every epsilon."""
    averages = {method: line[1] for method, line in means(rows, "epsilon", "relative").items()}
    ratios = [[a / b for a, b in zip(of[theirs], of[OURS_OFF], strict=True)] for of in (averages, medians(rows))]
    words = [", ".join(f"{g:.3g} at {e:g}" for e, g in zip(EPSILONS, r, strict=True)) for r in ratios]
    apart = paired(rows, theirs)
    differences = ", ".join(f"{m:.2g} \u00b1 {s:.2g} at {e:g}" for e, (m, s) in zip(EPSILONS, apart, strict=True))
    ties = [f"{e:g}" for e, (m, s) in zip(EPSILONS, apart, strict=True) if abs(m) <= 2 * s]
    told = f"; a tie (below two standard errors) at {', '.join(ties)}" if ties else ""
    return Claim(
        f"hosmer-{name}",
        f"(ours) H from the published curves, noise taken off, beats {theirs} at every epsilon ({SOURCES[name].title})",
        f"squared errors, {theirs} over ours: means {words[0]}; medians {words[1]}; paired differences of the means "
        f"\u00b1 their standard error {differences}{told}; {len({r['seed'] for r in rows})} runs",
        all(m > 2 * s for m, s in apart),
    )


def _figure(name: str) -> Figure:
    title = SOURCES[name].title

    def compute(options: Options) -> list[Row]:
        load(name, options.data_dir)
        runs = MORE_RUNS * options.runs
        batches = np.array_split(options.seed + np.arange(runs), -(-runs // 25))
        settings = [(name, options.data_dir, e, batch.tolist()) for batch in batches for e in EPSILONS]
        return spread(job, settings, options, f"hosmer-{name}")

    def draw(rows: list[Row], options: Options) -> None:
        def on(axes: Axes) -> None:
            middle = medians(rows)
            for method, (x, y, error) in means(rows, "epsilon", "relative").items():
                axes.errorbar(x, y, error, label=method, capsize=2, markersize=5, **STYLE[method])
                axes.plot(x, middle[method], color=STYLE[method]["color"], linestyle=":", linewidth=1)
            axes.plot([], [], color="#555555", linestyle=":", linewidth=1, label="medians")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("epsilon")
            axes.set_ylabel("squared relative error of H")
            axes.legend()
            axes.set_title(f"Hosmer-Lemeshow statistic under noise ({title}, H = {rows[0]['true_H']:.0f})")

        save(
            options,
            f"hosmer-{name}",
            on,
            f"{GROUPS} groups, {len({r['seed'] for r in rows})} paired runs, one server's noise",
        )

    def claims(rows: list[Row]) -> list[Claim]:
        averages = {method: line[1] for method, line in means(rows, "epsilon", "relative").items()}
        told = ", ".join(f"{y:.3g} at {e:g}" for e, y in zip(EPSILONS, averages[THEIRS], strict=True))
        falls = averages[THEIRS][-1] < averages[THEIRS][0]
        first = Claim(f"hosmer-{name}", f"the error of H decreases with epsilon ({title})", f"{THEIRS}: {told}", falls)
        return [first, gain(name, rows, THEIRS), gain(name, rows, THEIRS_OFF)]

    return Figure(f"hosmer-{name}", f"error of the Hosmer-Lemeshow statistic ({title})", compute, draw, claims)


FIGURES = [_figure("bank"), _figure("diabetes")]
