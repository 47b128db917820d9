"""What all command lines have in common: exit codes, how trouble is told, what is asked, tokens and authorities."""

import argparse
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, cast

from fss_ecdf.campaign.error_text import listed
from fss_ecdf.campaign.errors import InvalidInput, Problem, TryAgain
from fss_ecdf.campaign.text import shown, shown_lines

if TYPE_CHECKING:
    from fss_ecdf.campaign.campaign import Campaign

# Exit codes that scripts can use (sysexits.h).
OK, USAGE, BAD_DATA, OUTPUT_GONE, TRY_LATER, REFUSED = 0, 64, 65, 74, 75, 77

UPLOAD_TOKEN, ANALYST_TOKEN = "FSS_UPLOAD_TOKEN", "FSS_ANALYST_TOKEN"

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, what: str) -> argparse.ArgumentParser:
    """A command that says what it does in the list of all, and when it is asked itself."""
    return commands.add_parser(name, help=what, description=what[0].upper() + what[1:])


# But for plain numbers and words with blanks, which argparse knows by itself.
_VALUE = re.compile(r"-(?!\d+$|\d*\.\d+$)[0-9.]\S*|-[A-Za-z0-9_-]{42}")


def normalise_argv(argv: Sequence[str] | None) -> list[str]:
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


class UsageError(Exception):
    """A settings file or an option is wrong; the message is one line for the operator."""


def run_command(program: str, extra: str, work: Callable[[], int]) -> int:
    """The exit code of what a command does; whatever goes wrong on the way is one line on standard error."""
    try:
        with _escaping():
            code = work()
            sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"{program}: {shown(str(error))}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        return _output_gone(program)
    except (Problem, OSError) as trouble:
        return print_error(program, trouble)
    except ModuleNotFoundError as missing:
        return not_installed(program, extra, missing)


class _Escaping:
    """A stream on which every control character but the ends of lines and tabs is spelt out, whoever wrote it.

    What others wrote is checked or escaped where it is read. This is for what was forgotten.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(shown_lines(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _escaping() -> Iterator[None]:
    out, err = cast(TextIO, _Escaping(sys.stdout)), cast(TextIO, _Escaping(sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def free_text_lines(campaign: "Campaign", **more: str) -> list[str]:
    """Texts that people wrote into a campaign, to be printed last: each line has a mark in front.

    Lines are broken here, so that no terminal does it and shows the rest of a text like a line of its own.
    """
    width = min(100, max(40, shutil.get_terminal_size().columns)) - 18
    strata = listed(campaign.strata, ", ") if len(campaign.strata) > 1 else ""
    texts = {"title": campaign.title, "question": campaign.question, "variable": campaign.variable.name}
    texts["values"] = listed(campaign.variable.categories or (), ", ")
    texts |= {"unit": campaign.variable.unit, "strata": strata, **more}
    lines = ["  written by whoever made the campaign:"]
    for name, text in texts.items():
        if not text:
            continue
        parts = list(_broken(shown(text), width)) or [""]
        lines += [f"    {'' if i else name:<9} | {part}" for i, part in enumerate(parts)]
    return lines


def _broken(text: str, width: int) -> Iterator[str]:
    """At so many cells: letters of East Asia take two, on some terminals others do, combining marks none."""
    line, used = "", 0
    for one in text:
        cells = 0 if unicodedata.category(one) in ("Mn", "Me") else 1 if one.isascii() else 2
        if used + cells > width:
            yield line
            line, used = "", 0
        line, used = line + one, used + cells
    if line:
        yield line


def _output_gone(program: str) -> int:
    """Whoever read our output has left, like `head`: what Python still wants to write goes nowhere."""
    print(f"{program}: the output was closed before its end; what was done is done", file=sys.stderr)
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a standard output that is no file
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
    return OUTPUT_GONE


def print_error(program: str, trouble: Problem | OSError) -> int:
    """One line on standard error; returns the exit code."""
    if isinstance(trouble, OSError):
        where = f"{shown(str(trouble.filename))}: " if trouble.filename is not None else ""
        print(f"{program}: {where}{trouble.strerror or type(trouble).__name__}", file=sys.stderr)
        return USAGE
    print(f"{program}: {shown(trouble.detail)} [{trouble.code}]", file=sys.stderr)
    if isinstance(trouble, TryAgain):
        return TRY_LATER
    return BAD_DATA if isinstance(trouble, InvalidInput) else REFUSED


def not_installed(program: str, extra: str, missing: ModuleNotFoundError) -> int:
    """A role installs what it needs; whoever starts another role's program is told how to get the rest."""
    print(f"{program}: {missing.name} is not installed; pip install 'fss-ecdf[{extra}]' has it", file=sys.stderr)
    return USAGE


def add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="version", version=f"{parser.prog} {version('fss-ecdf')}")


def add_token(parser: argparse.ArgumentParser, variable: str) -> None:
    parser.add_argument("--token-file", type=Path, help=f"default: the environment variable {variable}")
    parser.set_defaults(token_variable=variable)


def authority(server: int) -> str | None:
    """Whose certificates a server must show, by the environment; None: those that the system knows."""
    return os.environ.get(f"FSS_CA{server}") or None


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
        raise UsageError(f"nobody is there to be asked: {otherwise}") from None


def ask_yes_no(question: str, otherwise: str) -> bool:
    return ask(f"{question} [y/N] ", otherwise).lower() in ("y", "yes")
