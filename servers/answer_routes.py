"""Routes for analysts: questions about sealed campaigns."""

import asyncio
import io
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from campaign.errors import (
    InvalidInput,
    InvalidQuery,
)
from campaign.wire import (
    BudgetAnswer,
    EcdfAnswer,
    GroupsAnswer,
    GroupsQuery,
    HistogramAnswer,
    PeerGroupsQuery,
    QuantileAnswer,
    read,
)
from fss import field
from servers import access, answer
from servers.access import ANALYST, OPERATOR
from servers.http import BEARER, MAX_JSON_BYTES, CampaignId, Stratum, as_json, body, campaign_id, node_of, takes
from servers.node import Node, Work
from servers.store import Entry

router = APIRouter()


async def question(cid: str, request: Request, stratum: str | None) -> tuple[Entry, answer.Question]:
    node = node_of(request)
    access.require(request, node.settings.tokens, ANALYST)
    entry, work = node.sealed(campaign_id(cid))
    name = entry.campaign.strata[0] if stratum is None else stratum
    entry.campaign.stratum(name)

    async def count_at(positions: answer.Index) -> answer.Counts:
        return await node.counts(entry, work, positions)

    return entry, answer.Question(entry.campaign, name, entry.sealed_count or 0, count_at, work.errors)


@router.get("/v1/campaigns/{cid}/ecdf", tags=["answers"], response_model=EcdfAnswer, dependencies=[BEARER])
async def ecdf(
    cid: CampaignId,
    request: Request,
    at: Annotated[str, Query(description="thresholds, separated by commas", examples=["6.5,7.0"])],
    stratum: Stratum = None,
) -> JSONResponse:
    """How many values are at or below each threshold."""
    node = node_of(request)
    _, asked = await question(cid, request, stratum)
    return as_json(await answer.ecdf(asked, _list(at, node.settings.limits.points_per_query)))


@router.get("/v1/campaigns/{cid}/curve", tags=["answers"], response_model=EcdfAnswer, dependencies=[BEARER])
async def curve(cid: CampaignId, request: Request, stratum: Stratum = None) -> Response:
    """The whole curve, as JSON, CSV (Accept: text/csv) or numpy (Accept: application/x-npy).

    In numpy's format it goes on to the end of the stratum's padding, where nobody is: what is noise there and nothing
    else makes the rest more exact.
    """
    accept = request.headers.get("accept", "")
    asked, counts = await _whole(cid, request, stratum, padded="application/x-npy" in accept)
    return await asyncio.to_thread(_curve, asked, counts, accept)


@router.get("/v1/campaigns/{cid}/quantiles", tags=["answers"], response_model=QuantileAnswer, dependencies=[BEARER])
async def quantiles(
    cid: CampaignId,
    request: Request,
    q: Annotated[str, Query(description="levels between 0 and 1, separated by commas", examples=["0.25,0.5"])],
    stratum: Stratum = None,
) -> JSONResponse:
    """Quantiles with 95 % intervals."""
    asked, counts = await _whole(cid, request, stratum)
    return as_json(await asyncio.to_thread(answer.quantiles, asked, counts, _levels(q)))


@router.get("/v1/campaigns/{cid}/histogram", tags=["answers"], response_model=HistogramAnswer, dependencies=[BEARER])
async def histogram(
    cid: CampaignId,
    request: Request,
    edges: Annotated[str, Query(description="upper edges of the bins, increasing", examples=["5,6,7,8"])],
    stratum: Stratum = None,
) -> JSONResponse:
    """How many values lie above one edge and at or below the next."""
    node = node_of(request)
    _, asked = await question(cid, request, stratum)
    return as_json(await answer.histogram(asked, _list(edges, node.settings.limits.points_per_query)))


@router.get("/v1/campaigns/{cid}/budget", tags=["answers"], response_model=BudgetAnswer, dependencies=[BEARER])
async def budget(cid: CampaignId, request: Request) -> JSONResponse:
    """What the campaign may spend, and has spent, by this server's ledger."""
    node = node_of(request)
    access.require(request, node.settings.tokens, ANALYST, OPERATOR)
    campaign = node.store.entry(campaign_id(cid)).campaign
    spent = sum(node.store.spent(campaign.id).values())
    about = {"epsilon": campaign.epsilon, "reserve": campaign.reserve, "spent": spent}
    remaining = max(0.0, campaign.total_epsilon - spent)
    return as_json(BudgetAnswer(digest=campaign.digest, remaining=remaining, **about))


@router.post(
    "/v1/campaigns/{cid}/groups",
    tags=["answers"],
    response_model=GroupsAnswer,
    dependencies=[BEARER],
    openapi_extra=takes(
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
        ours = await noised_groups(node, entry, work, asked)
    theirs = await node.peer.noised(entry.campaign, "/groups", message, 4 * asked.ends.size, *node.agreed_set(entry))
    if node.role == 1:
        ours = await noised_groups(node, entry, work, asked)
    return as_json(_groups_answer(entry, asked, field.decode(field.add(ours, theirs.elements))))


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


async def _whole(
    cid: str, request: Request, stratum: str | None, *, padded: bool = False
) -> tuple[answer.Question, answer.Counts]:
    """A question about a stratum's whole curve, and its counts; with those of its padding, if wanted."""
    entry, asked = await question(cid, request, stratum)
    await _need_curve(node_of(request), entry)
    grid = entry.campaign.grid
    return asked, await asked.counts(np.arange(1 << grid.bits if padded else grid.size))


async def _need_curve(node: Node, entry: Entry) -> None:
    """Whole curves are answered only from the published one."""
    if entry.campaign.bits > node.settings.curve_bits:
        raise InvalidQuery(
            f"this campaign has 2^{entry.campaign.bits} positions; whole curves go up to 2^{node.settings.curve_bits}. "
            "Ask for points (ecdf) instead"
        )
    _, work = node.sealed(entry.campaign.id)
    if await node.release(entry, work) is None:
        raise work.not_ready("the other server's" if work.noised is not None else "this server's")


def _curve(asked: answer.Question, counts: answer.Counts, accept: str) -> Response:
    if "application/x-npy" in accept:
        out = io.BytesIO()
        np.save(out, counts)
        return Response(out.getvalue(), media_type="application/x-npy")
    found = answer.curve(asked, counts)
    if "text/csv" not in accept:
        return as_json(found)
    rows = zip(found.thresholds, found.counts, found.standard_errors, strict=True)
    lines = ["threshold,count,standard_error", *(f"{t},{c},{e:.6g}" for t, c, e in rows)]
    return Response("\n".join(lines) + "\n", media_type="text/csv")


async def noised_groups(node: Node, entry: Entry, work: Work, asked: answer.Groups) -> field.Words:
    if work.share is None:
        raise work.not_ready()
    # The curve's own epsilon is set aside whether or not it has been asked for yet.
    await node.spend_curve(entry.campaign)
    await node.spend(entry.campaign, asked.purpose, asked.query.epsilon)
    async with node.evaluation():
        return await asyncio.to_thread(answer.group_shares, asked, work.share, node.groups_prf(entry, asked.purpose))


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
