"""The FastAPI application of one server: routes, problem documents, request log, start and stop."""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fss_ecdf.campaign.error_text import listed, short
from fss_ecdf.campaign.errors import InvalidQuery, NoSuchRoute, Problem
from servers import log, metrics
from servers.api import action_log, analysts, operators, parties, peers, public, reference, sites
from servers.api.cors import Cors
from servers.api.limits import HELD
from servers.lifecycle.job_runner import Crash
from servers.server import ALL, Clock, Parts, Server, no_crash
from servers.settings import Settings
from servers.storage.database import as_problem

ROUTES = (parties, public, reference, operators, sites, action_log, analysts, peers)  # parties ask most often

THREADS = 32
PIECE = 1 << 16  # of an answer, handed on at a time

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

DESCRIPTION = """One of two servers that answer questions about the distribution of a sensitive number.

Errors are RFC 9457 problem documents with stable types; docs/protocol.md lists them.
"""


def build_app(settings: Settings, clock: Clock, crash: Crash = no_crash, parts: Parts = ALL) -> FastAPI:
    server = Server(settings, clock, crash, parts)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        # Threads that read and compute for requests: more than all long work can take at once.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "thread"))
        await server.start()
        log.event("started", server=server.number)
        yield
        await server.stop()
        log.event("stopped", server=server.number)

    app = FastAPI(
        title="fss-ecdf server", version="1", description=DESCRIPTION, lifespan=life, docs_url=None, redoc_url=None
    )
    app.router.redirect_slashes = False
    app.state.server = server
    for kind in (DBAPIError, PoolTimeout):
        app.add_exception_handler(kind, _on_database)
    for routes in ROUTES:
        app.include_router(routes.router)
    app.add_middleware(Cors)
    equip(app)
    return app


def equip(app: FastAPI) -> None:
    """Every failure is a problem document, every request a line in the log."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_anything)
    app.add_middleware(_Watch)


def problem_response(problem: Problem, status: int | None = None) -> JSONResponse:
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    document = problem.document() | ({"status": status} if status else {})
    metrics.REFUSALS.labels(problem.code).inc()
    return JSONResponse(document, status or problem.status, headers, media_type="application/problem+json")


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(error)


async def _on_database(request: Request, error: Exception) -> Response:
    """A question that the database did not answer; a write says so itself."""
    server: Server = request.app.state.server
    problem = as_problem(server.storage.engine, error)
    log.event("database-failed", level="warning", error=type(error).__name__, code=problem.code)
    return problem_response(problem)


async def _on_validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [f"{short('.'.join(map(str, e['loc'][1:])))}: {short(e['msg'], 500)}" for e in error.errors()]
    return problem_response(InvalidQuery(listed(wrong)))


async def _on_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = "this address does not take this method" if error.status_code == 405 else "no such address"
    return problem_response(NoSuchRoute(detail), error.status_code)


async def _on_anything(_: Request, error: Exception) -> Response:
    log.event("internal-error", level="error", error=type(error).__name__, where=log.where(error))
    return problem_response(Problem("this is a fault of the server; its log names it"))


class _Watch:
    """Count and log every request by its route's pattern, which names no thresholds and no tokens."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen, request_id = _Seen(), _request_id(scope)
        log.request_id.set(request_id)

        async def received() -> Message:
            message = await receive()
            seen.received += len(message.get("body", b""))
            return message

        async def sent(message: Message) -> None:
            seen.status = message.get("status", seen.status)
            seen.sent += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-request-id", request_id.encode())]}
            for piece in _pieces(message):
                await send(piece)

        started = time.monotonic()
        try:
            await self._app(scope, received, sent)
        finally:
            if HELD in scope:
                scope.pop(HELD).release()
            self._record(scope, seen, time.monotonic() - started)

    @staticmethod
    def _record(scope: Scope, seen: "_Seen", seconds: float) -> None:
        pattern = getattr(scope.get("route"), "path", "unknown")
        metrics.REQUEST_SECONDS.labels(pattern, str(seen.status)).observe(seconds)
        if pattern not in ("/healthz", "/readyz"):
            about = {"method": scope["method"], "route": pattern, **vars(seen)}
            log.event("request", **about, ms=round(1000 * seconds, 1))


def _pieces(message: Message) -> Iterator[Message]:
    """A long answer in pieces, each after the one before it has left: what a slow reader has not read is held once."""
    text = message.get("body", b"")
    last = range(0, len(text), PIECE)[-1] if len(text) > PIECE else 0
    for start in range(0, last, PIECE):
        yield {**message, "body": text[start : start + PIECE], "more_body": True}
    yield {**message, "body": text[last:]} if last else message


def _request_id(scope: Scope) -> str:
    """The one that a proxy gave it, if it is harmless, or a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    return given.decode() if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


@dataclass
class _Seen:
    """What went by of one request: the answer's status, and the bytes of both bodies."""

    status: int = 0
    received: int = 0
    sent: int = 0
