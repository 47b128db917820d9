"""Two processes at one database, each of which stops before a chosen statement until it is told to go on.

The first one is let run up to its pause, then the second one up to its own, or until it waits for a lock; then the
first one goes to its end, and the second one. Whatever a pause is too short for happens in another order: that changes
what is tried, never what is found.
"""

import multiprocessing
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

import psycopg
import sqlalchemy as sa

from fss_ecdf.campaign.errors import Problem
from servers.storage.dialects import postgres
from servers.storage.storage import Storage

BLOCKED_S = 0.04  # who has not stopped by then waits for the other one
END_S = 60
NO_LOCKS = "FSS_TEST_NO_LOCKS"  # to see that a race can be lost

Step = Callable[..., Any]  # of a storage and some arguments; at the top of a module, so that it can be sent


@dataclass(frozen=True)
class Act:
    """What one process does."""

    step: Step
    args: tuple[Any, ...] = ()


class _Pause:
    """Counts what the driver is asked for and stops before one of it."""

    def __init__(self, line: Connection) -> None:
        self._line, self._left = line, -1

    def after(self, statements: int | None) -> None:
        self._left = -1 if statements is None else statements

    def __call__(self) -> None:
        if self._left == 0:
            self._line.send(("paused", None))
            self._line.recv()
        self._left -= 1


def _hook(engine: sa.Engine, pause: _Pause) -> None:
    """On the driver itself: not everything goes through SQLAlchemy."""

    class SqliteCursor(sqlite3.Cursor):
        def execute(self, *args: Any) -> Self:
            pause()
            return super().execute(*args)

        def executemany(self, *args: Any) -> Self:
            pause()
            return super().executemany(*args)

    class SqliteConnection(sqlite3.Connection):
        def cursor(self, factory: Any = SqliteCursor) -> Any:
            return super().cursor(factory)

        def commit(self) -> None:
            pause()
            super().commit()

    class PostgresCursor(psycopg.Cursor[Any]):
        def execute(self, *args: Any, **options: Any) -> Self:
            pause()
            return super().execute(*args, **options)

        def copy(self, *args: Any, **options: Any) -> Any:
            pause()
            return super().copy(*args, **options)

    class PostgresConnection(psycopg.Connection[Any]):
        def commit(self) -> None:
            pause()
            super().commit()

    def connect(dialect: Any, _: object, args: list[Any], options: dict[str, Any]) -> Any:
        if dialect.name == "sqlite":
            return sqlite3.connect(*args, factory=SqliteConnection, **options)
        return PostgresConnection.connect(*args, cursor_factory=PostgresCursor, **options)

    sa.event.listen(engine, "do_connect", connect)


def _work(line: Connection, url: str) -> None:
    if NO_LOCKS in os.environ:
        postgres.begin = lambda *_: None
    storage, pause = Storage(url, look=True), _Pause(line)
    _hook(storage.engine, pause)
    storage.ping()
    while (order := line.recv()) is not None:
        act, statements = order
        pause.after(statements)
        try:
            outcome = act.step(storage, *act.args)
        except Problem as problem:
            outcome = problem
        line.send(("done", outcome))
    storage.close()


class _Process:
    def __init__(self, url: str) -> None:
        context = multiprocessing.get_context("fork")  # what a new interpreter would read takes longer than the races
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, url), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the child does not use
            self._process.start()
        self.outcome: Any = None
        self._busy = self._stopped = False

    def begin(self, act: Act, statements: int | None) -> None:
        self._line.send((act, statements))
        self._busy, self._stopped = True, False

    def wait(self, seconds: float) -> bool:
        """Until it is done or stops; False if it does neither."""
        if not self._busy or self._stopped:
            return True
        if not self._line.poll(seconds):
            return False
        what, self.outcome = self._line.recv()
        self._busy, self._stopped = what != "done", what == "paused"
        return True

    def go(self) -> None:
        if self._stopped:
            self._stopped = False
            self._line.send("go")

    @property
    def is_done(self) -> bool:
        return not self._busy

    def close(self) -> None:
        self._line.send(None)
        self._process.join(END_S)


class Two:
    """Two processes; `with Two(url) as two:` ends them."""

    def __init__(self, url: str) -> None:
        self._both = _Process(url), _Process(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._both:
            process.close()

    def play(self, first: Act, second: Act, pauses: tuple[int | None, int | None]) -> tuple[Any, Any]:
        """What became of both; a problem stands for itself."""
        a, b = self._both
        a.begin(first, pauses[0])
        assert a.wait(END_S)
        b.begin(second, pauses[1])
        b.wait(BLOCKED_S)
        a.go()
        while not (a.wait(BLOCKED_S) and a.is_done):  # it waits for what the second one holds
            b.wait(0)
            b.go()
        while not b.is_done:
            b.wait(BLOCKED_S)
            b.go()
        return a.outcome, b.outcome


def schedules(most: int) -> Iterator[tuple[int | None, int | None]]:
    """Where to stop: each statement of the first one with each of the second, until there are so many."""
    for total in range(2 * most):
        for i in range(total + 1):
            yield i, (None if total - i == 0 else total - i - 1)
