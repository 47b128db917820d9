"""Noticing that a database was rolled back, here or at the other server; until an operator decides, nothing goes on.

Every message between the servers, in both directions, has a head line with three marks of histories
(`storage/history.py`): the newest of the one who writes, the newest that the writer has seen of the reader's, and of
what the reader said it had seen, the one that the writer's database still has. So each side finds out about itself when
the other has seen more than its database holds, and about the other when that does not have what it showed before.
Beside the database a file keeps this server's newest mark, for rollbacks of the database alone.

Marks have tags of the server that made them: the other server cannot invent one to put this one on hold. What it can do
is to say nothing (docs/security.md).
"""

import asyncio
import fcntl
import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fss_ecdf.campaign.errors import InvalidPeerResponse, PeerRolledBack
from fss_ecdf.campaign.files import write_durably
from fss_ecdf.net.server_identity import Identity
from servers import log, metrics
from servers.storage.history import CLAIMED, NONCE_BYTES, OWN, PEER, History, Mark, on_hold

HEADER = "FSS-History"
FILE, _TURN = "history", "history.lock"
FRESH_S = 1.0  # that another process of this server may be ahead
SEEN = 2
_NONE = "-"


@dataclass(frozen=True)
class Told:
    """One head line."""

    newest: Mark
    seen: tuple[Mark, ...] = ()  # first what was compared, then what was said after it
    had: Mark | None = None

    def __str__(self) -> str:
        parts = (self.newest,), self.seen, () if self.had is None else (self.had,)
        return " ".join(",".join(map(str, part)) or _NONE for part in parts)

    @classmethod
    def parse(cls, text: str) -> "Told":
        try:
            newest, seen, had = (
                () if part == _NONE else tuple(map(Mark.parse, part.split(","))) for part in text.split(" ")
            )
        except ValueError:
            newest = seen = had = ()
        if len(newest) != 1 or len(seen) > SEEN or len(had) > 1:
            raise InvalidPeerResponse("the other server's history is not well-formed")
        return cls(newest[0], seen, had[0] if had else None)


