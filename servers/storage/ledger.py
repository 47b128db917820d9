"""The ledger: what each campaign has spent of its epsilon, by this server's own account."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from campaign.errors import BudgetExceeded
from campaign.spec import TIME_FORMAT
from servers.storage.database import Transaction
from servers.storage.schema import LEDGER

# Sums of a few doubles: allow for their rounding, far below any epsilon that means something.
_ROUNDING = 1e-9


class Ledger:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def spend(self, campaign_id: bytes, purpose: str, epsilon: float, limit: float, now: datetime) -> float:
        """Record an expense, once, if it stays within the limit. Returns what is spent in all."""
        with Transaction(self._engine, campaign_id) as db:
            rows = db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id))
            spent: dict[str, float] = {row.purpose: row.epsilon for row in rows}
            if purpose in spent:
                return sum(spent.values())
            total = sum(spent.values()) + epsilon
            if total > limit + _ROUNDING:
                raise BudgetExceeded(f"{epsilon:g} more would exceed the campaign's epsilon of {limit:g}")
            at = now.strftime(TIME_FORMAT)
            db.execute(LEDGER.insert().values(campaign=campaign_id, purpose=purpose, epsilon=epsilon, at=at))
            return total

    def spent(self, campaign_id: bytes) -> dict[str, float]:
        """Every expense of a campaign, by its purpose."""
        with self._engine.connect() as db:
            rows = db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id))
            return {row.purpose: row.epsilon for row in rows}
