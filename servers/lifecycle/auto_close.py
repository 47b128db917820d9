"""What closes by itself, by this server's clock: campaigns with seal = "at-closing", and waves that are due.

Both servers look. Server 0 begins at once; server 1 gives it a while, so that as a rule one of them runs the protocol,
and does it itself where server 0 is away. Nothing is remembered but in the database: after a restart it goes on.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import OnHold, Problem, TooFewUploads
from servers import log
from servers.lifecycle.periodic_task import PeriodicTask
from servers.lifecycle.seal import Sealer
from servers.lifecycle.wave_schedule import is_due
from servers.rollback import RollbackGuard
from servers.storage.admission import seals_at_closing
from servers.storage.storage import Storage
from servers.storage.waves import FROZEN

LOOK_S = 2.0
TURN_S = 20  # that server 1 waits for server 0


class AutoCloser(PeriodicTask):
    """Looks for what is due until it is stopped."""

    def __init__(
        self,
        role: int,
        storage: Storage,
        sealer: Sealer,
        call: Callable[[], None],
        clock: Callable[[], datetime],
        guard: RollbackGuard,
    ) -> None:
        self._storage, self._sealer, self._call, self._clock, self._guard = storage, sealer, call, clock, guard
        self._patience = timedelta(seconds=role * TURN_S)
        self._look_s = LOOK_S * (1 + 1.7 * role)  # not in step: two sealings at once undo each other's freezes
        self._too_few: set[bytes] = set()  # nothing more can come, so sealing again would fail again

    async def _run(self) -> None:
        with self._storage.leading("closing") as one:  # of several processes of this server
            while True:
                try:
                    if await asyncio.to_thread(one.leads):
                        await self._look()
                except Exception as error:  # a busy database: the next look finds it again
                    log.event("closing-failed", level="warning", error=type(error).__name__)
                await asyncio.sleep(self._look_s)

    async def _look(self) -> None:
        try:
            await self._guard.require()
        except OnHold:
            return  # said once, when it was noticed
        for campaign, number in await asyncio.to_thread(self.due):
            await self._seal(campaign, number)

    def due(self) -> list[tuple[Campaign, int]]:
        now = self._clock() - self._patience
        waiting = [(name, number) for name, number in self._storage.waves.not_fixed() if name not in self._too_few]
        each = [(self._storage.campaigns.fixed(name).campaign, number) for name, number in waiting]
        return [(campaign, number) for campaign, number in each if self._is_due(campaign, number, now)]

    def _is_due(self, campaign: Campaign, number: int, now: datetime) -> bool:
        if campaign.waves is None:
            return seals_at_closing(campaign, now)
        # A wave that is frozen has closed: what is left of its sealing is done, whoever began it.
        frozen = self._storage.waves.get(campaign.id, number).state == FROZEN
        return frozen or is_due(self._storage, campaign, number, now)

    async def _seal(self, campaign: Campaign, number: int) -> None:
        name = to_base64url(campaign.id)
        try:
            wave, _ = await self._sealer.seal(campaign, number, by_operator=False)
        except Problem as problem:
            if isinstance(problem, TooFewUploads):
                self._too_few.add(campaign.id)
            log.event(
                "not-sealed-at-closing",
                level="warning",
                campaign=name,
                wave=number,
                code=problem.code,
                detail=problem.detail,
            )
            with log.failures("trouble-not-noted", Problem):
                now = self._storage.now()
                await asyncio.to_thread(self._storage.troubles.note, campaign.id, number, str(problem), now)
            return
        log.event("sealed-at-closing", campaign=name, wave=number, state=wave.state)
        self._call()
