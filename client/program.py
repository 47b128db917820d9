"""What all command lines have in common: exit codes, how trouble is told, tokens and certificate authorities."""

import argparse
import os
import sys
from pathlib import Path
from typing import TypeAlias

from campaign.errors import InvalidInput, Problem, TryAgain

# Exit codes that scripts can use (sysexits.h).
OK, USAGE, BAD_DATA, TRY_LATER, REFUSED = 0, 64, 65, 75, 77

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class BadSettings(Exception):
    """A settings file or an option is wrong; the message is one line for the operator."""


def tell(program: str, trouble: Problem | OSError) -> int:
    """One line on standard error; returns the exit code."""
    if isinstance(trouble, BrokenPipeError):  # `| head`: the reader has seen enough, nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter would complain at its end
        return OK
    if isinstance(trouble, OSError):
        print(f"{program}: {trouble.filename}: {trouble.strerror}", file=sys.stderr)
        return USAGE
    print(f"{program}: {trouble.detail} [{trouble.code}]", file=sys.stderr)
    if isinstance(trouble, TryAgain):
        return TRY_LATER
    return BAD_DATA if isinstance(trouble, InvalidInput) else REFUSED


def not_installed(program: str, extra: str, missing: ModuleNotFoundError) -> int:
    """A role installs what it needs; whoever starts another role's program is told how to get the rest."""
    print(f"{program}: {missing.name} is not installed; pip install 'fss-ecdf[{extra}]' has it", file=sys.stderr)
    return USAGE


def add_access(parser: argparse.ArgumentParser) -> None:
    """How a server is reached: a token, and whose certificates to trust."""
    parser.add_argument("--token-file", type=Path, help="default: the environment variable FSS_TOKEN")
    parser.add_argument(
        "--ca",
        type=Path,
        default=os.environ.get("FSS_CA"),
        help="the servers' certificate authority, if the system does not know it; default: FSS_CA",
    )


def token(args: argparse.Namespace) -> str:
    """From a file or the environment; empty if there is none."""
    return args.token_file.read_text().strip() if args.token_file else os.environ.get("FSS_TOKEN", "")
