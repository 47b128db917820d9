"""What everyone who asks runs: a client, and statistics of what it gets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyst.client import AsyncClient, Client
    from analyst.curve import Curve
    from analyst.release import Release

__all__ = ["AsyncClient", "Client", "Curve", "Release"]

_WHERE = {"AsyncClient": "client", "Client": "client", "Curve": "curve", "Release": "release"}


def __getattr__(name: str) -> Any:
    """Loaded when first used: a command line that only prints its help needs none of it."""
    if name not in _WHERE:
        raise AttributeError(name)
    return getattr(import_module(f"analyst.{_WHERE[name]}"), name)
