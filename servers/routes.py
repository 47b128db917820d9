"""The routes. Each checks who asks, reads strictly, and lets the node do the work."""

import asyncio
import io
import json
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from campaign.errors import (
    BodyTooLarge,
    BodyTooSlow,
    CampaignClosed,
    InvalidCampaign,
    InvalidInput,
    InvalidQuery,
    NotYetOpen,
    PeerMismatch,
    Problem,
    TooManyRequests,
    Unavailable,
    UnknownCampaign,
    UnsupportedMediaType,
)
from campaign.spec import ID_BYTES, Campaign, check_digest, from_base64url, to_base64url
from campaign.wire import (
    SHARES_TYPE,
    UPLOAD_TYPE,
    BudgetAnswer,
    CampaignCreated,
    EcdfAnswer,
    GroupsAnswer,
    GroupsQuery,
    HistogramAnswer,
    NewCampaign,
    PeerGroupsQuery,
    QuantileAnswer,
    ShareQuery,
    Shares,
    UploadFailure,
    UploadResult,
    decode_shares,
    decode_uploads,
    encode_shares,
    read,
)
from fss import field
from servers import access, answer, metrics, seal
from servers.access import ANALYST, OPERATOR, PEER
from servers.node import Node, Work
from servers.store import OPEN, SEALED, Entry, NewUploads

MAX_JSON_BYTES = 32 << 20

CampaignId = Annotated[str, Path(description="the campaign's id, unpadded base64url", examples=["AAEC" * 10 + "AwQ"])]
Stratum = Annotated[str | None, Query(description="the name of a stratum; the first one if left out")]


def campaign_id(text: str) -> bytes:
    try:
        return from_base64url(text, ID_BYTES, "a campaign's id")
    except ValueError:
        raise UnknownCampaign("a campaign's id is 32 bytes in unpadded base64url") from None


async def body(request: Request, limit: int) -> bytes:
    """The request's body: refused when it is longer than it may be, late, or more than the server holds at once."""
    node, length = node_of(request), request.headers.get("content-length", "")
    expected = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else limit
    if expected > limit:
        raise BodyTooLarge(f"a body has at most {limit} bytes here")
    if node.bytes_in_flight and node.bytes_in_flight + expected > node.settings.limits.bytes_in_flight:
        raise TooManyRequests("the server is reading as much as it can hold", retry_after=1)
    node.bytes_in_flight += expected
    try:
        async with asyncio.timeout(node.settings.limits.body_s):
            return await _read(request, limit)
    except TimeoutError:
        raise BodyTooSlow(f"a body has {node.settings.limits.body_s:g} s to arrive") from None
    finally:
        node.bytes_in_flight -= expected


async def _read(request: Request, limit: int) -> bytes:
    parts, total = [], 0
    async for part in request.stream():
        total += len(part)
        if total > limit:
            raise BodyTooLarge(f"a body has at most {limit} bytes here")
        parts.append(part)
    return b"".join(parts)


# Only for the documentation: what is accepted is decided by servers/access.py.
_BEARER = Depends(HTTPBearer(auto_error=False, description="operator, analyst, upload or invitation token"))

router, peer_router = APIRouter(), APIRouter()


def _takes(media_type: str, schema: dict[str, Any], example: object = None) -> dict[str, Any]:
    """A request body for the documentation; routes read it themselves, strictly."""
    content = {"schema": schema} | ({} if example is None else {"example": example})
    return {"requestBody": {"required": True, "content": {media_type: content}}}


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


def node_of(request: Request) -> Node:
    node: Node = request.app.state.node
    return node


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


@router.get("/metrics", tags=["operation"], dependencies=[_BEARER])
async def prometheus(request: Request) -> Response:
    """Prometheus metrics, for the operator."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/campaigns", tags=["campaign"], dependencies=[_BEARER])
async def list_all(request: Request) -> JSONResponse:
    """All campaigns of this server."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    return JSONResponse([_brief(entry) for entry in node.store.entries()])


