"""Part of `python -m bench core`: what an analyst waits for after the release is there. A band, a report, survival."""

import argparse
from datetime import UTC, datetime

import numpy as np

from analyst.estimation import bands, public_constraints
from analyst.present import report
from analyst.release import Release
from bench.measure import best_in_turn
from bench.output import Result
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.simulate import both_servers


def results(args: argparse.Namespace) -> list[Result]:
    rounds = min(3, args.rounds)
    return [_band(args.seed), _report(args.seed, rounds), _survival(args.seed, rounds)]


def _campaign(grid: object, **fields: object) -> Campaign:
    about = {"id": bytes(32), "title": "Benchmark", "question": "How fast is it?", "epsilon": 1.0}
    return Campaign.from_dict({**about, "variables": [{"name": "value", "grid": grid}], **fields})


def _publish(spec: Campaign, values: object, strata: list[str] | None, seed: int) -> Release:
    """Values, with the noise of two servers."""
    placed = spec.to_positions(values, strata)
    counts = np.cumsum(np.bincount(placed.positions, minlength=1 << spec.bits)).astype(np.float64)
    noise = both_servers(spec.noise, 1, spec.bits, np.random.default_rng(seed))[0]
    return Release.from_curve(spec, placed.positions.size, counts + noise)


def _band(seed: int) -> Result:
    """Once, from nothing: a band is kept, as everything of a release is."""
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": (1 << 20) - 2}
    spec = _campaign(grid=grid)
    values = np.random.default_rng(seed).integers(0, 1 << 20, 100_000).clip(max=(1 << 20) - 2)
    release = _publish(spec, values, None, seed)
    public_constraints._facts.cache_clear()
    bands._of_whole_tree.cache_clear()
    took = best_in_turn({"band": lambda: release.curve().band()}, 1)["band"]
    return Result.at_most("band_1m_s", took, 5, "a curve of 2^20 - 1 thresholds, smoothed, with its population band")


def _report(seed: int, rounds: int) -> Result:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.beta(2, 6, 5000), 3)
    names = np.where(rng.random(5000) < scores, "event", "no event").tolist()
    spec = _campaign(grid={"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.001}, strata=["no event", "event"])

    def run() -> None:
        bands._given_facts.cache_clear()
        report.page(_publish(spec, scores, names, seed), datetime.now(UTC))

    took = best_in_turn({"report": run}, rounds)["report"]
    return Result.at_most("report_s", took, 3, "a report on two strata of 1001 thresholds, all figures and tables")


def _survival(seed: int, rounds: int) -> Result:
    rng = np.random.default_rng(seed)
    strata = [f"{arm}: {status}" for arm in ("placebo", "drug") for status in ("event", "censored")]
    spec = _campaign(kind="survival", grid={"kind": "linear", "values": "integer", "from": 1, "to": 365}, strata=strata)
    days = np.clip(np.ceil(rng.exponential(300, 4000)), 1, 365)
    names = [strata[i] for i in rng.integers(0, 4, 4000)]
    release = _publish(spec, days, names, seed)

    def run() -> None:
        fresh = Release(release.campaign, release.n, release.published)
        fresh.survival(list(range(30, 365, 30))).columns()
        fresh.survival_summary(300)

    took = 1000 * best_in_turn({"survival": run}, max(3, rounds))["survival"]
    what = "two arms, 365 days: Kaplan-Meier at 12 times with both intervals, medians, restricted means, log-rank"
    return Result.at_most("survival_ms", took, 50, what)
