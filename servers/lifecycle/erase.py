"""Keys of waves are kept until the last release that they are in, and then erased.

A wave is done with when no later release can contain it and every one that does is published here: the sum of both
servers' noised curves is on this disk. Then its keys, their sums and what was told about them go, from the database and
its log, too; of every upload a hash stays, so that a retry is known and nobody uploads twice. What was published and
the noise stay: answers are the same for ever. A campaign with a reserve keeps its keys, since sums may be asked for as
long as it is there.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import Problem
from fss_ecdf.campaign.release import is_finished
from servers import log
from servers.lifecycle.periodic_task import PeriodicTask
from servers.release.release_service import ReleaseService
from servers.storage.campaigns import StoredCampaign
from servers.storage.key_files import Folder
from servers.storage.storage import Storage, Writer
from servers.storage.waves import SEALED, Wave

LOOK_S = 5.0
ROWS, FEW = 4000, 100  # erased at a time, at most and at least; how fast a disk is shows as it goes on
TURN_S = 0.05  # that others wait for such a part, about


class Eraser(PeriodicTask):
    """Looks for keys that nothing needs any more until it is stopped."""

    def __init__(
        self,
        storage: Storage,
        writer: Writer,
        publisher: ReleaseService,
        folder: Callable[[bytes, int], Folder],
        crash: Callable[[str], None],
    ) -> None:
        self._storage, self._writer, self._publisher = storage, writer, publisher
        self._folder, self._crash = folder, crash
        self._behind = True  # what was to be erased may not be: before this start, or because a look failed

    async def _run(self) -> None:
        with self._storage.leading("erasing") as one:  # of several processes of this server
            while True:
                try:
                    if await asyncio.to_thread(one.leads):
                        await self._look_at_all()
                    else:
                        self._behind = True
                except Exception as error:  # a busy database, a peer that is away: the next look finds it again
                    log.event("erasing-failed", level="warning", error=type(error).__name__, where=log.where(error))
                await asyncio.sleep(LOOK_S)

    async def _look_at_all(self) -> None:
        if self._behind:
            await self.complete()
        self._behind = True
        for entry in await asyncio.to_thread(self._of_waves):
            await self.look(entry)
        self._behind = False

    def _of_waves(self) -> list[StoredCampaign]:
        return [entry for entry in self._storage.campaigns.all() if entry.campaign.waves is not None]

    async def look(self, entry: StoredCampaign) -> None:
        """Erase what can be erased of one campaign."""
        campaign = entry.campaign
        for number in done_with(entry, await asyncio.to_thread(self._storage.waves.all, campaign.id)):
            if not await self._is_published(campaign.id, number):
                return
            await self._writer.run(partial(self._storage.waves.note_erased, campaign.id, number))
            self._crash("wave-noted-erased")
            await self._erase(campaign.id, number)

    async def _is_published(self, campaign: bytes, number: int) -> bool:
        """Every release with this wave in it is on this disk; what is not is fetched."""
        for release in (await self._publisher.releases(campaign)).values():
            if number in [wave for wave, _ in release.parts]:
                try:
                    counts = await self._publisher.whole(await self._publisher.open(campaign, release.name))
                except Problem:
                    return False
                if counts is None or not self._publisher.is_kept(release):
                    return False
        return True

    async def _erase(self, campaign: bytes, number: int) -> None:
        """Can be repeated: the next start does what an interruption left."""
        await asyncio.to_thread(self._folder(campaign, number).drop_keys)
        erased = await self._erase_rows(campaign, number)
        await asyncio.to_thread(self._storage.uploads.forget_erased)
        log.event("keys-erased", campaign=to_base64url(campaign), wave=number, keys=erased)

    async def _erase_rows(self, campaign: bytes, number: int) -> int:
        """A little at a time: whoever waits to write comes in between."""
        erased, last, most = 0, b"", FEW
        while True:
            began = time.monotonic()
            some = partial(self._storage.uploads.erase_keys, campaign, number, last, most)
            ids = await self._writer.run(some)
            if not ids:
                return erased
            erased, last = erased + len(ids), ids[-1]
            most = max(FEW, min(ROWS, 2 * most, int(most * TURN_S / (time.monotonic() - began))))

    async def complete(self) -> None:
        """At the start: what was to be erased is."""
        for entry in await asyncio.to_thread(self._of_waves):
            for wave in await asyncio.to_thread(self._storage.waves.all, entry.campaign.id):
                if wave.erased:
                    await self._erase(entry.campaign.id, wave.number)


def done_with(entry: StoredCampaign, waves: list[Wave]) -> list[int]:
    """Waves whose keys nothing needs any more, and that still have them: none where queries may come at any time."""
    campaign, counts = entry.campaign, list[int]()
    assert campaign.waves is not None
    if campaign.reserve:
        return []
    for wave in waves:
        if wave.state != SEALED or wave.set is None:
            break
        counts.append(wave.set.count)
    return [k for k in is_finished(campaign.waves, campaign.min_uploads, counts) if not waves[k - 1].erased]