@router.post(
    "/v1/campaigns",
    tags=["campaign"],
    status_code=201,
    dependencies=[_BEARER],
    openapi_extra=_takes("application/json", NewCampaign.model_json_schema(), _CAMPAIGN_EXAMPLE),
)
async def create(request: Request) -> JSONResponse:
    """Create a campaign here; do the same at the other server. Repeating it changes nothing."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    new = read(NewCampaign, await body(request, MAX_JSON_BYTES))
    campaign = Campaign.from_dict(new.campaign)
    if (campaign.admission == "open") != (new.upload_token is not None) or (
        (campaign.admission == "invited") != bool(new.invitations)
    ):
        raise InvalidCampaign("an open campaign has an upload token, an invited one invitations, never both")
    made = await node.writer.run(lambda: node.store.add_campaign(campaign, new.upload_token, new.invitations))
    created = CampaignCreated(id=to_base64url(campaign.id), digest=campaign.digest)
    return JSONResponse(created.model_dump(mode="json"), 201 if made else 200)


@router.get("/v1/campaigns/{cid}/status", tags=["campaign"], dependencies=[_BEARER])
async def status(cid: CampaignId, request: Request) -> JSONResponse:
    """Where a campaign stands on both servers."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    entry = node.store.entry(campaign_id(cid))
    if entry.state == SEALED:
        node.begin(entry.campaign.id)
    return JSONResponse({**_status(node, entry), "peer": await _peer_status(node, entry)})


