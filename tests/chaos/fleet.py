"""Two organisations as they would run: processes behind haproxy, PostgreSQL, Dask; and all of them are killed.

Parties upload, both operators seal, analysts ask and spend, while API processes, workers, databases, Dask workers and
schedulers are killed like by a power cut and started again. At the end the sets are equal, hold every upload that was
acknowledged by both and none that was not, the ledgers are within their limits, and the published curve is what one
machine computes from the same keys and secrets, bit for bit.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE, upload_rows
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.net.tokens import hash_token, new_token
from servers.release.noise import NoiseTree
from tests.campaign.helpers import count_above
from tests.chaos.model import Batch, Broken, Model
from tests.harness.dask import Dask
from tests.harness.fleet import Fleet
from tests.harness.server_pair import envelopes, name
from tests.servers.conftest import new_campaign

PATIENCE_S = 300
ENOUGH = 60  # uploads at both before anybody seals
RETRY = (httpx.HTTPError, ValueError, KeyError)


@dataclass(frozen=True)
class Size:
    """How large the world is, and how often something in it is killed."""

    apis: int = 3
    workers: int = 2
    dask_workers: int = 2
    kills: int = 12
    parties: int = 4


@dataclass(frozen=True)
class Outcome:
    kills: dict[str, int]
    uploads: int
    sealed: int
    answers: int


class World:
    """`with World(folder, size) as world:` starts everything."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.fleet = Fleet(folder, apis=size.apis, workers=size.workers)
        self.dasks = [Dask(folder / f"dask{role}", size.dask_workers) for role in (0, 1)]
        for role, dask in enumerate(self.dasks):
            config = self.fleet.home(role) / "server.toml"
            config.write_text(config.read_text() + dask.settings() + "chunk_keys = 64\n")
        self._stack = ExitStack()
        self.kills: dict[str, int] = {}

    def __enter__(self) -> "World":
        for dask in self.dasks:
            self._stack.enter_context(dask)
        self._stack.enter_context(self.fleet)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kill(self, rng: random.Random) -> None:
        """One of everything that there is; what was killed comes back after a moment."""
        role, kind = rng.randrange(2), rng.choice(["api", "api", "work", "postgres", "dask worker", "scheduler"])
        self.kills[kind] = self.kills.get(kind, 0) + 1
        pause = rng.uniform(0.05, 0.6)
        if kind == "postgres":
            self.fleet.postgres(role).stop(kill=True)
            time.sleep(pause)
            self.fleet.postgres(role).start()
        elif kind in ("api", "work"):
            victim = rng.choice(self.fleet.names(kind))
            self.fleet.stop_member(role, victim, kill=True)
            time.sleep(pause)
            self.fleet.start_member(role, victim)
        else:
            dask = self.dasks[role]
            victim = "scheduler" if kind == "scheduler" else rng.choice(dask.names[1:])
            dask.kill(victim)
            time.sleep(pause)
            dask.start(victim)

    def supervise(self) -> None:
        """What systemd or Kubernetes would do."""
        for role in (0, 1):
            self.dasks[role].supervise()
            for member, process in self.fleet.members[role].items():
                if process is not None and process.poll() is not None:
                    self.fleet.stop_member(role, member)
                    self.fleet.start_member(role, member)


