"""What would be published of scored data: by us in one tree over both strata, by the paper in two at epsilon / 2."""

import numpy as np

from analyst import smooth
from analyst.curve import Curve, Floats, Smoothing
from analyst.release import Release
from analyst.roc import Roc
from bench.paper.data import STRATA, Scored, campaign
from servers.noise import NoiseTree

SHORT: dict[str, Smoothing] = {"raw": "none", "1-norm": "l1", "2-norm": "l2", "isotonic": "isotonic"}


def tree(mechanism: str, epsilon: float, strata: tuple[str, ...], seed: int, number: int) -> Floats:
    """The noise of one tree over all positions."""
    noise = campaign(mechanism, epsilon, strata).noise
    source = NoiseTree(seed.to_bytes(32, "little"), server=number, campaign=bytes(32), mechanism=noise)
    return source.curve().astype(np.float64)


def ours(data: Scored, epsilon: float, seed: int) -> Release:
    """One slice-tree over the concatenated strata, at the full epsilon."""
    spec = campaign("slice-tree", epsilon)
    whole = data.counts + tree("slice-tree", epsilon, STRATA, seed, 0)
    size, start = spec.grid.size, 1 << spec.grid.bits
    return Release(
        spec,
        data.labels.size,
        {STRATA[0]: whole[:size], STRATA[1]: whole[start : start + size] - whole[start - 1]},
    )


def exact(data: Scored) -> Release:
    """Without noise."""
    size, start = data.campaign.grid.size, 1 << data.campaign.grid.bits
    whole = data.counts.astype(np.float64)
    counts = {STRATA[0]: whole[:size], STRATA[1]: whole[start : start + size] - whole[start - 1]}
    return Release(data.campaign, data.labels.size, counts)


def papers_roc(data: Scored, epsilon: float, seed: int, how: str) -> Roc:
    """The paper's way: a tree for each class at epsilon / 2, each smoothed by itself."""
    truth, n = exact(data), float(data.labels.size)
    spec, curves = campaign("paper-tree", epsilon), []
    for number, stratum in enumerate(STRATA):
        raw = truth.counts[stratum] + tree("paper-tree", epsilon / 2, ("all",), seed, number)[: spec.grid.size]
        curves.append(Curve(spec, stratum, int(n), raw, _smoothed(raw, n, how, spec.grid.bits), SHORT[how]))
    return Roc(*curves)


def _smoothed(raw: Floats, n: float, how: str, depth: int) -> Floats:
    if how == "raw":
        return raw
    if how == "isotonic":
        return smooth.isotonic(raw, n)
    return smooth.tree(raw, n, norm=int(how[0]), mechanism="paper-tree", depth=depth)
