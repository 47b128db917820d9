"""What clients do to the two servers, each through a bad link, and what each outcome means for the model.

An operation draws nothing: everything random is an argument, so that a sequence can be planned from its seed alone.
"""

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from dealer.key_pairs import key_rand_bytes, make_keys_at
from dealer.receipt import BatchState, open_receipt
from dealer.servers import ServerPair
from dealer.upload_client import upload
from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign, Positions, from_base64url
from fss_ecdf.campaign.errors import Problem, parse_problem
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.net.tokens import hash_token
from tests.chaos.model import Batch, Broken, Model
from tests.chaos.world import World
from tests.harness.server_pair import name

# What two honest servers may say while links, clocks and processes fail. No internal error, no mismatch, no full disk.
UNDERSTANDABLE = {
    "campaign-closed",
    "campaign-sealed",
    "not-sealed",
    "not-yet-open",
    "peer-unavailable",
    "agreement-pending",
    "too-few-uploads",
    "too-many-requests",
    "not-ready",
    "upload-conflict",
    "upload-withdrawn",
}


@dataclass(frozen=True)
class Play:
    """One campaign being played with."""

    world: World
    model: Model
    token: str

    @property
    def path(self) -> str:
        return f"/v1/campaigns/{name(self.model.campaign)}"

    def call(self, role: int, token: str, method: str, path: str, **more: Any) -> Any:
        """The JSON of a success, or None if the network or the server did not allow one."""
        try:
            with self.world.client(role, token) as client:
                response = client.request(method, path, **more)
        except httpx.HTTPError:
            return None
        if response.status_code in (200, 201):
            return response.json()
        problem = parse_problem(response.content)
        if problem is None or problem.status != response.status_code or problem.code not in UNDERSTANDABLE:
            raise Broken(f"{method} {path} at server {role}: {response.status_code} {response.text[:300]}")
        return None

    def create(self, role: int) -> bool:
        campaign = self.model.campaign.model_dump(mode="json", by_alias=True)
        body = {"campaign": campaign, "upload_token": hash_token(self.token)}
        token = self.world.pair.servers[role].operator
        self.world.pair.plant(role, self.model.campaign.id)
        return self.call(role, token, "POST", "/v1/campaigns", json=body) is not None

    def upload(self, role: int, batch: Batch) -> bool:
        """Whether all of it is stored, as far as the server says."""
        outside = self.world.clocks[role] != 0
        fresh = self.model.try_upload(role, batch.ids)
        stored = self._send(role, batch.envelopes[role], set(batch.ids))
        if outside and fresh & stored:
            raise Broken(f"server {role} took uploads while its clock said that the campaign was closed")
        self.model.upload_acknowledged(role, stored)
        return len(stored) == len(batch.ids)

    def _send(self, role: int, envelope: bytes, ids: set[bytes]) -> set[bytes]:
        """The ids that the server says are stored."""
        headers, data = {"Content-Type": UPLOAD_TYPE}, seal_upload(self.model.campaign, role, envelope, self.token)
        answer = self.call(role, self.token, "POST", f"{self.path}/uploads", content=data, headers=headers)
        if answer is None:
            return set()
        return ids - {from_base64url(failure["id"], 16, "an id") for failure in answer["failures"]}

    def conflict(self, role: int, batch: Batch, other: Batch) -> None:
        """The id of a stored upload with other bytes: never acknowledged, and what was stored stays."""
        envelope = other.envelopes[role]
        forged = envelope[:UPLOAD_HEADER_BYTES] + batch.ids[0] + envelope[UPLOAD_HEADER_BYTES + 16 :]
        known = batch.ids[0] in self.model.acknowledged[role]
        if known and self._send(role, forged, {batch.ids[0]}):
            raise Broken(f"server {role} took other bytes under the id of a stored upload")

    def withdraw(self, role: int, batch: Batch) -> None:
        with self.model.lock:
            self.model.withdrawal_tried.update(batch.ids)
        data = b"".join(batch.ids)
        if self.call(role, self.token, "POST", f"{self.path}/uploads/withdraw", content=data) is not None:
            with self.model.lock:
                self.model.withdrawn.update(batch.ids)

    def seal(self, role: int) -> bool:
        """Both operators want it sealed, this one last."""
        self.call(1 - role, self.world.pair.servers[1 - role].operator, "POST", f"{self.path}/seal")
        answer = self.call(role, self.world.pair.servers[role].operator, "POST", f"{self.path}/seal")
        if answer is not None:
            self.model.told_sealed(answer["count"], answer["checksum"])
        return answer is not None

    def status(self, role: int) -> Any:
        return self.call(role, self.world.pair.servers[role].operator, "GET", f"{self.path}/status")

    def ask(self, role: int, what: str) -> bool:
        answer = self.call(role, self.world.pair.servers[role].analyst, "GET", f"{self.path}/{what}")
        if answer is not None:
            self.model.told_answer(what, answer)
        return answer is not None

    def ask_sums(self, role: int, query: dict[str, Any]) -> bool:
        token = self.world.pair.servers[role].analyst
        answer = self.call(role, token, "POST", f"{self.path}/sums", json=query)
        if answer is not None:
            self.model.told_answer(f"sums {json.dumps(query)}", answer)
        return answer is not None


