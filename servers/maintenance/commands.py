"""The commands of `fss-server` that keep one server well, on its own machine. What they need is loaded late."""

import argparse
import sys
from pathlib import Path

from fss_ecdf.cli.common import BAD_DATA, OK, REFUSED, Commands, UsageError, add_command


def add_commands(commands: Commands) -> None:
    """What keeps one server well, on its own machine."""
    doctor = add_command(
        commands,
        "doctor",
        "check settings, certificates, disk, database and the other server; exit status 77 on failure",
    )
    doctor.add_argument("--offline", action="store_true", help="do not ask the other server")
    doctor.add_argument(
        "--before-start",
        action="store_true",
        help="offline, and exit code 77 only for what keeps this server from running, not for faults of the other one",
    )
    backup = add_command(commands, "backup", "write a backup of this server, which may be running")
    backup.add_argument("out", type=Path, metavar="FOLDER", help="a new folder, to write into")
    restore = add_command(commands, "restore", "put a backup in place; refuses one that is older than a sealing")
    restore.add_argument("folder", type=Path, metavar="FOLDER", help="what backup wrote")
    restore.add_argument("--check", action="store_true", help="look at everything and change nothing")
    recovery = add_command(commands, "recovery", "decide about a database that is older than what this server did")
    choices = recovery.add_subparsers(required=True, metavar="COMMAND")
    show = add_command(choices, "show", "is this server, or the other one, on hold, and why? Exit code 77 if so")
    accept = add_command(choices, "accept", "go on with the database as it is; what it does not have is lost")
    each = ((doctor, _doctor), (backup, _backup), (restore, _restore), (show, _show), (accept, _accept))
    for parser, work in each:
        parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
        parser.set_defaults(run=work)
    tokens = add_command(commands, "tokens", "exchange this server's tokens")
    actions = tokens.add_subparsers(required=True, metavar="COMMAND")
    rotate = add_command(actions, "rotate", "a new token; the old one is good until --finish")
    rotate.add_argument("kind", choices=("operator", "analyst", "peer", "metrics"), help="whose")
    rotate.add_argument("--finish", action="store_true", help="everybody has the new one: the old one opens nothing")
    rotate.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
    rotate.set_defaults(run=_rotate)
    migrate = add_command(commands, "migrate", "bring the database to this program's schema; every start does it, too")
    migrate.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
    migrate.add_argument("--check", action="store_true", help="change nothing, and say what would be done")
    migrate.set_defaults(run=_migrate)
    log = add_command(commands, "action-log", "show what operators did on this server")
    export = add_command(log.add_subparsers(required=True, metavar="COMMAND"), "export", "as JSON lines, checked")
    export.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
    export.set_defaults(run=_export_log)


def _doctor(args: argparse.Namespace) -> int:
    from servers.maintenance.diagnostics import NEEDED, WRONG, examine
    from servers.run import now

    wrong = []
    for finding in examine(args.config, now(), offline=args.offline or args.before_start):
        print(f"{finding.what:<12} {finding.verdict:<8} {finding.detail}", flush=True)
        wrong += [finding.what] if finding.verdict == WRONG else []
    return REFUSED if (NEEDED.intersection(wrong) if args.before_start else wrong) else OK


def _backup(args: argparse.Namespace) -> int:
    from servers.maintenance.backup import backup
    from servers.run import now
    from servers.settings import load

    names = backup(load(args.config), args.config, args.out, now())
    print(
        f"wrote {len(names)} files into {args.out}: keys and noise seeds are in them, so encrypt it before it travels"
    )
    print("the TLS key is not in it; keep that where your other keys are")
    return OK


def _restore(args: argparse.Namespace) -> int:
    from servers.maintenance.restore import look, restore
    from servers.settings import load
    from servers.storage.database import Damaged

    try:
        if args.check:
            looked = look(load(args.config), args.folder)
            made = looked.backup.manifest
            print(f"signed, whole, and can be restored: {len(made.files)} files of {made.at}, {made.database}")
        else:
            looked, kept = restore(load(args.config), args.folder)
            print(f"restored the backup of {looked.backup.manifest.at}; the database from before is kept {kept}")
    except Damaged as error:
        raise UsageError(str(error)) from None
    if looked.is_behind:
        print(f"the other server has seen {looked.seen} of this server's history, and the backup ends with")
        print(f"{looked.backup.manifest.newest}: it will be on hold until you decide (fss-server recovery show)")
    if not args.check:
        print(f"\nnext: fss-server run --config {args.config}\n      parties send again what came after the backup")
    return OK


