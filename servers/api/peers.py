"""Routes for the other server: shares with noise on them, and the steps of sealing."""

from functools import partial
from typing import TypeVar

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from campaign.errors import (
    InvalidQuery,
)
from campaign.spec import check_digest
from campaign.wire import (
    SHARES_TYPE,
    PeerGroupsQuery,
    ShareQuery,
    Shares,
    encode_shares,
    read,
)
from fss import field
from servers.api import access
from servers.api.access import PEER
from servers.api.analysts import noised_groups
from servers.api.campaigns import status_of
from servers.api.requests import SMALL_BODY, as_json, body, campaign_id, node_of, parsed
from servers.lifecycle import seal
from servers.node import Node, Work
from servers.release import answer
from servers.storage.store import OPEN, Entry

router = APIRouter()

Q = TypeVar("Q", ShareQuery, PeerGroupsQuery)


def _for_peer(request: Request) -> Node:
    """This server, for nobody but the other one."""
    node = node_of(request)
    access.require(request, node.settings.tokens, PEER)
    return node


async def _asked(kind: type[Q], cid: str, request: Request) -> tuple[Node, Entry, Work, Q]:
    """A question about a sealed campaign that both mean the same by."""
    node = _for_peer(request)
    entry, work = node.sealed(campaign_id(cid))
    # A position has at most ten digits.
    data = await body(request, SMALL_BODY + 12 * node.settings.limits.points_per_query)
    query: Q = await parsed(partial(read, kind), data)
    check_digest(entry.campaign.digest, query.digest)
    return node, entry, work, query


@router.get("/v1/peer/campaigns/{cid}", include_in_schema=False)
async def peer_show(cid: str, request: Request) -> JSONResponse:
    node = _for_peer(request)
    return JSONResponse(status_of(node, node.store.entry(campaign_id(cid))))


@router.post("/v1/peer/campaigns/{cid}/shares", include_in_schema=False)
async def peer_shares(cid: str, request: Request) -> Response:
    node, entry, work, query = await _asked(ShareQuery, cid, request)
    positions = None if query.positions == "all" else np.array(query.positions, np.int64)
    if positions is not None and (not positions.size or positions.max() >= 1 << entry.campaign.bits):
        raise InvalidQuery(f"positions must be 0 to {(1 << entry.campaign.bits) - 1}")
    if positions is not None and positions.size > node.settings.limits.points_per_query + 1:
        raise InvalidQuery(f"at most {node.settings.limits.points_per_query + 1} positions in one question")
    return _shares(node, entry, await node.noised_shares(entry, work, positions, request.is_disconnected))


@router.post("/v1/peer/campaigns/{cid}/groups", include_in_schema=False)
async def peer_groups(cid: str, request: Request) -> Response:
    node, entry, work, query = await _asked(PeerGroupsQuery, cid, request)
    return _shares(node, entry, await noised_groups(node, entry, work, answer.groups(entry.campaign, query)))


@router.post("/v1/peer/campaigns/{cid}/freeze", include_in_schema=False)
async def peer_freeze(cid: str, request: Request) -> Response:
    node = _for_peer(request)
    campaign = node.store.entry(campaign_id(cid)).campaign
    listed = await node.writer.run(lambda: seal.list_ids(node.store, campaign, node.clock()))
    node.crash("peer-frozen")
    return Response(listed.encode(), media_type="application/octet-stream")


@router.post("/v1/peer/campaigns/{cid}/thaw", include_in_schema=False)
async def peer_thaw(cid: str, request: Request) -> JSONResponse:
    node = _for_peer(request)
    campaign = node.store.entry(campaign_id(cid)).campaign
    given = seal.Listed.decode(await body(request, SMALL_BODY))
    check_digest(campaign.digest, given.digest)
    await node.writer.run(lambda: node.store.thaw(campaign.id, given.freeze))
    return JSONResponse({"state": OPEN})


@router.post("/v1/peer/campaigns/{cid}/agree", include_in_schema=False)
async def peer_agree(cid: str, request: Request) -> Response:
    node = _for_peer(request)
    campaign = node.store.entry(campaign_id(cid)).campaign
    given = seal.Listed.decode(await body(request, 64 + 16 * campaign.max_uploads))
    check_digest(campaign.digest, given.digest)
    sealed = await node.writer.run(lambda: seal.accept(node.store, campaign, given.freeze, given.ids))
    node.crash("peer-sealed")
    node.begin(campaign.id)
    return as_json(seal.as_reply(sealed))


def _shares(node: Node, entry: Entry, elements: field.Words) -> Response:
    shares = Shares(node.role, entry.sealed_set or b"", entry.sealed_count or 0, elements)
    return Response(encode_shares(entry.campaign, shares), media_type=SHARES_TYPE)
