"""The server's own commands of `fss-server`: running it, and asking whether it runs. What they need is loaded late."""

import argparse
import ssl
import sys
from functools import partial
from pathlib import Path

from fss_ecdf.campaign.errors import TryAgain
from fss_ecdf.cli.common import BAD_DATA, OK, TRY_LATER, USAGE, Commands, UsageError, add_command


def add_commands(commands: Commands) -> None:
    for name, what in (
        ("run", "run a whole server in one process"),
        ("api", "run one of several processes that answer requests, on one PostgreSQL"),
        ("worker", "run one of several background processes on the same PostgreSQL"),
    ):
        run = add_command(commands, name, what)
        run.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
        if name != "worker":
            run.add_argument("--listen", metavar="HOST:PORT", help="another address than the settings have")
        run.add_argument("--metrics", metavar="HOST:PORT", help="another address for metrics than the settings have")
        run.set_defaults(run=_run, what=name, listen=None)

    health = add_command(commands, "health", "does the server with these settings take requests? For health checks")
    health.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
    health.add_argument("--listen", metavar="HOST:PORT", help="another address than the settings have")
    health.add_argument(
        "--metrics",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help="ask where metrics are told, since work processes listen nowhere else; by default that of the settings",
    )
    health.set_defaults(run=_health)

    audit = add_command(commands, "audit", "check what one server signed and published against its keys and its noise")
    actions = audit.add_subparsers(required=True, metavar="COMMAND")
    for name, what in (
        ("export-keys", "write this server's keys, proofs and noise secrets of one campaign, for its auditor"),
        ("export-evidence", "write what the other server signed about one campaign, for that server's auditor"),
    ):
        action = add_command(actions, name, what)
        action.add_argument("id", help="the campaign")
        action.add_argument("--config", type=Path, required=True, metavar="FILE", help="its settings, server.toml")
        action.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder, to write into")
        action.set_defaults(run=_hand_over, what=name)
    verify = add_command(
        actions,
        "verify",
        "compute one server's check messages and shares again and compare them with what "
        "it signed: exit status 0 if it is honest, 3 if something is wrong, 4 if there is nothing to compare",
    )
    verify.add_argument("--keys", type=Path, required=True, metavar="FOLDER", help="what its audit export-keys wrote")
    verify.add_argument("--digest", required=True, help="of the campaign, as parties and analysts have it")
    verify.add_argument("--evidence", type=Path, required=True, metavar="FOLDER", help="of the other server")
    verify.set_defaults(run=_verify)


def _hand_over(args: argparse.Namespace) -> int:
    from servers.audit import export
    from servers.settings import load

    if args.what == "export-keys":
        export.keys(load(args.config), args.id, args.out)
        print(f"wrote keys, proofs and noise secrets of this server into {args.out}: for its auditor only, and never")
        print("together with those of the other server, since both together are everybody's values")
    else:
        export.evidence(load(args.config), args.id, args.out)
        print(f"wrote what the other server signed into {args.out}")
    print("next: fss-server audit verify --keys FOLDER --evidence FOLDER --digest DIGEST")
    return OK


def _verify(args: argparse.Namespace) -> int:
    from servers.audit.verdict import EXIT_STATUS, HONEST, WRONG, overall
    from servers.audit.verify import verify

    findings = verify(args.keys, args.evidence, args.digest)
    for finding in findings:
        print(f"{finding.what:<40} {finding}")
    verdict = overall(findings)
    wrong = sorted({finding.server for finding in findings if finding.verdict == WRONG and finding.server is not None})
    if verdict == HONEST:
        compared = sum(finding.numbers for finding in findings)
        print(f"honest: {compared} numbers were computed again; all of them are what was signed and published")
    elif verdict == WRONG:
        print(f"wrong: something is not right at server {' and at server '.join(map(str, wrong))}, as said above")
    else:
        print("nothing to compare: nothing is wrong, but not everything that was signed could be computed again")
    return EXIT_STATUS[verdict]


def _run(args: argparse.Namespace) -> int:
    from fss import BackendError
    from servers import run
    from servers.settings import load
    from servers.storage.database import Damaged

    try:
        getattr(run, args.what)(partial(load, args.config, listen=args.listen, metrics=args.metrics))
    except (BackendError, UsageError) as error:
        return _not_started(error, USAGE)
    except Damaged as error:
        return _not_started(error, BAD_DATA)
    except TryAgain as error:
        return _not_started(error, TRY_LATER)
    return OK


def _not_started(error: Exception, code: int) -> int:
    """One line for whoever types, one object for what collects logs."""
    from servers import log

    if sys.stderr.isatty():
        print(f"fss-server: {error}", file=sys.stderr)
    else:
        log.event("not-started", level="error", why=str(error), exit_code=code)
    return code


def _health(args: argparse.Namespace) -> int:
    """From the same machine, so the certificate's name is not checked: nothing secret is said."""
    import httpx

    from servers.settings import load

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    settings = load(args.config, listen=args.listen)
    address = settings.listen if args.metrics is None else args.metrics or settings.metrics.listen
    if address is None:
        raise UsageError("health --metrics: the settings have no metrics.listen; name the address")
    host, _, port = address.rpartition(":")
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    try:
        with httpx.Client(verify=context, timeout=5, trust_env=False) as client:
            answer = client.get(f"https://{host}:{port}/readyz")
    except httpx.HTTPError as error:
        print(f"fss-server: no answer ({type(error).__name__})", file=sys.stderr)
        return TRY_LATER
    print(answer.json().get("status", answer.status_code))
    return OK if answer.status_code == 200 else TRY_LATER
