"""Two organisations, each with several processes on its own PostgreSQL behind its own haproxy, on loopback."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import sqlalchemy as sa

from fss_ecdf.campaign.campaign import Campaign
from servers.release.noise import covers, set_secret
from servers.storage.database import open_engine
from tests.harness.fork_server import ForkServer
from tests.harness.haproxy import Haproxy
from tests.harness.ports import free_ports
from tests.harness.postgres import Postgres
from tests.harness.server_pair import LivePair, Process

API, WORK = "api", "worker"


class Fleet(LivePair):
    """`with Fleet(folder) as fleet:` starts it all; to those outside it is a pair of servers like any other."""

    def __init__(self, folder: Path, *, apis: int = 2, workers: int = 1, **settings: str) -> None:
        super().__init__(folder, **settings)
        self._nursery, self._databases = ForkServer(), [Postgres(), Postgres()]
        self._proxies: list[Haproxy] = []
        self.members: list[dict[str, Process | None]] = [{}, {}]
        self._listen: list[dict[str, int]] = [{}, {}]
        for role in (0, 1):
            for number in range(0, apis, 2):
                for place, port in zip(range(number, min(number + 2, apis)), free_ports(), strict=False):
                    self._listen[role][f"{API}{place}"] = port
            self.members[role] = dict.fromkeys([*self._listen[role], *(f"{WORK}{n}" for n in range(workers))])

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        for role in (0, 1):
            self._databases[role].start()
            self.configure(role, database=f'"{self._databases[role].database("fss")}"')
            self._proxies.append(Haproxy(self.home(role), self.ports[role], list(self._listen[role].values())))
            for name in self.members[role]:
                self.start_member(role, name)
        for role in (0, 1):
            self.wait(role)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for role in (0, 1):
            for name in self.members[role]:
                self.stop_member(role, name)
        for proxy in self._proxies:
            proxy.close()
        for database in self._databases:
            database.__exit__(kind, error, trace)
        self._nursery.close()

    def home(self, role: int) -> Path:
        return self.folder / f"server{role}"

    def postgres(self, role: int) -> Postgres:
        return self._databases[role]

    def names(self, what: str) -> Sequence[str]:
        """Of the processes of a kind; the same at both organisations."""
        return [name for name in self.members[0] if name.startswith(what)]

    def start_member(self, role: int, name: str) -> None:
        if self.members[role][name] is not None:
            return
        listen = [] if name.startswith(WORK) else ["--listen", f"127.0.0.1:{self._listen[role][name]}"]
        command = (WORK,) if name.startswith(WORK) else (API, *listen)
        config, log = self.home(role) / "server.toml", self.folder / f"server{role}.log"
        self.members[role][name] = self._nursery.start(config, log, *command)

    def stop_member(self, role: int, name: str, *, kill: bool = False) -> None:
        process, self.members[role][name] = self.members[role][name], None
        if process is not None:
            os.kill(process.pid, signal.SIGKILL if kill else signal.SIGTERM) if process.poll() is None else None
            process.wait(60)

    def wait(self, role: int, seconds: float = 90) -> None:
        """Until the organisation answers, behind its haproxy, and so does every process that was started."""
        until = time.monotonic() + seconds
        started = [name for name in self.names(API) if self.members[role][name] is not None]
        for client in (self.client(role), *(self.direct(role, name) for name in started)):
            self._wait_for(client, role, until)

    def _wait_for(self, client: httpx.Client, role: int, until: float) -> None:
        with client:
            while True:
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.HTTPError:
                    pass
                assert time.monotonic() < until, self.log(role)[-2000:]
                time.sleep(0.05)

    def direct(self, role: int, name: str, token: str | None = None, timeout: float = 60) -> httpx.Client:
        """To one process, past haproxy."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        url = f"https://127.0.0.1:{self._listen[role][name]}"
        return httpx.Client(base_url=url, verify=self.context, headers=headers, timeout=timeout, trust_env=False)

    def noise_secrets(self, role: int, campaign: Campaign) -> tuple[bytes, bytes]:
        select = "SELECT noise_seed, sealed_set, key_file FROM campaigns JOIN waves ON campaign = id WHERE id = :id"
        seed, key_set, key_file = self.rows(role, select, campaign)[0]
        covered = covers(campaign.id, campaign.variable.name, key_set, key_file)
        return set_secret(seed, covered), covered

    def ids(self, role: int, campaign: Campaign) -> set[bytes]:
        """What an organisation has stored of a campaign, read from its database."""
        select = "SELECT u.id FROM uploads u JOIN campaigns c ON u.campaign = c.number WHERE c.id = :id"
        return {row[0] for row in self.rows(role, select, campaign)}

    def rows(self, role: int, select: str, campaign: Campaign) -> Sequence[Any]:
        engine = open_engine(self._databases[role].url("fss"))
        with closing(engine.connect()) as db:
            found = db.execute(sa.text(select), {"id": campaign.id}).fetchall()
        engine.dispose()
        return found
