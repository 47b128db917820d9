"""Routes for parties: uploading, and taking back."""

import asyncio
from collections import Counter

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from fss_ecdf.campaign import confirmations
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES, UPLOAD_TYPE, Row
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.errors import CampaignFull, InvalidUpload, UnsupportedMediaType
from fss_ecdf.campaign.json_messages import UploadFailure, UploadResponse
from fss_ecdf.net.hpke import HpkeKey
from servers import metrics
from servers.api import auth
from servers.api.judging import read_upload
from servers.api.requests import AT_ONCE, BEARER, CampaignId, Plain, body, fixed_entry_of, rate_keys, server_of, takes
from servers.storage import admission
from servers.storage.campaigns import StoredCampaign
from servers.storage.key_files import split_ids

router = APIRouter(route_class=Plain)

MAX_WITHDRAWN = 1000  # ids in one request
FEW = 100  # failures that are written down at once; more of them beside the event loop
_NOT_WITHDRAWN = (
    "it came with another token, which alone withdraws it, or it is not stored and more ids were withdrawn before they "
    "arrived than can be remembered"
)


@router.post(
    "/v1/campaigns/{cid}/uploads",
    tags=["upload"],
    response_model=UploadResponse,
    dependencies=[BEARER],
    openapi_extra=takes(UPLOAD_TYPE, {"type": "string", "format": "binary"}),
)
async def upload(cid: CampaignId, request: Request) -> Response:
    """Store keys, one or many, or a table of a site's counts.

    What is not among the failures is stored for good when the answer arrives. If nothing failed, the server signs that:
    a party believes nobody else that its upload is stored.
    """
    server, entry = server_of(request), await fixed_entry_of(request, cid)
    sender = await auth.require_uploader(request, server, entry)
    await server.guard.require()
    if request.headers.get("content-type", "").split(";")[0].strip() != UPLOAD_TYPE:
        raise UnsupportedMediaType(f"an upload has the media type {UPLOAD_TYPE}")
    key = server.hpke_keys.known(entry.campaign)
    if key is None:
        key = await asyncio.to_thread(server.hpke_keys.of, entry.campaign)
    contribution, rows, share = await _contributions(request, entry, sender, key)
    refusal = admission.closed_reason(entry.campaign, server.clock())
    asked = admission.NewUploads(entry.campaign.id, rows, sender, refusal, contribution, share)
    failures = await server.writer.add(asked)
    metrics.UPLOADS.inc((len(rows) - len(failures)) * contribution.people)
    if not failures:
        leaves = b"".join(leaf for _, leaf, _ in rows)
        message = confirmations.stored(entry.campaign.digest, server.number, contribution.wave, leaves)
        return _answered(UploadResponse(signature=to_base64url(server.identity.sign(message))))
    told = len(rows), failures
    return _failed(*told) if len(failures) <= FEW else await asyncio.to_thread(_failed, *told)


async def _contributions(
    request: Request, entry: StoredCampaign, sender: str | None, key: HpkeKey
) -> tuple[Contribution, list[Row], list[bytes]]:
    """What an upload brings, and its rows: of keys, or of a table with its share."""
    data = await read_upload(request, entry, sender, key)
    if not isinstance(data, bytes):
        contribution, row, share = data
        return contribution, [row], share
    form = data, entry.campaign, server_of(request).number, auth.presented_digest(request), key.open
    if len(data) <= AT_ONCE:
        return *admission.decrypt_rows(*form), []
    return *await asyncio.to_thread(admission.decrypt_rows, *form), []  # the rows are a copy


def _failed(count: int, failures: admission.Failures) -> Response:
    codes = Counter(problem.code for _, problem in failures)
    for code, times in codes.items():
        metrics.REFUSALS.labels(code).inc(times)
    if len(failures) == count and len(codes) == 1:  # then the request failed in that way
        problem = failures[0][1]
        document = {**problem.document(), "count": count}
        return JSONResponse(document, problem.status, media_type="application/problem+json")
    listed = [UploadFailure(id=to_base64url(i), code=p.code, detail=p.detail) for i, p in failures]
    return _answered(UploadResponse(failures=listed))


def _answered(answer: UploadResponse) -> Response:
    return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")


@router.post(
    "/v1/campaigns/{cid}/uploads/withdraw",
    tags=["upload"],
    dependencies=[BEARER],
    openapi_extra=takes("application/octet-stream", {"type": "string", "format": "binary"}),
)
async def withdraw(cid: CampaignId, request: Request) -> JSONResponse:
    """See to it that uploads, named by their 16-byte ids, do not count; they are not taken again.

    A success confirms it, with this server's signature: they are erased, excluded from their wave's set, or never came.
    What is in a set that is fixed counts (`campaign-sealed`); what is in a frozen wave is not decided
    (`upload-undecided`). A token withdraws what came with it; uploads of others stay, and are among the failures. Ids
    that have not arrived are remembered, so many as the token may upload; those beyond are among the failures, too.
    """
    server, entry = server_of(request), await fixed_entry_of(request, cid)
    sender = await auth.require_uploader(request, server, entry)
    await server.guard.require()
    data = await body(request, UPLOAD_ID_BYTES * MAX_WITHDRAWN)
    if len(data) % UPLOAD_ID_BYTES:
        raise InvalidUpload(f"uploads are withdrawn by their ids, {UPLOAD_ID_BYTES} bytes each")
    ids = split_ids(data)
    server.limits.uploads.take(len(ids), *rate_keys(request, sender))
    async with server.limits.withdrawing:
        work = server.writer.run(lambda: server.storage.uploads.withdraw(entry.campaign.id, ids, sender))
        erased, forgotten = await work
    if not forgotten:
        signature = server.identity.sign(confirmations.withdrawn(entry.campaign.digest, server.number, data))
        return JSONResponse({"withdrawn": erased, "failures": [], "signature": to_base64url(signature)})
    full = CampaignFull(_NOT_WITHDRAWN)
    failures = [UploadFailure(id=to_base64url(i), code=full.code, detail=full.detail).model_dump() for i in forgotten]
    return JSONResponse({"withdrawn": erased, "failures": failures})
