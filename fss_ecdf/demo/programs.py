"""Two servers on this machine, and the installed programs that talk to them."""

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fss_ecdf.cli.common import UsageError

START_S, STOP_S = 90, 40


def installed(name: str) -> str:
    """The path of one of our programs, beside the interpreter that runs this."""
    return str(Path(sysconfig.get_path("scripts")) / name)


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    """Run one of our programs to its end; returns what it printed, raises UsageError if it fails."""
    words = [installed(command[0]), *command[1:]]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise UsageError(f"this command failed: {shlex.join(command)}")
    return done.stdout


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Print what is going on, then how long it took."""
    print(f"{what} ...", end=" ", flush=True)
    start = time.monotonic()
    yield
    print(f"{time.monotonic() - start:.1f} s")


class Servers:
    """Two servers in `folder`/pair: `fss-server init-pair`, then `fss-server run` twice.

    Leaving the `with` block stops them, unless `keep` was set.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.keep = folder / "pair", False
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Servers":
        with step("two servers start, each with its own database, over HTTPS"), contextlib.ExitStack() as undo:
            undo.callback(self._stop)
            run(["fss-server", "init-pair", str(self.folder), "--ports", *map(str, _free_ports())])
            for server in (0, 1):
                with self._log(server).open("wb") as log:
                    words = [installed("fss-server"), "run", "--config", self._settings(server)]
                    # Of its own session, so that Ctrl-C reaches the demo, which stops the servers in order.
                    self.processes.append(subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True))
            for server in (0, 1):
                self._wait(server)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.keep:
            self._stop()

    def create(self, toml: Path) -> dict[str, str]:
        """Create a campaign on both servers; returns the environment in which parties and analysts run."""
        env = {**os.environ, "FSS_OPERATOR_CONFIG": str(self.operator_config)}
        run(["fss-server", "campaign", "create", str(toml)], env)
        for line in toml.with_suffix(".env").read_text().splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            env[name] = shlex.split(value)[0]
        return env

    @property
    def operator_config(self) -> Path:
        return self.folder / "operator.toml"

    @property
    def analyst_token(self) -> str:
        return (self.folder / "server0" / "analyst.token").read_text().strip()

    def uploaded_bytes(self) -> int:
        """The bodies of all uploads to both servers, as the servers logged them."""
        requests = (e for server in (0, 1) for e in self._events(server) if e["event"] == "request")
        return sum(int(e["received"]) for e in requests if e["route"].endswith("/uploads"))

    def _events(self, server: int) -> Iterator[dict[str, Any]]:
        return (json.loads(line) for line in self._log(server).read_text().splitlines() if line.startswith("{"))

    def _settings(self, server: int) -> str:
        return str(self.folder / f"server{server}" / "server.toml")

    def _log(self, server: int) -> Path:
        return self.folder / f"server{server}.log"

    def _wait(self, server: int) -> None:
        words = [installed("fss-server"), "health", "--config", self._settings(server)]
        until = time.monotonic() + START_S
        while subprocess.run(words, capture_output=True, check=False).returncode:
            if self.processes[server].poll() is not None or time.monotonic() > until:
                raise UsageError(f"server {server} did not start; its log is {self._log(server)}")
            time.sleep(0.1)

    def _stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(STOP_S)


def _free_ports() -> tuple[int, int]:
    """Two ports that nothing listens on."""
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