class RollbackGuard:
    """What one process of this server knows of both histories. Any thread may look; `require` is for coroutines."""

    def __init__(
        self, history: History, identity: Identity, peer_key: str, data: Path, clock: Callable[[], datetime]
    ) -> None:
        self._history, self._identity, self._peer_key = history, identity, peer_key
        self._data, self._clock = data, clock
        self._looked, self._own, self._peer = -FRESH_S, None, None  # type: float, str | None, str | None
        self._confirmed: tuple[Mark, ...] = ()  # what the other server has seen, and this database has
        self._kept: Mark | None = None
        self.is_compared = False  # with the other server's history, since this process started

    # Before anything is sealed, spent or disclosed

    async def require(self, *, peer: bool = False) -> None:
        """Raises while this server is on hold; with `peer`, also while the other one was rolled back."""
        if time.monotonic() - self._looked > FRESH_S:
            await asyncio.to_thread(self.look)
        if self._own is not None:
            raise on_hold(self._own)
        if peer and self._peer is not None:
            raise PeerRolledBack(f"the other server was rolled back: {self._peer}", retry_after=60)

    def expire(self) -> None:
        """The database was connected anew: it may be another one."""
        self._looked = -FRESH_S

    def look(self) -> None:
        """What the database says, and whether it has what the file beside it says."""
        began, own = time.monotonic(), self._history.standing(OWN)
        kept = self.kept()
        if own.problem is None and kept is not None and self.is_missing(kept):
            self._hold(f"{self._data / FILE} has {kept.place} of its history, and the database does not")
            own = self._history.standing(OWN)
        self._own, self._peer = own.problem, self._history.standing(PEER, self._peer_key).problem
        metrics.ON_HOLD.set(self._own is not None)
        metrics.PEER_ROLLED_BACK.set(self._peer is not None)
        self._looked = began

    def shown(self) -> dict[str, object]:
        """For operators, in every status."""
        said = {"on_hold": self._own, "peer_rolled_back": self._peer}
        return {name: why for name, why in said.items() if why is not None}

    # Messages

    async def told(self, answers: Told | None = None) -> Told:
        """What goes with the next message, or with the answer to one."""
        return await asyncio.to_thread(self.tell, answers)

    def tell(self, answers: Told | None = None) -> Told:
        newest = self.newest()
        self._keep(newest)  # before the other server sees it
        asked = self._confirmed if answers is None else answers.seen
        had = asked[0] if asked and not any(self.is_missing(mark) for mark in asked) else None
        return Told(newest, self._seen(), had)

    def _seen(self) -> tuple[Mark, ...]:
        compared, claimed = (self._history.standing(name, self._peer_key).mark for name in (PEER, CLAIMED))
        if compared is None:
            return ()
        return (compared, claimed) if claimed is not None and claimed.is_newer(compared) else (compared,)

    async def heard(self, text: str, answers: Told | None = None) -> Told:
        """What came with a message, or with the answer to one. It notes what is wrong, and raises nothing for it."""
        return await asyncio.to_thread(self.hear, text, answers)

    def hear(self, text: str, answers: Told | None = None) -> Told:
        told = Told.parse(text)
        wrong = [why for why in map(self.lost, told.seen) if why is not None]
        if wrong:
            self._hold(wrong[0])
        else:
            self._confirmed = told.seen
        known, sent = self._history.standing(PEER, self._peer_key), answers.seen[:1] if answers else ()
        if known.mark is None or told.newest.generation > known.generation:
            if known.mark is not None:
                log.event("peer-recovered", generation=told.newest.generation)
            self._history.saw(told.newest, self._peer_key, known.mark)
        elif told.had == known.mark and (told.newest.is_newer(known.mark) or known.problem is not None):
            self._history.saw(told.newest, self._peer_key, known.mark)
        elif sent and told.had != sent[0]:
            place = answers.seen[-1].place if answers else ""
            why = f"it does not have {place} of its history any more; its newest is {told.newest.place}"
            if self._history.doubt_peer(why, self._clock()):
                log.event("peer-rolled-back", level="error", seen=place, newest=told.newest.place)
        elif told.newest.is_newer(self._history.standing(CLAIMED, self._peer_key).mark or known.mark):
            self._history.claimed(told.newest, self._peer_key)
        self.is_compared = True
        self.look()
        return told

    # Marks of this server

    def newest(self) -> Mark:
        row = self._history.newest()
        return Mark(row.generation, row.number, row.nonce + self._tag(row.generation, row.number, row.nonce))

    def lost(self, seen: Mark) -> str | None:
        """What is wrong here if the other server has seen this of us."""
        if not self._is_ours(seen):
            log.event(
                "not-our-history", level="warning", seen=seen.place
            )  # a lie, or this server has another identity than then
            return None
        if not self.is_missing(seen):
            return None
        here = self._history.newest()
        return (
            f"the other server has seen {seen.place} of its history, which this database does not have (its newest is "
            f"{here.generation}.{here.number})"
        )

    def is_missing(self, mark: Mark) -> bool:
        """What was shown before, in a generation that counts, and is not in the database."""
        generation = self._history.standing(OWN).generation
        return mark.generation > generation or (mark.generation == generation and not self._history.has(mark))

    def kept(self) -> Mark | None:
        """The mark in the file; one of another server, or none that can be read, says nothing."""
        with suppress(FileNotFoundError, ValueError):
            mark = Mark.parse((self._data / FILE).read_text().strip())
            if self._is_ours(mark):
                return mark
        return None

    def _keep(self, newest: Mark, *, anyway: bool = False) -> None:
        """One process at a time, or an older mark could take the place of a newer one."""
        if newest == self._kept and not anyway:
            return
        (self._data / _TURN).touch(mode=0o600)
        with (self._data / _TURN).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            there = self.kept()
            if anyway or there is None or (newest.is_newer(there) and not self.is_missing(there)):
                write_durably(self._data / FILE, f"{newest}\n".encode())
        self._kept = newest

    def accept(self, seen: tuple[Mark, ...]) -> Mark:
        """The operator goes on with the database as it is: in a generation that nobody has seen yet."""
        known = [self._history.standing(OWN).generation, self._history.newest().generation]
        known += [mark.generation for mark in (*seen, self.kept()) if mark is not None and self._is_ours(mark)]
        self._history.accept(1 + max(known))
        newest = self.newest()
        self._keep(newest, anyway=True)
        self.look()
        return newest

    def _is_ours(self, mark: Mark) -> bool:
        nonce, tag = mark.value[:NONCE_BYTES], mark.value[NONCE_BYTES:]
        return hmac.compare_digest(tag, self._tag(mark.generation, mark.number, nonce))

    def _tag(self, generation: int, number: int, nonce: bytes) -> bytes:
        return self._identity.tag(generation.to_bytes(8, "big") + number.to_bytes(8, "big") + nonce)

    def _hold(self, why: str) -> None:
        self._own = why
        if self._history.hold(why, self._clock()):
            log.event("on-hold", level="error", why=why)
