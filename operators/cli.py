"""The operator's commands of `fss-server`: their arguments. What they do is loaded when one of them is called."""

import argparse
from pathlib import Path

from client.program import Commands


def add_set_up(commands: Commands) -> None:
    init = commands.add_parser("init", help="write settings and tokens of one server")
    init.add_argument("folder", type=Path)
    init.add_argument("--role", type=int, choices=(0, 1), required=True)
    init.add_argument("--listen", default="0.0.0.0:8443", metavar="HOST:PORT")
    init.add_argument("--peer-url", required=True, metavar="https://HOST:PORT")
    init.add_argument("--peer-hash", metavar="HASH", help="the hash that the other server's init printed")
    init.add_argument("--peer-key", metavar="KEY", help="the signing key that it printed")
    init.set_defaults(run=_run, command="init")

    pair = commands.add_parser("init-pair", help="two local servers with a development CA")
    pair.add_argument("folder", type=Path)
    pair.add_argument("--hosts", nargs=2, default=("127.0.0.1", "127.0.0.1"), metavar=("HOST0", "HOST1"))
    pair.add_argument("--ports", type=int, nargs=2, default=(8440, 8441), metavar=("PORT0", "PORT1"))
    pair.set_defaults(run=_run, command="init_pair")


def add_campaign(commands: Commands) -> None:
    campaign = commands.add_parser("campaign", help="create, seal and watch campaigns at both servers")
    campaign.add_argument("--operator", type=Path, metavar="FILE", help="default: $FSS_OPERATOR or operator.toml")
    campaign.set_defaults(run=_run)
    actions = campaign.add_subparsers(required=True, metavar="COMMAND")
    create = actions.add_parser("create", help="from a TOML file")
    create.add_argument("file", type=Path)
    create.add_argument("--invitations", type=int, default=0, metavar="N")
    create.set_defaults(command="create")
    new = actions.add_parser("new", help="ask what is to be measured, and write a TOML file")
    new.add_argument("file", type=Path)
    new.set_defaults(command="new")
    check = actions.add_parser("check", help="what a TOML file's campaign will be able to answer, and what it costs")
    check.add_argument("file", type=Path)
    check.add_argument("--n", type=int, nargs="+", help="values to expect; default: min_uploads and ten times as many")
    check.set_defaults(command="check")
    actions.add_parser("list", help="all campaigns").set_defaults(command="list_all")
    for name, what in (
        ("show", "a campaign's description"),
        ("status", "where it stands on both servers"),
        ("seal", "fix the set of uploads and evaluate"),
        ("confirm", "erase the uploads that sealing left out"),
        ("export", "description and curve, as files"),
        ("delete", "erase keys and noise; the id is never used again"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument("id")
        action.set_defaults(command=name)
        if name == "export":
            action.add_argument("--out", type=Path, required=True, metavar="FOLDER")
            action.add_argument("--analyst-token-file", type=Path, required=True)
        if name == "delete":
            action.add_argument("--yes", action="store_true", help="do not ask")


def _run(args: argparse.Namespace) -> int:
    from operators import commands

    code: int = getattr(commands, args.command)(args)
    return code
