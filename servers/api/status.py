"""Where a campaign stands on this server, for its operator and for the other server. Counts and phases, no contents."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from fss_ecdf.campaign.campaign import TIME_FORMAT, to_base64url
from fss_ecdf.campaign.status import CampaignSummary, Status, Trouble, WaveStatus
from servers.lifecycle.wave_schedule import is_manual
from servers.server import Server
from servers.storage import troubles
from servers.storage.admission import is_closed
from servers.storage.campaigns import StoredCampaign
from servers.storage.waves import SEALED, Wave, is_too_few


async def status_of(server: Server, entry: StoredCampaign) -> Status:
    return await asyncio.to_thread(_status, server, entry)


def summary_of(entry: StoredCampaign, state: str) -> CampaignSummary:
    campaign = entry.campaign
    fields = {"id": to_base64url(campaign.id), "title": campaign.title, "state": state, "uploads": entry.stored}
    return CampaignSummary.model_validate(fields)


def _status(server: Server, entry: StoredCampaign) -> Status:
    campaign, storage = entry.campaign, server.storage
    wave = storage.waves.get(campaign.id)
    entry = storage.campaigns.get(campaign.id)  # after the wave: an open one has the uploads that it is open with
    fields: dict[str, object] = {
        **summary_of(entry, wave.state).fields(),
        "server": server.number,
        "digest": campaign.digest,
        "min_uploads": campaign.min_uploads,
        "operator_agreed": wave.operator_agreed,
        "freeze_number": wave.freeze_number,
        "seal": campaign.seal,
        "closes": None if campaign.uploads_end is None else campaign.uploads_end.strftime(TIME_FORMAT),
        "closed": is_closed(campaign, server.clock()),
        "check_keys": campaign.check_keys,
        "rejected": wave.rejected,
        **server.guard.shown(),
        "hpke_key_lost": server.hpke_keys.is_lost(campaign),
        "troubles": [_trouble(trouble) for trouble in storage.troubles.all(campaign.id)],
        "wave": wave.number,
        "waves": [_wave(server, campaign.id, each) for each in storage.waves.all(campaign.id)],
        "planned_waves": None if campaign.waves is None else campaign.waves.count,
        "epsilon_for_party": campaign.epsilon_for_party(wave.number),
        "closes_itself": campaign.seal == "at-closing" or not is_manual(campaign),
    }
    if wave.set is not None:
        fields |= {"sealed_uploads": wave.set.count, "excluded_stored": storage.waves.excluded_count(campaign.id)}
        fields |= {"too_few": True} if wave.state == SEALED and is_too_few(campaign, wave.set) else {}
        fields |= _of_set(server, campaign.id, wave)
    return Status.model_validate(fields)


def _trouble(trouble: troubles.Trouble) -> Trouble:
    since = datetime.fromtimestamp(trouble.since, UTC).strftime(TIME_FORMAT)
    return Trouble(wave=trouble.wave, what=trouble.kind, since=since, detail=trouble.detail)


def _wave(server: Server, campaign: bytes, wave: Wave) -> WaveStatus:
    uploads = server.storage.uploads.in_wave(campaign, wave.number) if wave.set is None else wave.set.count
    fields = {"number": wave.number, "state": wave.state, "uploads": uploads, "rejected": wave.rejected}
    fields |= {"operator_agreed": wave.operator_agreed, "abandon_agreed": wave.abandon_agreed}
    more = _of_set(server, campaign, wave)
    return WaveStatus.model_validate({**fields, "abandoned": wave.abandoned, **more})


def _of_set(server: Server, campaign: bytes, wave: Wave) -> dict[str, Any]:
    """What is known of a wave once its set is fixed."""
    if wave.set is None:
        return {}
    job = server.storage.jobs.get(campaign, wave.number)
    fields = {"unmatched": wave.set.unmatched, "checksum": to_base64url(wave.set.checksum), "phase": job.phase}
    return {**fields, "progress": round(job.progress, 4), "problem": job.problem}
