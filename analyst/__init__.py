"""What everyone who asks runs: a client, and statistics of what it gets."""

from typing import TYPE_CHECKING

from fss_ecdf.net.lazy_imports import lazy_exports

if TYPE_CHECKING:
    from analyst.client import AsyncClient, Client
    from analyst.release import Release
    from analyst.statistics.curve import Curve

__all__ = ["AsyncClient", "Client", "Curve", "Release"]

__getattr__ = lazy_exports(
    __name__,
    {
        "AsyncClient": "analyst.client",
        "Client": "analyst.client",
        "Curve": "analyst.statistics.curve",
        "Release": "analyst.release",
    },
)
