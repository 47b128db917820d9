"""`fss-server doctor`: everything that can be wrong with one server, looked at from its own machine."""

import shutil
import sqlite3
import ssl
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path

import httpx
from alembic.runtime.migration import MigrationContext
from cryptography import x509
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from fss import backend
from fss_ecdf.campaign.campaign import TIME_FORMAT, to_base64url
from fss_ecdf.campaign.errors import Problem, parse_problem
from fss_ecdf.campaign.parsing import parse_json
from fss_ecdf.campaign.text import all_shown
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.server_identity import Identity
from servers.certificates import expiry
from servers.hpke_keys import is_lost
from servers.maintenance.backup import LAST
from servers.peer import PeerForCommands
from servers.rollback import RollbackGuard
from servers.settings import Cluster, Settings, load
from servers.storage import dialects
from servers.storage.database import Damaged, needs_to_be_alone, open_engine
from servers.storage.dump import sqlite_file
from servers.storage.migrate import SCHEMA, is_expanded, is_outdated, newest
from servers.storage.storage import Storage

OK, WARNING, WRONG = "ok", "warning", "WRONG"
WARN_DAYS, WARN_BYTES, LEAST_BYTES = 30, 5 << 30, 200 << 20
WARN_SKEW_S, MOST_SKEW_S = 5, 60
WARN_BACKUP_DAYS = 2
# What a start needs. The other server, its certificates, the cluster and backups may be mended while this one runs; on
# hold it answers, and says why.
NEEDED = frozenset(("settings", "permissions", "certificate", "disk", "database"))


@dataclass(frozen=True)
class Diagnosis:
    what: str
    verdict: str
    detail: str


def examine(config: Path, now: datetime, *, offline: bool = False) -> Iterator[Diagnosis]:
    """All of it; offline, what can be seen without the other server."""
    try:
        settings = load(config)
        identity = Identity.load(settings.identity_file, settings.server)
    except UsageError as error:
        yield Diagnosis("settings", WRONG, str(error))
        return
    yield Diagnosis("settings", OK, f"server {settings.server}, {config}")
    yield Diagnosis("version", OK, f"fss-ecdf {version('fss-ecdf')}, {backend()} kernel")
    yield permissions(settings, config)
    yield certificate("certificate", settings.tls.certificate, now)
    yield certificate("peer's CA", settings.peer.ca, now)
    yield disk(shutil.disk_usage(settings.data if settings.data.exists() else config.parent).free)
    looked = database(settings)
    yield looked
    if looked.verdict == OK:
        yield hpke_keys(settings, identity)
    yield history(settings, identity, now)
    yield last_backup(settings, now)
    if settings.cluster is not None:
        yield cluster(settings.cluster)
    if not offline:
        yield served(settings)
        yield from peer(settings, identity, now)


def permissions(settings: Settings, config: Path) -> Diagnosis:
    """Of folders; those of secret files are part of the settings' own check."""
    mounted = settings.secrets == "group"  # that folder is the kubelet's, and the files in it were looked at
    for path in (settings.data,) if mounted else (config.parent, settings.data):
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return Diagnosis("permissions", WRONG, f"{path} can be read by others: chmod 700 {path}")
    who = (
        "a group of this process can read secrets, and only the owner data"
        if mounted
        else "only their owner can read settings and data"
    )
    return Diagnosis("permissions", OK, who)


def certificate(what: str, path: Path, now: datetime) -> Diagnosis:
    try:
        ends = expiry(path)
    except ValueError:
        return Diagnosis(what, WRONG, f"{path} is not a certificate in PEM")
    days, when = (ends - now).days, ends.strftime("%Y-%m-%d")
    if ends <= now:
        return Diagnosis(what, WRONG, f"ended on {when}; put a new one into {path} and reload")
    renew = f"; put a new one into {path} before that and reload"
    return Diagnosis(
        what, WARNING if days < WARN_DAYS else OK, f"until {when}, {days} days" + renew * (days < WARN_DAYS)
    )


def disk(free: int) -> Diagnosis:
    room = f"{free / (1 << 30):.1f} GiB free"
    if free < LEAST_BYTES:
        return Diagnosis("disk", WRONG, f"{room}; uploads will soon be refused (storage-full): make room")
    return Diagnosis("disk", WARNING if free < WARN_BYTES else OK, room + "; make room soon" * (free < WARN_BYTES))


