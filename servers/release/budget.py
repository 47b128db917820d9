"""Spending: by this server's own ledger, before anything that it pays for leaves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from servers.peer import PeerClient
from servers.storage.storage import Storage, Writer


@dataclass(frozen=True)
class Account:
    """Who pays for a release and for queries about it: the waves in it, up to what their parties consented to."""

    campaign: bytes
    release: str  # what the ledger calls its curve
    epsilon: float
    limits: Mapping[int, float]  # of each wave, for all releases that it is in
    reserve: float  # of each wave


class Budget:
    def __init__(self, storage: Storage, writer: Writer, peer: PeerClient, clock: Callable[[], datetime]) -> None:
        self._ledger, self._writer, self._peer, self._clock = storage.ledger, writer, peer, clock
        # An expense that is recorded stays so, in this database: another one may have taken its place.
        self._paid: set[tuple[bytes, str]] = set()
        storage.on_connect(self._paid.clear)

    async def spend_curve(self, account: Account) -> None:
        """The curve is paid for once, before the first share of it leaves."""
        await self._peer.require_compared()
        paid = account.campaign, account.release
        if paid not in self._paid:
            await self._record(account, account.release, account.epsilon, account.limits)
            self._paid.add(paid)

    async def spend_reserve(self, account: Account, purpose: str, epsilon: float) -> None:
        """A query is paid for by every wave in its release, once; the releases' own epsilon is not touched.

        By the database alone: if it is not the one that this process has paid in, nothing else would tell.
        """
        await self._peer.require_compared()
        await self._record(account, purpose, epsilon, dict.fromkeys(account.limits, account.reserve))

    async def _record(self, account: Account, purpose: str, epsilon: float, limits: Mapping[int, float]) -> None:
        campaign, now = account.campaign, self._clock()
        await self._writer.run(lambda: self._ledger.spend(campaign, purpose, epsilon, limits, now))
