"""Firefox by its own remote protocol, Marionette: JSON over a local socket, so that no driver is needed."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_START_S = 60.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name for a reference to an element
_PREFERENCES = {
    "marionette.port": 0,  # one that is free
    "intl.accept_languages": "en-US",
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.server": "",
    # It would ask a person whether a page may reach this machine's own addresses.
    "network.lna.enabled": False,
    "network.lna.blocking": False,
    "network.localhost.prompt.testing": True,
    "network.localhost.prompt.testing.allow": True,
}


class MarionetteError(RuntimeError):
    """What Firefox answers to a command that failed."""


class Marionette:
    """One session with one tab."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self._count = 0
        self._receive()
        self.call("WebDriver:NewSession", acceptInsecureCerts=True)

    def call(self, name: str, **parameters: Any) -> Any:
        self._count += 1
        text = json.dumps([0, self._count, name, parameters]).encode()
        self._socket.sendall(f"{len(text)}:".encode() + text)
        _, _, error, result = self._receive()
        if error is not None:
            raise MarionetteError(f"{name}: {error['error']}: {error['message']}")
        return result

    def _receive(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._read(1)
        return json.loads(self._read(int(size[:-1])))

    def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._socket.recv(count - len(found))
            if not part:
                raise MarionetteError("Firefox has ended")
            found += part
        return found

    def element(self, id: str) -> str:
        found = self.call("WebDriver:FindElement", using="css selector", value=f"#{id}")
        return str(found["value"][_ELEMENT])

    def close(self) -> None:
        self.call("Marionette:Quit", flags=["eForceQuit"])
        self._socket.close()


@contextmanager
def firefox(program: str) -> Iterator[Marionette]:
    """One Firefox with a profile of its own, until the end of the block."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile = Path(folder)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items()]
        (profile / "user.js").write_text("".join(lines))
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            session = Marionette(_port(profile / "MarionetteActivePort"))
            yield session
            session.close()
        finally:
            process.terminate()
            process.wait(30)


def _port(file: Path) -> int:
    """Firefox writes its port there when it listens."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if file.exists() and (text := file.read_text().strip()):
            return int(text)
        time.sleep(0.05)
    raise MarionetteError(f"Firefox does not listen after {_START_S:g} s")
