"""The operator's commands of `fss-server`: their arguments. What they do is loaded when one of them is called."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from fss_ecdf.cli.common import Commands, add_command


def add_set_up(commands: Commands) -> None:
    init = add_command(commands, "init", "write settings, tokens and identity of one server")
    init.add_argument("folder", type=Path, help="a new folder for settings, tokens and identity")
    init.add_argument("--server", type=int, choices=(0, 1), required=True, help="the number of this server")
    init.add_argument("--listen", default="0.0.0.0:8443", metavar="HOST:PORT", help="default: %(default)s")
    init.add_argument("--url", metavar="https://HOST:PORT", help="the public address; also writes operator.toml")
    init.add_argument("--peer-url", required=True, metavar="https://HOST:PORT", help="the address of the other server")
    init.add_argument("--peer-hash", metavar="HASH", help="the token hash that the other server's init printed")
    init.add_argument("--peer-key", metavar="KEY", help="the signing key that the other server's init printed")
    init.set_defaults(run=_run, command="init")

    pair = add_command(commands, "init-pair", "set up two local servers with a development CA")
    pair.add_argument("folder", type=Path, help="a new folder for the settings of both servers and the CA")
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


def add_campaign(commands: Commands, supported: Callable[..., Iterable[tuple[str, str]]]) -> None:
    """`supported`: what `preview` prints of each statistic."""
    campaign = add_command(commands, "campaign", "create, watch and seal campaigns on both servers")
    campaign.set_defaults(run=_run)
    _add_operator_config(campaign)
    actions = campaign.add_subparsers(required=True, metavar="COMMAND")
    create = _add(actions, "create", "create a campaign from a TOML file")
    create.add_argument("file", type=Path, help="the campaign in TOML")
    _add_invitations(create)
    propose = _add(actions, "propose", "write a proposal that the operator of the other server can accept")
    propose.add_argument("file", type=Path, help="the campaign in TOML")
    _add_invitations(propose)
    accept = _add(actions, "accept", "show the other operator's proposal and create the campaign on your server")
    accept.add_argument("file", type=Path, help="the proposal file from the other operator")
    accept.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    _add_sites(actions)
    draft = _add(actions, "draft", "ask what to measure and write a TOML file")
    draft.add_argument("file", type=Path, help="the file to write; it must not exist")
    preview = _add(actions, "preview", "print the expected errors and the cost of a campaign; works offline")
    preview.set_defaults(supported=supported)
    preview.add_argument("file", type=Path, help="the campaign in TOML")
    preview.add_argument("--n", type=int, nargs="+", help="expected values; default: min_uploads and ten times that")
    preview.add_argument(
        "--proportions", type=float, nargs="+", metavar="P", help="expected proportion of each stratum, like 0.9 0.1"
    )
    _add(actions, "list", "list all campaigns", command="list_all")
    for name, what in (
        ("show", "print the description of a campaign"),
        ("status", "print the state of a campaign on both servers"),
        ("seal", "agree to seal the campaign; when both operators have agreed, the set of uploads is fixed"),
        ("cancel-seal", "withdraw your agreement to seal (only before the other operator has agreed)"),
        ("unfreeze", "undo a freeze on both servers, if no set was fixed"),
        ("abandon-wave", "agree to abandon a wave that cannot be sealed; its parties upload again"),
        ("discard-excluded", "erase the excluded uploads for good"),
        ("export", "write the description and the released curve to files"),
        ("party-page", "write the page on which parties take part, as one HTML file"),
        ("delete", "erase a campaign with its keys and noise; its id is never used again"),
    ):
        action = _add(actions, name, what)
        action.add_argument("id", help="the id of the campaign")
        if name == "seal":
            action.add_argument("--wave", type=int, metavar="N", help="the wave to close; default: the open one")
        if name == "abandon-wave":
            action.add_argument("--wave", type=int, required=True, metavar="N", help="the wave to abandon")
            action.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        if name == "export":
            action.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
            action.add_argument(
                "--analyst-token-file", type=Path, required=True, metavar="FILE", help="the analyst token for the query"
            )
        if name == "party-page":
            action.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")
            action.add_argument(
                "--urls", nargs=2, metavar="https://HOST", help="addresses for parties, if they differ from yours"
            )
            action.add_argument("--organiser", default="", metavar="NAME", help="show on the page who runs the study")
            action.add_argument("--contact", default="", metavar="TEXT", help="show on the page whom parties can ask")
            action.set_defaults(command="write_party_page")
        if name == "delete":
            action.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def add_console(commands: Commands) -> None:
    console = add_command(commands, "console", "show both servers and their campaigns in a browser on this machine")
    _add_operator_config(console)
    console.add_argument("--port", type=int, default=0, help="default: a free port")
    console.add_argument(
        "--out", type=Path, default=Path(), metavar="FOLDER", help="for joining sheets; default: this folder"
    )
    console.set_defaults(run=_console)


def _console(args: argparse.Namespace) -> int:
    from fss_ecdf.operators.console import console

    return console(args)


def _add_sites(campaign: Commands) -> None:
    sites = add_command(
        campaign, "sites", "manage sites: organisations that upload values of many people, each with a quota"
    )
    actions = sites.add_subparsers(required=True, metavar="COMMAND")
    add = _add_site_command(actions, "add", "admit sites and write a joining sheet for each")
    add.add_argument("id", help="the id of the campaign")
    add.add_argument("label", nargs="*", help="the name of a site")
    add.add_argument("--csv", type=Path, metavar="FILE", help="read labels from the first column of a CSV file")
    add.add_argument("--quota", type=int, required=True, metavar="N", help="the number of uploads each site may send")
    add.add_argument("--out", type=Path, metavar="FOLDER", help="for joining sheets; default: sites-ID")
    every = _add_site_command(actions, "list", "list labels, states, uploads and quotas", action="list_all")
    every.add_argument("id", help="the id of the campaign")
    for name, what in (
        ("pause", "accept no uploads from a site for now"),
        ("resume", "accept uploads from a paused site again"),
        ("revoke", "reject the token of a site from now on"),
        ("set-quota", "change the number of uploads a site may send"),
        ("rotate-token", "replace a token that was lost or seen"),
    ):
        action = _add_site_command(actions, name, what, action="rotate" if name == "rotate-token" else "change")
        action.add_argument("id", help="the id of the campaign")
        action.add_argument("site", help="the label or id of the site")
        action.set_defaults(change=name)
        if name == "revoke":
            action.add_argument("--withdraw", action="store_true", help="erase its uploads, before anything is sealed")
            action.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        if name == "set-quota":
            action.add_argument("uploads", type=int, metavar="N", help="the new number of uploads in all")
        if name == "rotate-token":
            action.add_argument("--out", type=Path, metavar="FOLDER", help="for the joining sheet; default: sites-ID")
    apply = _add_site_command(actions, "apply", "apply the changes to sites that the other operator made")
    apply.add_argument("file", type=Path, help="the file from the other operator")
    apply.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add(commands: Commands, name: str, what: str, *, command: str | None = None) -> argparse.ArgumentParser:
    parser = add_command(commands, name, what)
    # Before or after the command: a value that was given before it is kept.
    _add_operator_config(parser, argparse.SUPPRESS)
    parser.set_defaults(command=command or name.replace("-", "_"))
    return parser


def _add_site_command(
    commands: Commands, name: str, what: str, *, action: str | None = None
) -> argparse.ArgumentParser:
    parser = _add(commands, name, what, command="change_sites")
    parser.set_defaults(action=action or name)
    return parser


def _add_operator_config(parser: argparse.ArgumentParser, default: object = None) -> None:
    parser.add_argument(
        "--operator-config",
        type=Path,
        default=default,
        metavar="FILE",
        help="default: the environment variable FSS_OPERATOR_CONFIG, or operator.toml",
    )


def _add_invitations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--invitations", type=int, default=0, metavar="N", help="how many invitations to make, for invited admission"
    )


def _run(args: argparse.Namespace) -> int:
    from fss_ecdf.operators import commands

    code: int = getattr(commands, args.command)(args)
    return code
