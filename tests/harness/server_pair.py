"""Two real server processes over TLS on loopback, for benchmarks and end-to-end tests."""

import json
import os
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
import numpy as np

from dealer.key_pairs import key_rand_bytes, make_keys_at
from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign, Positions, to_base64url
from fss_ecdf.campaign.hpke import Kem
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.net.https import trust
from fss_ecdf.net.server_identity import Identity
from fss_ecdf.net.tokens import hash_token, new_token
from fss_ecdf.operators.setup import CreatedServer, init_pair
from servers.release.noise import covers, set_secret
from servers.settings import load
from servers.storage.storage import Storage
from tests.harness import hooked
from tests.harness.ports import free_ports

ROOT = Path(__file__).parents[2]
AT_ONCE = 5000  # uploads in one request
START_S = float(os.environ.get("FSS_TEST_START_S", "90"))  # that a server may take to start


# Of every pair that tests start, so that a campaign can be made before its servers are.
IDENTITIES = (b"\0" * 32, b"\1" * 32)


SALT = b"\2" * 32  # of their HPKE keys, which `plant` puts into their databases


def commitments(campaign_id: bytes, kem: Kem = "x25519") -> list[dict[str, str]]:
    """What such a pair commits to for a campaign."""
    both = (Identity(secret, role) for role, secret in enumerate(IDENTITIES))
    return [identity.commit(campaign_id, kem, SALT).model_dump(mode="json") for identity in both]


def plant(config: Path, campaign_id: bytes) -> None:
    """Let a running server have made commitments for a campaign, which it would have made with a random salt."""
    storage = Storage(load(config).database_url, look=True)
    try:
        storage.commitments.salt_or_new(campaign_id, lambda _: SALT)
    finally:
        storage.close()