def _show(args: argparse.Namespace) -> int:
    from servers.maintenance.recovery import show
    from servers.run import now
    from servers.settings import load

    found = show(load(args.config), now())
    if found.peer_problem is not None:
        print(f"the other server was rolled back: {found.peer_problem}\nits operator has to decide")
    if found.why is None:
        seen = "nothing" if found.peer_seen is None else found.peer_seen
        print(f"not on hold: this server's history is at {found.newest}, the other server has seen {seen}")
        return OK if found.peer_problem is None else REFUSED
    print(f"on hold{'' if found.since is None else f' since {found.since}'}: {found.why}\n")
    print(
        "next: put a newer database in place (fss-server restore, or the other replica) and start again; or, if there"
    )
    print(f"      there is none, go on with this one: fss-server recovery accept --config {args.config}")
    return REFUSED


def _accept(args: argparse.Namespace) -> int:
    from servers.maintenance.recovery import accept
    from servers.run import now
    from servers.settings import load

    place = accept(load(args.config), now())
    print(f"this server goes on from here, at {place} of its history; the other server will take it for that")
    print("parties send again what was lost; what was published before stays published, and its epsilon spent")
    return OK


def _rotate(args: argparse.Namespace) -> int:
    from servers.maintenance.token_rotation import finish, rotate

    reload = "then let the server read it: kill -HUP, or systemctl reload fss-server"
    if args.finish:
        done = finish(args.kind, args.config)
        print(f"only the token in {done.path} is good from now on; {reload}")
        if args.kind == "peer":
            print(f'the other operator may leave the old one out of [tokens] then:\n     peer = "{done.hashes[0]}"')
        return OK
    done = rotate(args.kind, args.config)
    if args.kind == "peer":
        print(f"the new token waits in {done.path}; the other operator puts both into [tokens] of its server.toml,")
        print(f'and reloads:\n     peer = ["{done.hashes[0]}", "{done.hashes[1]}"]')
        print(f"then here: fss-server tokens rotate peer --finish --config {args.config}")
    else:
        print(f"the new token is in {done.path}, and the old one is good, too; {reload}")
        print(f"when everybody has it: fss-server tokens rotate {args.kind} --finish --config {args.config}")
    return OK


def _migrate(args: argparse.Namespace) -> int:
    from contextlib import closing

    from servers.settings import load
    from servers.storage.database import Damaged, lock, needs_to_be_alone
    from servers.storage.migrate import is_expanded, newest
    from servers.storage.storage import Storage

    settings = load(args.config)
    url = settings.database_url
    try:
        before = after = _schema(url)
        if not args.check:
            settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
            with lock(settings.data, shared=not needs_to_be_alone(url)), closing(Storage(url)):
                after = _schema(url)
    except Damaged as error:
        print(f"fss-server: {error}", file=sys.stderr)
        return BAD_DATA
    if after != before:
        print(f"the database had schema {before or 'none'} and has {after} now")
    elif after is not None and is_expanded(after):
        print(f"the database has schema {after} of a newer program; this one's is {newest()}, and may use it")
    else:
        print(f"the database has schema {after or 'none'}; this program's is {newest()}")
    return OK


def _schema(url: str) -> str | None:
    """That a database has; None if there is none yet. Raises Damaged where it cannot be asked."""
    from sqlalchemy.exc import DBAPIError

    from servers.storage.database import needs_to_be_alone, open_engine, unusable
    from servers.storage.dump import sqlite_file
    from servers.storage.migrate import schema_of

    if needs_to_be_alone(url) and not sqlite_file(url).exists():
        return None
    engine = open_engine(url)
    try:
        return schema_of(engine)
    except DBAPIError as error:
        raise unusable(engine, str(error.orig)) from None
    finally:
        engine.dispose()


def _export_log(args: argparse.Namespace) -> int:
    import json

    from servers.settings import load
    from servers.storage.action_log import ActionLog
    from servers.storage.database import open_engine

    engine, last = open_engine(load(args.config).database_url), "none"
    try:
        for number, action, digest, is_valid in ActionLog(engine).all():
            row = {**vars(action), "details": json.loads(action.details)}
            print(json.dumps({"number": number, **row, "digest": digest.hex()}, ensure_ascii=False))
            if not is_valid:
                print(f"fss-server: action {number} or one before it was changed or removed", file=sys.stderr)
                return BAD_DATA
            last = digest.hex()
    finally:
        engine.dispose()
    print(f"fss-server: the chain of the action log is valid; its last digest is {last}", file=sys.stderr)
    return OK
