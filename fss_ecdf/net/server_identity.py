"""What a server is known by for good: one secret file, from which its part of every challenge and its signature follow.

It is no part of the database, so that restoring that brings nothing back; a server that lost it cannot go on with the
campaigns that it made commitments for.
"""

import hmac
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fss import challenge
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.commitments import ServerCommitment
from fss_ecdf.campaign.errors import ChallengeMismatch, InvalidCampaign
from fss_ecdf.campaign.hpke import Kem
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.hpke import HpkeKey

SECRET_BYTES, TAG_BYTES, SIGNATURE_BYTES = 32, 16, 64
_SIGNING = b"fss-ecdf signing key 1\n"
_HISTORY = b"fss-ecdf history 1\n"
_HPKE = b"fss-ecdf HPKE key 1\n"


class Identity:
    """One server's long-term secret. Does not print it."""

    def __init__(self, secret: bytes, role: int) -> None:
        self._secret, self.server = secret, role
        self._signer = Ed25519PrivateKey.from_private_bytes(hmac.digest(secret, _SIGNING, "sha256"))

    @classmethod
    def load(cls, path: Path, role: int) -> "Identity":
        try:
            secret = bytes.fromhex(path.read_text().strip())
        except ValueError:
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise UsageError(f"{path}: must hold {SECRET_BYTES} bytes in hexadecimal, as fss-server init wrote them")
        return cls(secret, role)

    def __repr__(self) -> str:
        return f"<Identity of server {self.server}>"

    @property
    def signing_key(self) -> bytes:
        """The public key."""
        return self._signer.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._signer.sign(message)

    def tag(self, message: bytes) -> bytes:
        """By which this server knows again what it said about its own history; nobody else can make it."""
        return hmac.digest(self._secret, _HISTORY + message, "sha256")[:TAG_BYTES]

    def hpke_key(self, campaign_id: bytes, kem: Kem, salt: bytes) -> HpkeKey:
        """The key that uploads to this server are encrypted to. With the salt of a campaign it is gone for good."""
        return HpkeKey(kem, hmac.digest(self._secret, _HPKE + kem.encode() + b"\n" + campaign_id + salt, "sha256"))

    def commit(self, campaign_id: bytes, kem: Kem, salt: bytes) -> ServerCommitment:
        """What stands in a campaign of this id for this server."""
        committed = challenge.commitment(self.server, campaign_id, self._seed(campaign_id, 0))
        public = self.hpke_key(campaign_id, kem, salt).public_bytes
        return ServerCommitment(commitment=committed, signing_key=self.signing_key, hpke_key=public)

    def _seed(self, campaign_id: bytes, wave: int) -> bytes:
        return challenge.check_seed(self._secret, campaign_id, wave)

    def check_seed(self, campaign: Campaign, wave: int = 0) -> bytes:
        """This server's part of a wave's challenge: only the one that the campaign was made with."""
        seed = self._seed(campaign.id, wave)
        if not verify_commitment(campaign, self.server, seed, wave):
            raise ChallengeMismatch(
                "this server's secret is not the one that the campaign was created with; restore its identity file"
            )
        return seed

    def require_commitments(self, campaign: Campaign, peer_key: bytes, salt: bytes | None) -> None:
        """The campaign holds this server's commitment, and the other server's key is the one known here."""
        if campaign.server_commitments is None:
            raise InvalidCampaign("the campaign has no commitments of the servers; ask GET /v1/commitments/ID for them")
        if salt is None:
            raise InvalidCampaign(
                f"server {self.server} made no commitment for this id; ask GET /v1/commitments/ID for one"
            )
        if campaign.server_commitments[self.server] != self.commit(campaign.id, campaign.kem, salt):
            raise InvalidCampaign(
                f"server_commitments.{self.server}: this is not the commitment of server {self.server} for this id"
            )
        if campaign.server_commitments[1 - self.server].signing_key != peer_key:
            raise InvalidCampaign(
                f"server_commitments.{1 - self.server}: not the signing key that this server knows of the other"
            )


def verify_commitment(campaign: Campaign, server: int, seed: bytes, wave: int = 0) -> bool:
    """Whether a server's part of a wave's challenge is the one that it committed to in the campaign."""
    if campaign.server_commitments is None or len(seed) != challenge.SEED_BYTES:
        return False
    return challenge.verify_commitment(campaign.server_commitments[server].commitment, server, campaign.id, seed, wave)


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
