"""Routes for operators: the sites of a campaign, each with a token, a label and a quota of uploads."""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse

from fss_ecdf.campaign.json_messages import NewSites, SiteChange, read
from servers.api import auth
from servers.api.auth import OPERATOR
from servers.api.record_action import record_action
from servers.api.requests import BEARER, CAMPAIGN_BODY, SMALL_BODY, CampaignId, body, campaign_id, parsed, takes
from servers.server import Server
from servers.storage.admission import Site

router = APIRouter()

SiteId = Annotated[str, Path(description="the site's id, 32 hexadecimal digits")]


@router.get("/v1/campaigns/{cid}/sites", tags=["campaign"], dependencies=[BEARER])
async def list_all(cid: CampaignId, request: Request) -> JSONResponse:
    """Labels, quotas, states and uploads of all sites; no tokens."""
    server = auth.require(request, OPERATOR)
    return JSONResponse(await asyncio.to_thread(sites_of, server, campaign_id(cid)))


@router.post(
    "/v1/campaigns/{cid}/sites",
    tags=["campaign"],
    dependencies=[BEARER],
    openapi_extra=takes("application/json", NewSites.model_json_schema()),
)
async def add(cid: CampaignId, request: Request) -> JSONResponse:
    """Admit sites, here; do the same at the other server. Repeating it changes nothing."""
    server, campaign = auth.require(request, OPERATOR), campaign_id(cid)
    new = await parsed(partial(read, NewSites), await body(request, CAMPAIGN_BODY))
    sites = [Site(site.id, site.label, site.token, site.quota) for site in new.sites]
    work = server.writer.run(lambda: server.storage.sites.add(campaign, sites))
    added = await record_action(server, "sites-add", cid, work, sites=[site.id for site in sites])
    return JSONResponse({"added": added})


@router.patch(
    "/v1/campaigns/{cid}/sites/{site}",
    tags=["campaign"],
    dependencies=[BEARER],
    openapi_extra=takes("application/json", SiteChange.model_json_schema()),
)
async def change(cid: CampaignId, site: SiteId, request: Request) -> JSONResponse:
    """Pause, resume or revoke a site, exchange its token, change its quota; with `withdraw`, erase what it sent."""
    server, campaign = auth.require(request, OPERATOR), campaign_id(cid)
    given = read(SiteChange, await body(request, SMALL_BODY))
    values = given.model_dump(exclude_none=True, exclude={"withdraw"})

    def work() -> dict[str, object]:
        changed = server.storage.sites.change(campaign, site, **values)
        erased = server.storage.uploads.withdraw_all(campaign, site) if given.withdraw else 0
        return {"id": changed.id, "state": changed.state, "quota": changed.quota, "erased": erased}

    about = {**values, "withdraw": given.withdraw, "token": "exchanged" if given.token else "kept"}
    return JSONResponse(
        await record_action(server, "site-change", cid, server.writer.run(work), site=site[:32], **about)
    )


def sites_of(server: Server, campaign: bytes) -> list[dict[str, object]]:
    """What an operator is shown; the other server is told nothing of it."""
    server.storage.campaigns.get(campaign)  # says whether it is unknown or deleted
    counts, rejected = server.storage.uploads.by_sender(campaign), server.storage.tables.rejected(campaign)
    return [
        {
            "id": s.id,
            "label": s.label,
            "state": s.state,
            "quota": s.quota,
            "uploads": counts.get(s.id, 0),
            "rejected": rejected.get(s.id, 0),
        }
        for s in server.storage.sites.all(campaign)
    ]
