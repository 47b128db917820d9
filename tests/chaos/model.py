"""What must be true of two servers, whatever happens to them: the simple model that the real ones are held against."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fss_ecdf.campaign.campaign import Campaign


class Broken(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True)
class Batch:
    """Some values of one party: their ids and positions, and the envelope for each server."""

    ids: tuple[bytes, ...]
    positions: tuple[int, ...]
    envelopes: tuple[bytes, bytes]


@dataclass
class Model:
    """All that the outside world has sent, and has been told, about one campaign."""

    campaign: Campaign
    batches: list[Batch] = field(default_factory=list)
    position: dict[bytes, int] = field(default_factory=dict)
    tried: tuple[set[bytes], set[bytes]] = field(default_factory=lambda: (set(), set()))
    acknowledged: tuple[set[bytes], set[bytes]] = field(default_factory=lambda: (set(), set()))
    withdrawal_tried: set[bytes] = field(default_factory=set)
    withdrawn: set[bytes] = field(default_factory=set)
    owner: dict[bytes, object] = field(default_factory=dict)  # of ids that stand for the same value of a party
    certain: set[object] = field(default_factory=set)  # owners that were told that their value is stored at both
    sealed: tuple[int, str] | None = None
    answers: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.position.update(zip(batch.ids, batch.positions, strict=True))

    def try_upload(self, role: int, ids: Sequence[bytes]) -> set[bytes]:
        """To be called before an upload; returns the ids that this server cannot have yet."""
        with self.lock:
            fresh = set(ids) - self.tried[role]
            self.tried[role].update(ids)
            return fresh

    def upload_acknowledged(self, role: int, ids: set[bytes]) -> None:
        with self.lock:
            self.acknowledged[role].update(ids)

    def told_sealed(self, count: int, checksum: str) -> None:
        with self.lock:
            self._once("the sealed set", self.sealed, (count, checksum))
            self.sealed = (count, checksum)

    def told_answer(self, question: str, answer: Any) -> None:
        with self.lock:
            self._once(f"the answer to {question}", self.answers.get(question), answer)
            self.answers[question] = answer

    @staticmethod
    def _once(what: str, before: Any, now: Any) -> None:
        if before is not None and before != now:
            raise Broken(f"{what} has changed from {before} to {now}")

    def check_sets(self, first: set[bytes], second: set[bytes]) -> None:
        """The sealed sets of both servers, read from their disks."""
        if first != second:
            raise Broken(f"the servers hold different sets: {len(first - second)} and {len(second - first)} alone")
        if self.sealed is None or self.sealed[0] != len(first):
            raise Broken(f"{self.sealed} was promised, {len(first)} uploads are there")
        must = (self.acknowledged[0] & self.acknowledged[1]) - self.withdrawal_tried
        if lost := must - first:
            raise Broken(f"{len(lost)} acknowledged uploads are lost")
        if back := first & self.withdrawn:
            raise Broken(f"{len(back)} withdrawn uploads are counted")
        if strange := first - (self.tried[0] & self.tried[1]):
            raise Broken(f"{len(strange)} uploads are counted that were never sent to both servers")
        self._check_owners(first)

    def _check_owners(self, sealed: set[bytes]) -> None:
        """A value that was sent under several ids, after interruptions, counts once."""
        counted = [self.owner[i] for i in sealed if i in self.owner]
        if len(counted) != len(set(counted)):
            raise Broken(f"{len(counted) - len(set(counted))} values are counted twice")
        if lost := self.certain - set(counted):
            raise Broken(f"{len(lost)} values are lost that their party knows to be stored")

    def curve(self, sealed: set[bytes]) -> np.ndarray[Any, Any]:
        """The exact counts of a set."""
        positions = np.array([self.position[i] for i in sealed], np.int64)
        return np.cumsum(np.bincount(positions, minlength=1 << self.campaign.bits))
