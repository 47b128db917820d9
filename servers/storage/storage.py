"""One server's database, open and checked, and the only thread that writes to it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import NotReady, Problem
from servers.storage import dialects
from servers.storage.action_log import ActionLog
from servers.storage.admission import Failures, NewUploads
from servers.storage.campaigns import Campaigns
from servers.storage.commitments import HpkeSalts
from servers.storage.database import check_file, damaged, keep_private, open_engine, persistently, unusable
from servers.storage.history import History
from servers.storage.jobs import Jobs
from servers.storage.ledger import Ledger
from servers.storage.migrate import SCHEMA, is_usable, upgrade
from servers.storage.sites import Sites
from servers.storage.tables import Tables
from servers.storage.troubles import Troubles
from servers.storage.uploads import Uploads
from servers.storage.waves import SEALED, Waves

T = TypeVar("T")
Batch = list[tuple[NewUploads, "asyncio.Future[Failures | Problem]"]]
# Rows of a long request, and of long requests in one transaction: all others wait for its end.
LONG, TOGETHER = 100, 10_000


class Storage:
    """The parts of the database by subject. Any thread may read; writes go through `Writer`."""

    def __init__(self, url: str, *, look: bool = False) -> None:
        """`look`: beside a server that may be writing; nothing is changed and nothing counted."""
        self.engine = open_engine(url)
        self.campaigns, self.uploads = Campaigns(self.engine), Uploads(self.engine)
        self.sites, self.actions = Sites(self.engine), ActionLog(self.engine)
        self.commitments = HpkeSalts(self.engine)
        self.waves, self.ledger, self.jobs = Waves(self.engine), Ledger(self.engine), Jobs(self.engine)
        self.tables = Tables(self.engine)
        self.history, self.troubles = History(self.engine), Troubles(self.engine)
        if look:
            return
        try:
            self._look_after()
        except BaseException:
            self.close()
            raise

    def _look_after(self) -> None:
        """Whole, of this version, and nobody else's to read; or a reason why it cannot be used."""
        try:
            check_file(self.engine)
            upgrade(self.engine)
            if self.alone:  # others would count on, and 10^8 rows take their time
                self._check_counts()
        except DBAPIError as error:
            raise unusable(self.engine, str(error.orig)) from None
        except Problem as problem:
            raise unusable(self.engine, problem.detail) from None
        keep_private(self.engine)

    @property
    def alone(self) -> bool:
        """No other process has this database."""
        return dialects.of(self.engine).ALONE

    def now(self) -> float:
        """Seconds since 1970, the same for all processes of this database."""
        return dialects.of(self.engine).now(self.engine)

    def leading(self, what: str) -> AbstractContextManager[dialects.Leader]:
        return dialects.of(self.engine).leading(self.engine, what)

    def ping(self) -> None:
        """One query, or a problem: also where a newer program took away what this one needs."""
        if not self.is_usable():
            raise NotReady("another version of the program has changed the database; this process must be replaced")

    def is_usable(self) -> bool:
        """Are the tables still such that this program may use them? A newer one may have changed them meanwhile."""
        with self.engine.connect() as db:
            return is_usable(str(db.exec_driver_sql(SCHEMA).scalar_one()))

    def on_connect(self, what: Callable[[], None]) -> None:
        """Call this whenever a connection is made: a database may have taken another one's place."""
        sa.event.listen(self.engine, "connect", lambda *_: what())

    def close(self) -> None:
        self.uploads.close()
        self.engine.dispose()

    def _check_counts(self) -> None:
        """Every campaign can be read, and open ones have values of as many people as they took.

        Sealed ones have a checksum.
        """
        counts = self.uploads.counts()
        for entry in self.campaigns.all():
            lost = counts.pop(entry.campaign.id, 0) != entry.stored
            if lost and any(wave.state != SEALED for wave in self.waves.all(entry.campaign.id)):
                raise damaged(self.engine, f"campaign {to_base64url(entry.campaign.id)} has lost or gained uploads")
        if counts:
            raise damaged(self.engine, f"uploads of {len(counts)} unknown campaigns")


def _rows(uploads: NewUploads) -> int:
    """What a request is in a transaction: its rows; a part of a table takes as long as a thousand."""
    return 1000 * len(uploads.share) if uploads.contribution.is_table else len(uploads.rows)


class Writer:
    """Stores uploads: what waits while one transaction runs goes into the next one together.

    Short requests and long ones take turns, so that a short one waits for one transaction of long ones at most.
    """

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._thread = ThreadPoolExecutor(1, "writer")
        self._waiting: Batch = []
        self._long_is_next = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def add(self, uploads: NewUploads) -> Failures:
        """Durable when this returns."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Failures | Problem] = loop.create_future()
        self._waiting.append((uploads, done))
        if self._idle.is_set():
            self._idle.clear()
            loop.call_soon(self._begin, loop)  # with whatever else comes in this turn
        outcome = await done
        if isinstance(outcome, Problem):
            raise outcome
        return outcome

    async def run(self, what: Callable[[], T]) -> T:
        """Any other write, in the same thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, persistently, what)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._take()
        try:
            self._thread.submit(self._store, loop, batch)
        except Exception as error:  # it was closed, or there is no room for one more
            self._tell(loop, batch, error)

    def _take(self) -> Batch:
        """What goes into the next transaction: all short requests, or long ones up to so many rows."""
        long = [one for one in self._waiting if _rows(one[0]) > LONG]
        if not long or (len(long) < len(self._waiting) and not self._long_is_next):
            self._long_is_next, short = True, [one for one in self._waiting if _rows(one[0]) <= LONG]
            self._waiting = long
            return short
        self._long_is_next, batch, rows = False, [long[0]], _rows(long[0][0])
        for one in long[1:]:
            rows += _rows(one[0])
            if rows > TOGETHER:
                break
            batch.append(one)
        taken = {id(one) for one in batch}
        self._waiting = [one for one in self._waiting if id(one) not in taken]
        return batch

    def _store(self, loop: asyncio.AbstractEventLoop, batch: Batch) -> None:
        """In the thread. One call back to the loop: tasks and futures on the way would cost as much as the writing."""
        try:
            outcomes = persistently(partial(self._uploads.add, [uploads for uploads, _ in batch]))
            if len(outcomes) != len(batch):
                raise AssertionError("some uploads have no outcome")
        except BaseException as error:  # whatever it is, others go on
            known = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
            loop.call_soon_threadsafe(self._tell, loop, batch, known)
        else:
            loop.call_soon_threadsafe(self._tell, loop, batch, outcomes)

    def _tell(
        self, loop: asyncio.AbstractEventLoop, batch: Batch, outcomes: list[Failures | Problem] | Exception
    ) -> None:
        for place, (_, done) in enumerate(batch):
            if done.done():  # nobody waits for it any more
                continue
            if isinstance(outcomes, Exception):
                done.set_exception(outcomes)
            else:
                done.set_result(outcomes[place])
        if self._waiting:
            self._begin(loop)
        else:
            self._idle.set()

    async def close(self) -> None:
        await self._idle.wait()
        self._thread.shutdown()
