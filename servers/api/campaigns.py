"""Routes for anybody, operators and parties. Each checks who asks, reads strictly, and lets the node do the work."""

import asyncio
import json

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from campaign.errors import (
    CampaignClosed,
    CampaignFull,
    InvalidCampaign,
    InvalidUpload,
    NotYetOpen,
    Problem,
    Unavailable,
    UnsupportedMediaType,
)
from campaign.spec import Campaign, to_base64url
from campaign.wire import (
    UPLOAD_TYPE,
    CampaignCreated,
    NewCampaign,
    UploadFailure,
    UploadResult,
    decode_uploads,
    read,
)
from servers import metrics
from servers.api import access
from servers.api.access import OPERATOR
from servers.api.requests import BEARER, CAMPAIGN_BODY, CampaignId, body, campaign_id, node_of, parsed, takes
from servers.lifecycle import seal
from servers.node import Node
from servers.storage.keyset import split_ids
from servers.storage.store import SEALED, Entry, NewUploads

router = APIRouter()

MAX_WITHDRAWN = 1000  # ids in one request

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


# Anybody


@router.get("/healthz", tags=["operation"])
async def healthz() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/readyz", tags=["operation"])
async def readyz(request: Request) -> dict[str, str]:
    """The server takes requests."""
    node = node_of(request)
    if node.stopping:
        raise Unavailable("the server is stopping", retry_after=5)
    node.store.entries()
    return {"status": "ready"}


@router.get("/v1/campaigns/{cid}", tags=["campaign"])
async def show(cid: CampaignId, request: Request) -> JSONResponse:
    """What a party needs to know before it takes part: the whole campaign, its digest and its state."""
    node = node_of(request)
    entry = node.store.entry(campaign_id(cid))
    fields = entry.campaign.model_dump(mode="json", by_alias=True)
    about = {"campaign": fields, "digest": to_base64url(entry.campaign.digest), "state": entry.state}
    return JSONResponse({**about, "server": node.role})


# Operators


@router.get("/metrics", tags=["operation"], dependencies=[BEARER])
async def prometheus(request: Request) -> Response:
    """Prometheus metrics, for the operator."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/campaigns", tags=["campaign"], dependencies=[BEARER])
async def list_all(request: Request) -> JSONResponse:
    """All campaigns of this server."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    return JSONResponse([_brief(entry) for entry in node.store.entries()])


@router.post(
    "/v1/campaigns",
    tags=["campaign"],
    status_code=201,
    dependencies=[BEARER],
    openapi_extra=takes("application/json", NewCampaign.model_json_schema(), _CAMPAIGN_EXAMPLE),
)
async def create(request: Request) -> JSONResponse:
    """Create a campaign here; do the same at the other server. Repeating it changes nothing."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    new, campaign = await parsed(_new_campaign, await body(request, CAMPAIGN_BODY))
    if (campaign.admission == "open") != (new.upload_token is not None) or (
        (campaign.admission == "invited") != bool(new.invitations)
    ):
        raise InvalidCampaign("an open campaign has an upload token, an invited one invitations, never both")
    made = await node.writer.run(lambda: node.store.add_campaign(campaign, new.upload_token, new.invitations))
    created = CampaignCreated(id=to_base64url(campaign.id), digest=campaign.digest)
    return JSONResponse(created.model_dump(mode="json"), 201 if made else 200)


def _new_campaign(data: bytes) -> tuple[NewCampaign, Campaign]:
    new = read(NewCampaign, data)
    return new, Campaign.from_dict(new.campaign)


@router.get("/v1/campaigns/{cid}/status", tags=["campaign"], dependencies=[BEARER])
async def status(cid: CampaignId, request: Request) -> JSONResponse:
    """Where a campaign stands on both servers."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    entry = node.store.entry(campaign_id(cid))
    if entry.state == SEALED:
        node.begin(entry.campaign.id)
    return JSONResponse({**status_of(node, entry), "peer": await _peer_status(node, entry)})


