"""Running the application: HTTPS as the settings say, bounds and deadlines for heads of requests, and a prompt end."""

import asyncio
import errno
import logging
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import uvicorn
from fastapi import FastAPI

from fss_ecdf.campaign.errors import NotReady
from fss_ecdf.cli.common import UsageError
from servers import log
from servers.api.header_limits import HEAD_BYTES, BoundedProtocol
from servers.settings import Settings

KEEP_ALIVE_S = 75
BACKLOG = 2048
OPEN_FILES = 1 << 16


def listen(settings: Settings) -> list[socket.socket]:
    """Sockets on all addresses that the settings' host has, before anything else is begun."""
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with ExitStack() as opened:
            for family, address in sorted({(family, address) for family, _, _, _, address in found}):
                one = socket.create_server(address[:2], family=family, backlog=BACKLOG)
                opened.callback(one.close)
                sockets.append(one)
            opened.pop_all()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise NotReady(f"another program listens on {settings.listen}; end it or change `listen`") from None
        raise UsageError(f"listen: {settings.listen} is no address of this machine ({error.strerror})") from None
    return sockets


def serve(
    app: FastAPI,
    settings: Settings,
    sockets: list[socket.socket],
    reread: Callable[[], Settings | None] = lambda: None,
) -> None:
    """Until a signal ends it, and then to the end: uvicorn raises the signal again when it is done.

    SIGHUP calls `reread`; what it returns has the certificate for connections that come then.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    for logger in ("uvicorn.error", "asyncio"):
        logging.getLogger(logger).addHandler(log.ServerLog(logging.WARNING))
        logging.getLogger(logger).propagate = False
    BoundedProtocol.per_address = settings.limits.connections_per_address
    _allow_open_files()
    config = uvicorn.Config(
        app,
        ssl_certfile=str(settings.tls.certificate),
        ssl_keyfile=str(settings.tls.key),
        ssl_context_factory=_tls,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=30,
        timeout_keep_alive=KEEP_ALIVE_S,
        http=BoundedProtocol,
        ws="none",
        proxy_headers=False,  # an address that the client itself writes is no address
        h11_max_incomplete_event_size=2 * HEAD_BYTES,  # ours comes first, and has a proper answer
    )
    _Server(config, settings.limits.receive_timeout_s, reread).run(sockets)


def _allow_open_files() -> None:
    """As many connections as the system lets a process have, within reason: the usual soft limit is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _tls(_: uvicorn.Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """TLS 1.3 only, and no session tickets: no client of ours resumes a session, and two of them are 500 bytes."""
    context = default()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    return context


class _Server(uvicorn.Server):
    """Uvicorn, but a client that does not finish a head, or read its answer, gets no more time than one with a body."""

    def __init__(self, config: uvicorn.Config, head_s: float, reread: Callable[[], Settings | None]) -> None:
        super().__init__(config)
        self._head_s, self._reread = head_s, reread
        self._waiting: dict[object, tuple[object, float]] = {}  # connection -> its last request, and since when

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        """The context stays; its next handshakes show the new certificate."""
        settings = self._reread()
        if settings is not None and self.config.ssl is not None:
            self.config.ssl.load_cert_chain(settings.tls.certificate, settings.tls.key)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._cut_slow_heads(time.monotonic())
            self._cut_slow_readers(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def _cut_slow_heads(self, now: float) -> None:
        waiting = {}
        for connection in _idle(self.server_state.connections):
            last = getattr(connection, "cycle", None)
            before, since = self._waiting.get(connection, (last, now))
            waiting[connection] = (last, since if before is last else now)
            # Between requests a connection may rest; uvicorn ends that, unless bytes of a head drip in.
            if now - waiting[connection][1] > self._head_s + (KEEP_ALIVE_S if last else 0):
                connection.transport.abort()
        self._waiting = waiting

    def _cut_slow_readers(self, now: float) -> None:
        """Answers leave in pieces, so whoever reads lets a connection go on now and then."""
        for connection in list(self.server_state.connections):
            since = getattr(connection, "stuck_since", None)
            if since is not None and now - since > self._head_s:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Idle connections are cut at once: a client that sleeps would not answer TLS's farewell for 30 seconds."""
        for connection in _idle(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


def _idle(connections: Iterable[Any]) -> list[Any]:
    """Those that are not working on a request."""
    cycles = [(connection, getattr(connection, "cycle", None)) for connection in connections]
    return [c for c, cycle in cycles if getattr(c, "transport", None) and (cycle is None or cycle.response_complete)]
