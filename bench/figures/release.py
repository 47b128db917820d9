"""What would be published of scored data: by us in one tree over both strata, by the paper in two at epsilon / 2."""

import numpy as np

from analyst.estimation import smooth
from analyst.options import Smoothing
from analyst.release import Release
from analyst.statistics.curve import Curve, Floats
from analyst.statistics.roc import Roc
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
    return Release.from_curve(campaign("slice-tree", epsilon), data.labels.size, data.counts + noise, on_grid=True)


def exact(data: Scored) -> Release:
    """Without noise."""
    return Release.from_curve(data.campaign, data.labels.size, data.counts, on_grid=True)


def papers_roc(data: Scored, epsilon: float, seed: int, how: str) -> Roc:
    """The paper's way: a tree for each class at epsilon / 2, each smoothed by itself."""
    truth, n = exact(data), data.labels.size
    spec, curves = campaign("paper-tree", epsilon), []
    for number, stratum in enumerate(STRATA):
        raw = truth.counts[stratum] + tree("paper-tree", epsilon / 2, ("all",), seed, number)[: spec.variable.grid.size]
        curves.append(Curve(spec, (stratum,), n, raw, _smoothed(raw, n, SHORT[how]), SHORT[how]))
    return Roc(*curves)


def _smoothed(raw: Floats, n: int, how: Smoothing) -> Floats:
    """As the paper does it: each curve by itself, up to a total that smoothing finds."""
    if how in ("l1", "l2"):
        bits = (raw.size - 1).bit_length()
        return smooth.tree(raw, n, norm=int(how[1]), mechanism="paper-tree", depth=bits, total_is_public=False)
    return smooth.isotonic(raw, n) if how == "isotonic" else raw
