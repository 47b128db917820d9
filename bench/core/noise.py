"""Part of `python -m bench core`: how fast noise is drawn, and how much less of it there is than elsewhere."""

import argparse
import time
import warnings

import numpy as np
from numpy.typing import NDArray

from bench.measure import best_in_turn
from bench.output import Result
from fss_ecdf.campaign.noise import tables
from fss_ecdf.campaign.noise.mechanism import Mechanism
from fss_ecdf.campaign.noise.paper_tree import PaperTree
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from servers.release.noise import NoiseTree, _splits

DEPTH = 15
BRANCHING = 16

Counts = NDArray[np.int64]


def results(args: argparse.Namespace) -> list[Result]:
    return [*_speed(args), *_accuracy(args)]


def _tree(m: Mechanism, seed: int) -> NoiseTree:
    return NoiseTree(seed.to_bytes(32, "little"), server=0, covers=bytes(32), mechanism=m)


def _speed(args: argparse.Namespace) -> list[Result]:
    curve, deep = _tree(SliceTree(16, 1.0), args.seed), _tree(SliceTree(32, 1.0), args.seed)
    points = np.random.default_rng(args.seed).integers(0, 1 << 32, 100)

    def make_tables() -> None:
        _splits.cache_clear()
        tables.build.cache_clear()
        _ = SliceTree(20, 0.1).tables

    small = -time.process_time()
    _ = SliceTree(32, 0.05).tables
    small += time.process_time()
    cold = time.perf_counter()
    curve.curve()
    cold = time.perf_counter() - cold
    best = best_in_turn({"tables": make_tables}, min(3, args.rounds))
    deep.at(points[:1])
    best |= best_in_turn({"points": lambda: deep.at(points)}, args.rounds)
    return [
        Result.at_most("slice_curve_s", cold, 0.5, "noise of a whole curve, D = 16, epsilon = 1, tables included"),
        Result.at_most("slice_tables_s", best["tables"], 5, "tables for D = 20, epsilon = 0.1"),
        Result.at_most("slice_small_tables_s", small, 5, "CPU seconds: tables for D = 32, epsilon = 0.05"),
        Result.at_most(
            "slice_points_ms", 1000 * best["points"], 100, "noise at 100 random points, D = 32, epsilon = 1"
        ),
    ]


def _accuracy(args: argparse.Namespace) -> list[Result]:
    """Mean squared error of a published curve of Poisson(3) data over 2^15 points at epsilon = 1."""
    data = np.random.default_rng(args.seed).poisson(3, 1 << DEPTH)
    truth = np.cumsum(data)
    runs = range(args.runs)

    def error(m: Mechanism) -> float:
        return float(np.mean([((truth + _tree(m, seed).curve() - truth) ** 2.0).mean() for seed in runs]))

    ours, paper = error(SliceTree(DEPTH, 1.0)), error(PaperTree(DEPTH, 1.0))
    what = f"mean squared error over ours, N = 2^{DEPTH}, epsilon = 1, {args.runs} runs: "
    results = [
        Result("slice_mse", ours, f"slice-tree, N = 2^{DEPTH}, epsilon = 1, {args.runs} runs, one noise tree"),
        Result.at_least("slice_vs_paper_mse", paper / ours, 10, what + "the paper's mechanism"),
    ]
    opendp = _opendp_error(data, truth, args.runs)
    name = what + f"OpenDP's {BRANCHING}-ary tree with consistency"
    if opendp is None:
        print("opendp is not installed (pip install 'fss-ecdf[bench]'): the comparison with it is left out\n")
        return [*results, Result("slice_vs_opendp_mse", None, name)]
    return [*results, Result.at_least("slice_vs_opendp_mse", opendp / ours, 2, name)]


def _opendp_error(data: Counts, truth: Counts, runs: int) -> float | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        tree = dp.t.make_b_ary_tree(*space, leaf_count=data.size, branching_factor=BRANCHING)
        # Replacing one value changes two leaves by one each.
        noisy = dp.binary_search_chain(lambda s: tree >> dp.m.then_laplace(scale=s), d_in=2, d_out=1.0)
        consistent = dp.t.make_consistent_b_ary_tree(branching_factor=BRANCHING)
        errors = []
        for _ in range(runs):
            curve = np.cumsum(np.array(consistent(noisy(data.tolist())))[: data.size])
            errors.append(((curve - truth) ** 2).mean())
    return float(np.mean(errors))