@router.post("/v1/campaigns/{cid}/seal", tags=["campaign"], dependencies=[BEARER])
async def seal_campaign(cid: CampaignId, request: Request) -> JSONResponse:
    """Fix the set of uploads that reached both servers, for good, once both operators want it. Can be repeated."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    entry = node.store.entry(campaign_id(cid))
    async with node.seal_locks.setdefault(entry.campaign.id, asyncio.Lock()):
        sealed, there = await seal.seal(
            node.store, node.writer.run, node.peer, entry.campaign, node.clock(), node.crash
        )
    node.begin(entry.campaign.id)
    found = {"count": sealed.sealed_count, "checksum": to_base64url(sealed.sealed_set or b"")}
    return JSONResponse({**found, "orphans": {"here": sealed.orphans or 0, "there": there}})


@router.post("/v1/campaigns/{cid}/confirm", tags=["campaign"], dependencies=[BEARER])
async def confirm(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase what the sealing left out on this server. Until then it is kept, in case that is not as it should be."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    campaign = campaign_id(cid)
    return JSONResponse({"erased": await node.writer.run(lambda: node.store.erase_left_out(campaign))})


@router.delete("/v1/campaigns/{cid}", tags=["campaign"], dependencies=[BEARER])
async def delete(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase keys, tokens and noise seed on this server; the id is never used again."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    await node.delete(campaign_id(cid))
    return JSONResponse({"deleted": cid})


# Parties


@router.post(
    "/v1/campaigns/{cid}/uploads",
    tags=["upload"],
    response_model=UploadResult,
    dependencies=[BEARER],
    openapi_extra=takes(UPLOAD_TYPE, {"type": "string", "format": "binary"}),
)
async def upload(cid: CampaignId, request: Request) -> JSONResponse:
    """Store keys, one or many. What is not among the failures is stored for good when the answer arrives."""
    node = node_of(request)
    entry = node.admission(campaign_id(cid))
    invitation = access.require_uploader(request, node.settings.tokens, entry, node.store)
    if request.headers.get("content-type", "").split(";")[0].strip() != UPLOAD_TYPE:
        raise UnsupportedMediaType(f"an upload has the media type {UPLOAD_TYPE}")
    data = await body(request, node.settings.limits.body_bytes)
    rows = await asyncio.to_thread(_rows, data, entry.campaign, node.role)
    node.upload_rate.take(len(rows))
    refusal = _not_now(node, entry.campaign)
    failures = await node.writer.add(NewUploads(entry.campaign.id, rows, invitation, refusal))
    metrics.UPLOADS.inc(len(rows) - len(failures))
    for _, problem in failures:
        metrics.REFUSALS.labels(problem.code).inc()
    listed = [UploadFailure(id=to_base64url(i), code=p.code, detail=p.detail) for i, p in failures]
    # A request all of whose uploads failed in one way failed in that way.
    if failures and len(failures) == len(rows) and len({p.code for _, p in failures}) == 1:
        return JSONResponse(
            {**failures[0][1].document(), "failures": [f.model_dump() for f in listed]},
            failures[0][1].status,
            media_type="application/problem+json",
        )
    return JSONResponse(UploadResult(failures=listed).model_dump())


@router.post(
    "/v1/campaigns/{cid}/uploads/withdraw",
    tags=["upload"],
    dependencies=[BEARER],
    openapi_extra=takes("application/octet-stream", {"type": "string", "format": "binary"}),
)
async def withdraw(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase uploads, named by their 16-byte ids, while the campaign is open; they are not taken again.

    A token withdraws what came with it; uploads of others stay. What is stored is always erased. Ids that have not
    arrived are remembered, so many as the token may upload; those beyond are among the failures.
    """
    node = node_of(request)
    entry = node.admission(campaign_id(cid))
    invitation = access.require_uploader(request, node.settings.tokens, entry, node.store)
    data = await body(request, 16 * MAX_WITHDRAWN)
    if len(data) % 16:
        raise InvalidUpload("uploads are withdrawn by their ids, 16 bytes each")
    ids = split_ids(data)
    node.upload_rate.take(len(ids))
    erased, forgotten = await node.writer.run(lambda: node.store.withdraw(entry.campaign.id, ids, invitation))
    full = CampaignFull("not stored, and more ids were withdrawn before they arrived than can be remembered")
    failures = [UploadFailure(id=to_base64url(i), code=full.code, detail=full.detail).model_dump() for i in forgotten]
    return JSONResponse({"withdrawn": erased, "failures": failures})


def _rows(data: bytes, campaign: Campaign, role: int) -> list[tuple[bytes, bytes]]:
    """The (id, key) pairs of an envelope, checked."""
    count = len(decode_uploads(data, campaign, role).keys)
    size = 16 + campaign.key_type(0).key_bytes
    start = len(data) - count * size
    return [(data[at : at + 16], data[at + 16 : at + size]) for at in range(start, len(data), size)]


def _not_now(node: Node, campaign: Campaign) -> Problem | None:
    """Why the campaign takes nothing new at this moment."""
    now = node.clock()
    if campaign.opens is not None and now < campaign.opens:
        return NotYetOpen(f"uploads start at {campaign.opens:%Y-%m-%dT%H:%M:%SZ}")
    if campaign.closes is not None and now >= campaign.closes:
        return CampaignClosed(f"uploads ended at {campaign.closes:%Y-%m-%dT%H:%M:%SZ}")
    return None


def _brief(entry: Entry) -> dict[str, object]:
    c = entry.campaign
    return {"id": to_base64url(c.id), "title": c.title, "state": entry.state, "uploads": entry.stored}


async def _peer_status(node: Node, entry: Entry) -> dict[str, object]:
    """What the other server says of the campaign; that it does not know it is an answer too."""
    try:
        found = json.loads(await node.peer.call("GET", entry.campaign.id, ""))
    except Problem as problem:
        return {"problem": problem.code, "detail": problem.detail}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {"problem": "peer-mismatch", "detail": "the other server's status is not well-formed"}
    if found.get("digest") != to_base64url(entry.campaign.digest):
        return {"problem": "digest-mismatch", "detail": "the other server has another campaign under this id"}
    return found


def status_of(node: Node, entry: Entry) -> dict[str, object]:
    work = node.work.get(entry.campaign.id)
    about: dict[str, object] = {
        **_brief(entry),
        "server": node.role,
        "digest": to_base64url(entry.campaign.digest),
        "min_uploads": entry.campaign.min_uploads,
        "agreed": entry.agreed,
    }
    if entry.state == SEALED:
        about |= {"count": entry.sealed_count, "orphans": entry.orphans, "kept": node.store.left_out(entry.campaign.id)}
        about |= {"checksum": to_base64url(entry.sealed_set or b"")}
        about |= {"phase": work.phase if work else "waiting", "progress": round(work.progress, 4) if work else 0.0}
        if work and work.problem:
            about["problem"] = work.problem
    return about
