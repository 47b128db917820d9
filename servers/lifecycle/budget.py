"""Spending: by this server's own ledger, before anything that it pays for leaves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from servers.storage.ledger import Ledger
from servers.storage.storage import Writer


@dataclass(frozen=True)
class Account:
    """Who pays for a release: the waves in it, each up to what its parties consented to."""

    campaign: bytes
    release: str  # what the ledger calls its curve
    epsilon: float
    limits: Mapping[int, float]


class Budget:
    def __init__(self, ledger: Ledger, writer: Writer, clock: Callable[[], datetime]) -> None:
        self._ledger, self._writer, self._clock = ledger, writer, clock
        self._paid: set[tuple[bytes, str, str]] = set()  # an expense that is recorded stays so

    async def spend_curve(self, account: Account) -> None:
        """The curve is paid for once, before the first share of it leaves."""
        await self._spend(account, account.release, account.epsilon)

    async def spend(self, account: Account, purpose: str, epsilon: float) -> None:
        """From the reserve: the curve's own epsilon is set aside whether or not it has been asked for yet."""
        await self.spend_curve(account)
        await self._spend(account, purpose, epsilon)

    async def _spend(self, account: Account, purpose: str, epsilon: float) -> None:
        paid = account.campaign, account.release, purpose
        if paid in self._paid:
            return
        campaign, limits, now = account.campaign, account.limits, self._clock()
        await self._writer.run(lambda: self._ledger.spend(campaign, purpose, epsilon, limits, now))
        self._paid.add(paid)
