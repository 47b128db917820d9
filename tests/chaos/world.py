"""Two real servers with bad links to them and between them, clocks that step, and processes that are killed."""

import os
import signal
import sqlite3
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from fss_ecdf.campaign.files import write_durably
from tests.harness.faulty_proxy import Link
from tests.harness.fork_server import ForkServer
from tests.harness.loop import Loop
from tests.harness.server_pair import LivePair

CLIENT_TIMEOUT_S = 1.5
CURVE_BITS = 6  # whole curves up to here, single points from the keys beyond


class World:
    """`with World(folder) as world:` starts it all."""

    def __init__(self, folder: Path) -> None:
        self._nursery = ForkServer()
        self.pair = LivePair(
            folder, workers="1", curve_bits=str(CURVE_BITS), clock_file='"clock"', peer__timeout_s="1.0"
        )
        self.pair.nursery = self._nursery
        self._loop = Loop()
        self.to_server = [Link(self._loop, port) for port in self.pair.ports]
        self.to_peer = [Link(self._loop, port) for port in reversed(self.pair.ports)]
        self.clocks = [0, 0]
        self.kills = 0
        self._restarting = [threading.Lock(), threading.Lock()]
        for role in (0, 1):
            self.step_clock(role, 0)
            path = self.pair.folder / f"server{role}" / "server.toml"
            direct, bent = (
                f"https://127.0.0.1:{port}" for port in (self.pair.ports[1 - role], self.to_peer[role].port)
            )
            path.write_text(path.read_text().replace(direct, bent))

    @property
    def links(self) -> list[Link]:
        return [*self.to_server, *self.to_peer]

    def __enter__(self) -> Self:
        self.pair.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pair.__exit__(kind, error, trace)
        for link in self.links:
            link.close()
        self._nursery.close()
        self._loop.close()

    def client(self, role: int, token: str | None) -> httpx.Client:
        """Through the bad link."""
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.to_server[role].port}",
            verify=self.pair.context,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            timeout=CLIENT_TIMEOUT_S,
            trust_env=False,
        )

    def kill(self, role: int) -> None:
        """Like a power cut for the process: no handler runs."""
        with self._restarting[role]:
            if self.pair.processes[role] is not None:
                self.pair.stop(role, kill=True)
                self.kills += 1

    def revive(self, role: int) -> None:
        with self._restarting[role]:
            if self.pair.processes[role] is None:
                self.pair.start(role)

    def signal(self, role: int, number: signal.Signals) -> None:
        """Pause a server or let it go on."""
        with self._restarting[role]:
            process = self.pair.processes[role]
            if process is not None:
                os.kill(process.pid, number)

    def step_clock(self, role: int, seconds: int) -> None:
        self.clocks[role] = seconds
        write_durably(self.pair.folder / f"server{role}" / "clock", str(seconds).encode())

    def heal(self) -> None:
        """Everything works again; what was under way has arrived or is lost."""
        for link in self.links:
            link.settle()
        for role in (0, 1):
            self.step_clock(role, 0)
            self.revive(role)

    def ids(self, role: int, campaign: bytes) -> set[bytes]:
        """What a server has stored of a campaign, read from its disk."""
        return stored_ids(self.pair, role, campaign)

    def complaints(self) -> list[dict[str, Any]]:
        """What the servers' logs say went wrong in a way that nothing here should cause."""
        bad = {"internal-error", "prepare-failed", "key-file-damaged"}
        return [e for role in (0, 1) for e in self.pair.events(role) if e["event"] in bad]


def stored_ids(pair: LivePair, role: int, campaign: bytes) -> set[bytes]:
    path = pair.folder / f"server{role}" / "data" / "server.db"
    with sqlite3.connect(path) as db:
        rows = db.execute(
            "SELECT id FROM uploads WHERE campaign = (SELECT number FROM campaigns WHERE id = ?)", (campaign,)
        ).fetchall()
    db.close()
    return {row[0] for row in rows}
