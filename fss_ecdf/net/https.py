"""HTTPS to a server, as every program speaks it: whom to trust, who one is, one retry loop, one reading of problems."""

import asyncio
import ssl
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fss_ecdf.campaign import text
from fss_ecdf.campaign.errors import (
    InvalidInput,
    InvalidPeerResponse,
    PeerUnavailable,
    Problem,
    TryAgain,
    parse_problem,
)

FIRST_WAIT_S = 0.5
BUSY_WAIT_S = 1.0  # for a server that is busy and does not say for how long
LONGEST_WAIT_S = 20.0

NOT_AN_ADDRESS = "{!r} is not an address like https://server.example/v1/campaigns/ID"

Came = httpx.Response | httpx.HTTPError  # of one request


def is_address(url: str) -> bool:
    """Of a campaign at one server."""
    return text.is_address(url) and "/v1/campaigns/" in url


Authority = str | Path | None  # a file, or None for those that the system knows
Authorities = Authority | Sequence[Authority]


def one_each(ca: Authorities) -> tuple[Authority, Authority]:
    """Whose certificates server 0 and server 1 must show: one authority for both, or one for each of them."""
    if ca is None or isinstance(ca, str | Path):
        return ca, ca
    if not 1 <= len(ca) <= 2:
        raise InvalidInput(f"one certificate authority for both servers, or one for each: got {len(ca)}")
    return ca[0], ca[-1]


def trust(ca: Authority) -> ssl.SSLContext:
    """Certificates of one authority only, or of those that the system knows."""
    if ca is not None and not Path(ca).is_file():
        raise InvalidInput(f"{ca}: there is no such file with a certificate authority")
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except ssl.SSLError:
        raise InvalidInput(f"{ca}: this is not a certificate authority in PEM") from None
    except OSError as error:
        raise InvalidInput(f"{ca}: the certificate authority cannot be read ({error.strerror})") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def options(token: str | None, ca: Authority, timeout_s: float) -> dict[str, Any]:
    """What every client of httpx gets here, synchronous or not. Proxies in the environment are not used."""
    headers = {"Accept-Encoding": "identity"} | ({} if token is None else bearer(token))
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEPT_S)
    return {"verify": trust(ca), "headers": headers, "timeout": timeout_s, "trust_env": False, "limits": limits}


def bearer(token: str) -> dict[str, str]:
    """The header that presents a token."""
    if not (token.isascii() and token.isprintable()):
        raise InvalidInput("a token is one line of ASCII characters")
    return {"Authorization": f"Bearer {token}"}


KEPT_S = 60.0  # servers keep an idle connection for 75 s


