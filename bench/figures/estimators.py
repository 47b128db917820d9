"""`limited`, the default of curves and histograms, beside isotonic regression and the paper's 2-norm and 1-norm.

Mean squared errors of the curve and of 20 bins over those of isotonic regression, same noise, on shapes that none of
them was made on.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from analyst.release import Release
from analyst.statistics.curve import Floats
from bench.figures.figure import Claim, Figure, Options, Row, save, spread
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.simulate import both_servers

EPSILON = 1.0
BINS = 20
# thresholds, and n epsilon, since epsilon is 1
SETTINGS = ((61, 3000), (300, 20_000), (1024, 5000), (1024, 50_000))
WAYS = ("limited", "l2", "l1")
# The paper's programs take seconds on long curves: they are solved so often, and on so many thresholds at most.
FEW, SHORT = 10, 1024
SMOOTH = ("arcsine", "zipf", "logistic", "narrow pair")
SHAPES = (*SMOOTH, "comb", "staircase", "gap", "atoms on a ramp", "sawtooth", "end")
NO_WORSE = 1.05


def shares(name: str, size: int) -> Floats:
    """The share of each cell."""
    cell = np.arange(size)
    x = (cell + 0.5) / size
    density = {
        "arcsine": 1 / np.sqrt(x * (1 - x)),
        "comb": np.where(cell % 7 == 3, 1.0, 0.02),
        "zipf": 1 / (cell + 1.0),
        "staircase": np.floor(x * 6) + 0.2,
        "gap": np.where((x < 0.22) | (x > 0.71), 1.0 + x, 0.0),
        "atoms on a ramp": x + np.where(np.isin(cell, (size // 5, size // 2 + 1, size - 3)), size / 8, 0.0),
        "sawtooth": (x * 11) % 1 + 0.01,
        "narrow pair": np.exp(-0.5 * ((x - 0.31) / 0.012) ** 2) + 0.3 * np.exp(-0.5 * ((x - 0.37) / 0.006) ** 2),
        "logistic": 1 / np.cosh((x - 0.63) / 0.09) ** 2,
        "end": np.where(cell == size - 1, size / 3.0, 1.0) * (x > 0.4),
    }[name]
    return np.asarray(density / density.sum())


def _campaign(size: int) -> Campaign:
    about = {"id": bytes(32), "title": "Smoothing", "question": "How smooth?", "epsilon": EPSILON}
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": size - 1}
    return Campaign.from_dict({**about, "variables": [{"name": "value", "grid": grid}]})


def squared_errors(name: str, size: int, n: int, seeds: Sequence[int], ways: Sequence[str]) -> list[Row]:
    """Mean squared errors of the curve, and of its bins, by every way of smoothing the same releases."""
    spec, rows = _campaign(size), []
    ends = np.unique(np.linspace(-1, size - 1, BINS + 1).round().astype(np.int64))[1:]
    for seed in seeds:
        rng = np.random.default_rng([seed, n, size, SHAPES.index(name)])
        true = np.cumsum(rng.multinomial(n, shares(name, size))).astype(np.float64)
        whole = np.append(true, np.full((1 << spec.bits) - size, n))
        release = Release.from_curve(spec, n, whole + both_servers(spec.noise, 1, spec.bits, rng)[0])
        for how in ways:
            off = release.curve(smoothing=how).counts - true  # type: ignore[arg-type]
            bins = np.diff(off[ends], prepend=0.0)
            about = {"method": how, "shape": name, "thresholds": size, "n_epsilon": n * EPSILON, "seed": seed}
            rows.append({**about, "curve": float((off**2).mean()), "bins": float((bins**2).mean())})
    return rows


def job(name: str, size: int, n: int, seeds: Sequence[int]) -> list[Row]:
    rows = squared_errors(name, size, n, seeds, ("isotonic", "limited"))
    return rows + (squared_errors(name, size, n, seeds[:FEW], ("l2", "l1")) if size <= SHORT else [])


def compute(options: Options) -> list[Row]:
    seeds = (options.seed + np.arange(options.runs)).tolist()
    return spread(job, [(name, *setting, seeds) for name in SHAPES for setting in SETTINGS], options, "estimators")


def ratio(rows: list[Row], how: str, shape: str, setting: tuple[int, int], what: str) -> float:
    """The mean squared error over isotonic regression's, over the same releases; not a number where it was not run."""
    mine = [
        r for r in rows if (r["shape"], int(r["thresholds"]), int(r["n_epsilon"])) == (shape, setting[0], setting[1])
    ]
    here = {int(r["seed"]): float(r[what]) for r in mine if r["method"] == how}
    flat = {int(r["seed"]): float(r[what]) for r in mine if r["method"] == "isotonic"}
    return float(sum(here.values()) / max(sum(flat[seed] for seed in here), 1e-300)) if here else float("nan")


