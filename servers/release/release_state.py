"""One release of a campaign: its noise, its keys, and what this process knows of it already."""

import asyncio
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fss.field import Words
from fss_ecdf.campaign.campaign import Campaign
from servers.release.evidence import Evidence
from servers.release.query_results import Floats
from servers.release.sealed_releases import SealedRelease
from servers.release.statement import Statement
from servers.storage.waves import UploadSet

Counts = NDArray[np.int64]


@dataclass
class ReleaseState:
    """One release, and what is known of it in this process. Nothing of it changes any more; it only grows."""

    release: SealedRelease
    noisy: Words | None = None
    counts: Counts | None = None
    errors: dict[str, Floats] = field(default_factory=dict)
    peer_statement: Statement | None = None  # the other server's
    evidence: Evidence | None = None
    refused_by_peer: str | None = None  # why the other server never gives a whole curve, by its settings
    keys_checked: tuple[int, ...] | None = None  # the key file whose digest was compared
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    keeping: asyncio.Lock = field(default_factory=asyncio.Lock)  # while evidence is read and written

    @property
    def campaign(self) -> Campaign:
        return self.release.campaign

    @property
    def sealed(self) -> UploadSet:
        return self.release.sealed
