"""The server's own commands of `fss-server`: running it, and asking whether it runs. What they need is loaded late."""

import argparse
import ssl
import sys
from pathlib import Path

from client.program import BAD_DATA, OK, TRY_LATER, BadSettings, Commands


def add_commands(commands: Commands) -> None:
    run = commands.add_parser("run", help="serve")
    run.add_argument("--config", type=Path, required=True, metavar="FILE")
    run.set_defaults(run=_run)

    health = commands.add_parser("health", help="does the server with these settings take requests? For health checks")
    health.add_argument("--config", type=Path, required=True, metavar="FILE")
    health.set_defaults(run=_health)


def _run(args: argparse.Namespace) -> int:
    from fss import BackendError
    from servers.run import run
    from servers.settings import load
    from servers.storage.database import Damaged

    try:
        run(load(args.config))
    except BackendError as error:
        raise BadSettings(str(error)) from None
    except Damaged as error:
        print(f"fss-server: {error}", file=sys.stderr)
        return BAD_DATA
    return OK


def _health(args: argparse.Namespace) -> int:
    """From the same machine, so the certificate's name is not checked: nothing secret is said."""
    import httpx

    from servers.settings import load

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    settings = load(args.config)
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104
    try:
        with httpx.Client(verify=context, timeout=5, trust_env=False) as client:
            answer = client.get(f"https://{host}:{settings.port}/readyz")
    except httpx.HTTPError as error:
        print(f"fss-server: no answer ({type(error).__name__})", file=sys.stderr)
        return TRY_LATER
    print(answer.json().get("status", answer.status_code))
    return OK if answer.status_code == 200 else TRY_LATER
