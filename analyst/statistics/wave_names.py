"""Asking for waves: which release a question means, and what was answered as one trend."""

from collections.abc import Sequence

from analyst.release import Release
from analyst.statistics.trend import Trend, closing_times
from fss_ecdf.campaign.campaign import Campaign, check_digest
from fss_ecdf.campaign.errors import InvalidPeerResponse
from fss_ecdf.campaign.json_messages import ReleaseSummary, ResultResponse, WavesResponse
from fss_ecdf.campaign.release import Release as PlannedRelease
from fss_ecdf.campaign.release import ReleaseName


def release_names(answer: ResultResponse) -> list[ReleaseName]:
    """The releases that an answer is the sum of; none of a campaign without waves."""
    try:
        return [ReleaseName.parse(name) for name in answer.releases]
    except ValueError as error:
        raise InvalidPeerResponse(f"the server answers with a release that cannot be: {error}") from None


def until_of(answer: ResultResponse) -> dict[str, str]:
    """Everything up to the wave that an answer ends with; nothing of a campaign without waves."""
    ends = [name.through for name in release_names(answer)]
    return {"through": str(max(ends))} if ends else {}


def asked_for(release: ReleaseSummary) -> dict[str, str]:
    return ReleaseName(release.kind, release.at).query


def as_trend(campaign: Campaign, told: WavesResponse, releases: Sequence[Release]) -> Trend:
    check_digest(campaign.digest, told.digest)
    plans = [PlannedRelease(ReleaseName(one.kind, one.at), tuple(one.waves), one.epsilon) for one in told.releases]
    for plan, release in zip(plans, releases, strict=True):
        if release.campaign.epsilon != plan.epsilon:
            raise InvalidPeerResponse(f"{plan.name} was announced with another epsilon than it was answered with")
    named = {plan.name: release for plan, release in zip(plans, releases, strict=True)}
    return Trend(campaign, plans, named, closing_times(told.waves))
