"""What everyone who asks runs: a client, and statistics of what it gets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyst.client import AsyncClient, Client
    from analyst.curve import Curve
    from analyst.release import Release

__all__ = ["AsyncClient", "Client", "Curve", "Release"]

_HOMES = {
    "AsyncClient": "analyst.client",
    "Client": "analyst.client",
    "Curve": "analyst.curve",
    "Release": "analyst.release",
}


def __getattr__(name: str) -> Any:
    """Loaded when it is used: the command line's help needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
