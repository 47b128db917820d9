"""Simulated noise is distributed as what a server adds, at every scale."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from fss_ecdf.campaign.noise.mechanism import Mechanism
from fss_ecdf.campaign.noise.paper_tree import ExactPaperTree, PaperTree
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.simulate import noise_curves
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from servers.release.noise import NoiseTree

KINDS = [SliceTree, PaperTree, ExactPaperTree]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 10.0])
def test_the_covariance_is_the_exact_one(kind: type[Mechanism], epsilon: float) -> None:
    m = kind(6, epsilon)
    curves = noise_curves(m, 20_000, 6, np.random.default_rng(4))
    t = np.arange(64)
    assert np.cov(curves.T) == pytest.approx(m.covariance(t[:, np.newaxis], t), abs=0.08 * m.worst_variance())
    coarse = noise_curves(m, 20_000, 3, np.random.default_rng(5))
    assert coarse.var(axis=0) == pytest.approx(m.variance(np.arange(7, 64, 8)), rel=0.1, abs=1e-9)


@pytest.mark.parametrize("count", [500, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["slice-tree", "paper-tree"])
def test_the_tails_are_those_of_the_servers(name: str, count: int) -> None:
    """So many curves of each at four positions and their largest value: five tests, each with false alarm 1e-4."""
    m = mechanism(name, 5, 1.0)
    seeds = (np.random.default_rng(seed).bytes(32) for seed in range(count))
    real = np.array([NoiseTree(s, server=0, covers=bytes(32), mechanism=m).curve() for s in seeds])
    simulated = noise_curves(m, count, 5, np.random.default_rng(1))
    for at in (0, 1, 7, 20):
        assert ks_2samp(real[:, at], simulated[:, at]).pvalue > 1e-4
    assert ks_2samp(np.abs(real).max(axis=1), np.abs(simulated).max(axis=1)).pvalue > 1e-4
