"""The history of one server's database: numbered, so that a database that is older than what was done is noticed.

Whatever must not be forgotten adds a row, in the same transaction: a number, and a nonce that no second run of the same
number has. The newest row is shown to the other server with every message, and kept in a file beside the database. A
database in which a row is missing that was shown before was rolled back: an old backup or replica, a machine that was
reset, a new and empty database. It is put on hold until its operator has decided; from then on the next generation
counts.
"""

import os
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.campaign import TIME_FORMAT, from_base64url, to_base64url
from fss_ecdf.campaign.errors import OnHold
from servers.storage import dialects
from servers.storage.database import Transaction
from servers.storage.schema import HISTORY, STANDING

OWN, PEER, CLAIMED = "own", "peer", "peer claimed"
NONCE_BYTES, MARK_BYTES = 16, 32
_LOCK = b"standing"
_MOST = 1 << 31  # what an Integer holds
DECIDE = "its operator has to decide: fss-server recovery show"


@dataclass(frozen=True)
class Mark:
    """A row of a server's history as others see it: the nonce, and a tag by which that server knows it again."""

    generation: int
    number: int
    value: bytes

    def __str__(self) -> str:
        return f"{self.generation}.{self.number}.{to_base64url(self.value)}"

    @classmethod
    def parse(cls, text: str) -> "Mark":
        """Raises ValueError."""
        generation, number, value = text.split(".")
        mark = cls(int(generation), int(number), from_base64url(value, MARK_BYTES, "a mark"))
        if str(mark) != text or not (0 <= mark.generation < _MOST and 0 <= mark.number < _MOST):
            raise ValueError("not a mark")
        return mark

    def is_newer(self, other: "Mark") -> bool:
        return (self.generation, self.number) > (other.generation, other.number)

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.generation}.{self.number}"


@dataclass(frozen=True)
class Row:
    """The newest row of a history."""

    generation: int
    number: int
    nonce: bytes


@dataclass(frozen=True)
class Standing:
    """What is known of one server: the generation that counts, what was seen of it, and what is wrong with it."""

    mark: Mark | None
    generation: int
    problem: str | None
    since: str | None


def advance(db: Connection, *, even_on_hold: bool = False) -> None:
    """Note, in its own transaction, that something is done that must not be forgotten; refused on hold."""
    own = db.execute(sa.select(STANDING).where(STANDING.c.name == OWN)).one_or_none()
    if own is not None and own.problem is not None and not even_on_hold:
        raise on_hold(own.problem)
    generation = 0 if own is None else own.generation
    dialects.of(db.engine).lock_history(db)
    db.execute(HISTORY.insert().values(generation=generation, nonce=os.urandom(NONCE_BYTES)))


def on_hold(why: str) -> OnHold:
    return OnHold(f"this server is on hold: {why}; {DECIDE}", retry_after=5)


class History:
    """The tables; what to think of them is decided in `servers/standing.py`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def newest(self) -> Row:
        """Of an empty database, one that every history has."""
        with self._engine.connect() as db:
            row = db.execute(sa.select(HISTORY).order_by(HISTORY.c.number.desc()).limit(1)).one_or_none()
        return Row(0, 0, bytes(NONCE_BYTES)) if row is None else Row(row.generation, row.number, row.nonce)

    def has(self, mark: Mark) -> bool:
        if mark.number == 0:
            return True
        with self._engine.connect() as db:
            row = db.execute(sa.select(HISTORY).where(HISTORY.c.number == mark.number)).one_or_none()
        found = None if row is None else (row.generation, row.nonce)
        return found == (mark.generation, mark.value[:NONCE_BYTES])

    def standing(self, name: str, signing_key: str = "") -> Standing:
        """Of this server, or of the other one if it is the one with this key."""
        with self._engine.connect() as db:
            row = db.execute(sa.select(STANDING).where(STANDING.c.name == name)).one_or_none()
        if row is None or (name != OWN and row.signing_key != signing_key):
            return Standing(None, 0, None, None)
        mark = None if name == OWN else Mark(row.generation, row.number, row.mark)
        return Standing(mark, row.generation, row.problem, row.since)

    def hold(self, why: str, now: datetime) -> bool:
        """Put this server on hold; False if it was already."""
        with Transaction(self._engine, _LOCK) as db:
            own = db.execute(sa.select(STANDING).where(STANDING.c.name == OWN)).one_or_none()
            if own is not None and own.problem is not None:
                return False
            at = now.strftime(TIME_FORMAT)
            _put(db, OWN, Mark(0 if own is None else own.generation, 0, b""), "", why, at)
            return True

    def saw(self, seen: Mark, signing_key: str, was: Mark | None) -> None:
        """The other server has this history now; `was` is what it was compared with. Whatever was wrong is over."""
        with Transaction(self._engine, _LOCK) as db:
            row = db.execute(sa.select(STANDING).where(STANDING.c.name == PEER)).one_or_none()
            there = None if row is None else Mark(row.generation, row.number, row.mark)
            same = row is not None and row.signing_key == signing_key
            if not same or there == was or seen.is_newer(there or seen):
                _put(db, PEER, seen, signing_key, None, None)

    def claimed(self, newest: Mark, signing_key: str) -> None:
        """The other server says that this is its newest; whether it has what it showed before is not known yet."""
        with Transaction(self._engine, _LOCK) as db:
            row = db.execute(sa.select(STANDING).where(STANDING.c.name == CLAIMED)).one_or_none()
            same = row is not None and row.signing_key == signing_key
            if row is None or not same or newest.is_newer(Mark(row.generation, row.number, row.mark)):
                _put(db, CLAIMED, newest, signing_key, None, None)

    def doubt_peer(self, why: str, now: datetime) -> bool:
        """What the other server showed before is missing in its history; False if that was known."""
        with Transaction(self._engine, _LOCK) as db:
            fresh = (STANDING.c.name == PEER) & STANDING.c.problem.is_(None)
            changed = STANDING.update().where(fresh).values(problem=why, since=now.strftime(TIME_FORMAT))
            return db.execute(changed).rowcount == 1

    def accept(self, generation: int) -> Row:
        """This server's operator has decided to go on from here: in a new generation, off hold."""
        with Transaction(self._engine) as db:
            _put(db, OWN, Mark(generation, 0, b""), "", None, None)
            advance(db)
        return self.newest()


def _put(db: Connection, name: str, mark: Mark, signing_key: str, problem: str | None, since: str | None) -> None:
    db.execute(STANDING.delete().where(STANDING.c.name == name))
    values = {"generation": mark.generation, "number": mark.number, "mark": mark.value}
    db.execute(STANDING.insert().values(name=name, signing_key=signing_key, problem=problem, since=since, **values))
