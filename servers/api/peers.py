"""Routes for the other server: shares with noise on them, and the steps of sealing."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from fss.field import Words
from fss_ecdf.campaign.binary_messages import SHARES_TYPE, ShareMessage, encode_shares
from fss_ecdf.campaign.campaign import Campaign, check_digest, to_base64url
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.hpke import Kem
from fss_ecdf.campaign.json_messages import CheckSeed, ShareQuery, read
from fss_ecdf.campaign.release import ReleaseName
from servers.api import auth
from servers.api.auth import PEER
from servers.api.requests import SMALL_BODY, SUMS_BODY, Number, OneWave, as_json, body, campaign_id, entry_of, parsed
from servers.api.status import status_of
from servers.lifecycle import key_check, seal
from servers.lifecycle.seal_messages import STEP_BYTES, Agreed, IdsQuery, Step
from servers.peer import COMPARE
from servers.release.release_service import SHARES, SUMS
from servers.release.release_state import ReleaseState
from servers.release.sum_queries import QueryReader
from servers.rollback import HEADER
from servers.server import Server
from servers.storage import abandoned_waves
from servers.storage.key_files import KEYS, TABLES, split_ids
from servers.storage.waves import OPEN

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
# What is said also while one of the servers is on hold: nothing is sealed, spent or disclosed by it.
# Weights are written without white space, and with the digest; a server whose analyst sent them so is not refused here.
PEER_SUMS_BODY = SUMS_BODY + SMALL_BODY
_ALWAYS = ("/v1/peer/about", COMPARE, "/v1/peer/campaigns/{cid}")


class Compared(APIRoute):
    """A route for the other server, whose history is compared with every message."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def compared(request: Request) -> Response:
            server = auth.require(request, PEER)
            text = request.headers.get(HEADER)
            heard = None if text is None else await server.guard.heard(text)
            if self.path not in _ALWAYS:
                await server.guard.require(peer=True)
            response = await handle(request)
            response.headers[HEADER] = str(await server.guard.told(heard))
            return response

        return compared


router = APIRouter(route_class=Compared)


async def _asked(
    server: Server, cid: str, request: Request, name: ReleaseName, most: int
) -> tuple[ReleaseState, bytes]:
    """Of which release something is asked, and the body."""
    of = await server.publisher.open(campaign_id(cid), name)
    return of, await body(request, most)


@router.get("/v1/peer/campaigns/{cid}", include_in_schema=False)
async def get_campaign(cid: str, request: Request) -> JSONResponse:
    server = auth.require(request, PEER)
    return JSONResponse((await status_of(server, await entry_of(request, cid))).fields())


@router.post("/v1/peer/campaigns/{cid}/shares", include_in_schema=False)
async def shares(cid: str, request: Request, wave: OneWave = None, pooled: OneWave = None) -> Response:
    server = auth.require(request, PEER)
    # A position has at most ten digits.
    size = SMALL_BODY + 12 * server.limits.of.points_per_query
    of, asked = await _asked(server, cid, request, ReleaseName.from_query(wave, pooled), size)
    query = await parsed(partial(read, ShareQuery), asked)
    check_digest(of.campaign.digest, query.digest)
    await server.publisher.fetch_peer_statement(of)
    positions = None if query.positions == "all" else np.array(query.positions, np.int64)
    most = server.limits.of.points_per_query + 1
    if positions is not None and (not positions.size or positions.max() >= 1 << of.campaign.bits):
        raise InvalidQuery(f"positions must be 0 to {(1 << of.campaign.bits) - 1}")
    if positions is not None and positions.size > most:
        raise InvalidQuery(f"at most {most} positions in one question")
    elements = await server.publisher.shares(of, positions, request.is_disconnected)
    return await _shares(server, of, SHARES, asked, elements)


@router.post("/v1/peer/campaigns/{cid}/sums", include_in_schema=False)
async def sums(cid: str, request: Request, wave: OneWave = None, pooled: OneWave = None) -> Response:
    server = auth.require(request, PEER)
    of, asked = await _asked(server, cid, request, ReleaseName.from_query(wave, pooled), PEER_SUMS_BODY)
    query = await parsed(QueryReader.of(of.campaign).from_peer, asked)
    await server.publisher.fetch_peer_statement(of)
    return await _shares(server, of, SUMS, asked, await server.publisher.sums(of, query))


@router.post("/v1/peer/campaigns/{cid}/freeze", include_in_schema=False)
async def freeze(cid: str, request: Request, wave: Number = 0) -> Response:
    server = auth.require(request, PEER)
    campaign = (await entry_of(request, cid)).campaign
    frozen = await server.writer.run(lambda: seal.freeze(server.storage, campaign, server.clock(), wave))
    server.crash("peer-frozen")
    return Response(frozen.encode(), media_type="application/octet-stream")


@router.post("/v1/peer/campaigns/{cid}/ids", include_in_schema=False)
async def ids(cid: str, request: Request, wave: Number = 0) -> Response:
    """What this server holds, by digests; of what differs, the ids."""
    server = auth.require(request, PEER)
    campaign = (await entry_of(request, cid)).campaign
    asked = IdsQuery.decode(await body(request, SMALL_BODY))
    check_digest(campaign.digest, asked.digest)
    return Response(await server.frozen_ids.answer(campaign, wave, asked), media_type="application/octet-stream")


