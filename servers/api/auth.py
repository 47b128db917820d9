"""Who may do what: bearer tokens, known here only by their hashes.

A caller without a token that means anything here gets 401; one whose token is good for something else gets 403.
"""

import asyncio
import hmac

from fastapi import Request

from fss_ecdf.campaign.errors import NotAuthenticated, NotAuthorised
from fss_ecdf.net.tokens import hash_token
from servers.server import Server
from servers.settings import Tokens
from servers.storage import admission
from servers.storage.campaigns import StoredCampaign

OPERATOR, ANALYST, PEER = "operator", "analyst", "peer"


def presented(request: Request) -> str:
    """The hash of the caller's token."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token or len(token) > 500:
        raise NotAuthenticated("send a token: Authorization: Bearer ...")
    return hash_token(token)


def presented_digest(request: Request) -> bytes:
    """The same in bytes, as encrypted uploads are bound to it."""
    return bytes.fromhex(presented(request))


def role_of(given: str, tokens: Tokens) -> str | None:
    """Which of the server's own tokens this is, compared in constant time."""
    known = {OPERATOR: tokens.operator, ANALYST: tokens.analyst, PEER: tokens.peer}
    matches = [(role, hmac.compare_digest(given, one)) for role, hashes in known.items() for one in hashes]
    return next((role for role, same in matches if same), None)


def require(request: Request, *allowed: str) -> Server:
    """The server, for these callers only."""
    server: Server = request.app.state.server
    require_role(request, server.settings.tokens, *allowed)
    return server


def require_role(request: Request, tokens: Tokens, *allowed: str) -> None:
    role = role_of(presented(request), tokens)
    if role is None:
        raise NotAuthenticated("the token is not known here")
    if role not in allowed:
        raise NotAuthorised(f"this needs the {' or '.join(allowed)} token, not the {role} token")


async def require_uploader(request: Request, server: Server, entry: StoredCampaign) -> str | None:
    """Admission to upload; an invitation's hash or a site's id is returned."""
    given, campaign, site = presented(request), entry.campaign, None
    if campaign.admission == "sites":
        site = await asyncio.to_thread(server.storage.sites.by_token, campaign.id, given)
    invited = campaign.admission == "invited" and await asyncio.to_thread(
        server.storage.campaigns.is_invited, campaign.id, given
    )
    role = role_of(given, server.settings.tokens)
    return admission.identify_sender(campaign, entry.upload_token, admission.Caller(given, invited, site, role))