def lean(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client that says only what a server of ours reads: for a party with one value headers are bytes that count."""
    for name in ("accept", "accept-encoding", "connection", "user-agent"):
        client.headers.pop(name, None)
    return client


def retry_after_s(headers: Mapping[str, str], otherwise: float) -> float:
    """The seconds that a server asks to wait, within reason; what is not a whole number is not believed."""
    asked = headers.get("retry-after", "")
    return min(LONGEST_WAIT_S, float(asked) if asked.isdecimal() else otherwise)


@dataclass(frozen=True)
class RetryPolicy:
    """How long a server is asked again that is away, busy, or answers what is no answer."""

    attempts: int
    busy_s: float | None = None  # seconds for one that says it is busy; None: as often as one that is away
    total_s: float | None = None  # seconds for whatever passes, in place of both


ONCE = RetryPolicy(1)


@dataclass(frozen=True)
class ServerEndpoint:
    """A server as a program knows it: what messages call it, and how patient one is with it."""

    name: str
    patience: RetryPolicy
    prefix: str = ""  # of what the server itself says
    waiting: Callable[[Problem, float], None] | None = None  # told what is waited for, and for how long yet

    def ask(self, client: httpx.Client, method: str, url: str, *, most: int, **more: Any) -> httpx.Response:
        """The answer of a request that succeeded, perhaps not at once; otherwise one clear problem.

        An answer has at most so many bytes. No more is read of a longer one, and it is not asked for again.
        """
        loop = self.retries()
        wait = next(loop)
        try:
            while True:
                time.sleep(wait)
                came: Came
                try:
                    came = bounded(client, self.name, method, url, most=most, **more)
                except httpx.HTTPError as error:
                    came = error
                wait = loop.send(came)
        except StopIteration as done:
            found: httpx.Response = done.value
            return found

    async def ask_async(
        self, client: httpx.AsyncClient, method: str, url: str, *, most: int, **more: Any
    ) -> httpx.Response:
        """The same in an event loop."""
        loop = self.retries()
        wait = next(loop)
        try:
            while True:
                await asyncio.sleep(wait)
                came: Came
                try:
                    async with client.stream(method, url, **more) as answer:
                        whole = _Whole(self.name, answer, most)
                        async for part in answer.aiter_bytes():
                            whole.add(part)
                    came = whole.answer()
                except httpx.HTTPError as error:
                    came = error
                wait = loop.send(came)
        except StopIteration as done:
            found: httpx.Response = done.value
            return found

    def retries(self) -> Generator[float, Came, httpx.Response]:
        """The loop, without input and output: yields the seconds to wait before a request, gets what came of it."""
        began = time.monotonic()
        until = began + (self.patience.busy_s or 0)
        failures, step, wait = 0, FIRST_WAIT_S, 0.0
        while True:
            came = yield wait
            if isinstance(came, httpx.Response) and came.is_success:
                return came
            problem = self.problem(came)
            asked = retry_after_s(came.headers, BUSY_WAIT_S) if isinstance(came, httpx.Response) else 0.0
            if not isinstance(problem, TryAgain):
                raise problem
            if self.patience.total_s is not None:
                wait, step = max(step, asked), min(2 * step, LONGEST_WAIT_S)
                left = began + self.patience.total_s - time.monotonic()
                if left < wait:
                    raise problem
                if self.waiting is not None:
                    self.waiting(problem, left)
                continue
            if self.patience.busy_s is not None and _is_busy(came):
                wait = max(FIRST_WAIT_S, asked)
                if time.monotonic() + wait > until:
                    raise problem
                continue
            failures += 1
            if failures >= self.patience.attempts:
                raise problem
            wait, step = max(step, asked), min(2 * step, LONGEST_WAIT_S)

    def problem(self, came: Came) -> Problem:
        """What went wrong with a request."""
        if isinstance(came, httpx.HTTPError):
            if "CERTIFICATE_VERIFY_FAILED" in str(came):
                return InvalidInput(f"{self.name} shows a certificate that is not trusted here (see ca)")
            return PeerUnavailable(f"{self.name} cannot be reached ({type(came).__name__})")
        problem = parse_problem(came.content)
        if problem is None:
            return InvalidPeerResponse(f"{self.name} answered {came.status_code}, which is no answer of this protocol")
        return type(problem)(self.prefix + problem.detail)


def bounded(client: httpx.Client, name: str, method: str, url: str, *, most: int, **more: Any) -> httpx.Response:
    """The answer to one request, whatever it says, of at most so many bytes; `name` is the server's, for messages."""
    with client.stream(method, url, **more) as answer:
        whole = _Whole(name, answer, most)
        for part in answer.iter_bytes():
            whole.add(part)
    return whole.answer()


class _Whole:
    """An answer as it arrives, up to a length. A packed one would be longer than it looks, and none is asked for."""

    def __init__(self, name: str, answer: httpx.Response, most: int) -> None:
        self._name, self._answer, self._most = name, answer, most
        self._parts, self._size = list[bytes](), 0
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise InvalidPeerResponse(f"{name} packs its answers, which was not asked for")

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._most:
            raise InvalidPeerResponse(f"{self._name} sends more than the {self._most} bytes that the answer may have")

    def answer(self) -> httpx.Response:
        of = self._answer
        return httpx.Response(of.status_code, headers=of.headers, content=b"".join(self._parts), request=of.request)


def _is_busy(came: Came) -> bool:
    """It answered, and in its own words."""
    return isinstance(came, httpx.Response) and parse_problem(came.content) is not None
