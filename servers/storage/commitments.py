"""What this server keeps for every campaign that it made a commitment for: one random salt of its HPKE key.

The key follows from the salt and the identity file together (`fss_ecdf/net/server_identity.py`). So every process of
this server has it, a backup of the database and the identity includes it, the database alone opens nothing, and nobody
can make it again once the campaign is deleted and its salt erased.
"""

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import CampaignDeleted, HpkeKeyLost
from servers.storage.database import Transaction
from servers.storage.schema import CAMPAIGNS, COMMITMENTS

SALT_BYTES = 32
MOST_UNUSED = 1000  # commitments for campaigns that were not created; older ones are dropped

_LOCK = b"commitments"


class HpkeSalts:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def salt(self, campaign_id: bytes) -> bytes | None:
        """None: no commitment was made, or it was erased with the campaign."""
        with self._engine.connect() as db:
            return _salt(db, campaign_id)

    def salt_or_new(self, campaign_id: bytes, rand: Callable[[int], bytes]) -> bytes:
        """The salt of a campaign that need not exist yet. One that exists without its salt never gets another."""
        with Transaction(self._engine, _LOCK) as db:
            found = _salt(db, campaign_id)
            if found is None:
                _require_new(db, campaign_id)
                found = rand(SALT_BYTES)
                number = db.execute(
                    COMMITMENTS.insert().values(campaign=campaign_id, salt=found).returning(COMMITMENTS.c.number)
                ).scalar_one()
                old = COMMITMENTS.c.number <= number - MOST_UNUSED
                db.execute(COMMITMENTS.delete().where(old & COMMITMENTS.c.campaign.not_in(sa.select(CAMPAIGNS.c.id))))
            return found


def erase(db: Connection, campaign_id: bytes) -> None:
    """From now on nobody opens what was sealed to this server for this campaign."""
    db.execute(COMMITMENTS.delete().where(COMMITMENTS.c.campaign == campaign_id))


def _require_new(db: Connection, campaign_id: bytes) -> None:
    deleted = db.execute(sa.select(CAMPAIGNS.c.deleted).where(CAMPAIGNS.c.id == campaign_id)).scalar_one_or_none()
    if deleted:
        raise CampaignDeleted(f"campaign {to_base64url(campaign_id)} was deleted")
    if deleted is not None:
        raise HpkeKeyLost("the database has lost the salt of this campaign's HPKE key; restore it from a backup")


def _salt(db: Connection, campaign_id: bytes) -> bytes | None:
    found = db.execute(sa.select(COMMITMENTS.c.salt).where(COMMITMENTS.c.campaign == campaign_id)).scalar_one_or_none()
    return None if found is None else bytes(found)
