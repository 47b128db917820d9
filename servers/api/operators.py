"""Routes for operators: campaigns from creation to deletion."""

import asyncio
import json

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from campaign.errors import InvalidCampaign, InvalidQuery, Problem
from campaign.spec import Campaign, to_base64url
from campaign.wire import CampaignCreated, NewCampaign, read
from servers.api import access
from servers.api.access import OPERATOR
from servers.api.acts import noted
from servers.api.requests import (
    BEARER,
    CAMPAIGN_BODY,
    CampaignId,
    OneWave,
    WhichKem,
    body,
    campaign_id,
    entry_of,
    parsed,
    takes,
)
from servers.api.sites import sites_of
from servers.api.status import brief, status_of
from servers.server import Server
from servers.storage.waves import OPEN

router = APIRouter()

_CAMPAIGN_EXAMPLE = {
    "campaign": {
        "id": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "title": "Waiting time",
        "question": "How many days did your patient wait?",
        "epsilon": 1.0,
        "grid": {"kind": "linear", "values": "integer", "from": 0, "to": 730, "step": 1},
    },
    "upload_token": "0" * 64,
}


@router.get("/v1/campaigns", tags=["campaign"], dependencies=[BEARER])
async def list_all(request: Request) -> JSONResponse:
    """All campaigns of this server."""
    storage = access.require(request, OPERATOR).storage

    def rows() -> list[dict[str, object]]:
        return [brief(entry, storage.waves.get(entry.campaign.id).state) for entry in storage.campaigns.all()]

    return JSONResponse(await asyncio.to_thread(rows))


@router.post(
    "/v1/campaigns",
    tags=["campaign"],
    status_code=201,
    dependencies=[BEARER],
    openapi_extra=takes("application/json", NewCampaign.model_json_schema(), _CAMPAIGN_EXAMPLE),
)
async def create(request: Request) -> JSONResponse:
    """Create a campaign here; do the same at the other server. Repeating it changes nothing."""
    server = access.require(request, OPERATOR)
    new, campaign = await parsed(_new_campaign, await body(request, CAMPAIGN_BODY))
    await server.hpke_keys.require_pledges(campaign)
    work = server.writer.run(lambda: server.storage.campaigns.add(campaign, new.upload_token, new.invitations))
    made = await noted(server, "create", to_base64url(campaign.id), work, title=campaign.title)
    created = CampaignCreated(id=to_base64url(campaign.id), digest=campaign.digest)
    return JSONResponse(created.model_dump(mode="json"), 201 if made else 200)


@router.get("/v1/pledges/{cid}", tags=["campaign"], dependencies=[BEARER])
async def pledges(cid: CampaignId, request: Request, kem: WhichKem = "x25519") -> JSONResponse:
    """What both servers pledge to a campaign of this id, for its field `servers`; it need not exist yet."""
    server, wanted = access.require(request, OPERATOR), campaign_id(cid)
    theirs = await server.hpke_keys.peer_pledge(wanted, kem)
    mine = await server.hpke_keys.pledge(wanted, kem)
    both = (mine, theirs) if server.role == 0 else (theirs, mine)
    return JSONResponse({"servers": [pledge.model_dump(mode="json") for pledge in both]})


def _new_campaign(data: bytes) -> tuple[NewCampaign, Campaign]:
    new = read(NewCampaign, data)
    campaign = Campaign.from_dict(new.campaign)
    if (campaign.admission == "open") != (new.upload_token is not None) or (
        (campaign.admission == "invited") != bool(new.invitations)
    ):
        raise InvalidCampaign(
            "an open campaign has an upload token, an invited one invitations, one of sites neither: they are added"
        )
    return new, campaign


