"""What the two servers hand to the auditor of one of them, each from its own machine, while its server may run.

    export/     of the server that is audited
      campaign.json, about.json             which campaign, which server, which waves are sealed (a plain campaign: 0)
      wave-N/uploads                        of each upload of the sealed set, in the order of their ids: id, key,
                                            proof, and the hash of what the other server got
      wave-N/rejected                       the same of what failed a check and is not erased yet
      wave-N/tables, wave-N/rejected-tables the same of tables (`servers/audit/tables.py`)
      wave-N/check-SET/entries, seeds       which uploads were checked, and both parts of the challenge
      wave-N/check-SET/tables               which of them are tables, and of how many people each is
      release-NAME/statement, noise.secret
      kept/                                 what this server kept of the other one: the files of an evidence folder
    evidence/   of the other server
      campaign.json, about.json
      wave-N/check-SET/*.question, *.answer check messages, signed by the audited server
      release-NAME/statement, *.question, *.answer   its statement and its shares, signed
      release-NAME/release.npy, noised.npy  what this server published, and its own part of that

The first holds one server's keys and its noise secrets for these sets: with the published curves they tell no more
than that server knows. Never give an auditor the keys of both servers.
"""

import io
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from fss_ecdf.campaign.binary_messages import is_table
from fss_ecdf.campaign.campaign import ID_BYTES, from_base64url
from fss_ecdf.campaign.contribution import HASH_BYTES
from fss_ecdf.campaign.errors import InvalidInput, NotSealed
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.server_identity import Identity
from servers.audit.material import About, AboutWave, check_folder, release_folder, wave_folder
from servers.audit.tables import write_tables
from servers.release.evidence import CHECK, Evidence
from servers.release.sealed_releases import SealedRelease, releases, source
from servers.release.statement import state
from servers.settings import Settings
from servers.storage.campaigns import StoredCampaign
from servers.storage.key_files import CHUNK, Folder
from servers.storage.storage import Storage
from servers.storage.waves import SEALED, Wave


def keys(settings: Settings, campaign_id: str, out: Path) -> None:
    """For the auditor of this server."""
    with closing(Storage(settings.database_url, look=True)) as storage:
        entry, waves = _sealed(storage, campaign_id)
        identity = Identity.load(settings.identity_file, settings.server)
        made = _made(entry, waves)
        if entry.campaign.waves is None and waves[0].sealed.key_file is None:
            raise NotSealed("the keys are not in one file yet; wait until the curve is ready")
        _make(out)
        for wave in waves:
            if not wave.erased:
                _uploads(storage, entry, wave, out)
        # Read again: keys that were erased meanwhile are not there.
        waves = [storage.waves.get(entry.campaign.id, wave.number) for wave in waves]
    for wave in waves:
        if wave.erased:
            for name in ("uploads", "tables"):
                (wave_folder(out, wave.number) / name).unlink(missing_ok=True)
        elif wave.peer_seed is not None:
            seeds = [identity.check_seed(entry.campaign, wave.number), wave.peer_seed]
            _checks(settings, entry, wave, out, seeds if settings.server == 0 else seeds[::-1])
    for release in made:
        folder, noise = release_folder(out, release.name), source(settings.server, release)
        statement = state(identity, entry.campaign, release.sealed, noise)
        _write(folder / "statement", statement.to_json().encode())
        _write(folder / "noise.secret", noise.seed.hex().encode())
    _kept(settings, entry, waves, out / "kept")
    _about(settings, entry, waves, out)


def evidence(settings: Settings, campaign_id: str, out: Path) -> None:
    """For the auditor of the other server."""
    with closing(Storage(settings.database_url, look=True)) as storage:
        entry, waves = _sealed(storage, campaign_id)
    _make(out)
    _kept(settings, entry, waves, out)
    _about(settings, entry, waves, out)


def _sealed(storage: Storage, campaign_id: str) -> tuple[StoredCampaign, list[Wave]]:
    """A campaign and its waves, as far as they are sealed; one at least."""
    try:
        given = from_base64url(campaign_id, ID_BYTES, "a campaign's id")
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    entry, sealed = storage.campaigns.get(given), []
    for wave in storage.waves.all(given):
        if wave.state != SEALED:
            break
        sealed.append(wave)
    if not sealed:
        raise NotSealed("nothing is sealed yet, so there is nothing to audit")
    return entry, sealed


