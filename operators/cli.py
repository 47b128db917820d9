"""The operator's commands of `fss-server`: their arguments. What they do is loaded when one of them is called."""

import argparse
from pathlib import Path

from client.program import Commands, add_command


def add_set_up(commands: Commands) -> None:
    init = add_command(commands, "init", "write settings and tokens of one server")
    init.add_argument("folder", type=Path, help="a new folder for settings, tokens and identity")
    init.add_argument("--role", type=int, choices=(0, 1), required=True, help="which of the two servers")
    init.add_argument("--listen", default="0.0.0.0:8443", metavar="HOST:PORT", help="default: %(default)s")
    init.add_argument("--url", metavar="https://HOST:PORT", help="where others reach it; writes operator.toml, too")
    init.add_argument("--peer-url", required=True, metavar="https://HOST:PORT", help="the other server's address")
    init.add_argument("--peer-hash", metavar="HASH", help="the hash that the other server's init printed")
    init.add_argument("--peer-key", metavar="KEY", help="the signing key that it printed")
    init.set_defaults(run=_run, command="init")

    pair = add_command(commands, "init-pair", "two local servers with a development CA")
    pair.add_argument("folder", type=Path, help="a new folder for both servers' settings and the CA")
    pair.add_argument(
        "--hosts",
        nargs=2,
        default=("127.0.0.1", "127.0.0.1"),
        metavar=("HOST0", "HOST1"),
        help="default: this machine only",
    )
    pair.add_argument(
        "--ports", type=int, nargs=2, default=(8440, 8441), metavar=("PORT0", "PORT1"), help="default: 8440 and 8441"
    )
    pair.set_defaults(run=_run, command="init_pair")


def add_campaign(commands: Commands) -> None:
    campaign = add_command(commands, "campaign", "create, seal and watch campaigns at both servers")
    campaign.add_argument("--operator", type=Path, metavar="FILE", help="default: $FSS_OPERATOR or operator.toml")
    campaign.set_defaults(run=_run)
    actions = campaign.add_subparsers(required=True, metavar="COMMAND")
    create = add_command(actions, "create", "from a TOML file")
    create.add_argument("file", type=Path, help="the campaign, in TOML")
    create.add_argument(
        "--invitations", type=int, default=0, metavar="N", help="how many to make, if it is by invitation"
    )
    create.set_defaults(command="create")
    propose = add_command(actions, "propose", "write a campaign for the operator of the other server to accept")
    propose.add_argument("file", type=Path, help="the campaign, in TOML")
    propose.add_argument(
        "--invitations", type=int, default=0, metavar="N", help="how many to make, if it is by invitation"
    )
    propose.set_defaults(command="propose")
    accept = add_command(actions, "accept", "read what the other operator proposes, and create it at your server")
    accept.add_argument("file", type=Path, help="the proposal that he sent you")
    accept.add_argument("--yes", action="store_true", help="do not ask")
    accept.set_defaults(command="accept")
    _add_sites(actions)
    new = add_command(actions, "new", "ask what is to be measured, and write a TOML file")
    new.add_argument("file", type=Path, help="to write; it must not exist")
    new.set_defaults(command="new")
    check = add_command(actions, "check", "what a TOML file's campaign will be able to answer, and what it costs")
    check.add_argument("file", type=Path, help="the campaign, in TOML")
    check.add_argument("--n", type=int, nargs="+", help="values to expect; default: min_uploads and ten times as many")
    check.add_argument(
        "--proportions", type=float, nargs="+", metavar="P", help="expected proportion of each stratum, like 0.9 0.1"
    )
    check.set_defaults(command="check")
    add_command(actions, "list", "all campaigns").set_defaults(command="list_all")
    for name, what in (
        ("show", "a campaign's description"),
        ("status", "where it stands on both servers"),
        ("seal", "fix the set of uploads and evaluate"),
        ("retract", "take your word for sealing back, while the other operator has not given his"),
        ("reopen", "undo a freeze that no sealing followed, at both servers"),
        ("confirm", "erase the uploads that sealing left out"),
        ("export", "description and curve, as files"),
        ("page", "the page on which parties take part, as one file"),
        ("delete", "erase keys and noise; the id is never used again"),
    ):
        action = add_command(actions, name, what)
        action.add_argument("id", help="the campaign")
        action.set_defaults(command=name)
        if name == "seal":
            action.add_argument("--wave", type=int, metavar="N", help="which wave to close; default: the open one")
        if name == "export":
            action.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="to write into")
            action.add_argument("--analyst-token-file", type=Path, required=True, metavar="FILE", help="to ask with")
        if name == "page":
            action.add_argument("--out", type=Path, required=True, metavar="FILE", help="to write")
            action.add_argument(
                "--urls", nargs=2, metavar="https://HOST", help="where parties reach the servers, if not where you do"
            )
        if name == "delete":
            action.add_argument("--yes", action="store_true", help="do not ask")


def add_console(commands: Commands) -> None:
    console = add_command(commands, "console", "both servers and their campaigns in a browser on this machine")
    console.add_argument("--operator", type=Path, metavar="FILE", help="default: $FSS_OPERATOR or operator.toml")
    console.add_argument("--port", type=int, default=0, help="default: one that is free")
    console.add_argument(
        "--out", type=Path, default=Path(), metavar="FOLDER", help="for invitations of sites; default: this folder"
    )
    console.set_defaults(run=_console)


def _console(args: argparse.Namespace) -> int:
    from operators.console import console

    return console(args)


def _add_sites(campaign: Commands) -> None:
    sites = add_command(campaign, "sites", "hospitals, say: who may send values of many people, and how many")
    sites.set_defaults(command="change_sites")
    actions = sites.add_subparsers(required=True, metavar="COMMAND")
    add = add_command(actions, "add", "admit sites, and write an invitation for each")
    add.add_argument("id", help="the campaign")
    add.add_argument("label", nargs="*", help="what a site is called")
    add.add_argument("--csv", type=Path, metavar="FILE", help="labels, in the first column")
    add.add_argument("--quota", type=int, required=True, metavar="N", help="uploads that each may send")
    add.add_argument("--out", type=Path, metavar="FOLDER", help="for invitations; default: sites-ID")
    add.set_defaults(action="add")
    every = add_command(actions, "list", "labels, states, uploads and quotas")
    every.add_argument("id", help="the campaign")
    every.set_defaults(action="list_all")
    for name, what in (
        ("pause", "take nothing new from a site for now"),
        ("resume", "take its uploads again"),
        ("revoke", "its token opens nothing any more"),
        ("quota", "let it send more or fewer"),
        ("rotate", "another token in place of one that was lost or seen"),
    ):
        action = add_command(actions, name, what)
        action.add_argument("id", help="the campaign")
        action.add_argument("site", help="its label or id")
        action.set_defaults(action="rotate" if name == "rotate" else "change", change=name)
        if name == "revoke":
            action.add_argument("--withdraw", action="store_true", help="erase what it sent, before anything is sealed")
            action.add_argument("--yes", action="store_true", help="do not ask")
        if name == "quota":
            action.add_argument("uploads", type=int, metavar="N", help="how many it may send in all")
        if name == "rotate":
            action.add_argument("--out", type=Path, metavar="FOLDER", help="for the invitation; default: sites-ID")
    accept = add_command(actions, "accept", "do what the other operator decided about sites")
    accept.add_argument("file", type=Path, help="what he sent you")
    accept.add_argument("--yes", action="store_true", help="do not ask")
    accept.set_defaults(action="accept")


def _run(args: argparse.Namespace) -> int:
    from operators import commands

    code: int = getattr(commands, args.command)(args)
    return code
