"""What all command lines have in common: exit codes, how trouble is told, what is asked, tokens and authorities."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from campaign.errors import InvalidInput, Problem, TryAgain

# Exit codes that scripts can use (sysexits.h).
OK, USAGE, BAD_DATA, OUTPUT_GONE, TRY_LATER, REFUSED = 0, 64, 65, 74, 75, 77

UPLOAD_TOKEN, ANALYST_TOKEN = "FSS_UPLOAD_TOKEN", "FSS_ANALYST_TOKEN"

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, what: str) -> argparse.ArgumentParser:
    """A command that says what it does in the list of all, and when it is asked itself."""
    return commands.add_parser(name, help=what, description=what[0].upper() + what[1:])


# But for plain numbers and words with blanks, which argparse knows by itself.
_VALUE = re.compile(r"-(?!\d+$|\d*\.\d+$)[0-9.]\S*|-[A-Za-z0-9_-]{42}")


def words(argv: Sequence[str] | None) -> list[str]:
    """What was typed. Lists of numbers, digests and keys may begin with a dash: argparse takes them for options."""
    joined: list[str] = []
    for word in sys.argv[1:] if argv is None else argv:
        if joined and "--" not in joined and _is_bare_option(joined[-1]) and _VALUE.fullmatch(word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _is_bare_option(word: str) -> bool:
    return word.startswith("--") and "=" not in word


class BadSettings(Exception):
    """A settings file or an option is wrong; the message is one line for the operator."""


def guarded(program: str, extra: str, work: Callable[[], int]) -> int:
    """The exit code of what a command does; whatever goes wrong on the way is one line on standard error."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BadSettings as error:
        print(f"{program}: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        return _output_gone(program)
    except (Problem, OSError) as trouble:
        return tell(program, trouble)
    except ModuleNotFoundError as missing:
        return not_installed(program, extra, missing)


def _output_gone(program: str) -> int:
    """Whoever read our output has left, like `head`: what Python still wants to write goes nowhere."""
    print(f"{program}: the output was closed before its end; what was done is done", file=sys.stderr)
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a standard output that is no file
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
    return OUTPUT_GONE


def tell(program: str, trouble: Problem | OSError) -> int:
    """One line on standard error; returns the exit code."""
    if isinstance(trouble, OSError):
        where = f"{trouble.filename}: " if trouble.filename is not None else ""
        print(f"{program}: {where}{trouble.strerror or type(trouble).__name__}", file=sys.stderr)
        return USAGE
    print(f"{program}: {trouble.detail} [{trouble.code}]", file=sys.stderr)
    if isinstance(trouble, TryAgain):
        return TRY_LATER
    return BAD_DATA if isinstance(trouble, InvalidInput) else REFUSED


def not_installed(program: str, extra: str, missing: ModuleNotFoundError) -> int:
    """A role installs what it needs; whoever starts another role's program is told how to get the rest."""
    print(f"{program}: {missing.name} is not installed; pip install 'fss-ecdf[{extra}]' has it", file=sys.stderr)
    return USAGE


def add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="version", version=f"{parser.prog} {version('fss-ecdf')}")


def add_access(parser: argparse.ArgumentParser, variable: str) -> None:
    """How a server is reached: a token, and whose certificates to trust."""
    parser.add_argument("--token-file", type=Path, help=f"default: the environment variable {variable}")
    parser.set_defaults(token_variable=variable)
    parser.add_argument(
        "--ca",
        type=Path,
        default=os.environ.get("FSS_CA") or None,
        help="the servers' certificate authority, if the system does not know it; default: FSS_CA",
    )


def token(args: argparse.Namespace) -> str:
    """From a file or the environment."""
    found = args.token_file.read_text().strip() if args.token_file else os.environ.get(args.token_variable, "")
    if not found:
        raise InvalidInput(f"a token is needed: --token-file FILE, or the environment variable {args.token_variable}")
    return found


def ask(question: str, otherwise: str) -> str:
    """A person's answer, asked beside what may be piped on. `otherwise` says what to do where nobody can be asked."""
    print(question, end="", file=sys.stderr, flush=True)
    try:
        return input().strip()
    except EOFError:
        print(file=sys.stderr)
        raise BadSettings(f"nobody is there to be asked: {otherwise}") from None


def agreed(question: str, otherwise: str) -> bool:
    return ask(f"{question} [y/N] ", otherwise).lower() in ("y", "yes")
