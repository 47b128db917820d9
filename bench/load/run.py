"""python -m bench load: two servers under mixed load for minutes: uploads, questions, sealings, and too much at once.

Throughput, latency, memory and open files over time. From 60 % to 70 % of the time several clients upload without
pause, more than the servers take: they answer 429, and afterwards everything is as before. At the end two servers with
the usual settings are attacked, and honest requests meanwhile are timed.
"""

import random
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from bench import output
from bench.load.attacked import attacked
from bench.load.campaigns import new_campaign
from bench.load.plot import draw
from bench.load.samples import Calls, Sample, sample
from bench.output import Result, print_table, write_json
from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair, name, sealed_envelopes

UPLOADS_PER_S = 2000  # what a server takes in this benchmark; beyond it is too much
OVERLOAD = (0.6, 0.7)


@dataclass
class Load:
    """The servers, the campaigns of the moment, and what was measured."""

    pair: LivePair
    seconds: float
    open: Campaign
    sealed: Campaign
    started: float = field(default_factory=time.monotonic)
    calls: Calls = field(default_factory=Calls)
    stop: threading.Event = field(default_factory=threading.Event)

    def now(self) -> float:
        return time.monotonic() - self.started

    def overloaded(self) -> bool:
        return OVERLOAD[0] * self.seconds <= self.now() < OVERLOAD[1] * self.seconds


def main(argv: list[str]) -> int:
    parser = output.parser("load", __doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("bench-results"), metavar="FOLDER", help="for the picture")
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        pair = LivePair(Path(folder), limits__uploads_per_s=str(UPLOADS_PER_S))
        with pair:
            load, samples = _run(pair, 60 * args.minutes, args.seed)
            internal = [e for role in (0, 1) for e in pair.events(role) if e["event"] == "internal-error"]
    results = [*_results(load, samples, len(internal)), *attacked(args.seed)]
    print_table(results)
    args.out.mkdir(parents=True, exist_ok=True)
    overload = (OVERLOAD[0] * load.seconds, OVERLOAD[1] * load.seconds)
    draw(args.out / "load.png", load.calls, samples, overload, args.seed)
    print(f"\nwrote {args.out / 'load.png'}")
    write_json(args.json, results, args.seed)
    return 0 if all(r.met in (None, True) for r in results) else 1


def _run(pair: LivePair, seconds: float, seed: int) -> tuple[Load, list[list[Sample]]]:
    rng = random.Random(seed)  # noqa: S311 - a benchmark's choices
    first, second = new_campaign(rng), new_campaign(rng)
    for campaign in (first, second):
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(100))
    pair.seal(first)
    pair.wait_ready(first)
    load = Load(pair, seconds, second, first)
    works: list[Callable[[], None]] = [
        lambda: _upload(load, size=100, pause=0.3),
        lambda: _upload(load, size=1, pause=0.05),
        lambda: _ask(load, pause=0.05),
        lambda: _ask(load, pause=0.05),
        lambda: _seal(load, every=seconds / 10, rng=rng),
        *[lambda: _flood(load)] * 4,
    ]
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    samples: list[list[Sample]] = [[], []]
    while load.now() < seconds:
        for role, process in enumerate(pair.processes):
            assert process is not None
            samples[role].append(sample(load.now(), process.pid, pair.folder / f"server{role}" / "data"))
        time.sleep(min(1.0, seconds / 100))
    load.stop.set()
    for thread in threads:
        thread.join()
    return load, samples


def _call(load: Load, kind: str, what: Callable[[], httpx.Response]) -> None:
    at, started = load.now(), time.perf_counter()
    try:
        status = what().status_code
    except httpx.HTTPError:
        status = 0
    load.calls.add(kind, at, time.perf_counter() - started, status)


def _upload(load: Load, size: int, pause: float) -> None:
    """Values to both servers, one batch after the other."""
    rng = np.random.default_rng(size)
    with load.pair.client(0) as one, load.pair.client(1) as two:
        while not load.stop.is_set():
            _send(load, "single upload" if size == 1 else "bulk upload", (one, two), rng.integers(0, 1024, size))
            time.sleep(pause)


def _send(load: Load, kind: str, clients: tuple[httpx.Client, ...], values: np.ndarray) -> None:
    campaign = load.open
    token = load.pair.upload_tokens[campaign.id]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": UPLOAD_TYPE}
    path = f"/v1/campaigns/{name(campaign)}/uploads"
    for client, data in zip(clients, sealed_envelopes(campaign, values, token), strict=False):
        _call(load, kind, lambda c=client, d=data: c.post(path, content=d, headers=headers))  # type: ignore[misc]


