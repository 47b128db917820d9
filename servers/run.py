"""Running one server, or one of its processes, until a signal ends it."""

import asyncio
import signal
from datetime import UTC, datetime

from fss import backend
from servers import log
from servers.api.app import build_app
from servers.api.serve import listen, serve
from servers.lifecycle.work import Crash
from servers.server import ALL, API, WORK, Clock, Parts, Server, no_crash
from servers.settings import Settings
from servers.storage.database import Damaged, needs_to_be_alone


def now() -> datetime:
    return datetime.now(UTC)


def run(settings: Settings, clock: Clock = now, crash: Crash = no_crash, parts: Parts = ALL) -> None:
    """All of a server, or what its callers see of it (`api`)."""
    _require(settings, parts)
    log.event("starting", server=settings.role, backend=backend(), parts=sorted(parts))
    sockets = listen(settings)  # before the database is opened: a busy port is said at once
    serve(build_app(settings, clock, crash, parts), settings, sockets)


def api(settings: Settings, clock: Clock = now, crash: Crash = no_crash) -> None:
    """One of several processes that answer; it keeps nothing that another one needs."""
    run(settings, clock, crash, frozenset((API,)))


def work(settings: Settings, clock: Clock = now, crash: Crash = no_crash) -> None:
    """One of several processes that do the background work; it listens nowhere."""
    parts = frozenset((WORK,))
    _require(settings, parts)
    log.event("starting", server=settings.role, backend=backend(), parts=sorted(parts))
    asyncio.run(_work(Server(settings, clock, crash, parts)))


def _require(settings: Settings, parts: Parts) -> None:
    if parts != ALL and needs_to_be_alone(settings.database_url):
        raise Damaged("several processes need PostgreSQL: give the settings a `database`, or use fss-server run")


async def _work(server: Server) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    await server.start()
    log.event("started", server=server.role)
    await ended.wait()
    await server.stop()
    log.event("stopped", server=server.role)
