"""Seeing what does not go on, in one process of a server: it is in the database for `status`, and in the log once."""

import asyncio

from fss_ecdf.campaign.campaign import to_base64url
from servers import log, metrics
from servers.lifecycle.periodic_task import PeriodicTask
from servers.storage.storage import Storage
from servers.storage.troubles import FAILS, KINDS, Trouble

LOOK_S = 5.0
PATIENCE_S = 60.0  # an ordinary sealing freezes and waits, too; what failed is said at once


class Overseer(PeriodicTask):
    """Looks until it is stopped."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._said: set[tuple[bytes, int, str]] = set()

    async def _run(self) -> None:
        with self._storage.leading("overseeing") as one:  # of several processes of this server
            while True:
                try:
                    if await asyncio.to_thread(one.leads):
                        await asyncio.to_thread(self.look)
                except Exception as error:  # a busy database: the next look finds it again
                    log.event("overseeing-failed", level="warning", error=type(error).__name__, where=log.where(error))
                await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        now = self._storage.now()
        self._storage.troubles.look(now)
        troubles = self._storage.troubles.all()
        places = {(one.campaign, one.wave, one.kind) for one in troubles}
        for one in troubles:
            place, age = (one.campaign, one.wave, one.kind), now - one.since
            if place not in self._said and (one.kind == FAILS or age > PATIENCE_S):
                self._said.add(place)
                log.event("trouble", level="warning", **_shown(one), seconds=round(age))
        for campaign, wave, kind in self._said - places:
            log.event("trouble-over", campaign=to_base64url(campaign), wave=wave, of=kind)
        self._said &= places


def _shown(one: Trouble) -> dict[str, object]:
    return {"campaign": to_base64url(one.campaign), "wave": one.wave, "of": one.kind, "detail": one.detail}


def measure(storage: Storage) -> None:
    """Set the gauges from the database, in whichever process is asked."""
    counts, now = storage.troubles.counts(), storage.now()
    for state in metrics.STATES:
        metrics.WAVES.labels(state).set(counts.waves.get(state, 0))
    for phase in metrics.PHASES:
        metrics.JOBS.labels(phase).set(counts.jobs.get(phase, 0))
    metrics.EXCLUDED.set(counts.excluded)
    oldest = dict.fromkeys(KINDS, 0.0)
    for one in storage.troubles.all():
        oldest[one.kind] = max(oldest[one.kind], now - one.since)
    for kind, seconds in oldest.items():
        metrics.TROUBLE_SECONDS.labels(kind).set(seconds)
