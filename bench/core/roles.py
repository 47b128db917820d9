"""Part of `python -m bench core`: what parties and analysts wait for. Smoothing against cvxopt, and a dealer's CPU."""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import smooth
from analyst.estimation.limited import limited
from bench.figures.synthetic import published
from bench.measure import best_in_turn
from bench.output import Result
from dealer.input_rows import Options, from_file
from dealer.upload_client import BATCH
from dealer.upload_secrets import UploadSecrets
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from tests.harness.server_pair import commitments

DEPTH = 15
PAPER, OURS = "paper-tree", "slice-tree"
Floats = NDArray[np.float64]


def results(args: argparse.Namespace) -> list[Result]:
    return [*_smoothing(args), *_large(args), _dealer(args), _help()]


def noisy_curve(name: str, depth: int, seed: int) -> tuple[Floats, float]:
    """A published curve of Poisson(3) values at each of 2^depth positions, epsilon = 1, and n."""
    truth, raw = published(name, depth, 1.0, 3.0, seed)
    return raw, float(truth[-1])


def _smoothing(args: argparse.Namespace) -> list[Result]:
    curves = {name: noisy_curve(name, DEPTH, args.seed) for name in (PAPER, OURS)}

    def run(name: str, norm: int, solver: smooth.Solver = "clarabel") -> None:
        curve, n = curves[name]
        smooth.tree(curve, n, norm=norm, mechanism=name, solver=solver)

    variances = SERVERS * SliceTree(DEPTH, 1.0).level_variances
    best = best_in_turn(
        {
            "isotonic": lambda: smooth.isotonic(*curves[OURS]),
            "limited": lambda: limited(*curves[OURS], variances),
        },
        args.rounds,
    )
    for norm in (2, 1):
        candidates = {
            f"paper {norm}": lambda norm=norm: run(PAPER, norm),
            f"ours {norm}": lambda norm=norm: run(OURS, norm),
            f"cvxopt {norm}": lambda norm=norm: run(PAPER, norm, "cvxopt"),
        }
        best |= best_in_turn(candidates, min(3, args.rounds))
    what = f"N = 2^{DEPTH}, the slower of both mechanisms: Eq. 2, "
    over = f"N = 2^{DEPTH}, paper-tree: cvxopt's time on the same constraints over ours, "
    return [
        Result.at_most("isotonic_ms", 1000 * best["isotonic"], 10, f"isotonic smoothing, N = 2^{DEPTH}"),
        Result.at_most("limited_ms", 1000 * best["limited"], 50, f"limited smoothing, the default, N = 2^{DEPTH}"),
        Result.at_most("smooth_l2_s", max(best["paper 2"], best["ours 2"]), 0.6, what + "2-norm"),
        Result.at_most("smooth_l1_s", max(best["paper 1"], best["ours 1"]), 2, what + "1-norm"),
        Result.at_least("smooth_l2_vs_cvxopt", best["cvxopt 2"] / best["paper 2"], 1.5, over + "2-norm"),
        Result.at_least("smooth_l1_vs_cvxopt", best["cvxopt 1"] / best["paper 1"], 2, over + "1-norm"),
    ]


def _large(args: argparse.Namespace) -> list[Result]:
    """A million thresholds, in a process of its own, whose peak of memory is that of smoothing."""
    curve, n = noisy_curve(PAPER, 20, args.seed)
    variances = SERVERS * SliceTree(20, 1.0).level_variances
    ways = {"isotonic": lambda: smooth.isotonic(curve, n), "limited": lambda: limited(curve, n, variances)}
    best = best_in_turn(ways, args.rounds)
    results = [
        Result.at_most("isotonic_1m_s", best["isotonic"], 0.5, "isotonic smoothing, N = 2^20"),
        Result.at_most("limited_1m_s", best["limited"], 2, "limited smoothing, N = 2^20"),
    ]
    what = "2-norm smoothing, N = 2^20, paper-tree"
    if args.rounds < 3:
        return [*results, Result("smooth_l2_1m_s", None, what), Result("smooth_l2_1m_gb", None, what + ", memory")]
    command = [sys.executable, "-c", f"from bench.core import roles; roles.million({args.seed})"]
    seconds, gigabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [
        *results,
        Result.at_most("smooth_l2_1m_s", float(seconds), 60, what),
        Result.at_most("smooth_l2_1m_gb", float(gigabytes), 4, what + ", peak of memory in GB"),
    ]


def million(seed: int) -> None:
    """Run by `_large`: prints seconds and the process's peak of memory."""
    curve, n = noisy_curve(PAPER, 20, seed)
    start = time.perf_counter()
    smooth.tree(curve, n, mechanism=PAPER)
    print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def _dealer(args: argparse.Namespace) -> Result:
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": (1 << 16) - 1}
    about = {"title": "Dealer", "question": "How much CPU?", "epsilon": 1.0}
    campaign = Campaign.from_dict(
        {
            **about,
            "id": bytes(32),
            "variables": [{"name": "value", "grid": grid}],
            "server_commitments": commitments(bytes(32)),
        }
    )
    rng = np.random.default_rng(args.seed)
    text = "value\n" + "\n".join(map(str, rng.integers(0, 1 << 16, 100_000))) + "\n"
    best = float("inf")
    for _ in range(min(3, args.rounds)):
        start = time.process_time()
        placed = from_file(text.encode(), Options("value"), campaign.variable).to_positions(campaign)
        shared = UploadSecrets.of(bytes(32), "bench").make_keys(0, 0, placed.positions, campaign, 0)
        for first in range(0, len(shared), BATCH):
            for server in (0, 1):
                shared.sealed(server, "bench", slice(first, first + BATCH))
        best = min(best, time.process_time() - start)
    what = "CPU seconds of a dealer for 100 000 values, D = 16: CSV to encrypted uploads for both servers"
    return Result.at_most("dealer_100k_cpu_s", best, 1.5, what)


def _help() -> Result:
    """What a user waits for who asks an installed program what it can do; the best of five."""
    took = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([Path(sys.executable).with_name("fss-analyst"), "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Result.at_most("analyst_help_cpu_s", min(took), 0.2, "CPU seconds of fss-analyst --help")
