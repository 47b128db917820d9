"""What parties' and analysts' programs both need to know of a server they talk to."""

from collections.abc import Mapping
from urllib.parse import urlsplit

LONGEST_WAIT_S = 20.0

NOT_AN_ADDRESS = "{!r} is not an address like https://server.example/v1/campaigns/ID"


def is_address(url: str) -> bool:
    """Of a campaign at one server."""
    parts = urlsplit(url)
    return parts.scheme == "https" and bool(parts.netloc) and "/v1/campaigns/" in parts.path


def is_certificate_error(error: Exception) -> bool:
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def retry_after_s(headers: Mapping[str, str], otherwise: float) -> float:
    """The seconds that a server asks to wait, within reason; what is not a whole number is not believed."""
    asked = headers.get("retry-after", "")
    return min(LONGEST_WAIT_S, float(asked) if asked.isdecimal() else otherwise)
