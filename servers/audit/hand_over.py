"""What the two sides of an audit hand to the auditor, each from its own machine, while its server may run.

    keys/       of the server that is audited: campaign.json, statement (signed), entries, keys, noise.secret
    evidence/   of the other server: campaign.json, statement, answers (signed by the audited one), release, noised

The first holds one server's keys and its noise secret for this set: with the published curve they tell no more than
that server knows. Never give an auditor the keys of both servers.
"""

import io
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np

from campaign.errors import InvalidInput, NotSealed
from campaign.spec import ID_BYTES, from_base64url
from client.identity import Identity
from client.program import BadSettings
from servers.release.evidence import Evidence
from servers.release.releases import CURVE, Release, find, releases, source
from servers.release.statement import state
from servers.settings import Settings
from servers.storage.objects import Folder, is_whole
from servers.storage.storage import Storage


def keys(settings: Settings, campaign_id: str, out: Path) -> None:
    """For the auditor of this server."""
    with closing(Storage(settings.database_url, look=True)) as storage:
        release = _release(storage, campaign_id)
        entry, sealed = release.entry, release.sealed
        entries = b"".join(storage.uploads.entries(entry.campaign.id))
    folder = Folder(settings.data, entry.campaign.id)
    if sealed.key_file is None or not is_whole(folder.keys, sealed.key_file):
        raise NotSealed("the keys are not in one file yet; wait until the curve is ready")
    noise = source(settings.role, release)
    statement = state(Identity.load(settings.identity_file, settings.role), entry.campaign, sealed, noise)
    _make(out)
    _write(out / "campaign.json", entry.campaign.canonical)
    _write(out / "statement", statement.to_json().encode())
    _write(out / "entries", entries)
    _write(out / "noise.secret", noise.seed.hex().encode())
    _write(out / "keys", b"")
    shutil.copyfile(folder.keys, out / "keys")


def evidence(settings: Settings, campaign_id: str, out: Path) -> None:
    """For the auditor of the other server."""
    with closing(Storage(settings.database_url, look=True)) as storage:
        release = _release(storage, campaign_id)
        entry, sealed = release.entry, release.sealed
    folder = Folder(settings.data, entry.campaign.id)
    kept = Evidence(folder.path, sealed.checksum)
    if kept.statement() is None:
        raise NotSealed("the other server has not made a statement here yet; ask it something first")
    _make(out)
    _write(out / "campaign.json", entry.campaign.canonical)
    for file in (file for file in kept.folder.iterdir() if file.suffix != ".partial"):
        _write(out / file.name, file.read_bytes())
    covers = source(settings.role, release).covers
    for kind, dtype in (("release", np.int64), ("noised", np.uint64)):
        curve = folder.load_curve(kind, covers, entry.campaign.bits, dtype)
        if curve is not None:
            body = io.BytesIO()
            np.save(body, curve)
            _write(out / f"{kind}.npy", body.getvalue())


def _release(storage: Storage, campaign_id: str) -> Release:
    try:
        given = from_base64url(campaign_id, ID_BYTES, "a campaign's id")
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    entry = storage.campaigns.get(given)
    if entry.campaign.waves is not None:
        raise InvalidInput("releases of waves are signed and kept, but their audit is not offered yet")
    return find(releases(entry, storage.waves.all(given)), CURVE)


def _make(out: Path) -> None:
    if out.exists() and any(out.iterdir()):
        raise BadSettings(f"{out} is not empty; choose a new folder")
    out.mkdir(parents=True, exist_ok=True, mode=0o700)


def _write(path: Path, data: bytes) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(data)
