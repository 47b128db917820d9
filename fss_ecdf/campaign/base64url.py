"""Bytes as text: base64url without padding, in the one form that these bytes have."""

import base64
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: object, length: int, what: str) -> bytes:
    """Strictly: unpadded, of the exact length, and the one way to write these bytes."""
    if isinstance(text, bytes) and len(text) == length:
        return text
    if isinstance(text, str):
        try:
            data = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, UnicodeEncodeError):
            data = b""
        if len(data) == length and to_base64url(data) == text:
            return data
    raise ValueError(f"{what} must be {length} bytes in unpadded base64url")


def field_of(length: int, what: str) -> Any:
    """A field of so many bytes, written in base64url."""
    return Annotated[bytes, BeforeValidator(lambda v: from_base64url(v, length, what)), PlainSerializer(to_base64url)]