def cells(rows: list[Row], how: str, what: str) -> dict[tuple[str, tuple[int, int]], float]:
    found = {(shape, setting): ratio(rows, how, shape, setting, what) for shape in SHAPES for setting in SETTINGS}
    return {key: value for key, value in found.items() if np.isfinite(value)}


def draw(rows: list[Row], options: Options) -> None:
    def on(axes: Axes) -> None:
        inks = {"limited": "#1b3a5c", "l2": "#c1551b", "l1": "#3f7d4f"}
        for k, how in enumerate(WAYS):
            for what, marker in (("curve", "o"), ("bins", "x")):
                found = list(cells(rows, how, what).values())
                at = k + (0.15 if what == "bins" else -0.15) + np.linspace(-0.1, 0.1, len(found))
                axes.plot(at, found, marker, color=inks[how], markersize=4, label=f"{how}, {what}")
        axes.axhline(1.0, color="#888888", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xticks(range(len(WAYS)), WAYS)
        axes.set_ylabel("mean squared error over that of isotonic")
        axes.legend(ncol=3, fontsize=7)
        axes.set_title("Smoothing against isotonic regression: one point for each shape and size")

    save(options, "estimators", on, f"slice-tree, both servers' noise, {options.runs} releases ({FEW} for l1 and l2)")


def claims(rows: list[Row]) -> list[Claim]:
    def words(how: str) -> str:
        told = []
        for what in ("curve", "bins"):
            found = cells(rows, how, what)
            mean, worst = float(np.exp(np.mean(np.log(list(found.values()))))), max(found, key=found.__getitem__)
            over = sum(value > NO_WORSE for value in found.values())
            told.append(
                f"{what} {mean:.2f} on average, {found[worst]:.2f} at worst ({worst[0]}, {worst[1][0]} thresholds, "
                f"n {worst[1][1]}), {over} of {len(found)} cells above {NO_WORSE}"
            )
        return f"{how}: " + ", ".join(told)

    worst = [max(cells(rows, "limited", what).values()) for what in ("curve", "bins")]
    by_setting = [
        f"{size} thresholds, n {n}: "
        + ", ".join(
            f"{how} {np.exp(np.mean(np.log([ratio(rows, how, s, (size, n), 'curve') for s in SHAPES]))):.2f}"
            for how in WAYS
            if size <= SHORT or how == "limited"
        )
        for size, n in SETTINGS
    ]
    return [
        Claim(
            "estimators",
            "(ours) limited is at most 5 % worse than isotonic regression in mean squared error, on shapes never seen",
            "; ".join(words(how) for how in WAYS),
            max(worst) <= NO_WORSE,
        ),
        Claim(
            "estimators",
            "(ours) mean squared error of the curve over isotonic regression's, limited, 2-norm and 1-norm",
            "; ".join(by_setting),
            max(float(np.mean(list(cells(rows, "limited", what).values()))) for what in ("curve", "bins")) < 1,
        ),
    ]


FIGURES = [Figure("estimators", "limited, 2-norm and 1-norm against isotonic regression", compute, draw, claims)]
