"""What one server promises to a campaign before anybody uploads: it can neither choose nor change it later."""

from contextlib import suppress
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from fss.challenge import COMMITMENT_BYTES
from fss_ecdf.campaign.base64url import field_of, from_base64url, to_base64url
from fss_ecdf.campaign.hpke import PUBLIC_KEY_BYTES

SIGNING_KEY_BYTES = 32


def _hpke_key(value: object) -> bytes:
    """Of either KEM; the campaign says of which."""
    for length in PUBLIC_KEY_BYTES.values():
        with suppress(ValueError):
            return from_base64url(value, length, "an HPKE key")
    raise ValueError(f"an HPKE key must be {' or '.join(map(str, PUBLIC_KEY_BYTES.values()))} bytes in base64url")


class ServerCommitment(BaseModel):
    """One server's part of a campaign. It stands in the campaign, and therefore in the digest that parties pin."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    commitment: field_of(COMMITMENT_BYTES, "a commitment")  # type: ignore[valid-type] # to its part of the challenge
    signing_key: field_of(SIGNING_KEY_BYTES, "a signing key")  # type: ignore[valid-type] # public, Ed25519
    # Public. Uploads are encrypted to it, so that nobody but this server reads them.
    hpke_key: Annotated[bytes, BeforeValidator(_hpke_key), PlainSerializer(to_base64url)]


ServerCommitments = Annotated[
    tuple[ServerCommitment, ServerCommitment], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)
]
