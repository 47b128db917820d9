"""haproxy in front of several processes: it passes TLS through, holds no key, and leaves out who is not ready."""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.harness.loop import LOOPBACK

MISSING = "no haproxy here: apt-get install haproxy"

_CONFIG = """global
    maxconn 4000
defaults
    mode tcp
    timeout connect 2s
    timeout check 5s
    timeout client 120s
    timeout server 120s
    option redispatch
    retries 3
    default-server inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions
frontend parties
    bind {host}:{port}
    default_backend api
backend api
    balance leastconn
    option httpchk
    http-check send meth GET uri /readyz
{servers}
"""


class Haproxy:
    """Listens on a port and passes on to those of these ports that are ready."""

    def __init__(self, folder: Path, port: int, targets: Sequence[int]) -> None:
        lines = [
            f"    server api{n} {LOOPBACK}:{target} check check-ssl verify none" for n, target in enumerate(targets)
        ]
        config = folder / "haproxy.cfg"
        config.write_text(_CONFIG.format(host=LOOPBACK, port=port, servers="\n".join(lines)))
        with (folder / "haproxy.log").open("ab") as log:
            command = [program(), "-db", "-f", str(config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))
        time.sleep(0.1)
        if self._process.poll() is not None:
            raise RuntimeError((folder / "haproxy.log").read_text())

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)


def program() -> str:
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise FileNotFoundError(MISSING)
    return found
