"""A program's command, called in this process: the same as in one of its own, without reading all modules again."""

import io
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Done:
    """What a caller sees of a program that has ended."""

    returncode: int
    stdout: str
    stderr: str


def call(
    main: Callable[[list[str]], int],
    *args: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode())))
        patch.chdir(cwd or Path.cwd())
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        try:
            code = main(list(args))
        except SystemExit as end:  # argparse
            code = end.code if isinstance(end.code, int) else 1
    return Done(code, out.getvalue(), err.getvalue())
