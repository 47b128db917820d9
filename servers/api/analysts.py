"""Routes for analysts: questions about sealed campaigns."""

import asyncio
import io
from functools import partial
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import (
    BudgetResponse,
    CountsResponse,
    EcdfResponse,
    ScoreGroupsQuery,
    ScoreGroupsResponse,
    WavesResponse,
    read,
)
from servers.api import auth
from servers.api.auth import ANALYST, OPERATOR
from servers.api.release_selection import ReleaseSelector, noise_parts, select_releases, waves_of
from servers.api.requests import (
    BEARER,
    SMALL_BODY,
    CampaignId,
    OneWave,
    Stratum,
    as_json,
    body,
    campaign_id,
    entry_of,
    fixed_entry_of,
    hold,
    parsed,
    server_of,
    takes,
)
from servers.release import query_results
from servers.release import score_groups as groups
from servers.release.release_service import ReleaseService
from servers.release.release_state import ReleaseState

router = APIRouter()


async def _question(
    cid: str, request: Request, stratum: str | None, which: ReleaseSelector
) -> tuple[ReleaseService, list[ReleaseState], query_results.Query]:
    """What is asked, and the releases whose sum is the answer."""
    server = auth.require(request, ANALYST)
    entry, publisher = await fixed_entry_of(request, cid), server.publisher  # what is released is read by `open`
    name = entry.campaign.strata[0] if stratum is None else stratum
    entry.campaign.stratum(name)
    asked = await select_releases(publisher, entry, which)
    campaign = asked[0].campaign if len(asked) == 1 else entry.campaign.released(noise_parts(asked))

    async def count_at(positions: query_results.Index) -> query_results.Counts:
        each = [await publisher.counts_at(of, positions, request.is_disconnected) for of in asked]
        return np.asarray(sum(each[1:], each[0]))

    errors = asked[0].errors if len(asked) == 1 else {}
    releases = [str(of.release.name) for of in asked if entry.campaign.waves is not None]
    n = sum(of.sealed.count for of in asked)
    return publisher, asked, query_results.Query(campaign, name, n, count_at, errors, releases)


@router.get("/v1/campaigns/{cid}/ecdf", tags=["answers"], response_model=EcdfResponse, dependencies=[BEARER])
async def ecdf(
    cid: CampaignId,
    request: Request,
    at: Annotated[str, Query(description="thresholds, separated by commas", examples=["6.5,7.0"])],
    stratum: Stratum = None,
    wave: OneWave = None,
    through: OneWave = None,
    pooled: OneWave = None,
) -> JSONResponse:
    """How many values are at or below each threshold."""
    most = auth.require(request, ANALYST).limits.of.points_per_query
    _, _, question = await _question(cid, request, stratum, ReleaseSelector(wave, through, pooled))
    return await asyncio.to_thread(as_json, await query_results.ecdf(question, _list(at, most)))


@router.get("/v1/campaigns/{cid}/curve", tags=["answers"], response_model=EcdfResponse, dependencies=[BEARER])
async def curve(
    cid: CampaignId,
    request: Request,
    stratum: Stratum = None,
    wave: OneWave = None,
    through: OneWave = None,
    pooled: OneWave = None,
) -> Response:
    """The whole curve, as JSON, CSV (Accept: text/csv) or numpy (Accept: application/x-npy).

    In numpy's format it goes on to the end of the stratum's padding, where nobody is: what is noise there and nothing
    else makes the rest more exact.
    """
    publisher, asked, question = await _question(cid, request, stratum, ReleaseSelector(wave, through, pooled))
    grid = question.campaign.variable.grid
    for of in asked:
        await publisher.need_whole(of)
    accept = request.headers.get("accept", "")
    padded = "application/x-npy" in accept
    counts = await question.counts(np.arange(1 << question.campaign.variable.index_bits if padded else grid.size))
    async with server_of(request).limits.writing:
        whole = await asyncio.to_thread(_curve, question, counts, accept)
    hold(request, len(whole.body))
    return whole


@router.get("/v1/campaigns/{cid}/counts", tags=["answers"], response_model=CountsResponse, dependencies=[BEARER])
async def counts(
    cid: CampaignId,
    request: Request,
    stratum: Stratum = None,
    wave: OneWave = None,
    through: OneWave = None,
    pooled: OneWave = None,
) -> JSONResponse:
    """How many values are in each category of the variable, and how many are missing."""
    _, _, question = await _question(cid, request, stratum, ReleaseSelector(wave, through, pooled))
    return as_json(await query_results.counts(question))


@router.get("/v1/campaigns/{cid}/budget", tags=["answers"], response_model=BudgetResponse, dependencies=[BEARER])
async def budget(cid: CampaignId, request: Request) -> JSONResponse:
    """What the campaign may spend, and has spent, by this server's ledger."""
    server = auth.require(request, ANALYST, OPERATOR)
    campaign = (await entry_of(request, cid)).campaign
    by_wave = await asyncio.to_thread(server.storage.ledger.spent, campaign.id)
    spent = max(by_wave.values(), default=0.0)  # by the parties who have spent most
    about = {"epsilon": campaign.epsilon, "reserve": campaign.reserve, "spent": spent}
    remaining = max(0.0, campaign.total_epsilon - spent)
    return as_json(BudgetResponse(digest=campaign.digest, remaining=remaining, **about))


@router.get("/v1/campaigns/{cid}/waves", tags=["answers"], response_model=WavesResponse, dependencies=[BEARER])
async def waves(cid: CampaignId, request: Request) -> JSONResponse:
    """The waves of a campaign that reports as it runs: where each stands, and which releases can be asked for."""
    server = auth.require(request, ANALYST, OPERATOR)
    return as_json(await waves_of(server, await entry_of(request, cid)))


@router.post(
    "/v1/campaigns/{cid}/groups",
    tags=["answers"],
    response_model=ScoreGroupsResponse,
    dependencies=[BEARER],
    openapi_extra=takes(
        "application/json", ScoreGroupsQuery.model_json_schema(), {"upper_ends": [0.1, 0.3, 1.0], "epsilon": 0.5}
    ),
)
async def score_groups(cid: CampaignId, request: Request) -> JSONResponse:
    """Observed and expected counts of score groups with noise of their own, paid from the reserve."""
    publisher = auth.require(request, ANALYST).publisher
    of = await publisher.open(campaign_id(cid))
    query = await parsed(partial(read, ScoreGroupsQuery), await body(request, SMALL_BODY))
    asked = groups.read_groups(of.campaign, query)
    return as_json(groups.answer(asked, of.sealed.count, await publisher.group_counts(of, asked)))


def _list(text: str, most: int) -> list[str]:
    values = [part.strip() for part in text.split(",")]
    if len(values) > most:
        raise InvalidQuery(f"at most {most} values in one question, got {len(values)}; ask for the curve instead")
    if not all(values):
        raise InvalidQuery("values are separated by single commas")
    return values


def _curve(question: query_results.Query, counts: query_results.Counts, accept: str) -> Response:
    if "application/x-npy" in accept:
        out = io.BytesIO()
        np.save(out, counts)
        return Response(out.getvalue(), media_type="application/x-npy")
    if "text/csv" in accept:
        return Response(query_results.curve_csv(question, counts), media_type="text/csv")
    return Response(query_results.curve_json(question, counts), media_type="application/json")