class Play:
    """One campaign in that world."""

    def __init__(self, world: World, size: Size, seed: str) -> None:
        self._world, self._fleet, self._size = world, world.fleet, size
        self._rng = random.Random(seed)
        self._campaign = new_campaign(strata=["no", "yes"], reserve=1.0, check_keys=self._rng.random() < 0.5)
        self._model = Model(self._campaign)
        self._sending, self._over, self._failed = threading.Event(), threading.Event(), list[BaseException]()
        self._left = size.kills

    def run(self) -> Outcome:
        self._insist(self._create)
        self._sending.set()
        threads = [self._thread(self._party, n) for n in range(self._size.parties)]
        threads += [self._thread(self._killer, 0), self._thread(self._keeper, 0)]
        try:
            self._until(lambda: len(self._model.acknowledged[1]) >= ENOUGH, "parties are heard")
            self._seal()
            self._sending.clear()
            answers = self._ask()
            self._until(lambda: self._left <= 0, "everything is killed that shall be")
        finally:
            self._sending.clear()
            self._over.set()
            for thread in threads:
                thread.join(PATIENCE_S)
        if self._failed:
            raise self._failed[0]
        self._check()
        uploads = len(self._model.acknowledged[0] | self._model.acknowledged[1])
        assert self._model.sealed is not None
        return Outcome(dict(self._world.kills), uploads, self._model.sealed[0], answers)

    def _thread(self, what: Callable[[random.Random], None], number: int) -> threading.Thread:
        rng = random.Random(f"{self._rng.random()}/{what.__name__}/{number}")

        def guarded() -> None:
            try:
                what(rng)
            except BaseException as error:
                self._failed.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not holds():
            if self._failed:
                raise self._failed[0]
            if time.monotonic() > until:
                raise Broken(f"not within {PATIENCE_S} s: {what}")
            time.sleep(0.1)

    def _insist(self, what: Callable[[], Any]) -> Any:
        """What must work in the end, whatever is away just now."""
        found: list[Any] = []

        def tried() -> bool:
            with suppress(*RETRY, AssertionError):
                found.append(what())
            return bool(found)

        self._until(tried, getattr(what, "__name__", "an answer"))
        return found[0]

    def _create(self) -> None:
        """Repeated with the same token, it changes nothing."""
        token = self._fleet.upload_tokens.setdefault(self._campaign.id, new_token("upload"))
        campaign = self._campaign.model_dump(mode="json", by_alias=True)
        for role in (0, 1):
            self._fleet.plant(role, self._campaign.id)
            with self._fleet.operator(role) as client:
                body = {"campaign": campaign, "upload_token": hash_token(token), "invitations": []}
                assert client.post("/v1/campaigns", json=body).status_code in (200, 201)

    # Those who come while it burns

    def _party(self, rng: random.Random) -> None:
        """Sends to both until both have acknowledged, or one has refused for good."""
        while self._sending.is_set():
            strata = rng.choices(range(2), k=5)
            index = np.array([rng.randrange(self._campaign.variable.grid.size) for _ in strata])
            positions = [int(self._campaign.position(s, i)) for s, i in zip(strata, index, strict=True)]
            both = envelopes(self._campaign, np.array(positions))
            ids = tuple(upload_id for upload_id, _, _ in upload_rows(both[0], self._campaign, 0)[1])
            with self._model.lock:
                self._model.add(Batch(ids, tuple(positions), both))
            for role in (0, 1):
                self._model.try_upload(role, ids)
                if not self._send(role, both[role], set(ids)):  # frozen, perhaps not for good
                    self._over.wait(0.2)
                    break

    def _send(self, role: int, data: bytes, ids: set[bytes]) -> bool:
        while not self._over.is_set():
            with suppress(*RETRY):
                token = self._fleet.upload_tokens[self._campaign.id]
                with self._fleet.client(role, token, timeout=10) as client:
                    path = f"/v1/campaigns/{name(self._campaign)}/uploads"
                    sealed = seal_upload(self._campaign, role, data, token)
                    answer = client.post(path, content=sealed, headers={"Content-Type": UPLOAD_TYPE})
                if answer.status_code == 200 and answer.json()["failures"] == []:
                    self._model.upload_acknowledged(role, ids)
                    return True
                if answer.status_code in (403, 409, 410):
                    return False
                if answer.status_code < 500 and answer.status_code != 429:
                    raise Broken(f"an upload was answered with {answer.status_code}: {answer.text[:200]}")
            time.sleep(0.1)
        return False

    def _killer(self, rng: random.Random) -> None:
        while self._left > 0 and not self._over.is_set():
            self._world.kill(rng)
            self._left -= 1
            self._over.wait(rng.uniform(0.5, 2.0))

    def _keeper(self, _: random.Random) -> None:
        while not self._over.wait(0.5):
            self._world.supervise()

    # Operators and analysts

    def _seal(self) -> None:
        """Both operators, each again and again until it is so."""

        def sealed() -> list[dict[str, Any]]:
            for role in (1, 0):
                with suppress(*RETRY), self._fleet.operator(role) as client:
                    client.post(f"/v1/campaigns/{name(self._campaign)}/seal", timeout=30)
            both = [self._fleet.status(self._campaign, role) for role in (0, 1)]
            assert all(status["state"] == "sealed" for status in both)
            return both

        for status in self._insist(sealed):
            self._model.told_sealed(status["sealed_uploads"], status["checksum"])

    def _ask(self) -> int:
        """The curve from both, and sums that together cost more than there is."""

        def ready() -> None:
            assert all(self._fleet.status(self._campaign, role)["phase"] == "ready" for role in (0, 1))

        self._insist(ready)
        answers = 0
        for role in (0, 1):
            for stratum in self._campaign.strata:
                curve = self._insist(partial(self._fleet.ask, role, self._campaign, "curve", stratum=stratum))
                self._model.told_answer(f"curve {stratum}", curve["counts"])
                answers += 1
        spenders = [self._thread(self._spender, n) for n in range(3)]
        for spender in spenders:
            spender.join(PATIENCE_S)
        return answers

    def _spender(self, rng: random.Random) -> None:
        """0.4 of a reserve of 1, for a query of its own; the third is one too many."""
        body = count_above(self._campaign, round(rng.uniform(0.2, 0.8), 3), 0.4)
        for _ in range(20):
            with suppress(*RETRY), self._fleet.analyst(rng.randrange(2)) as client:
                answer = client.post(f"/v1/campaigns/{name(self._campaign)}/sums", json=body)
                if answer.status_code in (200, 403, 409):
                    return
            time.sleep(0.3)

    # What must be true when all is over

    def _check(self) -> None:
        fleet, campaign, model = self._fleet, self._campaign, self._model
        for role in (0, 1):
            fleet.wait(role)
        first, second = (fleet.ids(role, campaign) for role in (0, 1))
        model.check_sets(first, second)
        curve = model.curve(first)
        for role in (0, 1):
            seed, covered = fleet.noise_secrets(role, campaign)
            curve = curve + NoiseTree(seed, server=role, covers=covered, mechanism=campaign.noise).curve()
        for number, stratum in enumerate(campaign.strata):
            right = curve[campaign.position(number, np.arange(campaign.variable.grid.size))]
            start = campaign.position(number, np.array([-1]))[0]
            right = right - (curve[start] if start >= 0 else 0)
            if model.answers[f"curve {stratum}"] != right.tolist():
                raise Broken(f"the published curve of {stratum} is not the one of these keys")
        for role in (0, 1):
            spent = sum(float(row[0]) for row in fleet.rows(role, _LEDGER, campaign))
            if spent > campaign.total_epsilon + 1e-9:
                raise Broken(f"server {role} spent {spent} of {campaign.total_epsilon}")


_LEDGER = "SELECT epsilon FROM ledger WHERE campaign = :id"


def play(folder: Path, seed: str, size: Size) -> Outcome:
    with World(folder, size) as world:
        return Play(world, size, seed).run()