def database(settings: Settings) -> Diagnosis:
    if not needs_to_be_alone(settings.database_url):
        return _elsewhere(settings)
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    if not path.exists():
        return Diagnosis("database", OK, "none yet; the first start makes it")
    head = newest()
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            found = db.execute(SCHEMA).fetchone()[0]
    except sqlite3.DatabaseError as error:
        return Diagnosis(
            "database", WRONG, f"{path} cannot be read ({error}); restore this server from its newest backup"
        )
    if verdict != "ok":
        return Diagnosis(
            "database", WRONG, f"{path} is damaged ({verdict}); restore this server from its newest backup"
        )
    if found != head:
        return schema(found, str(path))
    return Diagnosis("database", OK, f"whole, schema {found}, {path.stat().st_size / (1 << 20):.1f} MiB")


def schema(found: str | None, where: str) -> Diagnosis:
    """Of a database whose schema is not this program's."""
    about = f"{where}: schema {found or 'none yet'}, this program's is {newest()}"
    if found is None or is_outdated(found):
        return Diagnosis("database", WARNING, f"{about}; the next start changes it")
    if is_expanded(found):
        return Diagnosis(
            "database", WARNING, f"{about}, which may use it; bring this program to the newer version, too"
        )
    return Diagnosis("database", WRONG, f"{about}, which is too old for it; run the newer version")


def history(settings: Settings, identity: Identity, now: datetime) -> Diagnosis:
    """Does the database have all that this server has shown to others?"""
    if needs_to_be_alone(settings.database_url) and not sqlite_file(settings.database_url).exists():
        return Diagnosis("history", OK, "none yet")
    try:
        with closing(Storage(settings.database_url, look=True)) as storage:
            key = settings.tokens.peer_signing_key
            guard = RollbackGuard(storage.history, identity, key, settings.data, lambda: now)
            guard.look()
            said, newest = guard.shown(), guard.newest().place
    except (DBAPIError, Damaged, Problem) as error:
        return Diagnosis("history", WARNING, f"cannot be read ({type(error).__name__})")
    if "on_hold" in said:
        return Diagnosis("history", WRONG, f"on hold: {said['on_hold']}; fss-server recovery show says what to do")
    if "peer_rolled_back" in said:
        return Diagnosis("history", WRONG, f"the other server was rolled back: {said['peer_rolled_back']}")
    return Diagnosis("history", OK, f"at {newest}, and nothing is missing")


def hpke_keys(settings: Settings, identity: Identity) -> Diagnosis:
    """Whether uploads to every campaign can be read: each has a key of its own."""
    if needs_to_be_alone(settings.database_url) and not sqlite_file(settings.database_url).exists():
        return Diagnosis("HPKE keys", OK, "no campaign yet")
    storage = Storage(settings.database_url, look=True)
    try:
        campaigns = [entry.campaign for entry in storage.campaigns.all()]
        lost = [to_base64url(one.id) for one in campaigns if is_lost(identity, storage, one)]
    finally:
        storage.close()
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return Diagnosis(
            "HPKE keys",
            WRONG,
            f"lost for campaign {lost[0]}{more}, so uploads to it are refused: restore identity file and database",
        )
    return Diagnosis("HPKE keys", OK, f"of {len(campaigns)} campaigns")


def last_backup(settings: Settings, now: datetime) -> Diagnosis:
    """By what `fss-server backup` leaves in the data folder; other backups are not known here."""
    try:
        made = datetime.strptime((settings.data / LAST).read_text().strip(), TIME_FORMAT).replace(tzinfo=UTC)
    except (FileNotFoundError, ValueError):
        return Diagnosis("backup", WARNING, "none was made here yet: fss-server backup")
    days = (now - made).total_seconds() / 86400
    old = days > WARN_BACKUP_DAYS
    detail = f"the last one is of {made.strftime('%Y-%m-%d %H:%M')} UTC"
    return Diagnosis("backup", WARNING if old else OK, detail + f", {days:.0f} days ago; does its timer run?" * old)


def cluster(about: Cluster) -> Diagnosis:
    """Does the Dask scheduler answer, and has it workers?"""
    from servers.compute.cluster import count_workers

    try:
        workers = count_workers(about)
    except (OSError, TimeoutError) as error:
        return Diagnosis("cluster", WRONG, f"{about.scheduler} does not answer ({type(error).__name__})")
    if not workers:
        return Diagnosis("cluster", WRONG, f"{about.scheduler} has no workers; curves wait until there are some")
    return Diagnosis("cluster", OK, f"{about.scheduler} has {workers} workers")


def served(settings: Settings) -> Diagnosis:
    """Whether the certificate that is shown is the one in its file."""
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104
    try:
        shown = ssl.get_server_certificate((host, settings.port), timeout=5)
    except (OSError, ValueError) as error:
        return Diagnosis(
            "served", WARNING, f"nothing answers on {settings.listen} ({type(error).__name__}); is it started?"
        )
    known = x509.load_pem_x509_certificate(settings.tls.certificate.read_bytes())
    if x509.load_pem_x509_certificate(shown.encode()) != known:
        return Diagnosis(
            "served", WARNING, "another certificate is shown than the one in its file: reload; or a proxy has it"
        )
    return Diagnosis("served", OK, f"{settings.listen} shows the certificate in its file")


