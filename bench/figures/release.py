"""What would be published of scored data: by us in one tree over both strata, by the paper in two at epsilon / 2."""

import numpy as np

from analyst.curve import Curve, Floats, smoothed
from analyst.options import Smoothing
from analyst.release import Release
from analyst.roc import Roc
from bench.figures.data import STRATA, Scored, campaign
from servers.release.noise import NoiseTree

SHORT: dict[str, Smoothing] = {"raw": "none", "1-norm": "l1", "2-norm": "l2", "isotonic": "isotonic"}


def tree(mechanism: str, epsilon: float, strata: tuple[str, ...], seed: int, number: int) -> Floats:
    """The noise of one tree over all positions."""
    noise = campaign(mechanism, epsilon, strata).noise
    source = NoiseTree(seed.to_bytes(32, "little"), server=number, covers=bytes(32), mechanism=noise)
    return source.curve().astype(np.float64)


def ours(data: Scored, epsilon: float, seed: int) -> Release:
    """One slice-tree over the concatenated strata, at the full epsilon."""
    noise = tree("slice-tree", epsilon, STRATA, seed, 0)
    return Release.of_whole(campaign("slice-tree", epsilon), data.labels.size, data.counts + noise)


def exact(data: Scored) -> Release:
    """Without noise."""
    return Release.of_whole(data.campaign, data.labels.size, data.counts)


def papers_roc(data: Scored, epsilon: float, seed: int, how: str) -> Roc:
    """The paper's way: a tree for each class at epsilon / 2, each smoothed by itself."""
    truth, n = exact(data), data.labels.size
    spec, curves = campaign("paper-tree", epsilon), []
    for number, stratum in enumerate(STRATA):
        raw = truth.counts[stratum] + tree("paper-tree", epsilon / 2, ("all",), seed, number)[: spec.grid.size]
        curves.append(Curve(spec, stratum, n, raw, smoothed(spec, raw, n, SHORT[how]), SHORT[how]))
    return Roc(*curves)
