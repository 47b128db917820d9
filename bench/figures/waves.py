"""A campaign of many waves: how far the running curve is from the truth, by how waves are released and pooled.

Every way spends the same epsilon on a party in all, and adds the same kind of noise over the grid; what differs is how
the releases are spread over time. Each node is simulated as both servers would draw it.

- summed waves: each wave once, at the whole epsilon; the running curve is their sum.
- pooled: each wave at half of epsilon, all waves pooled at the end at the other half; or at a quarter each twice.
- binary counter: a binary tree over the waves. As Chan, Shi and Song sum it, the nodes that make up 1..t; at the
  scale of the paper's Theorem 1 (Eq. 1 over time), a wave and all its ancestors; the same by its Theorem 2, which says
  that half of the levels explain a change of one wave, so that each node has twice the epsilon.
- k-ary subtraction: a tree of odd k over the waves whose nodes are added and subtracted, with the best k.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from analyst.statistics.curve import Floats
from bench.figures.figure import Claim, Figure, Options, Row, save, spread
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.simulate import both_servers
from fss_ecdf.campaign.release import cumulative, releases_of
from fss_ecdf.campaign.waves import Pooled, Waves

WAVES = 365
BITS = 7
EPSILON = 1.0
SHOWN = (1, 7, 30, 52, 91, 182, 183, 273, 364, 365)

Node = tuple[object, ...]
Parts = list[tuple[Node, float]]  # nodes and their signs


@dataclass(frozen=True)
class Way:
    """How the running curve after t waves is put together, and the epsilon of each node."""

    parts: Callable[[int], Parts]
    epsilon: Callable[[Node], float]


def pooled(each: float, at: Sequence[int]) -> Way:
    """Waves at one epsilon and pools at another, as servers choose among them."""
    share = (EPSILON - each) / max(len(at), 1)
    waves = Waves(every="manual", count=WAVES, pooled=tuple(Pooled(through=k, epsilon=share) for k in at))
    plans = releases_of(waves, each, 1, [1] * WAVES)
    return Way(
        lambda t: [((plan.kind, plan.through), 1.0) for plan in cumulative(plans, t)],
        lambda node: each if node[0] == "wave" else share,
    )


def levels_of(waves: int) -> int:
    """How many nodes of a binary tree over so many waves hold each of them."""
    return (waves - 1).bit_length() + 1


def chan(t: int) -> Parts:
    """The nodes whose waves are 1..t, each once: one for every 1 in t's binary form."""
    found, start = Parts(), 0
    for level in range(t.bit_length() - 1, -1, -1):
        if t >> level & 1:
            found.append(((level, start >> level), 1.0))
            start += 1 << level
    return found


def ancestors(t: int) -> Parts:
    """A wave and all nodes above it: what Eq. 1 adds at a position, here a time."""
    return [((level, (t - 1) >> level), 1.0) for level in range(levels_of(WAVES))]


def heights(k: int, waves: int) -> int:
    """Levels of a k-ary tree whose nodes, added and subtracted, reach so many waves."""
    height = 1
    while (k**height - 1) // 2 < waves:
        height += 1
    return height


