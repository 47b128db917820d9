"""Spending: by this server's own ledger, before anything that it pays for leaves."""

from collections.abc import Callable
from datetime import datetime

from campaign.spec import Campaign
from servers.storage.ledger import Ledger
from servers.storage.storage import Writer


class Budget:
    def __init__(self, ledger: Ledger, writer: Writer, clock: Callable[[], datetime]) -> None:
        self._ledger, self._writer, self._clock = ledger, writer, clock
        self._paid: set[tuple[bytes, str]] = set()  # an expense that is recorded stays so

    async def spend_curve(self, campaign: Campaign) -> None:
        """The curve is paid for once, before the first share of it leaves."""
        await self._spend(campaign, "curve", campaign.epsilon)

    async def spend(self, campaign: Campaign, purpose: str, epsilon: float) -> None:
        """From the reserve: the curve's own epsilon is set aside whether or not it has been asked for yet."""
        await self.spend_curve(campaign)
        await self._spend(campaign, purpose, epsilon)

    async def _spend(self, campaign: Campaign, purpose: str, epsilon: float) -> None:
        if (campaign.id, purpose) in self._paid:
            return
        limit, now = campaign.total_epsilon, self._clock()
        await self._writer.run(lambda: self._ledger.spend(campaign.id, purpose, epsilon, limit, now))
        self._paid.add((campaign.id, purpose))
