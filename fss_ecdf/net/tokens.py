"""Tokens: what their kinds look like, how new ones are made, and the hash by which servers know them."""

import hashlib
import secrets

# A prefix tells people, and programs that look for leaked secrets, what a token is good for.
TOKEN_PREFIX = {
    "operator": "fss-op-",
    "analyst": "fss-an-",
    "peer": "fss-peer-",
    "metrics": "fss-met-",
    "upload": "fss-up-",
    "invite": "fss-in-",
    "site": "fss-site-",
}
TOKEN_BYTES = 32


def new_token(kind: str) -> str:
    return TOKEN_PREFIX[kind] + secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