@router.get("/v1/campaigns/{cid}/status", tags=["campaign"], dependencies=[BEARER])
async def status(cid: CampaignId, request: Request) -> JSONResponse:
    """Where a campaign stands on both servers."""
    server = access.require(request, OPERATOR)
    entry = await entry_of(request, cid)
    there = await _peer_status(server, entry.campaign)  # first: what it says of histories belongs to the answer
    about = {**await status_of(server, entry), "peer": there}
    if entry.campaign.admission == "sites":
        about["sites"] = await asyncio.to_thread(sites_of, server, entry.campaign.id)
    return JSONResponse(about)


@router.post("/v1/campaigns/{cid}/seal", tags=["campaign"], dependencies=[BEARER])
async def seal(cid: CampaignId, request: Request, wave: OneWave = None) -> JSONResponse:
    """Fix the set of uploads that reached both servers, for good, once both operators want it. Can be repeated.

    Where the campaign checks keys, the state is "checking" at first, and some uploads may yet be rejected. Of a
    campaign of waves, the wave is named: the open one is closed, and the next is open.
    """
    server = access.require(request, OPERATOR)
    campaign = (await entry_of(request, cid)).campaign
    if (wave is None) != (campaign.waves is None):
        raise InvalidQuery("name the wave to close (?wave=) of a campaign of waves, and of no other")
    work = server.sealer.seal(campaign, wave or 0)
    sealed, there = await noted(server, "seal", cid, work, **({} if wave is None else {"wave": wave}))
    server.workman.call()
    assert sealed.set is not None
    about = {"state": sealed.state, "count": sealed.set.count, "checksum": to_base64url(sealed.set.checksum)}
    orphans = {"here": sealed.set.orphans, "there": there}
    return JSONResponse({**about, "orphans": orphans, "rejected": sealed.rejected})


@router.delete("/v1/campaigns/{cid}/seal", tags=["campaign"], dependencies=[BEARER])
async def take_back(cid: CampaignId, request: Request) -> JSONResponse:
    """This operator does not want it sealed after all. Nothing had happened yet; can be repeated."""
    server, entry = access.require(request, OPERATOR), await entry_of(request, cid)
    work = server.writer.run(lambda: server.storage.waves.disagree(entry.campaign.id))
    await noted(server, "retract", cid, work)
    return JSONResponse({"agreed": False})


@router.post("/v1/campaigns/{cid}/reopen", tags=["campaign"], dependencies=[BEARER])
async def reopen(cid: CampaignId, request: Request) -> JSONResponse:
    """Undo a freeze at both servers, so that uploads go on; never what is fixed. Can be repeated."""
    server, entry = access.require(request, OPERATOR), await entry_of(request, cid)
    await noted(server, "reopen", cid, server.sealer.reopen(entry.campaign))
    return JSONResponse({"state": OPEN})


@router.post("/v1/campaigns/{cid}/confirm", tags=["campaign"], dependencies=[BEARER])
async def confirm(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase what the sealing left out on this server. Until then it is kept, in case that is not as it should be."""
    server, campaign = access.require(request, OPERATOR), campaign_id(cid)
    work = server.writer.run(lambda: server.storage.waves.erase_left_out(campaign))
    erased = await noted(server, "confirm", cid, work)
    return JSONResponse({"erased": erased})


@router.delete("/v1/campaigns/{cid}", tags=["campaign"], dependencies=[BEARER])
async def delete(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase keys, tokens, noise seed and HPKE key on this server; the id is never used again."""
    server, campaign = access.require(request, OPERATOR), campaign_id(cid)
    await noted(server, "delete", cid, server.delete(campaign))
    return JSONResponse({"deleted": cid})


async def _peer_status(server: Server, campaign: Campaign) -> dict[str, object]:
    """What the other server says of the campaign; that it does not know it is an answer too."""
    try:
        status = json.loads(await server.peer.status(campaign.id))
    except Problem as problem:
        return {"problem": problem.code, "detail": problem.detail}
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict):
        return {"problem": "peer-mismatch", "detail": "the other server's status is not well-formed"}
    if status.get("digest") != to_base64url(campaign.digest):
        return {"problem": "digest-mismatch", "detail": "the other server has another campaign under this id"}
    return status