@router.post("/v1/peer/campaigns/{cid}/exclude", include_in_schema=False)
async def exclude(cid: str, request: Request, wave: Number = 0) -> JSONResponse:
    server, campaign, step = await _step(cid, request)
    named = split_ids(step.ids)
    if not named:
        raise InvalidQuery("nothing is named that is to be left out")
    about = campaign.id, step.freeze, step.set, named, wave
    await server.writer.run(lambda: server.storage.waves.propose_exclusion(*about))
    server.crash("peer-named")
    return JSONResponse({"named": len(named)})


@router.post("/v1/peer/campaigns/{cid}/unfreeze", include_in_schema=False)
async def unfreeze(cid: str, request: Request) -> JSONResponse:
    server, campaign, step = await _step(cid, request)
    await server.writer.run(lambda: server.storage.waves.unfreeze(campaign.id, step.freeze))
    return JSONResponse({"state": OPEN})


@router.post("/v1/peer/campaigns/{cid}/agree", include_in_schema=False)
async def agree(cid: str, request: Request, wave: Number = 0) -> Response:
    server, campaign, step = await _step(cid, request)
    fixed = await seal.accept(server.storage, server.writer, server.frozen_ids, campaign, step, wave)
    server.crash("peer-sealed")
    server.workman.call()
    return as_json(Agreed.of(fixed))


@router.post("/v1/peer/campaigns/{cid}/abandon", include_in_schema=False)
async def abandon(cid: str, request: Request, wave: Number = 0) -> JSONResponse:
    server, campaign, _ = await _step(cid, request)
    await server.writer.run(lambda: abandoned_waves.abandon(server.storage.engine, campaign.id, wave))
    server.crash("peer-abandoned")
    server.workman.call()
    return JSONResponse({"abandoned": wave})


async def _step(cid: str, request: Request) -> tuple[Server, Campaign, Step]:
    """A step of a sealing, of a campaign that both mean the same by."""
    server = auth.require(request, PEER)
    campaign = (await entry_of(request, cid)).campaign
    step = Step.decode(await body(request, STEP_BYTES))
    check_digest(campaign.digest, step.digest)
    return server, campaign, step


@router.get(COMPARE, include_in_schema=False)
async def history(request: Request) -> Response:
    """Nothing but the head line, by which both servers see whether one of them was rolled back."""
    auth.require(request, PEER)
    return Response()


@router.get("/v1/peer/about", include_in_schema=False)
async def about(request: Request) -> JSONResponse:
    """Who this server is and whom it takes the caller for, so that its doctor can compare."""
    server = auth.require(request, PEER)
    keys = to_base64url(server.identity.signing_key), server.settings.tokens.peer_signing_key
    said = {"server": server.number, "version": version("fss-ecdf")}
    return JSONResponse({**said, "signing_key": keys[0], "peer_signing_key": keys[1]})


@router.get("/v1/peer/commitments/{cid}", include_in_schema=False)
async def commitment(cid: str, request: Request, kem: Kem = "x25519") -> JSONResponse:
    """What this server commits to for a campaign of this id, which need not exist yet, signed."""
    server = auth.require(request, PEER)
    return JSONResponse(await server.hpke_keys.signed_commitment(campaign_id(cid), kem))


@router.post("/v1/peer/campaigns/{cid}/challenge", include_in_schema=False)
async def challenge(cid: str, request: Request, wave: Number = 0) -> JSONResponse:
    server = auth.require(request, PEER)
    entry = await entry_of(request, cid)
    given = read(CheckSeed, await body(request, SMALL_BODY))
    asked = await asyncio.to_thread(server.storage.waves.get, entry.campaign.id, wave)
    return as_json(key_check.exchange_challenge_seed(server.identity, entry, asked, given))


@router.post("/v1/peer/campaigns/{cid}/messages", include_in_schema=False)
async def messages(cid: str, request: Request, wave: Number = 0) -> Response:
    return await _told(cid, request, wave, KEYS)


@router.post("/v1/peer/campaigns/{cid}/table-messages", include_in_schema=False)
async def table_messages(cid: str, request: Request, wave: Number = 0) -> Response:
    return await _told(cid, request, wave, TABLES)


async def _told(cid: str, request: Request, wave: int, of: str) -> Response:
    """Check messages, of keys or of tables."""
    server = auth.require(request, PEER)
    campaign = (await entry_of(request, cid)).campaign
    query = await body(request, SMALL_BODY)
    about = server.identity, server.folder(campaign.id, wave), campaign, wave, query, of
    told = await asyncio.to_thread(key_check.key_check_messages, *about)
    return Response(told, media_type="application/octet-stream")


@router.get("/v1/peer/campaigns/{cid}/statement", include_in_schema=False)
async def statement(cid: str, request: Request, wave: OneWave = None, pooled: OneWave = None) -> JSONResponse:
    """Which keys and which noise this server's shares come from."""
    publisher = auth.require(request, PEER).publisher
    of = await publisher.open(campaign_id(cid), ReleaseName.from_query(wave, pooled))
    return as_json(await publisher.statement(of))


async def _shares(server: Server, of: ReleaseState, what: str, asked: bytes, elements: Words) -> Response:
    message = encode_shares(of.campaign, ShareMessage(server.number, of.sealed.checksum, of.sealed.count, elements))
    return Response(await server.publisher.signed(of, what, asked, message), media_type=SHARES_TYPE)