def subtraction(t: int, k: int, height: int) -> Parts:
    """t in digits from -(k-1)/2 to (k-1)/2: nodes of a level are added from the left or taken away from the right."""
    found, position = Parts(), 0
    digits = []
    rest = t
    for _ in range(height):
        digit = (rest + k // 2) % k - k // 2
        digits.append(digit)
        rest = (rest - digit) // k
    for level in range(height - 1, -1, -1):
        size = k**level
        for _ in range(abs(digits[level])):
            if digits[level] > 0:
                found.append(((level, position // size), 1.0))
                position += size
            else:
                position -= size
                found.append(((level, position // size), -1.0))
    return found


def best_k(waves: int) -> int:
    """The odd k of least variance on average."""

    def cost(k: int) -> float:
        height = heights(k, waves)
        return float(height**2 * np.mean([len(subtraction(t, k, height)) for t in range(1, waves + 1)]))

    return min(range(3, 60, 2), key=cost)


def ways() -> dict[str, Way]:
    k, levels = best_k(WAVES), levels_of(WAVES)
    height = heights(k, WAVES)
    return {
        "summed waves": pooled(EPSILON, []),
        "waves, pooled at the end": pooled(EPSILON / 2, [WAVES]),
        "waves, pooled twice": pooled(EPSILON / 2, [WAVES // 2, WAVES]),
        "binary counter, Theorem 1": Way(ancestors, lambda _: EPSILON / levels),
        "binary counter, Theorem 2": Way(ancestors, lambda _: EPSILON / -(-levels // 2)),
        "binary counter, Chan et al.": Way(chan, lambda _: EPSILON / levels),
        f"k-ary subtraction, k = {k}": Way(lambda t: subtraction(t, k, height), lambda _: EPSILON / height),
    }


STYLE = [
    ("#1b3a5c", "-"),
    ("#3f7d4f", "-"),
    ("#5b2a86", "-."),
    ("#999999", ":"),
    ("#7a1f1f", ":"),
    ("#c1551b", "--"),
    ("#d9a441", "-."),
]


def job(name: str, seeds: Sequence[int]) -> list[Row]:
    way = ways()[name]
    parts = {t: way.parts(t) for t in range(1, WAVES + 1)}
    nodes = list(dict.fromkeys(node for some in parts.values() for node, _ in some))
    place = {node: i for i, node in enumerate(nodes)}
    by_epsilon: dict[float, list[int]] = {}
    for node, i in place.items():
        by_epsilon.setdefault(way.epsilon(node), []).append(i)
    rows: list[Row] = []
    for seed in seeds:
        noise: Floats = np.zeros((len(nodes), 1 << BITS))
        rng = np.random.default_rng([seed, len(nodes)])
        for epsilon, some in by_epsilon.items():
            noise[some] = both_servers(mechanism("slice-tree", BITS, epsilon), len(some), BITS, rng)
        for t, chosen in parts.items():
            error = sum(times * noise[place[node]] for node, times in chosen)
            squared = float(np.mean(np.square(error)))
            rows.append({"method": name, "waves": t, "seed": seed, "squared_error": squared})
    return rows


def compute(options: Options) -> list[Row]:
    seeds = (options.seed + np.arange(options.runs)).tolist()
    rows = spread(job, [(name, seeds) for name in ways()], options, "waves")
    return [
        {"method": name, "waves": t, "error": error}
        for name, line in lines(rows).items()
        for t, error in enumerate(line, 1)
    ]


def lines(rows: list[Row]) -> dict[str, list[float]]:
    """The root of the mean squared error over runs and thresholds, after each wave."""
    sums: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        sums.setdefault(row["method"], {}).setdefault(int(row["waves"]), []).append(row["squared_error"])
    return {name: [float(np.sqrt(np.mean(of[t]))) for t in sorted(of)] for name, of in sums.items()}


def errors(rows: list[Row]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(str(row["method"]), []).append(float(row["error"]))
    return found


def draw(rows: list[Row], options: Options) -> None:
    def on(axes: Axes) -> None:
        for (name, line), (colour, dashes) in zip(errors(rows).items(), STYLE, strict=True):
            axes.plot(range(1, len(line) + 1), line, color=colour, linestyle=dashes, label=name, linewidth=1.3)
        axes.set_yscale("log")
        axes.minorticks_off()
        ticks = [10, 20, 50, 100, 200, 500]
        axes.set_yticks(ticks, [str(tick) for tick in ticks])
        axes.set_xlabel("waves so far")
        axes.set_ylabel("error of the running curve (values)")
        axes.legend(fontsize=7, ncol=2)
        axes.set_title("Running curves over 365 waves, epsilon = 1 for each party in all")

    save(options, "waves", on, f"slice-tree, {1 << BITS} thresholds, both servers' noise, {options.runs} runs")


def claims(rows: list[Row]) -> list[Claim]:
    found = errors(rows)
    counters = [name for name in found if "counter" in name or "k-ary" in name]

    def words(at: Sequence[int]) -> str:
        return "; ".join(
            f"{name}: {', '.join(f'{line[t - 1]:.0f} after {t}' for t in at)}" for name, line in found.items()
        )

    means = {name: float(np.mean(np.square(line))) for name, line in found.items()}
    pooled_end, summed = found["waves, pooled at the end"], found["summed waves"]
    return [
        Claim(
            "waves",
            "(ours) at the end of 365 waves, waves pooled once have a smaller error than every counter",
            words([t for t in SHOWN if t <= WAVES]),
            pooled_end[-1] < min(found[name][-1] for name in counters),
        ),
        Claim(
            "waves",
            "Theorem 2 halves the noise that a binary counter needs",
            ", ".join(f"{name} {np.sqrt(means[name]):.0f}" for name in found if "Theorem" in name),
            means["binary counter, Theorem 2"] < 0.3 * means["binary counter, Theorem 1"],
        ),
        Claim(
            "waves",
            "(ours) up to 52 waves, summed waves have a smaller error than every counter of 365 waves, on average",
            "; ".join(f"{name} {np.sqrt(np.mean(np.square(line[:52]))):.0f}" for name, line in found.items()),
            max(summed[:1]) > 0
            and float(np.mean(np.square(summed[:52])))
            < min(float(np.mean(np.square(found[n][:52]))) for n in counters),
        ),
        Claim(
            "waves",
            "(ours) over all 365 waves, on average, no counter beats summed waves",
            "; ".join(f"{name} {np.sqrt(value):.0f}" for name, value in means.items()),
            means["summed waves"] < min(means[name] for name in counters),
        ),
    ]


FIGURES = [Figure("waves", "running curves over 365 waves", compute, draw, claims)]
