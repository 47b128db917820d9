"""Reading the body of an upload: what will be rejected anyway is rejected before the body is read.

The head of the request has been judged: campaign, token, media type, announced length. Here its first bytes are: the
envelope's header, which says how many uploads follow, and the first one, which is encrypted apart from the others. An
upload whose id is stored already may be a retry, which is acknowledged at any time, so it is read.
"""

import asyncio

from fastapi import Request

from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, Row, UploadHeader, upload_header
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.errors import InvalidUpload, TooManyRows
from fss_ecdf.campaign.sealed_uploads import open_first, sealed_bytes, sealed_table_bytes
from fss_ecdf.net.hpke import HpkeKey
from servers.api.auth import presented_digest
from servers.api.receive_table import TableReader, read_share
from servers.api.requests import Incoming, rate_keys, server_of
from servers.server import Server
from servers.storage import admission
from servers.storage.campaigns import StoredCampaign


async def read_upload(
    request: Request, entry: StoredCampaign, sender: str | None, key: HpkeKey
) -> bytes | tuple[Contribution, Row, list[bytes]]:
    """The body of an upload of keys, as long as its header says, or what a table brings, its row and its share; or the
    problem for which it was not read."""
    server, campaign = server_of(request), entry.campaign
    incoming = Incoming(request, server.limits.of.body_bytes)
    start = await incoming.start(UPLOAD_HEADER_BYTES)
    header, most = upload_header(start, campaign, server.number), server.limits.of.rows_per_request
    if header.contribution.is_table:
        return await _read_table(request, incoming, header, campaign, sender, key)
    count = header.count
    if count > most:
        raise TooManyRows(f"a request has at most {most} uploads here, this one {count}; send several")
    size = sealed_bytes(campaign, count)
    if incoming.announced not in (None, size):
        raise InvalidUpload(f"{count} uploads make {size} encrypted bytes, got {incoming.announced}")
    keys = rate_keys(request, sender)
    server.limits.uploads.require(count, *keys)
    if not incoming.is_whole:
        first = open_first(await incoming.start(sealed_bytes(campaign, 1)), count, presented_digest(request), key.open)
        await _require_wanted(server, campaign, sender, header, first)
    data = await incoming.all(size)
    server.limits.uploads.take(count, *keys)  # a header alone takes nothing from anybody
    return data


async def _require_wanted(
    server: Server, campaign: Campaign, sender: str | None, header: UploadHeader, first: bytes
) -> None:
    """Raise if nothing of an upload would be stored, whose first id this is."""
    refusal = admission.closed_reason(campaign, server.clock())
    asked = admission.NewUploads(campaign.id, (), sender, refusal, header.contribution)
    problem = await asyncio.to_thread(server.storage.uploads.refused_unread, asked, first, header.people)
    if problem is not None:
        raise problem


async def _read_table(
    request: Request, incoming: Incoming, header: UploadHeader, campaign: Campaign, sender: str | None, key: HpkeKey
) -> tuple[Contribution, Row, list[bytes]]:
    """A table, read part by part."""
    server, size = server_of(request), sealed_table_bytes(campaign, header.share_bytes)
    if incoming.announced not in (None, size):
        raise InvalidUpload(f"this table makes {size} encrypted bytes, got {incoming.announced}")
    token, keys = presented_digest(request), rate_keys(request, sender)
    reader = TableReader(await incoming.take(UPLOAD_HEADER_BYTES), header, campaign, server.number, token, key.open)
    sizes = list(reader.sizes)
    server.limits.uploads.require(len(sizes), *keys)
    first = reader.open_first(await incoming.take(sizes[0]))
    if not incoming.is_whole:
        await _require_wanted(server, campaign, sender, header, first)
    row, share = await read_share(incoming, reader, iter(sizes[1:]))
    await incoming.require_end()
    server.limits.uploads.take(len(sizes), *keys)
    return header.contribution, row, share
