"""One release of a campaign: its noise, its keys, and what this process knows of it already."""

import asyncio
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from campaign.errors import Unavailable
from campaign.spec import Campaign
from fss.field import Words
from servers.compute.sums import KeyFile
from servers.release import noised
from servers.release.answers import Floats
from servers.release.evidence import Evidence
from servers.release.noise import covers, set_secret
from servers.release.releases import Release
from servers.release.statement import Statement
from servers.settings import Settings
from servers.storage.objects import Folder
from servers.storage.waves import UploadSet

Counts = NDArray[np.int64]


@dataclass
class Published:
    """One release, and what is known of it in this process. Nothing of it changes any more; it only grows."""

    made: Release
    noised: Words | None = None
    counts: Counts | None = None
    errors: dict[str, Floats] = field(default_factory=dict)
    witnessed: Statement | None = None  # the other server's
    evidence: Evidence | None = None
    keys_checked: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    keeping: asyncio.Lock = field(default_factory=asyncio.Lock)  # while evidence is read and written

    @property
    def campaign(self) -> Campaign:
        return self.made.campaign

    @property
    def sealed(self) -> UploadSet:
        return self.made.sealed


def source(role: int, release: Release) -> noised.Source:
    """The noise of a release on this server; there is none before its keys are in files with digests."""
    entry, sealed = release.entry, release.sealed
    if sealed.key_file is None:
        raise Unavailable("the keys are not ready yet", retry_after=2)
    bound = covers(entry.campaign.id, sealed.checksum, sealed.key_file)
    return noised.Source(set_secret(entry.noise_seed, bound), role, bound, release.campaign)


def key_file(settings: Settings, campaign: Campaign, wave: int, sealed: UploadSet) -> KeyFile:
    path = Folder(settings.data, campaign.id, wave).keys
    return KeyFile(path, campaign.key_type(settings.role), sealed.key_file or b"", sealed.count)


def key_files(settings: Settings, release: Release) -> list[KeyFile]:
    return [key_file(settings, release.campaign, number, sealed) for number, sealed in release.parts]
