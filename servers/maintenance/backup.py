"""`fss-server backup`: one folder with all that one server cannot make again, and a signed list of what is in it.

It is taken while the server runs. The database is one moment of it; what lies beside it was written before that moment
or is only ever added to, so it is copied afterwards. Everything in the data folder belongs to a backup but what is
listed here as made again, so that what is added to the program one day is not forgotten.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from fss_ecdf.campaign.campaign import TIME_FORMAT, from_base64url, to_base64url
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.files import copy_privately, sync_directory, write_durably
from fss_ecdf.campaign.json_messages import Message, read
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.server_identity import SIGNATURE_BYTES, Identity, is_signed
from servers.rollback import FILE as HISTORY_FILE
from servers.settings import Settings
from servers.storage.dump import Dumped, dump
from servers.storage.key_files import file_digest

FORMAT = "fss-ecdf backup 2"
MANIFEST, SIGNATURE = "manifest.json", "manifest.signature"
DATABASE, SETTINGS, FILES = "database", "settings", "files"
LAST = "last-backup"  # in the data folder: when, for those who look after the server
_CONTEXT = b"fss-ecdf backup manifest 1\n"

# In the data folder: what follows from the database, and what says something of this moment or this machine.
_MADE_AGAIN = ("keys", "keys-chunks", "proofs", "candidates", "candidates-*", "curve", "*.partial", "*.erased")
_OF_THE_MACHINE = ("lock", f"{HISTORY_FILE}*", LAST, "server.db*")


class WaveState(Message):
    campaign: str
    number: int
    state: str


class Manifest(Message):
    """What a backup holds. `waves` and `newest` are of the database's moment."""

    format: Literal["fss-ecdf backup 2"]
    server: Literal[0, 1]
    at: str
    version: str
    database: Literal["sqlite", "postgresql"]
    schema_version: str
    newest: str  # of its history: generation and number
    waves: list[WaveState]
    tables: dict[str, Annotated[int, Field(ge=0)]]  # rows of each; none of SQLite, whose file is one
    files: dict[str, str]  # and their digests

    @property
    def states(self) -> dict[tuple[bytes, int], str]:
        """Where each wave stands."""
        return {(from_base64url(one.campaign, 32, "a campaign's id"), one.number): one.state for one in self.waves}


@dataclass(frozen=True)
class Backup:
    """A folder that was checked: signed by this server, whole, and nothing else in it."""

    folder: Path
    manifest: Manifest

    def files(self, part: str) -> Iterator[tuple[Path, PurePosixPath]]:
        """Of one part: where each file is, and its name there."""
        for name in self.manifest.files:
            if PurePosixPath(name).parts[0] == part:
                yield self.folder / name, PurePosixPath(name).relative_to(part)


def backup(settings: Settings, config: Path, out: Path, now: datetime) -> list[str]:
    """Into a new folder, for its owner only; returns the names of what is in it."""
    if out.exists():
        raise UsageError(f"{out} exists already; a backup is never overwritten")
    identity = Identity.load(settings.identity_file, settings.server)
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)
    (partial / DATABASE).mkdir(mode=0o700)
    dumped = dump(settings.database_url, partial / DATABASE)
    for file in (config, *settings.kept_files):
        copy_privately(file, partial / SETTINGS / file.name)
    for file in _beside(settings.data):
        try:
            copy_privately(file, partial / FILES / file.relative_to(settings.data))
        except FileNotFoundError:  # erased since it was listed
            continue
    manifest = _manifest(settings, dumped, partial, now)
    data = manifest.to_json().encode()
    write_durably(partial / MANIFEST, data)
    write_durably(partial / SIGNATURE, (to_base64url(identity.sign(_CONTEXT + data)) + "\n").encode())
    partial.rename(out)
    sync_directory(out.parent)
    write_durably(settings.data / LAST, (manifest.at + "\n").encode())
    return sorted(manifest.files)


def _manifest(settings: Settings, dumped: Dumped, folder: Path, now: datetime) -> Manifest:
    files = {
        path.relative_to(folder).as_posix(): file_digest(path).hex()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    about = {
        "format": FORMAT,
        "server": settings.server,
        "at": now.strftime(TIME_FORMAT),
        "version": version("fss-ecdf"),
    }
    of = {"database": dumped.kind, "schema_version": dumped.schema, "newest": dumped.newest, "tables": dumped.tables}
    stand = sorted(dumped.waves.items())
    waves = [{"campaign": to_base64url(cid), "number": number, "state": state} for (cid, number), state in stand]
    return Manifest.model_validate({**about, **of, "waves": waves, "files": files})


def _beside(data: Path) -> Iterator[Path]:
    """The files of the data folder that cannot be made again."""
    for path in sorted(data.iterdir()):
        if not any(fnmatch(path.name, pattern) for pattern in _OF_THE_MACHINE):
            yield from _kept(path)


def _kept(path: Path) -> Iterator[Path]:
    if any(fnmatch(path.name, pattern) for pattern in _MADE_AGAIN):
        return
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            yield from _kept(inner)
    elif path.is_file():
        yield path


def checked(folder: Path, settings: Settings) -> Backup:
    """A backup that this server signed, whole, with nothing in it that is not on its list; or why it is none."""
    identity = Identity.load(settings.identity_file, settings.server)
    try:
        data = (folder / MANIFEST).read_bytes()
        signature = from_base64url((folder / SIGNATURE).read_text().strip(), SIGNATURE_BYTES, "a signature")
        manifest = read(Manifest, data)
    except (OSError, ValueError, ValidationError, InvalidQuery):
        raise UsageError(f"{folder}: this is not a complete backup that fss-server backup made") from None
    if manifest.server != settings.server:
        raise UsageError(
            f"{folder}: this is a backup of server {manifest.server}, and the settings are server {settings.server}'s"
        )
    if not is_signed(identity.signing_key, _CONTEXT + data, signature):
        raise UsageError(
            f"{folder / MANIFEST} is not signed with {settings.identity_file}: it was changed, or made with another "
            f"identity; if that is the right one, copy {folder / SETTINGS / settings.identity_file.name} there first"
        )
    _require_named(folder, manifest)
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.is_file() or path.is_symlink() or file_digest(path).hex() != digest:
            raise UsageError(f"{path}: missing or changed since the backup was made; take another backup")
    return Backup(folder, manifest)


def _require_named(folder: Path, manifest: Manifest) -> None:
    """Names stay inside, each in a known part; and every file is on the list."""
    for name in manifest.files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.parts[0] not in (DATABASE, SETTINGS, FILES):
            raise UsageError(f"{folder / MANIFEST}: {name!r} is no name of a file of a backup")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    foreign = sorted(there - set(manifest.files) - {MANIFEST, SIGNATURE})
    if foreign:
        raise UsageError(f"{folder / foreign[0]}: not in the signed list of this backup; take it out, or another one")
