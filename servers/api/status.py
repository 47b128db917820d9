"""Where a campaign stands on this server, for its operator and for the other server. Counts and phases, no contents."""

import asyncio
from datetime import UTC, datetime

from fss_ecdf.campaign.campaign import TIME_FORMAT, to_base64url
from servers.lifecycle.wave_schedule import is_manual
from servers.server import Server
from servers.storage.admission import is_closed
from servers.storage.campaigns import StoredCampaign
from servers.storage.troubles import Trouble
from servers.storage.waves import SEALED, Wave, is_too_few


async def status_of(server: Server, entry: StoredCampaign) -> dict[str, object]:
    return await asyncio.to_thread(_status, server, entry)


def brief(entry: StoredCampaign, state: str) -> dict[str, object]:
    campaign = entry.campaign
    return {"id": to_base64url(campaign.id), "title": campaign.title, "state": state, "uploads": entry.stored}


def _status(server: Server, entry: StoredCampaign) -> dict[str, object]:
    campaign, storage = entry.campaign, server.storage
    wave = storage.waves.get(campaign.id)
    entry = storage.campaigns.get(campaign.id)  # after the wave: an open one has the uploads that it is open with
    about: dict[str, object] = {
        **brief(entry, wave.state),
        "server": server.number,
        "digest": to_base64url(campaign.digest),
        "min_uploads": campaign.min_uploads,
        "agreed": wave.agreed,
        "freezes": wave.freezes,
        "seal": campaign.seal,
        "closes": None if campaign.uploads_end is None else campaign.uploads_end.strftime(TIME_FORMAT),
        "closed": is_closed(campaign, server.clock()),
        "check_keys": campaign.check_keys,
        "rejected": wave.rejected,
        **server.guard.shown(),
        "hpke_key_lost": server.hpke_keys.is_lost(campaign),
    }
    troubles = [_trouble(one) for one in storage.troubles.all(campaign.id)]
    about |= {"troubles": troubles} if troubles else {}
    if campaign.waves is not None:
        about |= {"wave": wave.number, "consent": campaign.epsilon_for_party(wave.number)}
        about["closes_itself"] = not is_manual(campaign)
        about["waves"] = [_wave(server, campaign.id, one) for one in storage.waves.all(campaign.id)]
    if wave.set is None:
        return about
    job = storage.jobs.get(campaign.id, wave.number)
    about |= {
        "count": wave.set.count,
        "unmatched": wave.set.unmatched,
        "kept": storage.waves.excluded_count(campaign.id),
    }
    about |= {"too_few": True} if wave.state == SEALED and is_too_few(campaign, wave.set) else {}
    about |= {"checksum": to_base64url(wave.set.checksum), "phase": job.phase, "progress": round(job.progress, 4)}
    return about | ({} if job.problem is None else {"problem": job.problem})


def _trouble(one: Trouble) -> dict[str, object]:
    """What does not go on, since when, and why."""
    since = datetime.fromtimestamp(one.since, UTC).strftime(TIME_FORMAT)
    return {"wave": one.wave, "what": one.kind, "since": since, "detail": one.detail}


def _wave(server: Server, campaign: bytes, wave: Wave) -> dict[str, object]:
    """One wave of several, in a line."""
    about: dict[str, object] = {"number": wave.number, "state": wave.state, "rejected": wave.rejected}
    if wave.set is None:
        return about | {"count": server.storage.uploads.in_wave(campaign, wave.number), "agreed": wave.agreed}
    job = server.storage.jobs.get(campaign, wave.number)
    about |= {"count": wave.set.count, "unmatched": wave.set.unmatched, "checksum": to_base64url(wave.set.checksum)}
    about |= {"phase": job.phase, "progress": round(job.progress, 4)}
    return about | ({} if job.problem is None else {"problem": job.problem})