class Process(Protocol):
    """What `Pair` needs of a running server."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...
    def terminate(self) -> None: ...


class Starter(Protocol):
    """Starts a server with these settings; its output goes to the log."""

    def start(self, config: Path, log: Path) -> Process: ...


class LivePair:
    """Two servers; `with Pair(folder) as pair:` starts them and ends them."""

    program: Sequence[str] = ("fss_ecdf.cli.server", "run")
    nursery: "Starter | None" = None  # where servers come from; without one, each is a program that is started

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder / "pair"
        self.ports, self.metrics_ports = free_ports(), (0, 0)
        self.servers: list[CreatedServer] = init_pair(self.folder, ("127.0.0.1", "127.0.0.1"), self.ports, IDENTITIES)
        self.processes: list[Process | None] = [None, None]
        self.context = trust(self.folder / "ca.pem")  # as our programs do: whoever is measured pays the same handshake
        self.upload_tokens: dict[bytes, str] = {}
        for role in (0, 1):
            self.configure(role, **settings)

    def configure(self, role: int, **settings: str) -> None:
        """Top-level settings as TOML text, or dotted ones like limits_evaluations='1'."""
        path = self.folder / f"server{role}" / "server.toml"
        text = path.read_text()
        hooks = {name: value.strip('"') for name, value in settings.items() if name in hooked.HOOKS}
        if hooks:
            hooked.file_for(path).write_text(json.dumps(hooks))
        for name, value in settings.items():
            if name in hooks:
                continue
            section, _, key = name.partition("__")
            if key:
                head = f"[{section}]\n"
                text = (
                    text.replace(head, f"{head}{key} = {value}\n")
                    if head in text
                    else f"{text}\n{head}{key} = {value}\n"
                )
            else:
                text = f"{name} = {value}\n{text}"
        path.write_text(text)

    def drop(self, role: int, name: str) -> None:
        """Remove a top-level setting, or a test's hook."""
        path = self.folder / f"server{role}" / "server.toml"
        if name in hooked.HOOKS:
            hooked.file_for(path).unlink()
        path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith(f"{name} =")))

    def reach_peer_at(self, role: int, port: int) -> None:
        """Let a server find the other one at another port, where something stands between them."""
        path = self.folder / f"server{role}" / "server.toml"
        path.write_text(path.read_text().replace(self.url(1 - role), f"https://127.0.0.1:{port}"))

    def expose(self) -> None:
        """Have both servers tell their metrics, from the next start on."""
        self.metrics_ports = free_ports()
        for role in (0, 1):
            self.configure(role, metrics__listen=f'"127.0.0.1:{self.metrics_ports[role]}"')

    def metrics(self, role: int) -> str:
        token = (self.folder / f"server{role}" / "metrics.token").read_text().strip()
        with self.client(role, token) as client:
            answer = client.get(f"https://127.0.0.1:{self.metrics_ports[role]}/metrics")
        assert answer.status_code == 200, answer.text
        return answer.text

    def __enter__(self) -> Self:
        try:
            for role in (0, 1):
                self.start(role, wait=False)
            for role in (0, 1):
                self.wait(role)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for role in (0, 1):
            self.stop(role)

    def start(self, role: int, wait: bool = True) -> None:
        self.processes[role] = self.launch(
            self.folder / f"server{role}" / "server.toml", self.folder / f"server{role}.log"
        )
        if wait:
            self.wait(role)

    def launch(self, config: Path, log: Path) -> Process:
        if self.nursery is not None and self.program == LivePair.program:
            return self.nursery.start(config, log)
        program = ("tests.harness.hooked",) if hooked.file_for(config).exists() else self.program
        command = [sys.executable, "-m", *program, "--config", str(config)]
        with log.open("ab") as output:
            return subprocess.Popen(command, cwd=ROOT, stderr=output, stdout=output)

    def wait(self, role: int, seconds: float = START_S) -> None:
        until = time.monotonic() + seconds
        with self.client(role) as client:
            while True:
                process = self.processes[role]
                assert process is not None
                assert process.poll() is None, self.log(role)
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.HTTPError:
                    pass
                assert time.monotonic() < until, self.log(role)
                time.sleep(0.05)

    def stop(self, role: int, kill: bool = False) -> int | None:
        process = self.processes[role]
        if process is None:
            return None
        if kill:
            process.kill()
        elif process.poll() is None:
            process.terminate()
        code = process.wait(40)
        self.processes[role] = None
        return code

    def exited(self, role: int, seconds: float = 60) -> int:
        """Wait until a server has ended by itself."""
        process = self.processes[role]
        assert process is not None
        code = process.wait(seconds)
        self.processes[role] = None
        return code

    def log(self, role: int) -> str:
        return (self.folder / f"server{role}.log").read_text()

    def events(self, role: int, start: int = 0) -> list[dict[str, Any]]:
        """What a server has logged, after so many characters."""
        return [json.loads(line) for line in self.log(role)[start:].splitlines() if line.startswith("{")]

    def url(self, role: int) -> str:
        return f"https://127.0.0.1:{self.ports[role]}"

    def client(self, role: int, token: str | None = None, timeout: float | httpx.Timeout = 60) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.url(role), verify=self.context, headers=headers, timeout=timeout, trust_env=False
        )

    def operator(self, role: int) -> httpx.Client:
        return self.client(role, self.servers[role].operator)

    def analyst(self, role: int) -> httpx.Client:
        return self.client(role, self.servers[role].analyst)

    def create(self, campaign: Campaign, invitations: Sequence[str] = (), roles: Sequence[int] = (0, 1)) -> None:
        token = new_token("upload")
        self.upload_tokens[campaign.id] = token
        body = {
            "campaign": campaign.model_dump(mode="json", by_alias=True),
            "upload_token": hash_token(token) if campaign.admission == "open" else None,
            "invitations": [hash_token(t) for t in invitations],
        }
        for role in roles:
            self.plant(role, campaign.id)
            with self.operator(role) as client:
                response = client.post("/v1/campaigns", json=body)
                assert response.status_code == 201, response.text

    def plant(self, role: int, campaign_id: bytes) -> None:
        plant(self.folder / f"server{role}" / "server.toml", campaign_id)

    def upload(self, role: int, campaign: Campaign, data: bytes, token: str | None = None) -> httpx.Response:
        """An envelope, which may be wrong in any way, encrypted to this server."""
        token = token or self.upload_tokens[campaign.id]
        return self.upload_sealed(role, campaign, seal_upload(campaign, role, data, token), token)

    def upload_sealed(self, role: int, campaign: Campaign, data: bytes, token: str | None = None) -> httpx.Response:
        with self.client(role, token or self.upload_tokens[campaign.id]) as client:
            path = f"/v1/campaigns/{name(campaign)}/uploads"
            return client.post(path, content=data, headers={"Content-Type": UPLOAD_TYPE})

    def upload_values(self, campaign: Campaign, positions: np.ndarray[Any, Any]) -> None:
        """For the wave that is open at both servers."""
        wave = None if campaign.waves is None else max(self.status(campaign, role)["wave"] for role in (0, 1))
        for start in range(0, len(positions), AT_ONCE):
            for role, data in enumerate(envelopes(campaign, positions[start : start + AT_ONCE], wave)):
                response = self.upload(role, campaign, data)
                assert response.json()["failures"] == [], response.text

    def seal(self, campaign: Campaign, role: int = 0) -> dict[str, Any]:
        """Both operators give their word; the answer is that of the server that got it last."""
        self.agree(campaign, 1 - role)
        with self.operator(role) as client:
            response = client.post(f"/v1/campaigns/{name(campaign)}/seal")
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def wait_checked(self, campaign: Campaign, seconds: float = 180) -> list[dict[str, Any]]:
        """Until no server is checking keys any more: what both say then."""
        until = time.monotonic() + seconds
        while True:
            both = [self.status(campaign, role) for role in (0, 1)]
            if all(status["state"] != "checking" for status in both):
                return both
            assert time.monotonic() < until, both
            time.sleep(0.05)

    def agree(self, campaign: Campaign, role: int) -> httpx.Response:
        """A server's operator wants it sealed; nothing happens before the other one does."""
        with self.operator(role) as client:
            return client.post(f"/v1/campaigns/{name(campaign)}/seal")

    def status(self, campaign: Campaign, role: int = 0) -> dict[str, Any]:
        with self.operator(role) as client:
            return _status(client, campaign)

    def wait_ready(self, campaign: Campaign, seconds: float = 180) -> None:
        until = time.monotonic() + seconds
        for role in (0, 1):
            with self.operator(role) as client:  # one connection: both servers need the processor
                while (status := _status(client, campaign)).get("phase") != "ready":
                    assert time.monotonic() < until, status
                    time.sleep(0.05)

    def noise_secrets(self, role: int, campaign: Campaign) -> tuple[bytes, bytes]:
        """The seed and the context of a server's noise, from what only a thief of its disk could read."""
        with closing(sqlite3.connect(self.folder / f"server{role}" / "data" / "server.db")) as db:
            select = "SELECT noise_seed, sealed_set, key_file FROM campaigns JOIN waves ON campaign = id WHERE id = ?"
            seed, key_set, key_file = db.execute(select, (campaign.id,)).fetchone()
        covered = covers(campaign.id, campaign.variable.name, key_set, key_file)
        return set_secret(seed, covered), covered

    def ask(self, role: int, campaign: Campaign, what: str, **params: str | int) -> Any:
        with self.analyst(role) as client:
            response = client.get(f"/v1/campaigns/{name(campaign)}/{what}", params=params)
        assert response.status_code == 200, response.text
        return response.json()


def _status(client: httpx.Client, campaign: Campaign) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(f"/v1/campaigns/{name(campaign)}/status").json()
    return answer


def name(campaign: Campaign) -> str:
    return to_base64url(campaign.id)


def envelopes(campaign: Campaign, positions: np.ndarray[Any, Any], wave: int | None = None) -> tuple[bytes, bytes]:
    """Upload envelopes for both servers, with new random ids; for the first wave unless another is named."""
    n = len(positions)
    ids = np.frombuffer(secrets.token_bytes(16 * n), np.uint8).reshape(n, 16)
    rand = os.urandom(n * key_rand_bytes(campaign))
    wave = campaign.first_wave if wave is None else wave
    shared = make_keys_at(Positions(np.asarray(positions), 0, 0), campaign, rand, ids, wave)
    return shared.envelope(0), shared.envelope(1)


def sealed_envelopes(campaign: Campaign, positions: np.ndarray[Any, Any], token: str) -> tuple[bytes, bytes]:
    """The same as they travel with this token: each encrypted to its server."""
    plain = envelopes(campaign, positions)
    return seal_upload(campaign, 0, plain[0], token), seal_upload(campaign, 1, plain[1], token)
