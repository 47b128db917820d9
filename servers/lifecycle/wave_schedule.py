"""When a wave closes: by this server's own clock, by the uploads it has itself, or by its operator's word.

Each server looks for itself, so that a wave closes when both agree that it is time: a clock that is ahead, or a peer
that claims it, closes nothing. A server that was away finds the wave that is due and closes it, then the next. A wave
by number is due when that many uploads are here, for it or for the next one, which parties choose once the other server
has closed it: so no wave waits for uploads that go elsewhere.
"""

from datetime import datetime

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.waves import MANUAL
from servers.storage.storage import Storage


def is_manual(campaign: Campaign) -> bool:
    """Whether operators say when: of a plain campaign, and of waves that neither the clock nor a number closes."""
    return campaign.waves is None or campaign.waves.every == MANUAL


def is_due(storage: Storage, campaign: Campaign, number: int, now: datetime) -> bool:
    """Whether the campaign itself says that this wave closes now, by what this server knows."""
    waves = campaign.waves
    if waves is None or waves.every == MANUAL:
        return False
    if isinstance(waves.every, int):
        return storage.uploads.since_wave(campaign.id, number) >= waves.every
    assert campaign.opens is not None
    end = waves.end(campaign.opens, number)
    return end is not None and now >= end
