"""`fss-server backup` and `restore`: one folder with all that one server cannot make again.

A backup is taken while the server runs: SQLite's own copy is one moment of the database, and what lies beside it can be
made again from it or is only ever added to. Restoring refuses what would publish a second time: a database that is
older than a sealing that this server or the other one knows of.
"""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import httpx

from campaign.errors import PeerUnavailable, Problem, Refused, UnknownCampaign, parse_problem
from campaign.files import sync_directory, write_durably
from campaign.reading import parse_json
from campaign.spec import TIME_FORMAT, to_base64url
from client import https
from client.program import BadSettings
from servers.settings import Settings
from servers.storage.database import lock, needs_to_be_alone
from servers.storage.objects import Folder, file_digest
from servers.storage.storage import Storage

FORMAT = "fss-ecdf backup 1"
_FIXED = ("checking", "sealed")
# Of the folders of campaigns and of their waves, whose keys may be erased; all else follows from the database.
_OF_WAVES = ("evidence-*", "messages-*", "noised-*", "release-*")
_KEPT = ("*/evidence-*", "*/messages-*", *(f"*/wave-*/{pattern}" for pattern in _OF_WAVES))

States = dict[tuple[bytes, int], str]  # of each campaign's waves


def backup(settings: Settings, config: Path, out: Path, now: datetime) -> list[str]:
    """Into a new folder, for its owner only; returns the names of what is in it."""
    if out.exists():
        raise BadSettings(f"{out} exists already; a backup is never overwritten")
    source = _database(settings)
    if not source.is_file():
        raise BadSettings(f"{source} does not exist; this server has not been started yet")
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)
    _copy_database(source, partial / "server.db")
    for file in (config, settings.identity_file, settings.peer.token_file, settings.peer.ca, settings.tls.certificate):
        _copy(file, partial / "settings" / file.name)
    for pattern in _KEPT:
        for path in settings.data.glob(pattern):
            for file in [path] if path.is_file() else path.iterdir():
                _copy(file, partial / "files" / file.relative_to(settings.data))
    files = {
        str(path.relative_to(partial)): file_digest(path).hex() for path in sorted(partial.rglob("*")) if path.is_file()
    }
    about = {"format": FORMAT, "role": settings.role, "at": now.strftime(TIME_FORMAT), "version": version("fss-ecdf")}
    write_durably(partial / "manifest.json", json.dumps({**about, "files": files}, indent=1).encode())
    partial.rename(out)
    sync_directory(out.parent)
    return sorted(files)


def restore(settings: Settings, folder: Path) -> str:
    """Put a backup in place of this server's data, or refuse; returns when the backup was made."""
    about = _checked(folder, settings)
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock(settings.data):  # or: another server runs on it
        states, target = _states(folder / "server.db"), _database(settings)
        deleted: list[bytes] = []
        with suppress(sqlite3.DatabaseError):  # one that is damaged or missing says nothing; the other server does
            _refuse_older(states, _states(target), "this server's present database")
            deleted = _deleted(target)
        _refuse_older(states, _peer_states(settings, states), "the other server")
        _replace(folder, settings, target)
        _delete_again(settings, deleted)
    return str(about["at"])


def _database(settings: Settings) -> Path:
    if not needs_to_be_alone(settings.database_url):
        raise BadSettings(
            "this server's database is PostgreSQL, which has backups of its own (pg_basebackup, archived WAL); "
            "docs/scale.md says what else belongs to one, and what to look at before one is restored"
        )
    return Path(settings.database_url.removeprefix("sqlite:///"))


def _copy_database(source: Path, target: Path) -> None:
    target.touch(mode=0o600)
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
        verdict = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if verdict != "ok":
        raise Problem(f"the database is damaged ({verdict}); this backup is worth nothing, keep the one before it")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target.touch(mode=0o600)
    target.write_bytes(source.read_bytes())


