"""Routes for operators: campaigns from creation to deletion."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery, Problem
from fss_ecdf.campaign.json_messages import CampaignCreated, NewCampaign, read
from fss_ecdf.campaign.status import Status, StatusProblem
from servers.api import auth
from servers.api.auth import OPERATOR
from servers.api.record_action import record_action
from servers.api.requests import (
    BEARER,
    CAMPAIGN_BODY,
    CampaignId,
    Number,
    OneWave,
    WhichKem,
    body,
    campaign_id,
    entry_of,
    parsed,
    takes,
)
from servers.api.sites import sites_of
from servers.api.status import status_of, summary_of
from servers.lifecycle.seal import peer_status
from servers.server import Server
from servers.storage.waves import OPEN

router = APIRouter()

_CAMPAIGN_EXAMPLE = {
    "campaign": {
        "id": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "title": "Waiting time",
        "question": "How many days did your patient wait?",
        "epsilon": 1.0,
        "variables": [
            {
                "name": "waiting time",
                "unit": "days",
                "grid": {"kind": "linear", "values": "integer", "from": 0, "to": 730, "step": 1},
            }
        ],
    },
    "upload_token": "0" * 64,
}


@router.get("/v1/campaigns", tags=["campaign"], dependencies=[BEARER])
async def list_all(request: Request) -> JSONResponse:
    """All campaigns of this server."""
    storage = auth.require(request, OPERATOR).storage

    def rows() -> list[dict[str, object]]:
        entries = storage.campaigns.all()
        return [summary_of(entry, storage.waves.get(entry.campaign.id).state).fields() for entry in entries]

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
    server = auth.require(request, OPERATOR)
    new, campaign = await parsed(_new_campaign, await body(request, CAMPAIGN_BODY))
    await server.hpke_keys.require_commitments(campaign)
    work = server.writer.run(lambda: server.storage.campaigns.add(campaign, new.upload_token, new.invitations))
    made = await record_action(server, "create", to_base64url(campaign.id), work, title=campaign.title)
    created = CampaignCreated(id=to_base64url(campaign.id), digest=campaign.digest)
    return JSONResponse(created.model_dump(mode="json"), 201 if made else 200)


@router.get("/v1/commitments/{cid}", tags=["campaign"], dependencies=[BEARER])
async def commitments(cid: CampaignId, request: Request, kem: WhichKem = "x25519") -> JSONResponse:
    """What both servers commit to for a campaign of this id, for its field `server_commitments`; it need not exist."""
    server, wanted = auth.require(request, OPERATOR), campaign_id(cid)
    theirs = await server.hpke_keys.peer_commitment(wanted, kem)
    mine = await server.hpke_keys.commitment(wanted, kem)
    both = (mine, theirs) if server.number == 0 else (theirs, mine)
    return JSONResponse({"server_commitments": [commitment.model_dump(mode="json") for commitment in both]})


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


@router.get("/v1/campaigns/{cid}/status", tags=["campaign"], response_model=Status, dependencies=[BEARER])
async def status(cid: CampaignId, request: Request) -> JSONResponse:
    """Where a campaign stands on both servers."""
    server = auth.require(request, OPERATOR)
    entry = await entry_of(request, cid)
    there = await _peer_status(server, entry.campaign)  # first: what it says of histories belongs to the answer
    more: dict[str, object] = {"peer": there}
    if entry.campaign.admission == "sites":
        more["sites"] = await asyncio.to_thread(sites_of, server, entry.campaign.id)
    return JSONResponse((await status_of(server, entry)).model_copy(update=more).fields())


@router.post("/v1/campaigns/{cid}/seal", tags=["campaign"], dependencies=[BEARER])
async def seal(cid: CampaignId, request: Request, wave: OneWave = None) -> JSONResponse:
    """Fix the set of uploads that reached both servers, for good, once both operators want it. Can be repeated.

    Where the campaign checks keys, the state is "checking" at first, and some uploads may yet be rejected. Of a
    campaign of waves, the wave is named: the open one is closed, and the next is open.
    """
    server = auth.require(request, OPERATOR)
    campaign = (await entry_of(request, cid)).campaign
    if (wave is None) != (campaign.waves is None):
        raise InvalidQuery("name the wave to close (?wave=) of a campaign of waves, and of no other")
    work = server.sealer.seal(campaign, wave or 0)
    sealed, there = await record_action(server, "seal", cid, work, **({} if wave is None else {"wave": wave}))
    server.workman.call()
    assert sealed.set is not None
    about = {"state": sealed.state, "count": sealed.set.count, "checksum": to_base64url(sealed.set.checksum)}
    unmatched = {"here": sealed.set.unmatched, "there": there}
    return JSONResponse({**about, "unmatched": unmatched, "rejected": sealed.rejected})


@router.delete("/v1/campaigns/{cid}/seal", tags=["campaign"], dependencies=[BEARER])
async def withdraw_agreement(cid: CampaignId, request: Request) -> JSONResponse:
    """This operator does not want it sealed after all. Nothing had happened yet; can be repeated."""
    server, entry = auth.require(request, OPERATOR), await entry_of(request, cid)
    work = server.writer.run(lambda: server.storage.waves.withdraw_agreement(entry.campaign.id))
    await record_action(server, "cancel-seal", cid, work)
    return JSONResponse({"operator_agreed": False})


@router.post("/v1/campaigns/{cid}/unfreeze", tags=["campaign"], dependencies=[BEARER])
async def unfreeze(cid: CampaignId, request: Request) -> JSONResponse:
    """Undo a freeze at both servers, so that uploads go on; never what is fixed. Can be repeated."""
    server, entry = auth.require(request, OPERATOR), await entry_of(request, cid)
    await record_action(server, "unfreeze", cid, server.sealer.unfreeze(entry.campaign))
    return JSONResponse({"state": OPEN})


@router.post("/v1/campaigns/{cid}/abandon", tags=["campaign"], dependencies=[BEARER])
async def abandon(cid: CampaignId, request: Request, wave: Number) -> JSONResponse:
    """Abandon a wave that cannot be sealed, once both operators want it. Its parties upload again. Can be repeated."""
    server, entry = auth.require(request, OPERATOR), await entry_of(request, cid)
    abandoned = await record_action(server, "abandon", cid, server.sealer.abandon(entry.campaign, wave), wave=wave)
    server.workman.call()
    assert abandoned.set is not None
    return JSONResponse({"abandoned": wave, "excluded": abandoned.set.unmatched})


@router.post("/v1/campaigns/{cid}/discard-excluded", tags=["campaign"], dependencies=[BEARER])
async def discard_excluded(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase what the sealing left out on this server. Until then it is kept, in case that is not as it should be."""
    server, campaign = auth.require(request, OPERATOR), campaign_id(cid)
    work = server.writer.run(lambda: server.storage.waves.discard_excluded(campaign))
    erased = await record_action(server, "discard-excluded", cid, work)
    return JSONResponse({"erased": erased})


@router.delete("/v1/campaigns/{cid}", tags=["campaign"], dependencies=[BEARER])
async def delete(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase keys, tokens, noise seed and HPKE key on this server; the id is never used again."""
    server, campaign = auth.require(request, OPERATOR), campaign_id(cid)
    await record_action(server, "delete", cid, server.delete(campaign))
    return JSONResponse({"deleted": cid})


async def _peer_status(server: Server, campaign: Campaign) -> Status | StatusProblem:
    """What the other server says of the campaign; that it does not know it is an answer too."""
    try:
        status = await peer_status(server.peer, campaign)
    except Problem as problem:
        return StatusProblem(problem=problem.code, detail=problem.detail)
    return status.model_copy(update={"peer": None, "sites": None})
