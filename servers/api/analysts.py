"""Routes for analysts: questions about sealed campaigns."""

import asyncio
import io
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import (
    BudgetResponse,
    CountsResponse,
    EcdfResponse,
    SumsQuery,
    SumsResponse,
    WavesResponse,
)
from servers.api import auth
from servers.api.auth import ANALYST, OPERATOR
from servers.api.release_selection import ReleaseSelector, noise_parts, select_releases, waves_of
from servers.api.requests import (
    BEARER,
    SUMS_BODY,
    CampaignId,
    OneWave,
    Stratum,
    as_json,
    body,
    entry_of,
    fixed_entry_of,
    hold,
    parsed,
    server_of,
    takes,
)
from servers.release import query_results, sum_queries
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
async def budget(cid: CampaignId, request: Request, wave: OneWave = None, pooled: OneWave = None) -> JSONResponse:
    """What the campaign may spend, and has spent, by this server's ledger; of the reserve, by a release's waves."""
    server = auth.require(request, ANALYST, OPERATOR)
    entry = await entry_of(request, cid)
    campaign, which = entry.campaign, ReleaseSelector(wave, None, pooled)
    which.check(campaign)
    ledger = server.storage.ledger
    in_all = await asyncio.to_thread(ledger.spent, campaign.id)
    of_reserve = await asyncio.to_thread(ledger.spent, campaign.id, of_reserve=True)
    spent = max(in_all.values(), default=0.0)  # by the parties who have spent most
    asked = None if wave is pooled is None else (await select_releases(server.publisher, entry, which))[0]
    paying = of_reserve if asked is None else [number for number, _ in asked.release.parts]
    taken = max((of_reserve.get(number, 0.0) for number in paying), default=0.0)
    return as_json(
        BudgetResponse(
            digest=campaign.digest,
            epsilon=campaign.epsilon,
            reserve=campaign.reserve,
            spent=spent,
            remaining=max(0.0, campaign.total_epsilon - spent),
            reserve_left=max(0.0, campaign.reserve - taken),
        )
    )


@router.get("/v1/campaigns/{cid}/waves", tags=["answers"], response_model=WavesResponse, dependencies=[BEARER])
async def waves(cid: CampaignId, request: Request) -> JSONResponse:
    """The waves of a campaign that reports as it runs: where each stands, and which releases can be asked for."""
    server = auth.require(request, ANALYST, OPERATOR)
    return as_json(await waves_of(server, await entry_of(request, cid)))


@router.post(
    "/v1/campaigns/{cid}/sums",
    tags=["answers"],
    response_model=SumsResponse,
    dependencies=[BEARER],
    openapi_extra=takes(
        "application/json",
        SumsQuery.model_json_schema(),
        {"weights": [[0, 0, 1, 1], [0, 1, 4, 9]], "units": [1, 9], "epsilon": 0.5},
    ),
)
async def sums(cid: CampaignId, request: Request, wave: OneWave = None, pooled: OneWave = None) -> JSONResponse:
    """Weighted sums over the values of one release with noise of their own, paid from the reserve."""
    publisher = auth.require(request, ANALYST).publisher
    entry, which = await fixed_entry_of(request, cid), ReleaseSelector(wave, None, pooled)
    if entry.campaign.waves is not None and wave is pooled is None:
        raise InvalidQuery("sums are of one release: name a wave or a pool (wave=N or pooled=N)")
    (of,) = await select_releases(publisher, entry, which)
    data = await body(request, SUMS_BODY)
    query, asked = await parsed(sum_queries.QueryReader.of(entry.campaign).from_analyst, data)
    found = await publisher.sum_counts(of, query, asked)
    return as_json(sum_queries.result(of.campaign, of.release.name, of.sealed.count, query, found))


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