def _checked(folder: Path, settings: Settings) -> dict[str, object]:
    """A backup of this server, whole."""
    try:
        about = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError):
        about = {}
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise BadSettings(f"{folder}: this is not a complete backup that fss-server backup made")
    if about["role"] != settings.role:
        raise BadSettings(
            f"{folder}: this is a backup of server {about['role']}, and the settings are server {settings.role}'s"
        )
    for name, digest in about["files"].items():
        path = folder / name
        if not path.is_file() or file_digest(path).hex() != digest:
            raise BadSettings(f"{path}: missing or changed since the backup was made; take another backup")
    kept = folder / "settings" / settings.identity_file.name
    if kept.read_bytes() != settings.identity_file.read_bytes():
        raise BadSettings(
            f"{settings.identity_file} is not the identity that the backup was made with; copy {kept} there first, "
            "or its campaigns cannot go on"
        )
    return about


def _states(path: Path) -> States:
    """Where each wave of a database's campaigns stands."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT campaign, number, state FROM waves").fetchall()
        return {(campaign, number): state for campaign, number, state in rows}


def _deleted(path: Path) -> list[bytes]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return [row[0] for row in db.execute("SELECT id FROM campaigns WHERE deleted").fetchall()]


def _delete_again(settings: Settings, deleted: list[bytes]) -> None:
    """What was deleted since the backup stays deleted."""
    storage = Storage(settings.database_url)
    try:
        for campaign in deleted:
            with suppress(UnknownCampaign):
                storage.campaigns.delete(campaign)
                Folder(settings.data, campaign).erase()
        storage.campaigns.forget_deleted()
    finally:
        storage.close()


def _peer_states(settings: Settings, states: States) -> States:
    """What the other server says of campaigns that are not fixed in the backup. It must answer: it alone knows."""
    options = https.options(settings.peer_token(), settings.peer.ca, settings.peer.timeout_s)
    found: States = {}
    with httpx.Client(base_url=str(settings.peer.url), **options) as client:
        for campaign in {campaign for (campaign, _), state in states.items() if state not in _FIXED}:
            try:
                answer = client.get(f"/v1/peer/campaigns/{to_base64url(campaign)}")
            except httpx.HTTPError as error:
                raise PeerUnavailable(
                    f"the other server cannot be asked ({type(error).__name__}), and only it knows whether a campaign "
                    "was sealed after this backup; restore when it answers"
                ) from None
            if answer.status_code == 200:
                about = parse_json(answer.content)
                for wave in about.get("waves", [{"number": 0, "state": about["state"]}]):
                    found[campaign, int(wave["number"])] = str(wave["state"])
                continue
            problem = parse_problem(answer.content)
            if problem is None or problem.code not in ("unknown-campaign", "campaign-deleted"):
                raise PeerUnavailable("the other server does not say where its campaigns stand; restore when it does")
    return found


def _refuse_older(states: States, known: States, who: str) -> None:
    ours = {campaign for campaign, _ in states}
    for (campaign, wave), fixed in known.items():
        state = states.get((campaign, wave), "unknown")
        if campaign in ours and fixed in _FIXED and state not in _FIXED:
            what = f"wave {wave} of campaign" if wave else "campaign"
            raise Refused(
                f"{what} {to_base64url(campaign)} is {state} in this backup, but {who} has it {fixed}: to "
                "seal it once more would be a second release about the same people. Take a newer backup, or delete "
                "the campaign at the other server first"
            )


def _replace(folder: Path, settings: Settings, target: Path) -> None:
    """The old database stays beside the new one, under another name, until the operator erases it."""
    fresh = target.with_name(target.name + ".restored")
    _copy(folder / "server.db", fresh)
    if target.is_file():
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(target)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        target.rename(target.with_name(target.name + ".before-restore"))
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    fresh.rename(target)
    for path in sorted((folder / "files").rglob("*")):
        if path.is_file():
            _copy(path, settings.data / path.relative_to(folder / "files"))
    sync_directory(target.parent)
