"""Many sequences, mutations and copies."""

import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.chaos import fleet, lies, rollbacks
from tests.chaos.durability import try_copies
from tests.chaos.fuzz import envelope_target, fuzz, other_targets
from tests.chaos.sequence import STEPS, Outcome, Sequence
from tests.chaos.world import World
from tests.harness.fork_server import ForkServer
from tests.harness.server_pair import LivePair

PART = 100_000

T = TypeVar("T")


def simulate(numbers: Iterable[int], seed: int, steps: int = STEPS) -> tuple[list[Outcome], list[str]]:
    """Play sequences one after the other; two servers for all of them, two new ones after a failure."""
    done: list[Outcome] = []
    failed: list[str] = []
    todo = list(numbers)
    while todo:
        with tempfile.TemporaryDirectory() as folder, World(Path(folder)) as world:
            while todo:
                number = todo.pop(0)
                try:
                    done.append(Sequence(world, f"{seed}/{number}", Path(tempfile.mkdtemp(dir=folder))).run(steps))
                except Exception as error:
                    failed.append(f"--seed {seed} --first {number} --sequences 1: {type(error).__name__}: {error}")
                    traceback.print_exc()
                    print(f"FAILED {failed[-1]}", flush=True)
                    break
                print(f"{seed}/{number}: {done[-1]}", flush=True)
    return done, failed


def simulate_all(first: int, count: int, seed: int, steps: int, jobs: int) -> dict[str, Any]:
    return _all(partial(simulate, seed=seed, steps=steps), first, count, jobs, "kills uploads sealed answers")


def fleet_all(first: int, count: int, seed: int) -> dict[str, Any]:
    """Two organisations of many processes, one world after the other."""
    started, done, failed = time.monotonic(), list[fleet.Outcome](), list[str]()
    for number in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            play = partial(fleet.play, Path(folder), f"{seed}/{number}", fleet.Size())
            _try(play, "fleets", seed, number, done, failed)
    kills: dict[str, int] = {}
    for outcome in done:
        for kind, times in outcome.kills.items():
            kills[kind] = kills.get(kind, 0) + times
    return {
        "worlds": count,
        "failed": failed,
        "kills": kills,
        "uploads": sum(o.uploads for o in done),
        "sealed": sum(o.sealed for o in done),
        "answers": sum(o.answers for o in done),
        "seconds": round(time.monotonic() - started),
    }


PARTS = ("sequences", "lies", "rollbacks", "fleets", "copies", "envelopes")


def _try(play: Callable[[], T], part: str, seed: int, number: int, done: list[T], failed: list[str]) -> None:
    """Add what came of one game, or the options that play it again."""
    try:
        done.append(play())
    except Exception as error:
        options = " ".join(f"--{name} {int(name == part)}" for name in PARTS)
        failed.append(f"--seed {seed} --first {number} {options}: {type(error).__name__}: {error}")
        traceback.print_exc()
        print(f"FAILED {failed[-1]}", flush=True)
        return
    print(f"{part} {seed}/{number}: {done[-1]}", flush=True)


def lie_all(first: int, count: int, seed: int, jobs: int) -> dict[str, Any]:
    """Sequences of honest parties against a server that lies."""
    return _all(partial(_lie, seed=seed), first, count, jobs, "runs lies values counted")


def _all(
    play: Callable[[range], tuple[list[Any], list[str]]], first: int, count: int, jobs: int, sums: str
) -> dict[str, Any]:
    """Sequences in several processes, and sums of what they saw."""
    started = time.monotonic()
    numbers = range(first, first + count)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(play, [numbers[j::jobs] for j in range(jobs)]))
    done = [outcome for part, _ in parts for outcome in part]
    return {
        "sequences": count,
        "failed": [line for _, lines in parts for line in lines],
        **{name: sum(getattr(outcome, name) for outcome in done) for name in sums.split()},
        "seconds": round(time.monotonic() - started),
    }


def _lie(numbers: Iterable[int], seed: int) -> tuple[list[lies.Outcome], list[str]]:
    done: list[lies.Outcome] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder), workers="1") as pair:
        for number in numbers:
            play = partial(lies.play, pair, Path(tempfile.mkdtemp(dir=folder)), f"{seed}/{number}")
            _try(play, "lies", seed, number, done, failed)
    return done, failed


def roll_back_all(first: int, count: int, seed: int, jobs: int) -> dict[str, Any]:
    """Sequences in which a server is rolled back and the other one lies about it."""
    return _all(partial(_roll_back, seed=seed), first, count, jobs, "uploads closings rollbacks lies messages")


def _roll_back(numbers: Iterable[int], seed: int) -> tuple[list[rollbacks.Outcome], list[str]]:
    done: list[rollbacks.Outcome] = []
    failed: list[str] = []
    nursery = ForkServer()
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            play = partial(rollbacks.play, nursery, Path(folder) / "world", f"{seed}/{number}")
            _try(play, "rollbacks", seed, number, done, failed)
    nursery.close()
    return done, failed


def fuzz_all(envelopes: int, seed: int, jobs: int) -> dict[str, object]:
    """Mutated envelopes, and a hundredth as many messages for each of the other decoders."""
    started = time.monotonic()
    parts = -(-envelopes // PART)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        accepted = sum(pool.map(_fuzz_envelopes, range(seed, seed + parts)))
    with tempfile.TemporaryDirectory() as folder:
        others = {target.name: fuzz(target, envelopes // 100, seed) for target in other_targets(Path(folder))}
    return {
        "envelopes": parts * PART,
        "accepted": accepted,
        "others": envelopes // 100,
        "others_accepted": others,
        "seconds": round(time.monotonic() - started),
    }


def _fuzz_envelopes(seed: int) -> int:
    return fuzz(envelope_target(), PART, seed)


def copy_all(copies: int, seed: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        return dict(try_copies(Path(folder), copies, seed))