def _made(entry: StoredCampaign, waves: list[Wave]) -> list[SealedRelease]:
    """Releases whose keys are in files with digests: only then is there noise."""
    return [release for release in releases(entry, waves).values() if release.sealed.key_file is not None]


def _about(settings: Settings, entry: StoredCampaign, waves: list[Wave], out: Path) -> None:
    described = [AboutWave.of(wave) for wave in waves]
    _write(out / "campaign.json", entry.campaign.canonical)
    _write(out / "about.json", About(server=settings.server, waves=described).to_json().encode())


def _uploads(storage: Storage, entry: StoredCampaign, wave: Wave, out: Path) -> None:
    path = wave_folder(out, wave.number) / "uploads"
    _write(path, b"")
    with path.open("ab") as file:
        for rows in storage.uploads.rows(entry.campaign.id, CHUNK, wave.number):
            file.write(b"".join(row[0] + row[2] for row in rows if not is_table(row)))
    rejected = storage.uploads.rejected(entry.campaign.id, wave.number)
    keys = (upload_id + opening for upload_id, opening in rejected if len(opening) != HASH_BYTES)
    _write(path.with_name("rejected"), b"".join(keys))
    if entry.campaign.tables:
        kept = storage.tables
        for name, tables in (("tables", kept.in_wave), ("rejected-tables", kept.rejected_in_wave)):
            _write(path.with_name(name), b"")
            with path.with_name(name).open("ab") as file:
                write_tables(file, entry.campaign.id, kept, tables(entry.campaign.id, wave.number))


def _checks(settings: Settings, entry: StoredCampaign, wave: Wave, out: Path, seeds: list[bytes]) -> None:
    for checked, folder in _check_evidence(settings, entry, wave):
        if (folder / "entries").is_file():
            target = check_folder(out, wave.number, checked)
            _write(target / "entries", (folder / "entries").read_bytes())
            if (folder / "tables").is_file():
                _write(target / "tables", (folder / "tables").read_bytes())
            _write(target / "seeds", "\n".join(seed.hex() for seed in seeds).encode())


def _kept(settings: Settings, entry: StoredCampaign, waves: list[Wave], out: Path) -> None:
    """What this server kept of what the other one signed, and what it published itself."""
    for wave in waves:
        for checked, folder in _check_evidence(settings, entry, wave):
            _copy(folder, check_folder(out, wave.number, checked), ("*.question", "*.answer"))
    for release in releases(entry, waves).values():
        _kept_of_release(settings, release, release_folder(out, release.name))


def _kept_of_release(settings: Settings, release: SealedRelease, out: Path) -> None:
    folder = Folder(settings.data, release.campaign.id, release.last)
    _copy(Evidence(folder.path, release.sealed.checksum).folder, out, ("statement", "*.question", "*.answer"))
    if release.sealed.key_file is None:
        return
    covers = source(settings.server, release).covers
    for kind, dtype in (("release", np.int64), ("noised", np.uint64)):
        curve = folder.load_curve(kind, covers, release.campaign.bits, dtype)
        if curve is not None:
            body = io.BytesIO()
            np.save(body, curve)
            _write(out / f"{kind}.npy", body.getvalue())


def _check_evidence(settings: Settings, entry: StoredCampaign, wave: Wave) -> Iterable[tuple[str, Path]]:
    """What was kept of each check of a wave, by the name of the set that was checked."""
    path = Folder(settings.data, entry.campaign.id, wave.number).path
    return [(found.name.removeprefix(f"{CHECK}-"), found) for found in sorted(path.glob(f"{CHECK}-*"))]


def _copy(source: Path, target: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        for path in sorted(source.glob(pattern)):
            _write(target / path.name, path.read_bytes())


def _make(out: Path) -> None:
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; choose a new folder")
    out.mkdir(parents=True, exist_ok=True, mode=0o700)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(data)
