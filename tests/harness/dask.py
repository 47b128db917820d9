"""A Dask cluster on loopback, over TLS with certificates of its own, whose parts can be killed one by one."""

import datetime
import ipaddress
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.harness.ports import free_ports
from tests.harness.server_pair import ROOT

_CONFIG = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "15s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20",
    "OPENBLAS_NUM_THREADS": "1",
}


def certificates(folder: Path) -> dict[str, Path]:
    """One key for scheduler, workers and client, of a CA that is thrown away."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dask of a test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = {"ca": folder / "dask-ca.pem", "certificate": folder / "dask-cert.pem", "key": folder / "dask-key.pem"}
    pem = serialization.Encoding.PEM
    for what in ("ca", "certificate"):
        paths[what].write_bytes(made.public_bytes(pem))
    paths["key"].touch(mode=0o600)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths["key"].write_bytes(key.private_bytes(pem, *form))
    return paths


class Dask:
    """`with Dask(folder, workers=2) as dask:`; who is killed is started again only by `start`."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder, self.port = folder, free_ports()[0]
        folder.mkdir(parents=True, exist_ok=True)
        self.tls = certificates(folder)
        self.address = f"tls://127.0.0.1:{self.port}"
        self.names = ["scheduler", *(f"worker{n}" for n in range(workers))]
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def settings(self) -> str:
        """For a server's settings file."""
        files = "".join(f'{what} = "{path}"\n' for what, path in self.tls.items())
        return f'\n[cluster]\nscheduler = "{self.address}"\n{files}'

    def __enter__(self) -> Self:
        for name in self.names:
            self.start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in reversed(self.names):
            self.kill(name)

    def start(self, name: str) -> None:
        if name in self._running and self._running[name].poll() is None:
            return
        options = ["--tls-ca-file", self.tls["ca"], "--tls-cert", self.tls["certificate"], "--tls-key", self.tls["key"]]
        if name == "scheduler":
            program = ["distributed.cli.dask_scheduler", "--host", self.address, "--no-dashboard", *options]
        else:
            program = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            program += ["--host", "127.0.0.1", "--death-timeout", "120", "--local-directory", self._folder, *options]
        with (self._folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", *map(str, program)]
            environment = {**os.environ, **_CONFIG, "PYTHONPATH": str(ROOT)}
            self._running[name] = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment)

    def kill(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(20)

    def supervise(self) -> None:
        """Start again what has ended: what systemd or Kubernetes would do."""
        for name in self.names:
            if name in self._running and self._running[name].poll() is not None:
                self.start(name)

    def cpu_seconds(self) -> float:
        """Of the workers so far."""
        ticks = 0
        for name, process in self._running.items():
            if name != "scheduler":
                fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def wait(self, seconds: float = 60) -> None:
        """Until all workers are there."""
        from distributed import Client, Security

        security = Security(
            require_encryption=True,
            tls_ca_file=str(self.tls["ca"]),
            tls_client_cert=str(self.tls["certificate"]),
            tls_client_key=str(self.tls["key"]),
        )
        with Client(self.address, security=security, timeout=seconds, set_as_default=False) as client:
            client.wait_for_workers(len(self.names) - 1, timeout=seconds)
        time.sleep(0.1)