@router.post("/v1/campaigns/{cid}/seal", tags=["campaign"], dependencies=[_BEARER])
async def seal_campaign(cid: CampaignId, request: Request) -> JSONResponse:
    """Fix the set of uploads that reached both servers, for good. Can be repeated."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    entry = node.store.entry(campaign_id(cid))
    async with node.seal_locks.setdefault(entry.campaign.id, asyncio.Lock()):
        sealed, there = await seal.seal(node.store, node.writer.run, node.peer, entry.campaign, node.crash)
    node.begin(entry.campaign.id)
    found = {"count": sealed.sealed_count, "checksum": to_base64url(sealed.sealed_set or b"")}
    return JSONResponse({**found, "orphans": {"here": sealed.orphans or 0, "there": there}})


@router.delete("/v1/campaigns/{cid}", tags=["campaign"], dependencies=[_BEARER])
async def delete(cid: CampaignId, request: Request) -> JSONResponse:
    """Erase keys, node.settings.tokens and noise seed on this server; the id is never used again."""
    node = node_of(request)
    access.require(request, node.settings.tokens, OPERATOR)
    await node.delete(campaign_id(cid))
    return JSONResponse({"deleted": cid})


# Parties


@router.post(
    "/v1/campaigns/{cid}/uploads",
    tags=["upload"],
    response_model=UploadResult,
    dependencies=[_BEARER],
    openapi_extra=_takes(UPLOAD_TYPE, {"type": "string", "format": "binary"}),
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


# Analysts


async def question(cid: str, request: Request, stratum: str | None) -> tuple[Entry, answer.Question]:
    node = node_of(request)
    access.require(request, node.settings.tokens, ANALYST)
    entry, work = node.sealed(campaign_id(cid))
    name = entry.campaign.strata[0] if stratum is None else stratum
    entry.campaign.stratum(name)

    async def count_at(positions: answer.Index) -> answer.Counts:
        return await node.counts(entry, work, positions)

    return entry, answer.Question(entry.campaign, name, entry.sealed_count or 0, count_at, work.errors)


@router.get("/v1/campaigns/{cid}/ecdf", tags=["answers"], response_model=EcdfAnswer, dependencies=[_BEARER])
async def ecdf(
    cid: CampaignId,
    request: Request,
    at: Annotated[str, Query(description="thresholds, separated by commas", examples=["6.5,7.0"])],
    stratum: Stratum = None,
) -> JSONResponse:
    """How many values are at or below each threshold."""
    node = node_of(request)
    _, asked = await question(cid, request, stratum)
    return _json(await answer.ecdf(asked, _list(at, node.settings.limits.points_per_query)))


@router.get("/v1/campaigns/{cid}/curve", tags=["answers"], response_model=EcdfAnswer, dependencies=[_BEARER])
async def curve(cid: CampaignId, request: Request, stratum: Stratum = None) -> Response:
    """The whole curve, as JSON, CSV (Accept: text/csv) or numpy (Accept: application/x-npy)."""
    node = node_of(request)
    entry, asked = await question(cid, request, stratum)
    await _need_curve(node, entry)
    counts = await asked.counts(np.arange(entry.campaign.grid.size))
    accept = request.headers.get("accept", "")
    return await asyncio.to_thread(_curve, asked, counts, accept)


@router.get("/v1/campaigns/{cid}/quantiles", tags=["answers"], response_model=QuantileAnswer, dependencies=[_BEARER])
async def quantiles(
    cid: CampaignId,
    request: Request,
    q: Annotated[str, Query(description="levels between 0 and 1, separated by commas", examples=["0.25,0.5"])],
    stratum: Stratum = None,
) -> JSONResponse:
    """Quantiles with 95 % intervals."""
    node = node_of(request)
    entry, asked = await question(cid, request, stratum)
    await _need_curve(node, entry)
    counts = await asked.counts(np.arange(entry.campaign.grid.size))
    return _json(await asyncio.to_thread(answer.quantiles, asked, counts, _levels(q)))


@router.get("/v1/campaigns/{cid}/histogram", tags=["answers"], response_model=HistogramAnswer, dependencies=[_BEARER])
async def histogram(
    cid: CampaignId,
    request: Request,
    edges: Annotated[str, Query(description="upper edges of the bins, increasing", examples=["5,6,7,8"])],
    stratum: Stratum = None,
) -> JSONResponse:
    """How many values lie above one edge and at or below the next."""
    node = node_of(request)
    _, asked = await question(cid, request, stratum)
    return _json(await answer.histogram(asked, _list(edges, node.settings.limits.points_per_query)))


@router.get("/v1/campaigns/{cid}/budget", tags=["answers"], response_model=BudgetAnswer, dependencies=[_BEARER])
async def budget(cid: CampaignId, request: Request) -> JSONResponse:
    """What the campaign may spend, and has spent, by this server's ledger."""
    node = node_of(request)
    access.require(request, node.settings.tokens, ANALYST, OPERATOR)
    campaign = node.store.entry(campaign_id(cid)).campaign
    spent = sum(node.store.spent(campaign.id).values())
    about = {"epsilon": campaign.epsilon, "reserve": campaign.reserve, "spent": spent}
    remaining = max(0.0, campaign.total_epsilon - spent)
    return _json(BudgetAnswer(digest=campaign.digest, remaining=remaining, **about))


@router.post(
    "/v1/campaigns/{cid}/groups",
    tags=["answers"],
    response_model=GroupsAnswer,
    dependencies=[_BEARER],
    openapi_extra=_takes(
        "application/json", GroupsQuery.model_json_schema(), {"upper_ends": [0.1, 0.3, 1.0], "epsilon": 0.5}
    ),
)
async def groups(cid: CampaignId, request: Request) -> JSONResponse:
    """Observed and expected counts of score groups with noise of their own, paid from the reserve."""
    node = node_of(request)
    access.require(request, node.settings.tokens, ANALYST)
    entry, work = node.sealed(campaign_id(cid))
    query = read(GroupsQuery, await body(request, MAX_JSON_BYTES))
    asked = answer.groups(entry.campaign, query)
    message = PeerGroupsQuery(digest=entry.campaign.digest, **query.model_dump()).to_json().encode()
    # Server 0 always pays first, so that two questions at once cannot each take the other's budget at one server.
    if node.role == 0:
        ours = await _noised_groups(node, entry, work, asked)
    data = await node.peer.call("POST", entry.campaign.id, "/groups", content=message)
    if node.role == 1:
        ours = await _noised_groups(node, entry, work, asked)
    theirs = _decode_groups(node, entry, data, ours.size)
    return _json(_groups_answer(entry, asked, field.decode(field.add(ours, theirs))))


