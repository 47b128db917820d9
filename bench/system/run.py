"""python -m bench system: two real servers over TLS on loopback: uploads, sealing, evaluation, answers, memory.

Client and both servers share this machine's cores, so throughputs are lower bounds of what one server does alone.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench import output
from bench.measure import status_mb
from bench.output import Result, print_table, write_json
from bench.system import costs, erasing
from bench.system.connection import Connection
from bench.system.uploading import bodies, fill, new_campaign, send
from fss import backend
from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair, name


def main(argv: list[str]) -> int:
    parser = output.parser("system", __doc__)
    parser.add_argument("--keys", type=int, default=100_000, help="keys of the upload, seal and curve measurements")
    parser.add_argument("--many", type=int, default=1_000_000, help="keys of the memory measurement; 0 leaves it out")
    parser.add_argument("--singles", type=int, default=2000, help="single uploads")
    parser.add_argument("--erased", type=int, default=1_000_000, help="keys of the wave that is erased")
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    results = [
        *costs.results(args, new_campaign(16, check_keys=True)),
        *_uploads_and_curve(args),
        *_checked(args),
        *_points(args),
        *_memory(args),
        *erasing.results(args),
    ]
    print_table(results)
    write_json(args.json, results, args.seed)
    return 0


def _uploads_and_curve(args: argparse.Namespace) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        pair = LivePair(Path(folder))
        pair.configure(1, curve_bits="0")
        with pair:
            campaign = new_campaign(15)
            rates = fill(pair, campaign, args.keys, args.seed)
            singles = new_campaign(16)
            pair.create(singles)
            alone = [a for a, _ in bodies(singles, pair.upload_tokens[singles.id], args.singles, 1, args.seed)]
            single = args.singles / send(pair, 0, singles, alone, 8)
            started = time.perf_counter()
            pair.seal(campaign)
            while (
                pair.status(campaign)["phase"] == "writing keys" or pair.status(campaign, 1)["phase"] == "writing keys"
            ):
                time.sleep(0.02)
            sealing = time.perf_counter() - started
            while pair.status(campaign)["phase"] != "ready":
                time.sleep(0.1)
            curve = next(e["seconds"] for e in pair.events(0) if e["event"] == "curve-ready")
            ratio, warm, health = _warm(pair, campaign)
    n, curve_goal = f"{args.keys} keys", 12 if backend() == "native" else 60
    return [
        Result.at_least("bulk_upload_per_s", min(rates), 20_000, f"keys/s durably stored by one server, {n}, D = 15"),
        Result.at_least("single_upload_per_s", single, 400, f"{args.singles} single uploads/s, 8 connections, durable"),
        Result.at_most("seal_100k_s", sealing, 20, f"sealing {n} on both servers, key files written"),
        Result.at_most(
            "curve_100k_s", float(curve), curve_goal, f"whole curve, {n}, D = 15, DCF, one server, all cores"
        ),
        Result("point_warm_ms", 1000 * warm, "median latency of one point after it"),
        Result("health_ms", 1000 * health, "median latency of /healthz on the same connection"),
        Result.at_most("point_warm_vs_health", ratio, 4, "one over the other"),
    ]


def _checked(args: argparse.Namespace) -> list[Result]:
    """From the wish to seal to both servers' curves, with the check of every key and without it, in one run."""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder)) as pair:
        for checked in (False, True):
            campaign = new_campaign(15, check_keys=checked)
            fill(pair, campaign, args.keys, args.seed)
            started = time.perf_counter()
            pair.seal(campaign)
            pair.wait_ready(campaign, 600)
            seconds[checked] = time.perf_counter() - started
    what = f"sealing and both servers' curves on the same cores, {args.keys} keys, D = 15"
    return [
        Result("seal_and_curve_100k_s", seconds[False], f"{what}, unchecked"),
        Result("seal_and_curve_100k_checked_s", seconds[True], f"{what}, every key checked"),
        Result("checked_vs_unchecked", seconds[True] / seconds[False], "one over the other"),
    ]


def _median(what: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        what()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _warm(pair: LivePair, campaign: Campaign) -> tuple[float, float, float]:
    """Latency of a point once both servers have their curves, against that of /healthz."""
    pair.stop(1)
    pair.drop(1, "curve_bits")
    pair.start(1)
    pair.wait_ready(campaign, 300)
    connection = Connection(pair, 0, pair.servers[0].analyst)
    path = f"/v1/campaigns/{name(campaign)}/ecdf?at="
    rng = np.random.default_rng(0)
    connection.get(path + "1")
    points, health = [], []
    for _ in range(5):
        points.append(_median(lambda: connection.get(path + str(rng.integers(0, 1 << 15))), 100))
        health.append(_median(lambda: connection.get("/healthz"), 100))
    return min(points) / min(health), min(points), min(health)


def _points(args: argparse.Namespace) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder), curve_bits="0") as pair:
        campaign = new_campaign(16)
        fill(pair, campaign, args.keys, args.seed)
        pair.seal(campaign)
        pair.wait_ready(campaign, 120)
        connection = Connection(pair, 0, pair.servers[0].analyst)
        path = f"/v1/campaigns/{name(campaign)}/ecdf?at="
        rng = np.random.default_rng(args.seed)
        cold = _median(lambda: connection.get(path + str(rng.integers(0, 1 << 16))), 15)
    what = f"one new point before the curve is ready, {args.keys} keys, D = 16, both servers"
    return [Result.at_most("point_cold_ms", 1000 * cold, 40 if backend() == "native" else 150, what)]


def _memory(args: argparse.Namespace) -> list[Result]:
    if not args.many:
        return [Result("resident_1m_mb", None, "memory of a server holding many sealed uploads")]
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder), curve_bits="0") as pair:
        campaign = new_campaign(16)
        fill(pair, campaign, args.many, args.seed)
        started = time.perf_counter()
        pair.seal(campaign)
        pair.wait_ready(campaign, 900)
        sealing = time.perf_counter() - started
        for t in (5, 500, 50_000):
            pair.ask(0, campaign, "ecdf", at=str(t))
        files = [pair.folder / f"server{role}" / "data" / name(campaign) / "keys" for role in (0, 1)]
        copying = _median(lambda: _copy(files), 3)  # one alone may wait for what was written before
        process = pair.processes[0]
        assert process is not None
        mb, peak = (status_mb(process.pid, field) for field in ("RssAnon", "VmHWM"))
    return [
        Result("seal_many_s", sealing, f"sealing {args.many} uploads on both servers, key files written"),
        Result("copy_many_s", copying, "copying both key files, with fsync, median of three"),
        Result.at_most("seal_many_vs_copy", sealing / copying, 8, "one over the other"),
        Result.at_most(
            "resident_1m_mb", mb, 1000, f"MB of a server with {args.many} sealed uploads, D = 16, answering"
        ),
        Result("peak_1m_mb", peak, "its peak since it started, mapped file pages included"),
    ]


def _copy(files: Sequence[Path]) -> None:
    for file in files:
        with file.open("rb") as source, file.with_suffix(".copy").open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
