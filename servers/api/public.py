"""Routes for anybody: is the server there, and what is a campaign about?"""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from campaign.errors import Unavailable
from campaign.spec import to_base64url
from servers.api.requests import CampaignId, entry_of, server_of

router = APIRouter()


@router.get("/healthz", tags=["operation"])
async def healthz() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/readyz", tags=["operation"])
async def readyz(request: Request) -> dict[str, str]:
    """The server takes requests."""
    server = server_of(request)
    if server.stopping:
        raise Unavailable("the server is stopping", retry_after=5)
    await asyncio.to_thread(server.storage.ping)
    return {"status": "ready"}


@router.get("/v1/campaigns/{cid}", tags=["campaign"])
async def show(cid: CampaignId, request: Request) -> JSONResponse:
    """What a party needs to know before it takes part: the whole campaign, its digest and its state."""
    server, entry = server_of(request), await entry_of(request, cid)
    wave = await asyncio.to_thread(server.storage.waves.get, entry.campaign.id)
    fields = entry.campaign.model_dump(mode="json", by_alias=True)
    about = {"campaign": fields, "digest": to_base64url(entry.campaign.digest), "state": wave.state}
    return JSONResponse({**about, "server": server.role})
