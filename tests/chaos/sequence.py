"""One random sequence: planned from its seed, played against the servers, and checked against the model.

The plan (who does what, in which order, under which fault, killed after how many milliseconds) follows from the seed.
How the operating system interleaves it does not: a failure that depends on a race may need a few runs of its seed.
"""

import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import numpy as np

from fss_ecdf.campaign.campaign import Campaign
from tests.campaign.helpers import count_above
from tests.chaos.model import Batch, Broken, Model
from tests.chaos.operations import Party, Play, new_batch
from tests.chaos.world import CURVE_BITS, World
from tests.harness.faulty_proxy import NONE, Fault
from tests.harness.server_pair import commitments, name
from tests.servers.test_answers import both_noises, noise_tree

Action = Callable[[], object]
HOUR = 3600
STEPS = 6


@dataclass(frozen=True)
class Outcome:
    seconds: float
    kills: int
    uploads: int
    sealed: int
    answers: int


def new_campaign(rng: random.Random) -> Campaign:
    """Small ones: whole curves in the background, single points from the keys, both schemes, one or two strata."""
    now = datetime.now(UTC).replace(microsecond=0)
    step = rng.choice([0.05, 0.02, 0.002, 0.002])
    id = rng.randbytes(32)
    fields = {
        "id": id,
        "server_commitments": commitments(id),
        "check_keys": rng.random() < 0.5,
        "title": "chaos",
        "question": "Does it hold?",
        "variables": [
            {
                "name": "value",
                "grid": {"kind": "linear", "from": 0.0, "to": 1.0, "step": step},
                "scheme": "dcf" if step < 0.05 else rng.choice(["dcf", "dpf"]),
            }
        ],
        "strata": rng.choice([["all"], ["no", "yes"]]),
        "epsilon": 1.0,
        "reserve": 0.5,
        "min_uploads": rng.choice([1, 5, 40]),
        "opens": now - timedelta(hours=1),
        "closes": now + timedelta(hours=1),
    }
    return Campaign.from_dict(fields)


def _insist(otherwise: str, action: Callable[[], bool]) -> None:
    """When nothing is broken, what fails was only slow: the machine may be busy."""
    for _ in range(60):
        if action():
            return
        time.sleep(0.5)
    raise Broken(otherwise)


def _in_turn(actions: list[Action]) -> None:
    for action in actions:
        action()


