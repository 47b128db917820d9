"""The ledger: what each campaign has spent of its epsilon, by this server's own account.

Epsilon is spent by parties, and a party is in one wave: what a release costs is charged to every wave that is in it,
and each wave has the limit that its parties consented to. A plain campaign is wave 0.
"""

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from fss_ecdf.campaign.campaign import TIME_FORMAT
from fss_ecdf.campaign.errors import BudgetExceeded
from servers.storage import history
from servers.storage.database import Transaction
from servers.storage.schema import LEDGER

# Sums of a few doubles: allow for their rounding, far below any epsilon that means something.
_ROUNDING = 1e-9


class Ledger:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def spend(
        self, campaign_id: bytes, purpose: str, epsilon: float, limits: Mapping[int, float], now: datetime
    ) -> None:
        """Record an expense of some waves, once, if each of them stays within its limit; of all of them or of none."""
        with Transaction(self._engine, campaign_id) as db:
            rows = db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id)).all()
            at = now.strftime(TIME_FORMAT)
            for wave, limit in limits.items():
                spent: dict[str, float] = {row.purpose: row.epsilon for row in rows if row.wave == wave}
                if purpose in spent:
                    continue
                if sum(spent.values()) + epsilon > limit + _ROUNDING:
                    raise BudgetExceeded(f"{epsilon:g} more would exceed the campaign's epsilon of {limit:g}")
                about = {"campaign": campaign_id, "wave": wave, "purpose": purpose, "epsilon": epsilon, "at": at}
                db.execute(LEDGER.insert().values(**about))
                history.advance(db)

    def spent(self, campaign_id: bytes) -> dict[int, float]:
        """What the parties of each wave have spent."""
        spent: dict[int, float] = {}
        with self._engine.connect() as db:
            for row in db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id)):
                spent[row.wave] = spent.get(row.wave, 0.0) + row.epsilon
        return spent