def _elsewhere(settings: Settings) -> Diagnosis:
    """A database that is a server of its own."""
    try:
        engine = open_engine(settings.database_url)
    except Damaged as error:
        return Diagnosis("database", WRONG, str(error))
    head, where = newest(), engine.url.render_as_string(hide_password=True)
    try:
        wrong = dialects.of(engine).damage(engine)
        with engine.connect() as db:
            found = MigrationContext.configure(db).get_current_revision()
            size = int(db.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
            free = _free(db)
    except DBAPIError as error:
        return Diagnosis("database", WRONG, f"{where} cannot be reached ({type(error.orig).__name__})")
    finally:
        engine.dispose()
    if wrong is not None:
        return Diagnosis("database", WRONG, f"{where}: {wrong}")
    if found != head:
        return schema(found, where)
    if free is not None and free < WARN_BYTES:
        verdict = WRONG if free < LEAST_BYTES else WARNING
        return Diagnosis("database", verdict, f"{where}: {free / (1 << 30):.1f} GiB free on its disk; make room")
    room = "its disk is on another machine: watch it there" if free is None else f"{free / (1 << 30):.1f} GiB free"
    return Diagnosis("database", OK, f"{where}, schema {found}, {size / (1 << 20):.1f} MiB; {room}")


def _free(db: Connection) -> int | None:
    """Room on PostgreSQL's disk, if that is this machine's and its folder is told to this user."""
    try:
        folder = Path(str(db.exec_driver_sql("SHOW data_directory").scalar_one()))
        return shutil.disk_usage(folder).free
    except (DBAPIError, OSError):
        return None


def peer(settings: Settings, identity: Identity, now: datetime) -> Iterator[Diagnosis]:
    try:
        with closing(PeerForCommands(settings)) as other:
            answer = other.get("/v1/peer/about")
    except httpx.HTTPError as error:
        why = "its certificate is not of peer-ca.pem" if "CERTIFICATE" in str(error) else type(error).__name__
        yield Diagnosis("peer", WRONG, f"{settings.peer.url} cannot be reached ({why})")
        return
    except Problem as problem:
        yield Diagnosis("peer", WRONG, problem.detail)
        return
    yield clock(answer.headers.get("date", ""), now)
    if answer.status_code != 200:
        refusal = parse_problem(answer.content)
        detail = refusal.detail if refusal else f"answered {answer.status_code}"
        yield Diagnosis("peer", WRONG, f"{detail}: is the hash of our peer.token in its [tokens] peer?")
        return
    yield known(settings, identity, answer.content)


def known(settings: Settings, identity: Identity, content: bytes) -> Diagnosis:
    """Who the other server says it is, and whom it takes us for."""
    try:
        about = all_shown(parse_json(content))
        role, runs, key, ours = (str(about[name]) for name in ("server", "version", "signing_key", "peer_signing_key"))
    except (ValueError, KeyError, TypeError):
        return Diagnosis("peer", WRONG, "its answer is not well-formed; does it run another version?")
    if role != str(1 - settings.server):
        return Diagnosis("peer", WRONG, f"both are server {role}: one must be 0, the other 1")
    if key != settings.tokens.peer_signing_key:
        return Diagnosis(
            "peer", WRONG, f'it signs with another key: [tokens] peer_signing_key = "{key}" would be right'
        )
    if ours != to_base64url(identity.signing_key):
        return Diagnosis("peer", WRONG, "it knows another signing key of ours; it needs the one that our init printed")
    if runs != version("fss-ecdf"):
        return Diagnosis(
            "peer", WARNING, f"it runs fss-ecdf {runs}, this is {version('fss-ecdf')}: upgrade one of them"
        )
    return Diagnosis("peer", OK, f"{settings.peer.url} is server {role}, fss-ecdf {runs}")


def clock(date: str, now: datetime) -> Diagnosis:
    """Against the other server's, to the second: closing times are those of each server's own clock."""
    try:
        skew = abs((parsedate_to_datetime(date).astimezone(UTC) - now).total_seconds())
    except (TypeError, ValueError):
        return Diagnosis("clock", WARNING, "the other server did not say what time it is")
    detail = f"within {max(1, round(skew))} s of the other server's"
    if skew <= WARN_SKEW_S:
        return Diagnosis("clock", OK, detail)
    detail = f"{skew:.0f} s apart from the other server's; set both by NTP"
    return Diagnosis("clock", WRONG if skew > MOST_SKEW_S else WARNING, detail)
