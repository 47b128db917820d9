"""What everyone who asks runs: a client, and statistics of what it gets."""

from analyst.client import AsyncClient, Client
from analyst.curve import Curve
from analyst.release import Release

__all__ = ["AsyncClient", "Client", "Curve", "Release"]
