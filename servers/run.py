"""Running one server, or one of its processes, until a signal ends it."""

import asyncio
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from fss import backend
from fss_ecdf.campaign.errors import Problem
from fss_ecdf.cli.common import UsageError
from servers import log, metrics
from servers.api.app import build_app
from servers.api.serve import listen, serve
from servers.certificates import expiry, require_usable
from servers.lifecycle.job_runner import Crash
from servers.server import ALL, API, WORK, Clock, Parts, Server, no_crash
from servers.settings import Settings
from servers.storage.database import Damaged, needs_to_be_alone

WATCH_S = 5.0
Read = Callable[[], Settings]  # from the file, as it is now


def now() -> datetime:
    return datetime.now(UTC)


def run(read: Read, clock: Clock = now, crash: Crash = no_crash, parts: Parts = ALL) -> None:
    """All of a server, or what its callers see of it (`api`). SIGHUP has the settings read again."""
    settings = read()
    _require(settings, parts)
    require_usable(settings.tls, now())
    _note_end(settings)
    log.event("starting", server=settings.server, backend=backend(), parts=sorted(parts))
    sockets = listen(settings)  # before the database is opened: a busy port is said at once
    app = build_app(settings, clock, crash, parts)
    serve(app, settings, sockets, partial(_reread, app.state.server, read))


def api(read: Read, clock: Clock = now, crash: Crash = no_crash) -> None:
    """One of several processes that answer; it keeps nothing that another one needs."""
    run(read, clock, crash, frozenset((API,)))


def worker(read: Read, clock: Clock = now, crash: Crash = no_crash) -> None:
    """One of several processes that do the background work; it listens nowhere."""
    parts, settings = frozenset((WORK,)), read()
    _require(settings, parts)
    require_usable(settings.tls, now())  # it is shown where metrics are told
    _note_end(settings)
    log.event("starting", server=settings.server, backend=backend(), parts=sorted(parts))
    asyncio.run(_work(Server(settings, clock, crash, parts), read))


def _reread(server: Server, read: Read) -> Settings | None:
    """Settings as they are in the file now, taken over; None, and all stays as it was, if they cannot be used."""
    try:
        settings = read()
        require_usable(settings.tls, now())
        server.reload(settings)
    except (UsageError, Problem) as error:
        log.event("not-reloaded", level="warning", why=str(error))
        return None
    log.event("reloaded", certificate_ends=_note_end(settings).isoformat())
    return settings


def _note_end(settings: Settings) -> datetime:
    """Of the certificate that is shown from now on, whatever comes into its file."""
    ends = expiry(settings.tls.certificate)
    metrics.CERTIFICATE_ENDS.set(ends.timestamp())
    return ends


def _require(settings: Settings, parts: Parts) -> None:
    if parts != ALL and needs_to_be_alone(settings.database_url):
        raise Damaged("several processes need PostgreSQL: give the settings a `database`, or use fss-server run")


async def _work(server: Server, read: Read) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, _reread, server, read)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    await server.start()
    log.event("started", server=server.number)
    watch = asyncio.create_task(_watch_schema(server, ended))
    await ended.wait()
    replaced = watch.done()
    watch.cancel()
    await server.stop()
    log.event("stopped", server=server.number)
    if replaced:
        raise Damaged("a newer version of the program has changed the database; this process must be replaced")


async def _watch_schema(server: Server, ended: asyncio.Event) -> None:
    """End a process that no load balancer passes by, once a newer program took away what it needs."""
    while True:
        await asyncio.sleep(WATCH_S)
        with log.failures("schema-not-read", Exception):  # a database that is away says nothing of its schema
            if not await asyncio.to_thread(server.storage.is_usable):
                ended.set()
                return
