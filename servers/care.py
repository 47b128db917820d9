"""The commands of `fss-server` that keep one server well, on its own machine. What they need is loaded late."""

import argparse
import sys
from pathlib import Path

from client.program import BAD_DATA, OK, REFUSED, BadSettings, Commands, add_command


def add_commands(commands: Commands) -> None:
    """What keeps one server well, on its own machine."""
    doctor = add_command(commands, "doctor", "is everything as it should be? Exit code 77 if something is wrong")
    doctor.add_argument("--offline", action="store_true", help="do not ask the other server")
    backup = add_command(commands, "backup", "all that this server cannot make again, while it runs")
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
    log = add_command(commands, "log", "what operators did at this server")
    export = add_command(log.add_subparsers(required=True, metavar="COMMAND"), "export", "as JSON lines, checked")
    export.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
    export.set_defaults(run=_export_log)


def _doctor(args: argparse.Namespace) -> int:
    from servers.doctor import WRONG, examine
    from servers.run import now

    found = []
    for finding in examine(args.config, now(), offline=args.offline):
        print(f"{finding.what:<12} {finding.verdict:<8} {finding.detail}", flush=True)
        found.append(finding.verdict)
    return REFUSED if WRONG in found else OK


def _backup(args: argparse.Namespace) -> int:
    from servers.backup import backup
    from servers.run import now
    from servers.settings import load

    names = backup(load(args.config), args.config, args.out, now())
    print(
        f"wrote {len(names)} files into {args.out}: keys and noise seeds are in them, so encrypt it before it travels"
    )
    print("the TLS key is not in it; keep that where your other keys are")
    return OK


def _restore(args: argparse.Namespace) -> int:
    from servers.restore import look, restore
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
        raise BadSettings(str(error)) from None
    if looked.is_behind:
        print(f"the other server has seen {looked.seen} of this server's history, and the backup ends with")
        print(f"{looked.backup.manifest.newest}: it will be on hold until you decide (fss-server recovery show)")
    if not args.check:
        print(f"\nnext: fss-server run --config {args.config}\n      parties send again what came after the backup")
    return OK


def _show(args: argparse.Namespace) -> int:
    from servers.recovery import show
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
    from servers.recovery import accept
    from servers.run import now
    from servers.settings import load

    place = accept(load(args.config), now())
    print(f"this server goes on from here, at {place} of its history; the other server will take it for that")
    print("parties send again what was lost; what was published before stays published, and its epsilon spent")
    return OK


def _rotate(args: argparse.Namespace) -> int:
    from servers.rotate import finish, rotate

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


def _export_log(args: argparse.Namespace) -> int:
    import json

    from servers.settings import load
    from servers.storage.actions import Actions
    from servers.storage.database import open_engine

    engine, last = open_engine(load(args.config).database_url), "none"
    try:
        for number, action, link, whole in Actions(engine).all():
            row = {**vars(action), "about": json.loads(action.about)}
            print(json.dumps({"number": number, **row, "link": link.hex()}, ensure_ascii=False))
            if not whole:
                print(f"fss-server: action {number} or one before it was changed or removed", file=sys.stderr)
                return BAD_DATA
            last = link.hex()
    finally:
        engine.dispose()
    print(f"fss-server: the log is whole; its last link is {last}", file=sys.stderr)
    return OK
