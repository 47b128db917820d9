"""What all routes share: finding the server, reading bodies strictly, answering in JSON, documenting themselves."""

import asyncio
import multiprocessing
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.requests import ClientDisconnect

from fss.challenge import MAX_WAVE
from fss_ecdf.campaign.campaign import ID_BYTES, from_base64url
from fss_ecdf.campaign.errors import BodyTooLarge, BodyTooSlow, InvalidInput, UnknownCampaign
from fss_ecdf.campaign.hpke import Kem
from fss_ecdf.net.tokens import hash_token
from servers.api.limits import GRACE_S, HELD, UNCOUNTED, Held, address_key
from servers.server import Server
from servers.storage.campaigns import StoredCampaign

# A thousand numbers, as long as a double can be written, or a few words: what most messages are.
SMALL_BODY = 1 << 16
# The weights of a query for sums: a million of seven digits each.
SUMS_BODY = 8 << 20
# A campaign whose thresholds are listed, and its invitations: the one message that may be long.
CAMPAIGN_BODY = 32 << 20

# Up to here a message is read at once; beyond, in a thread; and where the reader would not let go of the interpreter
# for seconds, in a process of its own.
AT_ONCE, _IN_A_THREAD = 1 << 14, 1 << 20

T = TypeVar("T")

CampaignId = Annotated[str, Path(description="the campaign's id, unpadded base64url", examples=["AAEC" * 10 + "AwQ"])]
Stratum = Annotated[str | None, Query(description="the name of a stratum; the first one if left out")]
WhichKem = Annotated[Kem, Query(description="how uploads to the campaign will be encrypted")]
Number = Annotated[int, Query(ge=0, le=MAX_WAVE, description="the number of a wave")]
OneWave = Annotated[int | None, Query(ge=1, le=MAX_WAVE, description="the number of a wave, of a campaign of waves")]


def campaign_id(text: str) -> bytes:
    try:
        return from_base64url(text, ID_BYTES, "a campaign's id")
    except ValueError:
        raise UnknownCampaign("a campaign's id is 32 bytes in unpadded base64url") from None


