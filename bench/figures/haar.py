"""Where `smoothing="haar"` helps and where it hurts: its errors over those of isotonic regression, same noise."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from analyst.curve import Floats
from analyst.release import Release
from bench.figures.figure import Claim, Figure, Options, Row, save, spread
from campaign.noise.simulate import both_servers
from campaign.spec import Campaign

BITS = 10
EPSILON = 1.0
SIZES = (1_000, 10_000, 100_000, 1_000_000)  # n epsilon, since epsilon is 1
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
STYLE = {
    "uniform": ("#1b3a5c", "-"),
    "beta": ("#3f7d4f", "-."),
    "narrow": ("#c1551b", "--"),
    "five values": ("#7a1f1f", ":"),
}
SPREAD_OUT = ("uniform", "beta")


def shares(name: str) -> Floats:
    """The share of each of 2^10 cells: even, a hump, a hump of a fiftieth of the grid, or five cells only."""
    x = (np.arange(1 << BITS) + 0.5) / (1 << BITS)
    density = {
        "uniform": np.ones_like(x),
        "beta": x * (1 - x) ** 3,
        "narrow": np.exp(-0.5 * ((x - 0.3) / 0.005) ** 2) + 1e-4,
        "five values": np.where(np.isin(np.arange(x.size), (100, 300, 301, 600, 900)), 1.0, 0.0),
    }[name]
    return np.asarray(density / density.sum())


def _campaign() -> Campaign:
    about = {"id": bytes(32), "title": "Smoothing", "question": "How smooth?", "epsilon": EPSILON}
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": (1 << BITS) - 1}
    return Campaign.from_dict({**about, "grid": grid})


def job(name: str, n: int, seeds: Sequence[int]) -> list[Row]:
    spec, rows = _campaign(), []
    for seed in seeds:
        rng = np.random.default_rng([seed, n])
        true = np.cumsum(rng.multinomial(n, shares(name))).astype(np.float64)
        release = Release.of_whole(spec, n, true + both_servers(spec.noise, 1, BITS, rng)[0])
        places = np.searchsorted(true, np.array(LEVELS) * n)
        for how in ("isotonic", "haar"):
            curve = release.curve(smoothing=how)
            off = np.abs(np.array(curve.quantile(LEVELS).index) - places)
            about = {"method": name, "n_epsilon": n * EPSILON, "seed": seed, "smoothing": how}
            rows.append({**about, "curve": float(((curve.counts - true) ** 2).mean()), "quantiles": float(off.mean())})
    return rows


def ratios(rows: list[Row], name: str, what: str) -> list[float]:
    """Of haar's error over that of isotonic regression, at each size: roots of mean squares, or mean distances."""
    line = []
    for n in SIZES:
        of = [
            np.mean([r[what] for r in rows if (r["method"], r["n_epsilon"], r["smoothing"]) == (name, n, how)])
            for how in ("haar", "isotonic")
        ]
        ratio = float(of[0] / of[1]) if of[1] > 0 else (1.0 if of[0] == 0 else float("inf"))
        line.append(ratio**0.5 if what == "curve" else ratio)
    return line


def compute(options: Options) -> list[Row]:
    seeds = (options.seed + np.arange(options.runs)).tolist()
    return spread(job, [(name, n, seeds) for name in STYLE for n in SIZES], options, "haar")


def draw(rows: list[Row], options: Options) -> None:
    def on(axes: Axes) -> None:
        for name, (colour, dashes) in STYLE.items():
            axes.plot(SIZES, ratios(rows, name, "curve"), color=colour, linestyle=dashes, marker="o", label=name)
            line = ratios(rows, name, "quantiles")
            axes.plot(SIZES, line, color=colour, linestyle=dashes, marker="x", linewidth=0.8, alpha=0.7)
        axes.plot([], [], color="#555555", marker="o", linestyle="none", label="error of the curve")
        axes.plot([], [], color="#555555", marker="x", linestyle="none", label="error of quantiles")
        axes.axhline(1.0, color="#888888", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("n epsilon")
        axes.set_ylabel("error with haar over that with isotonic")
        axes.legend(ncol=2)
        axes.set_title("Haar shrinkage against isotonic regression")

    save(options, "haar", on, f"slice-tree, {1 << BITS} thresholds, both servers' noise, {options.runs} runs")


def claims(rows: list[Row]) -> list[Claim]:
    def words(what: str, names: Sequence[str]) -> str:
        lines = {name: ratios(rows, name, what) for name in names}
        return "; ".join(
            f"{name} {', '.join(f'{r:.2f} at {n:g}' for n, r in zip(SIZES, line, strict=True))}"
            for name, line in lines.items()
        )

    large = [r for name in SPREAD_OUT for r in ratios(rows, name, "curve")[1:]]
    rest = [name for name in STYLE if name not in SPREAD_OUT]
    hurt = max(r for name in rest for what in ("curve", "quantiles") for r in ratios(rows, name, what))
    return [
        Claim(
            "haar",
            "(ours) for spread-out data of n epsilon >= 10^4, haar has a smaller error of the curve than isotonic",
            f"haar over isotonic, curve: {words('curve', SPREAD_OUT)}; quantiles: {words('quantiles', SPREAD_OUT)}",
            max(large) < 1,
        ),
        Claim(
            "haar",
            "(ours) for concentrated data haar never hurts by more than a twentieth",
            f"haar over isotonic, curve: {words('curve', rest)}; quantiles: {words('quantiles', rest)}",
            hurt < 1.05,
        ),
    ]


FIGURES = [Figure("haar", "haar shrinkage against isotonic regression", compute, draw, claims)]
