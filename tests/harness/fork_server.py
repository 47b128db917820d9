"""Servers that start in a fraction of a second: a process that has imported everything forks them.

Tests start and kill servers a hundred times, and most of a start is Python reading modules. What is forked is a server
like any other, with its own process, files and threads.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
from contextlib import suppress
from pathlib import Path

from fss_ecdf.cli import server
from servers.api import app, serve  # noqa: F401  # before the fork: no server reads modules again
from tests.harness import hooked
from tests.harness.server_pair import ROOT


class Forked:
    """A forked server, with as much of Popen as `tests.harness.server_pair.Pair` needs."""

    def __init__(self, pid: int, end: Path) -> None:
        self.pid, self._end = pid, end

    def poll(self) -> int | None:
        """None while it runs, then its exit code."""
        try:
            return int(self._end.read_text())
        except FileNotFoundError:
            return None

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + (timeout or 60)
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("server", timeout or 60)
            time.sleep(0.005)
        return code

    def kill(self) -> None:
        self.send(signal.SIGKILL)

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


class ForkServer:
    """Where servers come from."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "tests.harness.fork_server", self._folder.name]
        self._asking = threading.Lock()
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, config: Path, log: Path, *command: str) -> Forked:
        """A server, or with a command like `api` one of its processes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            print(json.dumps([str(config), str(log), *command]), file=self._process.stdin, flush=True)
            pid, name = self._process.stdout.readline().split()
            return Forked(int(pid), Path(self._folder.name) / name)

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


def main(ends: Path) -> None:
    """One server for each line on standard input; how each ended stands in a file of its own.

    Not under its process number: those come round, and a new server would look ended for a moment.
    """
    names: dict[int, str] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _reap(ends, names))
    for count, line in enumerate(sys.stdin):
        config, log, *command = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # it may end before it has a name
        pid = os.fork()
        if not pid:
            _become_server(config, log, command or ["run"])
        names[pid] = f"end-{count}"
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        print(pid, names[pid], flush=True)


def _reap(ends: Path, names: dict[int, str]) -> None:
    with suppress(ChildProcessError):
        while (end := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = end
            partial = ends / f"{names[pid]}.partial"
            partial.write_text(str(os.waitstatus_to_exitcode(status)))
            partial.replace(ends / names[pid])


def _become_server(config: str, log: str, command: list[str]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.modules["__main__"] = types.ModuleType("__main__")  # what a server's worker processes load again: nothing
    # Not to Python's own end, which would take all modules apart that the nursery has read.
    os._exit(_served(config, command))


def _served(config: str, command: list[str]) -> int:
    """Until it ends, with this code."""
    try:
        if hooked.file_for(Path(config)).exists():
            return hooked.main(["--config", config])
        return server.main([*command, "--config", config])
    except SystemExit as end:  # a signal
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
