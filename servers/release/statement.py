"""What a server signs: its check messages, which keys and which noise its shares come from, and every share it sends.

Check, evaluation and noise are deterministic, so an auditor who has the keys, proofs and the noise secret of one server
can compute every message and every share again; with the signatures that the other server kept, a wrong one is proven
(`servers/audit/`).
"""

import hashlib
import hmac
from typing import Literal

from fss_ecdf.campaign.campaign import Campaign, from_base64url, to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidQuery
from fss_ecdf.campaign.json_messages import Bytes32, Digest, Message, read
from fss_ecdf.net.server_identity import SIGNATURE_BYTES, Identity, is_signed
from servers.release.add_noise import NoiseKey
from servers.storage.key_files import KEYS
from servers.storage.waves import UploadSet

_STATEMENT, _SHARES = b"fss-ecdf statement 1\n", b"fss-ecdf signed shares 1\n"
_MESSAGES, _NOISE = b"fss-ecdf signed check messages 1\n", b"fss-ecdf noise commitment 1\n"


class Statement(Message):
    """Signed once, when the keys of a sealed set are in one file, and given away before the first share is."""

    digest: Digest
    server: Literal[0, 1]
    checksum: Bytes32  # of the ids
    count: int
    keys: Bytes32  # the digest of this server's key file
    noise: Bytes32  # commits to the secret of its noise for this set


class Signed(Message):
    statement: Statement
    signature: str


def noise_commitment(secret: bytes) -> bytes:
    return hashlib.sha256(_NOISE + secret).digest()


def state(identity: Identity, campaign: Campaign, sealed: UploadSet, source: NoiseKey) -> Signed:
    """This server's statement about its sealed set."""
    assert sealed.key_file is not None
    about = {"digest": campaign.digest, "server": identity.server, "checksum": sealed.checksum, "count": sealed.count}
    statement = Statement.model_validate({**about, "keys": sealed.key_file, "noise": noise_commitment(source.seed)})
    return Signed(statement=statement, signature=to_base64url(identity.sign(_signed_bytes(statement))))


def check(data: bytes, campaign: Campaign, server: int, sealed: UploadSet | Statement) -> Signed:
    """A server's statement about this set, well signed, or a problem."""
    try:
        signed = read(Signed, data)
        signature = from_base64url(signed.signature, SIGNATURE_BYTES, "a signature")
    except (InvalidQuery, ValueError):
        raise InvalidPeerResponse("the other server's statement is not well-formed") from None
    said = signed.statement
    about = campaign.digest, server, sealed.checksum, sealed.count
    if (said.digest, said.server, said.checksum, said.count) != about:
        raise InvalidPeerResponse("the other server's statement is about another set of uploads")
    if campaign.server_commitments is None or not is_signed(
        campaign.server_commitments[server].signing_key, _signed_bytes(said), signature
    ):
        raise InvalidPeerResponse("the other server's statement is not signed by the key that the campaign names")
    return signed


def _signed_bytes(statement: Statement) -> bytes:
    return _STATEMENT + statement.to_json().encode()


def covered(statement: Statement, question: bytes, shares: bytes) -> bytes:
    """What the signature of an answer covers: whose it is, what was asked, and all that was answered."""
    parts = _signed_bytes(statement), question, shares
    return _SHARES + b"".join(hashlib.sha256(part).digest() for part in parts)


def split(answer: bytes) -> tuple[bytes, bytes]:
    """Shares, and the signature behind them."""
    return answer[:-SIGNATURE_BYTES], answer[-SIGNATURE_BYTES:]


def require_signed(campaign: Campaign, statement: Statement, question: bytes, answer: bytes) -> None:
    """Raise unless the server of this statement signed this answer to this question."""
    shares, signature = split(answer)
    assert campaign.server_commitments is not None
    if not is_signed(
        campaign.server_commitments[statement.server].signing_key, covered(statement, question, shares), signature
    ):
        raise InvalidPeerResponse("the other server's shares are not signed by it, or not for the set of its statement")


def messages_question(wave: int, query: bytes, of: str = KEYS) -> bytes:
    """What a server is asked for check messages by, of keys or of tables, as its signature covers it."""
    return f"/{of}?wave={wave}\n".encode() + query


def covered_messages(server: int, question: bytes, messages: bytes) -> bytes:
    """What the signature of check messages covers: whose they are, what was asked, and all that was answered.

    The question names the campaign, the wave, the set, and which of its uploads are meant.
    """
    return _MESSAGES + bytes([server]) + b"".join(hashlib.sha256(part).digest() for part in (question, messages))


def require_messages_signed(campaign: Campaign, server: int, question: bytes, answer: bytes) -> None:
    """Raise unless this server signed these check messages as its answer to this question."""
    messages, signature = split(answer)
    assert campaign.server_commitments is not None
    if not is_signed(
        campaign.server_commitments[server].signing_key, covered_messages(server, question, messages), signature
    ):
        raise InvalidPeerResponse("the other server's check messages are not signed by it")


def commits(statement: Statement, secret: bytes) -> bool:
    return hmac.compare_digest(statement.noise, noise_commitment(secret))