class Sequence:
    def __init__(self, world: World, seed: str, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.world, self.seed, self._folder = world, seed, folder
        self.play = Play(world, Model(new_campaign(self.rng)), f"fss-up-{self.rng.randbytes(8).hex()}")
        self.parties: list[Party] = []
        self._background = ThreadPoolExecutor(4)  # parties take longer than a step
        self._started = time.monotonic()
        self._kills = world.kills

    def run(self, steps: int) -> Outcome:
        for role in (0, 1):
            _insist(f"server {role} does not create a campaign", partial(self.play.create, role))
        with ThreadPoolExecutor(12) as pool:
            for number in range(steps):
                self._step(pool, partial(self._operation, number / steps))
            for _ in range(steps // 3):
                self._heal_and_seal()
                self._step(pool, self._late_operation)
        self._heal_and_seal()
        sealed = self._check()
        model = self.play.model
        uploads = len(model.tried[0] | model.tried[1])
        kills = self.world.kills - self._kills
        return Outcome(time.monotonic() - self._started, kills, uploads, sealed, len(model.answers))

    def _step(self, pool: ThreadPoolExecutor, operation: Callable[[], list[Action]]) -> None:
        """A few operations at once, under faults."""
        self._disturb()
        actions = [action for _ in range(self.rng.randint(1, 4)) for action in operation()]
        actions += self._mishap()
        self.rng.shuffle(actions)
        for done in [pool.submit(action) for action in actions]:
            done.result()
        self._recover()

    # The plan

    def _operation(self, late: float) -> list[Action]:
        """While the campaign is open, for all that anybody knows; `late` goes from 0 to 1."""
        rng, play, role = self.rng, self.play, self.rng.randrange(2)
        batches = play.model.batches
        kind = rng.choices(
            ["upload", "bulk", "one-sided", "retry", "duplicate", "conflict", "withdraw", "seal", "ask", "party"],
            [6, 4, 1, 3, 2, 1, 2, 3 * late, 2 * late, 1],
        )[0]
        if kind in ("retry", "duplicate", "conflict", "withdraw") and not batches:
            kind = "bulk"
        if kind in ("upload", "bulk", "one-sided"):
            batch = new_batch(play.model.campaign, 1 if kind == "upload" else rng.randint(2, 30), rng)
            play.model.add(batch)
            return [partial(play.upload, r, batch) for r in ((role,) if kind == "one-sided" else (0, 1))]
        if kind == "party":
            self.parties.append(
                Party(play, self._folder / f"{len(self.parties)}.receipt", rng.randint(1, 20), rng.random())
            )
            return [partial(self._background.submit, self.parties[-1].go_on, rng.random() < 0.7)]
        if kind == "seal":
            return [partial(play.seal, role)]
        if kind == "ask":
            return [self._question(role)]
        batch = rng.choice(batches)
        if kind == "conflict":
            other = new_batch(play.model.campaign, 1, rng)
            return [partial(play.conflict, role, batch, other)]
        if kind == "withdraw":
            return [partial(play.withdraw, r, batch) for r in rng.choice([(0,), (1,), (0, 1)])]
        return [partial(play.upload, role, batch)] * (3 if kind == "duplicate" else 1)

    def _late_operation(self) -> list[Action]:
        """When it is sealed: questions, and whoever still has something to send."""
        role = self.rng.randrange(2)
        if self.rng.random() < 0.8:
            return [partial(_in_turn, [self._question(role), self._question(1 - role), self._question(role)])]
        return [
            partial(self.play.upload, role, self.rng.choice(self.play.model.batches)),
            partial(self.play.seal, role),
        ]

    def _question(self, role: int) -> Action:
        rng, campaign = self.rng, self.play.model.campaign
        stratum = f"stratum={rng.choice(campaign.strata)}"
        points = ",".join(f"{x:.2f}" for x in sorted(rng.sample([i / 20 for i in range(20)], 3)))
        kinds = [f"ecdf?at={points}&{stratum}"]
        if campaign.bits <= CURVE_BITS:
            kinds += [f"curve?{stratum}"]
            if len(campaign.strata) == 2 and rng.random() < 0.3:
                return partial(self.play.ask_sums, role, count_above(campaign, 0.3, 0.5))
        return partial(self.play.ask, role, rng.choice(kinds))

    def _disturb(self) -> None:
        """Between steps: links fail or work again, clocks step."""
        rng = self.rng
        for link in self.world.links:
            link.fault = Fault.draw(rng) if rng.random() < 0.15 else NONE
            if rng.random() < 0.1:
                link.cut()
        if rng.random() < 0.15:
            self.world.step_clock(rng.randrange(2), rng.choice([-2 * HOUR, 0, 2 * HOUR]))

    def _mishap(self) -> list[Action]:
        """During a step: servers are killed or paused."""
        rng = self.rng
        kind = rng.choices(["nothing", "kill", "kill-both", "pause"], [5, 4, 1, 1])[0]
        roles = (0, 1) if kind == "kill-both" else (rng.randrange(2),)
        if kind.startswith("kill"):
            return [partial(self._kill, role, rng.uniform(0, rng.choice([0.05, 0.2, 0.5]))) for role in roles]
        return [partial(self._pause, roles[0], rng.uniform(0.1, 1.0))] if kind == "pause" else []

    def _kill(self, role: int, after: float) -> None:
        time.sleep(after)
        self.world.kill(role)

    def _pause(self, role: int, seconds: float) -> None:
        self.world.signal(role, signal.SIGSTOP)
        time.sleep(seconds)
        self.world.signal(role, signal.SIGCONT)

    def _recover(self) -> None:
        """A server that was killed stays away for a while, or comes back at once."""
        for role in (0, 1):
            if self.rng.random() < 0.8:
                self.world.revive(role)

    # The check, when everything works again

    def _heal_and_seal(self) -> None:
        """Sealing goes on where it was stopped, from either side; if too few uploads reached both, send more."""
        self.world.heal()
        play, campaign = self.play, self.play.model.campaign
        self._background.shutdown()
        self._background = ThreadPoolExecutor(4)
        for party in self.parties:
            if not party.done:
                party.go_on(False)
        if not (play.seal(1) and play.seal(0)):
            play.model.add(extra := new_batch(campaign, campaign.min_uploads, self.rng))
            _insist("the campaign cannot be sealed", partial(self._complete, extra))
        self.world.pair.wait_ready(campaign)

    def _complete(self, extra: Batch) -> bool:
        """A sealing that was cut off leaves a campaign frozen: it takes uploads again once another one has failed."""
        for role in (0, 1):
            self.play.upload(role, extra)
        return self.play.seal(1) and self.play.seal(0)

    def _check(self) -> int:
        model = self.play.model
        for party in self.parties:
            party.note_ids()
        sealed = self.world.ids(0, model.campaign.id)
        model.check_sets(sealed, self.world.ids(1, model.campaign.id))
        self._check_answers(sealed)
        if complaints := self.world.complaints():
            raise Broken(f"a server's log says {complaints[0]}")
        self._delete()
        return len(sealed)

    def _counts(self, role: int, at: str, stratum: str) -> list[int]:
        """Of keys they need the other server, which may be slow once."""
        response = self._ecdf(role, at, stratum)
        for _ in range(60):
            if response.status_code != 503:
                break
            time.sleep(0.5)
            response = self._ecdf(role, at, stratum)
        assert response.status_code == 200, response.text
        return list(response.json()["counts"])

    def _ecdf(self, role: int, at: str, stratum: str) -> httpx.Response:
        with self.world.pair.analyst(role) as client:
            path = f"/v1/campaigns/{name(self.play.model.campaign)}/ecdf"
            return client.get(path, params={"at": at, "stratum": stratum})

    def _check_answers(self, sealed: set[bytes]) -> None:
        play, pair, campaign = self.play, self.world.pair, self.play.model.campaign
        if campaign.bits <= CURVE_BITS:
            noise = both_noises(pair, campaign)
        else:
            at = np.arange(1 << campaign.bits)
            noise = noise_tree(pair, 0, campaign).at(at) + noise_tree(pair, 1, campaign).at(at)
        raw = play.model.curve(sealed) + noise
        grid = campaign.variable.grid
        everywhere = ",".join(str(t) for t in grid.all_thresholds)
        for number, stratum in enumerate(campaign.strata):
            start = number << grid.bits
            exact = raw[start : start + grid.size] - (raw[start - 1] if number else 0)
            for role in (0, 1):
                if self._counts(role, everywhere, stratum) != exact.tolist():
                    raise Broken(
                        f"server {role}, stratum {stratum}: without the noise the counts are not those of the set"
                    )
        for question in list(play.model.answers):
            for role in (0, 1):
                sums = partial(play.ask_sums, role, count_above(campaign, 0.3, 0.5))
                again = sums if question.startswith("sums") else partial(play.ask, role, question)
                _insist(f"server {role} does not answer {question} any more", again)
        self._check_ledgers()

    def _check_ledgers(self) -> None:
        for role in (0, 1):
            spent = self.world.pair.ask(role, self.play.model.campaign, "budget")["spent"]
            if spent > 1.5:
                raise Broken(f"server {role} has spent {spent} of 1.5")

    def _delete(self) -> None:
        for role in (0, 1):
            with self.world.pair.operator(role) as client:
                if client.delete(self.play.path).status_code != 200:
                    raise Broken(f"server {role} does not delete the campaign")
                if client.get(self.play.path).status_code != 410:
                    raise Broken(f"server {role} still shows a deleted campaign")
