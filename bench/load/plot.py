"""The picture of a load test."""

from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np

from bench.load.samples import Calls, Sample
from bench.output import about

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

COLOURS = {"question": "C0", "single upload": "C1", "bulk upload": "C2", "flood": "C3", "sealing": "C4"}


def draw(path: Path, calls: Calls, samples: list[list[Sample]], overload: tuple[float, float], seed: int) -> None:
    figure, axes = plt.subplots(2, 3, figsize=(15, 7), layout="constrained", sharex=True)
    _rates(axes[0, 0], calls, (200,), "calls answered a second")
    _rates(axes[0, 1], calls, (429,), "calls refused with 429 a second")
    _latencies(axes[0, 2], calls)
    for axis, what, title in (
        (axes[1, 0], "memory_mb", "memory of the process, MB (without mapped files)"),
        (axes[1, 1], "files", "open files and connections"),
        (axes[1, 2], "disk_mb", "data folder, MB"),
    ):
        for role, rows in enumerate(samples):
            axis.plot([s.at for s in rows], [getattr(s, what) for s in rows], label=f"server {role}")
        axis.set(title=title, xlabel="seconds")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=8)
    for axis in axes.flat:
        axis.axvspan(*overload, color="0.9", zorder=0)
        axis.grid(alpha=0.3)
    machine = about(seed)
    text = f"{machine['command']}   {machine['cpu']}, {machine['cores']} cores, commit {machine['commit']}, seed {seed}"
    figure.suptitle(f"Two servers under mixed load; grey: more than they take\n{text}", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _windows(calls: Calls) -> np.ndarray:
    end = max(row[0] for kind in calls.kinds for row in calls.rows(kind))
    return np.linspace(0, end, 61)


def _rates(axis: Axes, calls: Calls, statuses: tuple[int, ...], title: str) -> None:
    edges = _windows(calls)
    for kind in calls.kinds:
        at = [when for when, _, status in calls.rows(kind) if status in statuses]
        if at:
            axis.plot(edges[1:], np.histogram(at, edges)[0] / np.diff(edges), label=kind, color=COLOURS[kind])
    axis.set(title=title)
    axis.set_ylim(bottom=0)
    if axis.get_lines():
        axis.legend(fontsize=8)


def _latencies(axis: Axes, calls: Calls) -> None:
    edges = _windows(calls)
    for kind in ("question", "single upload", "bulk upload"):
        for percent, style in ((50, "-"), (95, ":")):
            y = [1000 * calls.percentile(kind, percent, (a, b)) for a, b in pairwise(edges)]
            axis.plot(edges[1:], y, style, color=COLOURS[kind], label=f"{kind}, {percent} %")
    axis.set(title="latency, ms", yscale="log")
    axis.legend(fontsize=8)
