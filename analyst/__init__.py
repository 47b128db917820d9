"""What everyone who asks runs: a client, and statistics of what it gets."""

from typing import TYPE_CHECKING

from client.late import late

if TYPE_CHECKING:
    from analyst.client import AsyncClient, Client
    from analyst.curve import Curve
    from analyst.release import Release

__all__ = ["AsyncClient", "Client", "Curve", "Release"]

__getattr__ = late(
    __name__,
    {
        "AsyncClient": "analyst.client",
        "Client": "analyst.client",
        "Curve": "analyst.curve",
        "Release": "analyst.release",
    },
)
