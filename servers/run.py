"""Running one server until a signal ends it."""

from datetime import UTC, datetime

from fss import backend
from servers import log
from servers.api.app import build_app
from servers.api.serve import listen, serve
from servers.lifecycle.work import Crash
from servers.server import Clock, no_crash
from servers.settings import Settings


def now() -> datetime:
    return datetime.now(UTC)


def run(settings: Settings, clock: Clock = now, crash: Crash = no_crash) -> None:
    log.event("starting", server=settings.role, backend=backend())
    sockets = listen(settings)  # before the database is opened: a busy port is said at once
    serve(build_app(settings, clock, crash), settings, sockets)
