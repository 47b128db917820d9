"""What differs between databases, behind one interface: `sqlite.py` and `postgres.py`."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.errors import Problem
from servers.storage.dialects import postgres, sqlite


class Dialect(Protocol):
    """A module of this folder."""

    ALONE: bool  # one process at a time has this database
    ERRORS: tuple[type[Exception], ...]  # of SQLAlchemy and of the driver

    def connect(self, url: sa.URL) -> Engine:
        """An engine whose connections are set up."""

    def begin(self, db: Connection, of: bytes | None, shared: bool) -> None:
        """Start a write transaction: alone on the whole database, or on one subject of it, or shared with others."""

    def lock_senders(self, db: Connection, campaign_id: bytes, senders: Sequence[str]) -> None:
        """Inside a shared transaction: alone for what these senders may still upload."""

    def lock_history(self, db: Connection) -> None:
        """Inside a transaction, after its other locks: rows of the history are there in the order of their numbers."""

    def read_in_order(self, db: Connection) -> None:
        """What this transaction reads in the order of an index comes from it, however little is known of the table."""

    def as_problem(self, error: Exception) -> Problem:
        """A full disk, a busy database and a broken rule are different things."""

    def damage(self, engine: Engine) -> str | None:
        """What is wrong with the files of the database, in one line, as far as this process can see it."""

    def keep_private(self, engine: Engine) -> None:
        """Only its owner may read the database's files."""

    def forget(self, engine: Engine) -> None:
        """See to it that what was erased is not kept in a log, as far as this process can."""

    def add_campaign(self, db: Connection, number: int) -> None:
        """Room for the uploads of a new campaign."""

    def drop_uploads(self, db: Connection, number: int) -> None:
        """Erase the uploads of a campaign, all at once."""

    def now(self, engine: Engine) -> float:
        """Seconds since 1970 on the clock that all processes of this database share."""

    def leading(self, engine: Engine, what: str) -> AbstractContextManager["Leader"]:
        """A candidate for the one process that does this."""


class Leader(Protocol):
    def leads(self) -> bool:
        """This process is the one, now."""


def of(engine: Engine) -> Dialect:
    return _DIALECTS[engine.dialect.name]


def known(name: str) -> Dialect | None:
    return _DIALECTS.get(name)


_DIALECTS: dict[str, Dialect] = {"sqlite": sqlite, "postgresql": postgres}
