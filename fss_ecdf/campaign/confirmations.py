"""What a server confirms to a party: that uploads are stored, or that they do not count. It is signed.

A party believes both only with the signature of the key that the campaign names. Otherwise whoever ends TLS for both
servers could drop an upload unnoticed, or confirm a withdrawal that no server knows of, so that the party sends new
keys and counts twice.
"""

import hashlib
import struct

from fss_ecdf.campaign.base64url import from_base64url
from fss_ecdf.campaign.campaign import Campaign

SIGNATURE_BYTES = 64
_STORED = b"fss-ecdf stored uploads 1\n"
_WITHDRAWN = b"fss-ecdf withdrawal 1\n"
_ABOUT_STORED = struct.Struct("<BI")


def stored(digest: bytes, server: int, wave: int, leaves: bytes) -> bytes:
    """What the server signs when it has stored all uploads of a request: their leaves, in the order of the request."""
    return _STORED + digest + _ABOUT_STORED.pack(server, wave) + hashlib.sha256(leaves).digest()


def withdrawn(digest: bytes, server: int, ids: bytes) -> bytes:
    """What the server signs, of the ids as they were sent. It holds for good, so nothing in it is of this moment."""
    return _WITHDRAWN + digest + bytes([server]) + hashlib.sha256(ids).digest()


def is_confirmed(campaign: Campaign, server: int, message: bytes, given: object) -> bool:
    """Whether this text is the server's signature of the message, by the key in the campaign."""
    from Crypto.Signature import eddsa  # here: most commands confirm nothing

    if campaign.server_commitments is None:
        return False
    try:
        signature = from_base64url(given, SIGNATURE_BYTES, "a signature")
        key = eddsa.import_public_key(campaign.server_commitments[server].signing_key)
        eddsa.new(key, "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True
