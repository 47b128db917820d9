"""The ledger: what each campaign has spent of its epsilon, by this server's own account.

Epsilon is spent by parties, and a party is in one wave: what a release costs is charged to every wave that is in it,
and each wave has the limits that its parties consented to. A plain campaign is wave 0. There are two limits: of the
releases, and of the reserve, from which queries are paid. Neither takes from the other, so that a query leaves enough
for the releases that are still to come.
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
RESERVE = "sums "  # purposes that are paid from the reserve begin so


class Ledger:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def spend(
        self, campaign_id: bytes, purpose: str, epsilon: float, limits: Mapping[int, float], now: datetime
    ) -> None:
        """Record an expense of some waves, once, if each of them stays within its limit; of all of them or of none.

        The limits are those of the reserve if the expense is paid from it, and of all releases if it is not.
        """
        with Transaction(self._engine, campaign_id) as db:
            rows = db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id)).all()
            at = now.strftime(TIME_FORMAT)
            for wave, limit in limits.items():
                spent: dict[str, float] = {
                    row.purpose: row.epsilon
                    for row in rows
                    if row.wave == wave and is_from_reserve(row.purpose) == is_from_reserve(purpose)
                }
                if purpose in spent:
                    continue
                before = sum(spent.values())
                if before + epsilon > limit + _ROUNDING:
                    what = "reserve" if is_from_reserve(purpose) else "epsilon of its releases"
                    of = f" of wave {wave}" if wave else ""
                    raise BudgetExceeded(
                        f"epsilon {epsilon:g} would exceed the campaign's {what}{of}, {limit:g}: {before:g} is spent"
                    )
                about = {"campaign": campaign_id, "wave": wave, "purpose": purpose, "epsilon": epsilon, "at": at}
                db.execute(LEDGER.insert().values(**about))
                history.advance(db)

    def spent(self, campaign_id: bytes, *, of_reserve: bool = False) -> dict[int, float]:
        """What the parties of each wave have spent, in all or of the reserve."""
        spent: dict[int, float] = {}
        with self._engine.connect() as db:
            for row in db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id)):
                if not of_reserve or is_from_reserve(row.purpose):
                    spent[row.wave] = spent.get(row.wave, 0.0) + row.epsilon
        return spent


def is_from_reserve(purpose: str) -> bool:
    return purpose.startswith(RESERVE)
