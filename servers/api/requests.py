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

from campaign.errors import (
    BodyTooLarge,
    BodyTooSlow,
    InvalidInput,
    InvalidQuery,
    UnknownCampaign,
)
from campaign.spec import ID_BYTES, from_base64url
from fss.challenge import MAX_WAVE
from servers.release.releases import CURVE
from servers.server import Server
from servers.storage.campaigns import Entry

# A thousand numbers, as long as a double can be written, or a few words: what most messages are.
SMALL_BODY = 1 << 16
# A campaign whose thresholds are listed, and its invitations: the one message that may be long.
CAMPAIGN_BODY = 32 << 20

# Up to here a message is read at once; beyond, in a thread; and where the reader would not let go of the interpreter
# for seconds, in a process of its own.
AT_ONCE, _IN_A_THREAD = 1 << 14, 1 << 20

T = TypeVar("T")

CampaignId = Annotated[str, Path(description="the campaign's id, unpadded base64url", examples=["AAEC" * 10 + "AwQ"])]
Stratum = Annotated[str | None, Query(description="the name of a stratum; the first one if left out")]
Number = Annotated[int, Query(ge=0, le=MAX_WAVE, description="the number of a wave")]
OneWave = Annotated[int | None, Query(ge=1, le=MAX_WAVE, description="the number of a wave, of a campaign of waves")]


def release_name(wave: int | None, pooled: int | None) -> str:
    """What a question is about: a plain campaign's curve, or one release of a campaign of waves."""
    if wave is not None and pooled is not None:
        raise InvalidQuery("name one of wave and pooled")
    if pooled is not None:
        return f"pooled {pooled}"
    return CURVE if wave is None else f"wave {wave}"


def campaign_id(text: str) -> bytes:
    try:
        return from_base64url(text, ID_BYTES, "a campaign's id")
    except ValueError:
        raise UnknownCampaign("a campaign's id is 32 bytes in unpadded base64url") from None


def server_of(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


async def entry_of(request: Request, cid: str) -> Entry:
    """The campaign that an address names, as this server has it."""
    return await asyncio.to_thread(server_of(request).storage.campaigns.get, campaign_id(cid))


async def fixed_entry_of(request: Request, cid: str) -> Entry:
    """The same, from memory where it is known: enough for whom a campaign admits."""
    campaigns, wanted = server_of(request).storage.campaigns, campaign_id(cid)
    known: Entry | None = campaigns.known(wanted)
    return known if known is not None else await asyncio.to_thread(campaigns.fixed, wanted)


class Plain(APIRoute):
    """A route whose function reads the request itself, and that is asked very often: FastAPI only documents it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer: Callable[[str, Request], Coroutine[Any, Any, Response]] = self.endpoint

        async def handle(request: Request) -> Response:
            return await answer(request.path_params["cid"], request)

        return handle


async def body(request: Request, limit: int) -> bytes:
    """The request's body: refused when it is longer than it may be, late, or more than the server holds at once."""
    limits, length = server_of(request).limits, request.headers.get("content-length", "")
    expected = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else limit
    if expected > limit:
        raise BodyTooLarge(f"a body has at most {limit} bytes here")
    try:
        with limits.reading(expected):
            async with asyncio.timeout(limits.of.body_s):
                return await _read(request, limit)
    except ClientDisconnect:
        raise InvalidInput("the body ended before it was complete") from None
    except TimeoutError:
        raise BodyTooSlow(f"a body has {limits.of.body_s:g} s to arrive") from None


async def _read(request: Request, limit: int) -> bytes:
    parts, total = [], 0
    async for part in request.stream():
        total += len(part)
        if total > limit:
            raise BodyTooLarge(f"a body has at most {limit} bytes here")
        parts.append(part)
    return b"".join(parts)


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


# Only for the documentation: what is accepted is decided by servers/api/access.py.
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
