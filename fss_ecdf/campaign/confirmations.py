"""A server's confirmation that uploads do not count: signed, so that nobody but this server can give it.

A party makes new keys for a value once both servers have confirmed that the old ones do not count. If whoever ends TLS
for both servers could confirm it, the party would count twice.
"""

import hashlib

from fss_ecdf.campaign.base64url import from_base64url
from fss_ecdf.campaign.campaign import Campaign

SIGNATURE_BYTES = 64
_CONTEXT = b"fss-ecdf withdrawal 1\n"


def confirmation(digest: bytes, server: int, ids: bytes) -> bytes:
    """What the server signs, of the ids as they were sent. It holds for good, so nothing in it is of this moment."""
    return _CONTEXT + digest + bytes([server]) + hashlib.sha256(ids).digest()


def is_confirmed(campaign: Campaign, server: int, ids: bytes, given: object) -> bool:
    """Whether this text is the signature, by the key in the campaign, that none of these uploads counts."""
    from Crypto.Signature import eddsa  # here: most commands never withdraw

    if campaign.server_commitments is None:
        return False
    try:
        signature = from_base64url(given, SIGNATURE_BYTES, "a signature")
        key = eddsa.import_public_key(campaign.server_commitments[server].signing_key)
        eddsa.new(key, "rfc8032").verify(confirmation(campaign.digest, server, ids), signature)
    except ValueError:
        return False
    return True
