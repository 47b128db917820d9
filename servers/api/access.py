"""Who may do what: bearer tokens, known here only by their hashes.

A caller without a token that means anything here gets 401; one whose token is good for something else gets 403.
"""

import hmac

from fastapi import Request

from campaign.errors import NotAuthenticated, NotAuthorised
from servers.settings import Tokens, hash_token
from servers.storage.store import Entry, Store

OPERATOR, ANALYST, PEER = "operator", "analyst", "peer"


def presented(request: Request) -> str:
    """The hash of the caller's token."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token or len(token) > 500:
        raise NotAuthenticated("send a token: Authorization: Bearer ...")
    return hash_token(token)


def role_of(given: str, tokens: Tokens) -> str | None:
    """Which of the server's own tokens this is, compared in constant time."""
    matches = {
        OPERATOR: hmac.compare_digest(given, tokens.operator),
        ANALYST: hmac.compare_digest(given, tokens.analyst),
        PEER: hmac.compare_digest(given, tokens.peer),
    }
    return next((role for role, same in matches.items() if same), None)


def require(request: Request, tokens: Tokens, *allowed: str) -> None:
    role = role_of(presented(request), tokens)
    if role is None:
        raise NotAuthenticated("the token is not known here")
    if role not in allowed:
        raise NotAuthorised(f"this needs the {' or '.join(allowed)} token, not the {role} token")


def require_uploader(request: Request, tokens: Tokens, entry: Entry, store: Store) -> str | None:
    """Admission to upload: the campaign's token, or an invitation, whose hash is returned."""
    given = presented(request)
    if entry.campaign.admission == "open":
        if entry.upload_token is not None and hmac.compare_digest(given, entry.upload_token):
            return None
    elif store.is_invited(entry.campaign.id, given):
        return given
    role = role_of(given, tokens)
    if role is not None:
        raise NotAuthorised(f"uploading needs the campaign's upload token or an invitation, not the {role} token")
    raise NotAuthenticated("the token is not known for this campaign")
