"""Waves that are abandoned by agreement: their set is empty, for good, and their parties upload again.

It is for a wave whose sealing cannot come to its end, because one server lost its uploads. Its challenge may be known,
so nothing is added to it and nothing of it moves to another wave: its uploads are excluded, and their parties send
new keys for the open wave. Each server abandons a wave only if its own operator has agreed, and never one that it has
sealed: of such a wave something may have been released.
"""

from sqlalchemy.engine import Engine

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import AgreementPending, CampaignSealed, InvalidQuery
from servers.storage import campaigns, excluded_uploads, jobs, waves
from servers.storage.database import Transaction
from servers.storage.entries import set_checksum
from servers.storage.schema import PROPOSED
from servers.storage.waves import OPEN, SEALED, Wave

EMPTY_SET = set_checksum(b"")


def agree(engine: Engine, campaign_id: bytes, number: int) -> None:
    """This server's operator agrees to abandon a wave, as it stands: the agreement lapses when the wave's state does.

    Raises where this server never would.
    """
    with Transaction(engine, campaign_id) as db:
        current = waves.wave(db, campaign_id, number)
        if not current.abandoned:
            _require_possible(campaigns.entry(db, campaign_id).campaign, current)
            waves.change(db, campaign_id, current, abandon_agreed=True)


def abandon(engine: Engine, campaign_id: bytes, number: int) -> Wave:
    """Abandon a wave, if this server's operator has agreed to it. Can be repeated."""
    with Transaction(engine, campaign_id) as db:
        current, campaign = waves.wave(db, campaign_id, number), campaigns.entry(db, campaign_id).campaign
        if current.abandoned:
            return current
        _require_possible(campaign, current)
        if not current.abandon_agreed:
            raise AgreementPending("this server's operator has not agreed to abandon the wave; nothing was changed")
        excluded = excluded_uploads.exclude_wave(db, campaign_id, number)
        waves.take_from_stored(db, campaign_id, excluded)
        db.execute(PROPOSED.delete().where(PROPOSED.c.campaign == campaign_id))
        if current.state == OPEN:
            waves.open_next(db, campaign, number)
        before = 0 if current.set is None else current.set.unmatched
        fixed = {"sealed_count": 0, "sealed_set": EMPTY_SET, "checked_set": None, "key_file": None}
        fixed |= waves.set_of_tables((0, 0))
        waves.change(db, campaign_id, current, state=SEALED, abandoned=True, unmatched=before + excluded, **fixed)
        jobs.begin_again(db, campaign_id, number)
        return waves.wave(db, campaign_id, number)


def _require_possible(campaign: Campaign, current: Wave) -> None:
    if campaign.waves is None:
        raise InvalidQuery(
            "a campaign without waves has no other wave to upload to: delete it and create a new one, to which parties "
            "send their values with new keys"
        )
    if current.state == SEALED:
        raise CampaignSealed(
            f"wave {current.number} is sealed here and cannot be abandoned; parties whose uploads were rejected send "
            "new keys for the open wave"
        )
