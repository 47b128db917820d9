"""Where a campaign stands on this server, for its operator and for the other server. Counts and phases, no contents."""

import asyncio
from datetime import UTC, datetime

from campaign.spec import TIME_FORMAT, to_base64url
from servers.lifecycle.admission import is_closed
from servers.lifecycle.waves import is_by_hand
from servers.server import Server
from servers.storage.campaigns import Entry
from servers.storage.troubles import Trouble
from servers.storage.waves import Wave


async def status_of(server: Server, entry: Entry) -> dict[str, object]:
    return await asyncio.to_thread(_status, server, entry)


def brief(entry: Entry, state: str) -> dict[str, object]:
    campaign = entry.campaign
    return {"id": to_base64url(campaign.id), "title": campaign.title, "state": state, "uploads": entry.stored}


def _status(server: Server, entry: Entry) -> dict[str, object]:
    campaign, storage = entry.campaign, server.storage
    wave = storage.waves.get(campaign.id)
    entry = storage.campaigns.get(campaign.id)  # after the wave: an open one has the uploads that it is open with
    about: dict[str, object] = {
        **brief(entry, wave.state),
        "server": server.role,
        "digest": to_base64url(campaign.digest),
        "min_uploads": campaign.min_uploads,
        "agreed": wave.agreed,
        "freezes": wave.freezes,
        "seal": campaign.seal,
        "closes": None if campaign.ends is None else campaign.ends.strftime(TIME_FORMAT),
        "closed": is_closed(campaign, server.clock()),
        "checked": campaign.checked,
        "rejected": wave.rejected,
        **server.guard.shown(),
        "hpke_key_lost": server.hpke_keys.is_lost(campaign),
    }
    troubles = [_trouble(one) for one in storage.troubles.all(campaign.id)]
    about |= {"troubles": troubles} if troubles else {}
    if campaign.waves is not None:
        about |= {"wave": wave.number, "consent": campaign.consent(wave.number)}
        about["closes_itself"] = not is_by_hand(campaign)
        about["waves"] = [_wave(server, campaign.id, one) for one in storage.waves.all(campaign.id)]
    if wave.set is None:
        return about
    job = storage.jobs.get(campaign.id, wave.number)
    about |= {"count": wave.set.count, "orphans": wave.set.orphans, "kept": storage.waves.left_out(campaign.id)}
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
    about |= {"count": wave.set.count, "orphans": wave.set.orphans, "checksum": to_base64url(wave.set.checksum)}
    about |= {"phase": job.phase, "progress": round(job.progress, 4)}
    return about | ({} if job.problem is None else {"problem": job.problem})
