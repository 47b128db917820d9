"""Campaigns of waves, as they are asked for and shown: which releases a question means, and where each wave stands."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fss_ecdf.campaign.campaign import TIME_FORMAT, Campaign
from fss_ecdf.campaign.errors import InvalidQuery, NotSealed
from fss_ecdf.campaign.json_messages import ReleaseSummary, WavesResponse, WaveSummary
from fss_ecdf.campaign.release import ReleaseName, cumulative
from servers.release.release_service import ReleaseService
from servers.release.release_state import ReleaseState
from servers.release.sealed_releases import SealedRelease, releases
from servers.server import Server
from servers.storage.campaigns import StoredCampaign
from servers.storage.waves import Wave


@dataclass(frozen=True)
class ReleaseSelector:
    """One wave by itself, everything up to a wave, or what was pooled after one; of these at most one is said."""

    wave: int | None = None
    through: int | None = None
    pooled: int | None = None

    def check(self, campaign: Campaign) -> None:
        said = [number for number in (self.wave, self.through, self.pooled) if number is not None]
        if campaign.waves is None and said:
            raise InvalidQuery("this campaign has no waves; leave out wave, through and pooled")
        if len(said) > 1:
            raise InvalidQuery("say one of wave, through and pooled")
        if campaign.waves is not None and said and said[0] > campaign.waves.count:
            raise InvalidQuery(f"this campaign has {campaign.waves.count} waves")


async def select_releases(
    publisher: ReleaseService, entry: StoredCampaign, which: ReleaseSelector
) -> list[ReleaseState]:
    """The releases whose sum is asked for; of a campaign of waves, everything so far if nothing is said."""
    which.check(entry.campaign)
    if entry.campaign.waves is None:
        return [await publisher.open(entry.campaign.id)]
    if which.wave is not None or which.pooled is not None:
        return [await publisher.open(entry.campaign.id, ReleaseName.from_query(which.wave, which.pooled))]
    made = await publisher.releases(entry.campaign.id)
    plans = [release.plan for release in made.values()]
    through = entry.campaign.waves.count if which.through is None else which.through
    names = [plan.name for plan in cumulative(plans, through)]
    if not names:
        raise NotSealed("no wave is released yet; ask again when one is")
    return [await publisher.open(entry.campaign.id, name) for name in names]


def noise_parts(of: Sequence[ReleaseState]) -> tuple[tuple[float, int], ...]:
    """The epsilon of each release of a sum, and how many there are of it."""
    return tuple(Counter(one.campaign.epsilon for one in of).items())


async def waves_of(server: Server, entry: StoredCampaign) -> WavesResponse:
    if entry.campaign.waves is None:
        raise InvalidQuery("this campaign has no waves")
    return await asyncio.to_thread(_waves_of, server, entry)


def _waves_of(server: Server, entry: StoredCampaign) -> WavesResponse:
    campaign, waves = entry.campaign, server.storage.waves.all(entry.campaign.id)
    spent = server.storage.ledger.spent(campaign.id)
    briefs = [_brief(campaign, wave, spent.get(wave.number, 0.0)) for wave in waves]
    made = [_release_brief(release) for release in releases(entry, waves).values()]
    return WavesResponse(digest=campaign.digest, waves=briefs, releases=made)


def _brief(campaign: Campaign, wave: Wave, spent: float) -> WaveSummary:
    assert campaign.waves is not None
    end = None if campaign.opens is None else campaign.waves.end(campaign.opens, wave.number)
    return WaveSummary(
        number=wave.number,
        state=wave.state,
        uploads=None if wave.set is None else wave.set.count,
        closes=None if end is None else end.strftime(TIME_FORMAT),
        consented=campaign.epsilon_for_party(wave.number),
        spent=spent,
    )


def _release_brief(release: SealedRelease) -> ReleaseSummary:
    plan = release.plan
    about = {"name": str(plan.name), "kind": plan.kind, "at": plan.through, "waves": list(plan.waves)}
    return ReleaseSummary.model_validate({**about, "uploads": release.sealed.count, "epsilon": plan.epsilon})