def _flood(load: Load) -> None:
    """Nothing, until it is time for too much: then uploads of 500 values without a pause."""
    rng = np.random.default_rng(7)
    with load.pair.client(0) as one:
        while not load.stop.is_set():
            if load.overloaded():
                _send(load, "flood", (one,), rng.integers(0, 1024, 500))
            else:
                time.sleep(0.1)


def _ask(load: Load, pause: float) -> None:
    rng = np.random.default_rng(3)
    with load.pair.analyst(0) as one, load.pair.analyst(1) as two:
        while not load.stop.is_set():
            client, at = (one, two)[rng.integers(2)], ",".join(map(str, np.sort(rng.integers(0, 1024, 5))))
            path = f"/v1/campaigns/{name(load.sealed)}/ecdf"
            _call(load, "question", lambda c=client, p=path, a=at: c.get(p, params={"at": a}))  # type: ignore[misc]
            time.sleep(pause)


def _seal(load: Load, every: float, rng: random.Random) -> None:
    """Now and then the open campaign is sealed, and questions go to it as soon as it is ready; the older is deleted."""
    while not load.stop.wait(every):
        fresh, full, old = new_campaign(rng), load.open, load.sealed
        load.pair.create(fresh)
        load.open = fresh
        load.pair.agree(full, 1)
        _call(load, "sealing", lambda f=full: load.pair.agree(f, 0))  # type: ignore[misc]
        load.pair.wait_ready(full, 300)
        load.sealed = full
        time.sleep(1.0)  # questions under way still go to the old one
        for role in (0, 1):
            with load.pair.operator(role) as client:
                client.delete(f"/v1/campaigns/{name(old)}")


def _results(load: Load, samples: list[list[Sample]], internal: int) -> list[Result]:
    calls, t = load.calls, load.seconds
    before, after = (0.2 * t, OVERLOAD[0] * t), (OVERLOAD[1] * t + 0.05 * t, t)
    strange = [s for kind in calls.kinds for s in calls.statuses(kind) if s not in (200, 429, 409)]
    ratio = calls.percentile("question", 50, after) / calls.percentile("question", 50, before)
    refused = sum(s == 429 for s in calls.statuses("flood"))
    late = [s for kind in ("bulk upload", "single upload") for s in calls.statuses(kind, after)]
    results = [
        Result("questions_per_s", calls.rate("question", t), "answered, over the whole time"),
        Result("values_per_s", calls.rate("bulk upload", t) * 100 / 2, "paced, stored by both servers"),
        Result.at_most("strange_answers", len(strange), 0, "neither 200, nor 429, nor 409 (sealed meanwhile)"),
        Result.at_most("internal_errors", internal, 0, "in the servers' logs"),
        Result.at_least("refused_in_overload", refused, 1, "uploads answered with 429 while there were too many"),
        Result.at_most("refused_after", sum(s == 429 for s in late), 0, "uploads answered with 429 afterwards"),
        Result.at_most("recovery_ratio", ratio, 3, "median latency of a question after the overload over before it"),
    ]
    for kind in ("question", "single upload", "bulk upload", "sealing"):
        for percent in (50, 95, 99):
            key = f"{kind.replace(' ', '_')}_p{percent}_ms"
            results.append(Result(key, 1000 * calls.percentile(kind, percent, (0, t)), f"latency, {percent} %"))
    for role in (0, 1):
        results += _growth(role, samples[role], t)
    return results


def _growth(role: int, samples: list[Sample], t: float) -> list[Result]:
    """The last quarter of the time against the second: both have as much work."""

    def most(of: Callable[[Sample], float], start: float, stop: float) -> float:
        return max(of(s) for s in samples if start * t <= s.at < stop * t)

    memory = most(lambda s: s.memory_mb, 0.75, 1) / most(lambda s: s.memory_mb, 0.25, 0.5)
    files = most(lambda s: s.files, 0.75, 1) - most(lambda s: s.files, 0.25, 0.5)
    return [
        Result.at_most(f"memory_growth_{role}", memory, 1.5, f"server {role}: memory, last quarter over the second"),
        Result.at_most(f"files_growth_{role}", files, 20, f"server {role}: more open files than in the second quarter"),
    ]
