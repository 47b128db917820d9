"""Asking for waves: which release a question means, and what was answered as one trend."""

from collections.abc import Sequence

from analyst.release import Release
from analyst.trend import Trend, closings
from campaign.errors import PeerMismatch
from campaign.spec import Campaign, check_digest
from campaign.waves import Planned
from campaign.wire import EcdfAnswer, ReleaseBrief, WavesAnswer


def until_of(answer: EcdfAnswer) -> dict[str, str]:
    """Everything up to the wave that an answer ends with; nothing of a campaign without waves."""
    ends = [int(name.split()[1]) for name in answer.made_of]
    return {"until": str(max(ends))} if ends else {}


def asked_for(release: ReleaseBrief) -> dict[str, str]:
    return {release.kind: str(release.at)}


def as_trend(campaign: Campaign, told: WavesAnswer, releases: Sequence[Release]) -> Trend:
    check_digest(campaign.digest, told.digest)
    plans = [Planned(one.kind, one.at, tuple(one.waves), one.epsilon) for one in told.releases]
    for plan, release in zip(plans, releases, strict=True):
        if release.campaign.epsilon != plan.epsilon:
            raise PeerMismatch(f"{plan.name} was announced with another epsilon than it was answered with")
    named = {plan.name: release for plan, release in zip(plans, releases, strict=True)}
    return Trend(campaign, plans, named, closings(told.waves))
