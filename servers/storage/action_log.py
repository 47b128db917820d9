"""What operators did, in order: rows are only ever added, and each holds a digest of all before it.

Whoever owns the disk could write the whole chain anew; the last digest, kept elsewhere, shows that.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from servers.storage import history
from servers.storage.database import Transaction
from servers.storage.schema import ACTIONS

_START = hashlib.sha256(b"fss-ecdf actions 1\n").digest()
_LOCK = b"actions"  # the chain has one end


@dataclass(frozen=True)
class LoggedAction:
    """One thing that an operator asked for, and what became of it. Tokens never stand here."""

    at: str
    action: str
    campaign: str
    outcome: str  # "done", or the code of the problem
    details: str = "{}"

    def digest(self, before: bytes) -> bytes:
        row = json.dumps([self.at, self.action, self.campaign, self.outcome, self.details])
        return hashlib.sha256(before + row.encode()).digest()


class ActionLog:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, action: LoggedAction) -> None:
        with Transaction(self._engine, _LOCK) as db:
            last = db.execute(
                sa.select(ACTIONS.c.digest).order_by(ACTIONS.c.number.desc()).limit(1)
            ).scalar_one_or_none()
            db.execute(ACTIONS.insert().values(**vars(action), digest=action.digest(last or _START)))
            history.advance(db, even_on_hold=True)

    def all(self) -> Iterator[tuple[int, LoggedAction, bytes, bool]]:
        """Number, action, digest, and whether the chain holds up to here."""
        before, is_valid = _START, True
        with self._engine.connect() as db:
            for row in db.execute(sa.select(ACTIONS).order_by(ACTIONS.c.number)):
                action = LoggedAction(row.at, row.action, row.campaign, row.outcome, row.details)
                is_valid = is_valid and action.digest(before) == row.digest
                yield row.number, action, row.digest, is_valid
                before = row.digest