# The other server


@peer_router.get("/v1/peer/campaigns/{cid}", include_in_schema=False)
async def peer_show(cid: str, request: Request) -> JSONResponse:
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    return JSONResponse(_status(node, node.store.entry(campaign_id(cid))))


@peer_router.post("/v1/peer/campaigns/{cid}/shares", include_in_schema=False)
async def peer_shares(cid: str, request: Request) -> Response:
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    entry, work = node.sealed(campaign_id(cid))
    query = read(ShareQuery, await body(request, MAX_JSON_BYTES))
    check_digest(entry.campaign.digest, query.digest)
    positions = None if query.positions == "all" else np.array(query.positions, np.int64)
    if positions is not None and (not positions.size or positions.max() >= 1 << entry.campaign.bits):
        raise InvalidQuery(f"positions must be 0 to {(1 << entry.campaign.bits) - 1}")
    if positions is not None and positions.size > node.settings.limits.points_per_query + 1:
        raise InvalidQuery(f"at most {node.settings.limits.points_per_query + 1} positions in one question")
    return _shares(node, entry, await node.noised_shares(entry, work, positions))


@peer_router.post("/v1/peer/campaigns/{cid}/groups", include_in_schema=False)
async def peer_groups(cid: str, request: Request) -> Response:
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    entry, work = node.sealed(campaign_id(cid))
    query = read(PeerGroupsQuery, await body(request, MAX_JSON_BYTES))
    check_digest(entry.campaign.digest, query.digest)
    return _shares(node, entry, await _noised_groups(node, entry, work, answer.groups(entry.campaign, query)))


@peer_router.post("/v1/peer/campaigns/{cid}/freeze", include_in_schema=False)
async def peer_freeze(cid: str, request: Request) -> Response:
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    campaign = node.store.entry(campaign_id(cid)).campaign
    listed = await node.writer.run(lambda: seal.list_ids(node.store, campaign))
    node.crash("peer-frozen")
    return Response(listed.encode(), media_type="application/octet-stream")


@peer_router.post("/v1/peer/campaigns/{cid}/thaw", include_in_schema=False)
async def peer_thaw(cid: str, request: Request) -> JSONResponse:
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    campaign = node.store.entry(campaign_id(cid)).campaign
    given = seal.Listed.decode(await body(request, MAX_JSON_BYTES))
    check_digest(campaign.digest, given.digest)
    await node.writer.run(lambda: node.store.thaw(campaign.id, given.freeze))
    return JSONResponse({"state": OPEN})


@peer_router.post("/v1/peer/campaigns/{cid}/agree", include_in_schema=False)
async def peer_agree(cid: str, request: Request) -> Response:
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    campaign = node.store.entry(campaign_id(cid)).campaign
    given = seal.Listed.decode(await body(request, 64 + 16 * campaign.max_uploads))
    check_digest(campaign.digest, given.digest)
    sealed = await node.writer.run(lambda: seal.accept(node.store, campaign, given.freeze, given.ids))
    node.crash("peer-sealed")
    node.begin(campaign.id)
    return _json(seal.as_reply(sealed))


def _json(message: Any) -> JSONResponse:
    return JSONResponse(message.model_dump(mode="json"))


def _list(text: str, most: int) -> list[str]:
    found = [part.strip() for part in text.split(",")]
    if len(found) > most:
        raise InvalidQuery(f"at most {most} values in one question, got {len(found)}; ask for the curve instead")
    if not all(found):
        raise InvalidQuery("values are separated by single commas")
    return found


def _levels(text: str) -> list[float]:
    try:
        levels = [float(part) for part in _list(text, 1000)]
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidQuery("levels are numbers between 0 and 1, separated by commas") from None
    if not all(0 <= level <= 1 for level in levels):
        raise InvalidQuery("levels are numbers between 0 and 1")
    return levels


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


