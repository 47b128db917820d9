"""Routes for anybody: is the server there, and what is a campaign about?"""

import asyncio
import json
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from fss_ecdf.campaign.campaign import to_base64url
from servers.api.requests import CampaignId, fixed_entry_of, server_of

router = APIRouter()

Known = Annotated[str | None, Query(description="the digest of a campaign that need not be repeated")]


@router.get("/healthz", tags=["operation"])
async def healthz() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/readyz", tags=["operation"])
async def readyz(request: Request) -> dict[str, str]:
    """The server takes requests."""
    return {"status": await asyncio.to_thread(server_of(request).readiness)}


@router.get("/v1/campaigns/{cid}", tags=["campaign"])
async def get_campaign(cid: CampaignId, request: Request, known: Known = None) -> Response:
    """What a party needs to know before it takes part: the whole campaign, its digest and its state.

    Whoever has read the campaign at the other server says so by its digest, and is spared a second copy.
    """
    server, entry = server_of(request), await fixed_entry_of(request, cid)
    wave = await asyncio.to_thread(server.storage.waves.get, entry.campaign.id)
    digest = to_base64url(entry.campaign.digest)
    about: dict[str, object] = {"digest": digest, "state": wave.state, "server": server.number}
    if entry.campaign.waves is not None:
        about["wave"] = wave.number
    if known == digest:
        return JSONResponse(about)
    told = json.dumps(about, separators=(",", ":")).encode()
    return Response(_described(entry.campaign.canonical, told), media_type="application/json")


@lru_cache(maxsize=4)
def _described(canonical: bytes, about: bytes) -> bytes:
    """One text for all who ask: anybody may, and a campaign can have a million thresholds."""
    return b'{"campaign":' + canonical + b"," + about[1:]