def new_batch(campaign: Campaign, count: int, rng: random.Random) -> Batch:
    positions = _positions(campaign, count, rng)
    keys_from = rng.randbytes(count * key_rand_bytes(campaign))
    row = np.frombuffer(rng.randbytes(16 * count), np.uint8).reshape(count, 16)
    shared = make_keys_at(Positions(np.array(positions), 0, 0), campaign, keys_from, row, campaign.first_wave)
    ids = tuple(shared.ids[i].tobytes() for i in range(count))
    return Batch(ids, tuple(positions), (shared.envelope(0), shared.envelope(1)))


def _positions(campaign: Campaign, count: int, rng: random.Random) -> list[int]:
    strata, grid = len(campaign.strata), campaign.variable.grid
    return [(rng.randrange(strata) << grid.bits) + rng.randrange(grid.size) for _ in range(count)]


class Interrupted(Exception):
    """The party's program ends in the middle of its work."""


class Party:
    """A party that runs the real upload program through the bad links, is interrupted, and goes on by its receipt."""

    def __init__(self, play: Play, receipt: Path, count: int, seed: float) -> None:
        self._play, self._receipt, self._rng = play, receipt, random.Random(seed)
        self._placed = Positions(np.array(_positions(play.model.campaign, count, self._rng)), 0, 0)
        urls = [f"https://127.0.0.1:{link.port}{play.path}" for link in play.world.to_server]
        ca, digest = play.world.pair.folder / "ca.pem", play.model.campaign.digest
        self._sites = ServerPair(urls, play.token, ca, digest=digest, timeout_s=1.5, attempts=3)
        self.done = False

    def go_on(self, interrupt: bool) -> None:
        """Upload, perhaps end in the middle; an upload that the campaign refuses is over."""
        try:
            upload(
                self._placed,
                self._play.model.campaign,
                self._sites,
                receipt=self._receipt,
                rand=self._rng.randbytes,
                progress=_interrupting(interrupt),
            )
        except (Problem, Interrupted):
            return
        self.done = True
        with self._play.model.lock:
            self._play.model.certain.update((id(self), i) for i in range(self._placed.positions.size))

    def note_ids(self) -> None:
        """Tell the model whose value every id stands for that was ever used, by the receipt."""
        model, positions = self._play.model, self._placed.positions.tolist()
        for ids in ids_used(self._receipt, model.campaign, self._play.token).values():
            with model.lock:
                model.position.update(zip(ids, positions, strict=True))
                model.owner.update((upload_id, (id(self), i)) for i, upload_id in enumerate(ids))
                for role in (0, 1):
                    model.tried[role].update(ids)


def ids_used(receipt: Path, campaign: Campaign, token: str) -> dict[int, list[bytes]]:
    """By generation, the ids of the only batch of an upload, as far as they can have been sent."""
    if not receipt.exists():
        return {}
    with open_receipt(receipt, name(campaign), token, os.urandom) as kept:
        part = kept.parts.get(0, BatchState())
        by_generation = {g: kept.source.ids(0, g, kept.count) for g in range(part.attempt + 1)}
    return {g: [row.tobytes() for row in rows] for g, rows in by_generation.items()}


def _interrupting(interrupt: bool) -> Callable[[int], object]:
    def progress(count: int) -> None:
        if interrupt and count:
            raise Interrupted

    return progress