async def _need_curve(node: Node, entry: Entry) -> None:
    """Whole curves are answered only from the published one."""
    if entry.campaign.bits > node.settings.curve_bits:
        raise InvalidQuery(
            f"this campaign has 2^{entry.campaign.bits} positions; whole curves go up to 2^{node.settings.curve_bits}. "
            "Ask for points (ecdf) instead"
        )
    _, work = node.sealed(entry.campaign.id)
    if await node.release(entry, work) is None:
        where = "the other server's" if work.noised is not None else "this server's"
        raise Unavailable(f"{where} curve is not ready yet ({work.phase}, {work.progress:.0%})", retry_after=2)


def _curve(asked: answer.Question, counts: answer.Counts, accept: str) -> Response:
    if "application/x-npy" in accept:
        out = io.BytesIO()
        np.save(out, counts)
        return Response(out.getvalue(), media_type="application/x-npy")
    found = answer.curve(asked, counts)
    if "text/csv" not in accept:
        return _json(found)
    rows = zip(found.thresholds, found.counts, found.standard_errors, strict=True)
    lines = ["threshold,count,standard_error", *(f"{t},{c},{e:.6g}" for t, c, e in rows)]
    return Response("\n".join(lines) + "\n", media_type="text/csv")


def _brief(entry: Entry) -> dict[str, object]:
    c = entry.campaign
    return {"id": to_base64url(c.id), "title": c.title, "state": entry.state, "uploads": entry.stored}


def _status(node: Node, entry: Entry) -> dict[str, object]:
    work = node.work.get(entry.campaign.id)
    about: dict[str, object] = {
        **_brief(entry),
        "server": node.role,
        "digest": to_base64url(entry.campaign.digest),
        "min_uploads": entry.campaign.min_uploads,
    }
    if entry.state == SEALED:
        about |= {"count": entry.sealed_count, "orphans": entry.orphans}
        about |= {"checksum": to_base64url(entry.sealed_set or b"")}
        about |= {"phase": work.phase if work else "waiting", "progress": round(work.progress, 4) if work else 0.0}
        if work and work.problem:
            about["problem"] = work.problem
    return about


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


def _shares(node: Node, entry: Entry, elements: field.Words) -> Response:
    shares = Shares(node.role, entry.sealed_set or b"", entry.sealed_count or 0, elements)
    return Response(encode_shares(entry.campaign, shares), media_type=SHARES_TYPE)


async def _noised_groups(node: Node, entry: Entry, work: Work, asked: answer.Groups) -> field.Words:
    if work.share is None:
        raise Unavailable(f"the curve is not ready yet ({work.phase}, {work.progress:.0%})", retry_after=2)
    # The curve's own epsilon is set aside whether or not it has been asked for yet.
    await node.spend_curve(entry.campaign)
    await node.spend(entry.campaign, asked.purpose, asked.query.epsilon)
    async with node.evaluation():
        return await asyncio.to_thread(answer.group_shares, asked, work.share, node.groups_prf(entry, asked.purpose))


def _decode_groups(node: Node, entry: Entry, data: bytes, count: int) -> field.Words:
    shares = decode_shares(data, entry.campaign, 1 - node.role, count)
    if shares.key_set != entry.sealed_set:
        raise PeerMismatch("the other server answers for another set of uploads")
    return shares.elements


def _groups_answer(entry: Entry, asked: answer.Groups, counts: answer.Counts) -> GroupsAnswer:
    o0, o1, e0, e1 = counts.reshape(4, -1)
    observed, expected = answer.group_errors(asked)
    return GroupsAnswer(
        digest=entry.campaign.digest,
        n=entry.sealed_count or 0,
        epsilon=asked.query.epsilon,
        upper_ends=asked.query.upper_ends,
        observed_negative=o0.tolist(),
        observed_positive=o1.tolist(),
        expected_negative=(e0 / answer.SCORE_UNIT).tolist(),
        expected_positive=(e1 / answer.SCORE_UNIT).tolist(),
        observed_error=observed,
        expected_error=expected,
    )
