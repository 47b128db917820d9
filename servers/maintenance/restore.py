"""`fss-server restore`: put a backup in place of this server's data, or say why not; `--check` only says.

It refuses what would publish a second time: a backup that is older than a sealing that this server or the other one
knows of. A backup that is older than anything else the other server has seen is put in place, and noticed when the
server starts (`rollback.py`): it is on hold until its operator decides.
"""

from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from fss_ecdf.campaign.errors import PeerUnavailable, UnknownCampaign
from fss_ecdf.campaign.files import copy_privately, sync_directory
from fss_ecdf.cli.common import UsageError
from servers.maintenance.backup import DATABASE, FILES, Backup, checked
from servers.maintenance.recovery import Other, refuse_older
from servers.settings import Settings
from servers.storage import dump
from servers.storage.database import lock, needs_to_be_alone
from servers.storage.history import Mark
from servers.storage.key_files import Folder
from servers.storage.storage import Storage

_INSTEAD = "Take a newer backup, or delete the campaign at the other server first"


@dataclass(frozen=True)
class Looked:
    """A backup that can be restored."""

    backup: Backup
    present: dump.Present
    seen: str | None  # the newest of this server's history that the other server has seen

    @property
    def is_behind(self) -> bool:
        """Older than what the other server has seen: the server will be on hold."""
        here = self.backup.manifest.newest.split(".")
        return self.seen is not None and [int(part) for part in self.seen.split(".")] > [int(part) for part in here]


def look(settings: Settings, folder: Path) -> Looked:
    """Everything that `restore` looks at before it changes anything; raises where it would refuse."""
    found = checked(folder, settings)
    kind = "sqlite" if needs_to_be_alone(settings.database_url) else "postgresql"
    if found.manifest.database != kind:
        raise UsageError(f"{folder}: this is a backup of {found.manifest.database}, and the settings name {kind}")
    present, states = dump.present(settings.database_url), found.manifest.states
    refuse_older(states, present.waves, "this server's present database", _INSTEAD)
    with closing(Other(settings)) as other:
        seen = _seen(other)
        refuse_older(states, other.states(states), "the other server", _INSTEAD)
    return Looked(found, present, seen[-1].place if seen else None)


def _seen(other: Other) -> tuple[Mark, ...]:
    """Where it does not answer, nothing is known; that a campaign is open it has to be asked for anyway."""
    try:
        return other.seen()
    except PeerUnavailable:
        return ()


def restore(settings: Settings, folder: Path) -> tuple[Looked, str]:
    """Put a backup in place of this server's data, or refuse; returns it, and where the old database is kept."""
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock(settings.data):  # or: another server runs on it
        looked = look(settings, folder)
        manifest = looked.backup.manifest
        kept = dump.load(settings.database_url, folder / DATABASE, manifest.schema_version, manifest.tables)
        for source, name in looked.backup.files(FILES):
            copy_privately(source, settings.data / name)
        sync_directory(settings.data)
        _bring_up_to_date(settings, looked.present.deleted)
    return looked, kept


def _bring_up_to_date(settings: Settings, deleted: list[bytes]) -> None:
    """What was deleted since the backup stays deleted; files that are not in a backup are made again."""
    with closing(Storage(settings.database_url)) as storage:
        for campaign in deleted:
            with suppress(UnknownCampaign):
                storage.campaigns.delete(campaign)
                Folder(settings.data, campaign).erase()
        storage.campaigns.forget_deleted()
        storage.jobs.renew_all()