def server_of(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


async def entry_of(request: Request, cid: str) -> StoredCampaign:
    """The campaign that an address names, as this server has it."""
    return await asyncio.to_thread(server_of(request).storage.campaigns.get, campaign_id(cid))


async def fixed_entry_of(request: Request, cid: str) -> StoredCampaign:
    """The same, from memory where it is known: enough for whom a campaign admits."""
    campaigns, wanted = server_of(request).storage.campaigns, campaign_id(cid)
    known: StoredCampaign | None = campaigns.known(wanted)
    return known if known is not None else await asyncio.to_thread(campaigns.fixed, wanted)


class Plain(APIRoute):
    """A route whose function reads the request itself, and that is asked very often: FastAPI only documents it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer: Callable[[str, Request], Coroutine[Any, Any, Response]] = self.endpoint

        async def handle(request: Request) -> Response:
            return await answer(request.path_params["cid"], request)

        return handle


class Incoming:
    """A request's body, counted as it arrives: against its own limit, its sender's share, and the clock.

    `start` looks at its first bytes, so that a request can be rejected before the rest is read.
    """

    def __init__(self, request: Request, limit: int) -> None:
        self._limits, self._limit = server_of(request).limits, limit
        self.token, self.address = sender_keys(request)
        length = request.headers.get("content-length", "")
        self.announced = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None
        if self.announced is not None and self.announced > limit:
            raise BodyTooLarge(f"a body has at most {limit} bytes here")
        self._scope, self._stream = request.scope, request.stream()
        self._parts: list[bytes] = []
        self._size, self._taken, self._ended = 0, 0, False
        self._held: Held | None = None
        self._began = asyncio.get_running_loop().time()

    @property
    def is_whole(self) -> bool:
        """Nothing of it is still to come."""
        return self._ended or self._size == self.announced

    async def start(self, count: int) -> bytes:
        """The first bytes, fewer only if the body has no more; they stay part of it."""
        while self._size - self._taken < count and not self.is_whole:
            await self._more()
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0][:count] if self._parts else b""

    async def take(self, count: int) -> bytes:
        """The next bytes, exactly so many; they are not kept."""
        data = await self.start(count)
        if len(data) != count:
            raise InvalidInput("the body ended before it was complete")
        self._taken += count
        self._parts = [self._parts[0][count:]]
        return data

    async def require_end(self) -> None:
        """Raise unless all of it was taken."""
        if self._size > self._taken or await self.start(1):
            raise InvalidInput("the body is longer than its header says")

    async def all(self, limit: int | None = None) -> bytes:
        """All of it, or BodyTooLarge: beyond the limit that it was opened with, or a lower one."""
        self._limit = self._limit if limit is None else min(limit, self._limit)
        self._check_size()
        while not self.is_whole:
            await self._more()
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _more(self) -> None:
        try:
            async with asyncio.timeout_at(self._began + self._limits.body_until(self._size)):
                part = await anext(self._stream, b"")
        except ClientDisconnect:
            raise InvalidInput("the body ended before it was complete") from None
        except TimeoutError:
            raise BodyTooSlow(self._too_slow()) from None
        self._ended = not part
        self._size += len(part)
        self._check_size()
        if self._size > UNCOUNTED:
            if self._held is None:  # until the middleware finds it, when the request is answered
                self._held = self._scope[HELD] = Held(self._limits, self.token, self.address)
            self._held.count(self._size)
        self._parts.append(part)

    def _check_size(self) -> None:
        if self._size > self._limit:
            raise BodyTooLarge(f"a body has at most {self._limit} bytes here")

    def _too_slow(self) -> str:
        of = self._limits.of
        return (
            f"a body has {of.receive_timeout_s:g} s to arrive, and at least {of.body_bytes_per_s} bytes a second "
            f"after the first {GRACE_S:g} s; {self._size} bytes came"
        )


def rate_keys(request: Request, sender: str | None) -> tuple[str, ...]:
    """Whose share of the uploads a second a request takes; all parties of an open campaign have one token."""
    token, address = sender_keys(request)
    return (address,) if sender is None else (token, address)


def sender_keys(request: Request) -> tuple[str, str]:
    """Whose share a request takes: its token's hash, and its address."""
    _, _, token = request.headers.get("authorization", "").partition(" ")
    return hash_token(token), address_key(request.client.host if request.client else "")


def hold(request: Request, size: int) -> None:
    """A long answer is ready: its bytes count until it is read, or it is given up because others of its asker do."""
    if size > UNCOUNTED:
        held = request.scope[HELD] = Held(server_of(request).limits, *sender_keys(request))
        held.count(size)


async def body(request: Request, limit: int) -> bytes:
    """The request's body: rejected when it is longer than it may be, late, or more than its sender's share."""
    return await Incoming(request, limit).all()


async def parsed(what: Callable[[bytes], T], data: bytes) -> T:
    """`what` of a body, while others are served."""
    if len(data) <= AT_ONCE:
        return what(data)
    if len(data) <= _IN_A_THREAD:
        return await asyncio.to_thread(what, data)
    alone = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    try:
        return await asyncio.get_running_loop().run_in_executor(alone, what, data)
    finally:
        alone.shutdown(wait=False)


# Only for the documentation: what is accepted is decided by servers/api/auth.py.
BEARER = Depends(HTTPBearer(auto_error=False, description="operator, analyst, upload or invitation token"))


def takes(media_type: str, schema: dict[str, Any], example: object = None) -> dict[str, Any]:
    """A request body for the documentation; routes read it themselves, strictly."""
    content = {"schema": _inlined(schema, schema)} | ({} if example is None else {"example": example})
    return {"requestBody": {"required": True, "content": {media_type: content}}}


def _inlined(part: Any, whole: dict[str, Any]) -> Any:
    """A schema whose definitions stand where they are used: OpenAPI looks for references elsewhere."""
    if isinstance(part, list):
        return [_inlined(item, whole) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(whole["$defs"][part["$ref"].rpartition("/")[2]], whole)
    return {name: _inlined(value, whole) for name, value in part.items() if name != "$defs"}


def as_json(message: Any) -> JSONResponse:
    return JSONResponse(message.model_dump(mode="json"))
