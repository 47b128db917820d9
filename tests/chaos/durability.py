"""Copies of a server's folder, taken at arbitrary moments while it works, and a server started on each.

    instant    all files at one moment, as a power cut leaves them when the disk kept all it was told
    torn       the same, with the write-ahead log cut at an arbitrary byte and its index gone
    smeared    every file at another moment, as a careless backup leaves them
    spoiled    bytes of one file changed, as a bad disk does

On an instant copy nothing that was acknowledged may be missing. On any copy a server starts, and what it has fits
together, or it says in one line what is damaged.
"""

import json
import random
import shutil
import signal
import sqlite3
import ssl
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

import httpx

from fss_ecdf.campaign.campaign import Campaign
from servers.storage.waves import SEALED
from tests.chaos.model import Batch, Broken
from tests.chaos.operations import new_batch
from tests.harness.fork_server import Forked, ForkServer
from tests.harness.ports import free_ports
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign

KINDS = ("instant", "torn", "smeared", "spoiled")


class Busy:
    """Two servers that are kept busy: uploads all the time, a sealing now and then. Both acknowledged `stored`."""

    def __init__(self, pair: LivePair, seed: int) -> None:
        self._pair, self._rng = pair, random.Random(seed)
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._work)
        self.stored: set[tuple[bytes, bytes]] = set()
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.is_set():
            campaign = new_campaign(min_uploads=1)
            self._pair.create(campaign)
            for _ in range(self._rng.randint(5, 30)):
                self._upload(campaign, new_batch(campaign, self._rng.choice([1, 1, 50]), self._rng))
            self._pair.seal(campaign, role=self._rng.randrange(2))

    def _upload(self, campaign: Campaign, batch: Batch) -> None:
        for role in (0, 1):
            response = self._pair.upload(role, campaign, batch.envelopes[role])
            if response.json().get("failures") != []:
                raise Broken(f"server {role} does not store: {response.text}")
        with self.lock:
            self.stored.update((campaign.id, upload_id) for upload_id in batch.ids)


def try_copies(folder: Path, count: int, seed: int) -> Counter[str]:
    """Take so many copies and start a server on each; counts what came of them."""
    rng, outcomes = random.Random(seed), Counter[str]()
    nursery = ForkServer()
    pair = LivePair(folder, workers="1")
    pair.nursery = nursery
    try:
        with pair, Busy(pair, seed) as busy:
            for number in range(count):
                time.sleep(rng.uniform(0.1, 0.6))
                kind, role = KINDS[number % len(KINDS)], rng.randrange(2)
                with busy.lock:
                    stored = set(busy.stored)
                copy = folder / f"copy{number}"
                _copy(pair, role, copy, kind, rng)
                try:
                    outcome = _start_on(copy, nursery, stored if kind == "instant" else set())
                except Broken as broken:
                    raise Broken(f"copy {number} of seed {seed}, {kind}: {broken}") from broken
                outcomes[f"{kind}: {outcome}"] += 1
                shutil.rmtree(copy)
    finally:
        nursery.close()
    return outcomes


def _copy(pair: LivePair, role: int, target: Path, kind: str, rng: random.Random) -> None:
    source, process = pair.folder / f"server{role}", pair.processes[role]
    assert isinstance(process, Forked)
    if kind == "smeared":
        _copy_files(source, target, rng, pause=0.1)
        return
    process.send(signal.SIGSTOP)
    try:
        _copy_files(source, target, rng, pause=0.0)
    finally:
        process.send(signal.SIGCONT)
    log = target / "data" / "server.db-wal"
    if kind == "torn" and log.exists():
        index = target / "data" / "server.db-shm"
        data, least = log.read_bytes(), _on_disk(index, log)
        index.unlink(missing_ok=True)
        log.write_bytes(data[: rng.randrange(least, len(data) + 1)])
    if kind == "spoiled":
        _spoil(rng.choice(sorted(p for p in (target / "data").rglob("*") if p.is_file() and p.stat().st_size)), rng)


def _on_disk(index: Path, log: Path) -> int:
    """Up to where a log was synced for certain: a checkpoint has begun to move that into the database."""
    if not index.exists() or log.stat().st_size < 32:
        return 0
    page = int.from_bytes(log.read_bytes()[8:12], "big")
    moved = int.from_bytes(index.read_bytes()[128:132], sys.byteorder)  # nBackfillAttempted of SQLite's WAL index
    return min(log.stat().st_size, 32 + moved * (24 + page))


def _copy_files(source: Path, target: Path, rng: random.Random, pause: float) -> None:
    files = sorted(p for p in source.rglob("*") if p.is_file())
    rng.shuffle(files)
    for file in files:
        time.sleep(rng.uniform(0, pause) if file.parent.name == "data" else 0)
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if file.exists():  # not, if it was partial and is complete now
            shutil.copy(file, copy)


def _spoil(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 20)):
        data[rng.randrange(len(data))] ^= rng.randint(1, 255)
    path.write_bytes(data)


def _start_on(copy: Path, nursery: ForkServer, stored: set[tuple[bytes, bytes]]) -> str:
    """What a server says that is started there: that it is ready, or what is damaged."""
    port, _ = free_ports()
    config, log = copy / "server.toml", copy / "log"
    # Not in reach of the other server, which would take it for one that was rolled back.
    others = {"listen": f'listen = "127.0.0.1:{port}"', "url": 'url = "https://127.0.0.1:1"'}
    lines = [others.get(line.split(" =")[0], line) for line in config.read_text().splitlines()]
    config.write_text("\n".join(lines) + "\n")
    process = nursery.start(config, log)
    try:
        if not _ready(process, copy, port):
            return _last_words(log)
        phases = _phases(copy, port)
        _check_rows(copy / "data" / "server.db", stored)
    finally:
        process.kill()
        process.wait()
    if "Traceback" in log.read_text():
        raise Broken(log.read_text())
    return "ready" if set(phases) <= {"ready"} else "says which campaign is damaged"


def _last_words(log: Path) -> str:
    said = log.read_text().splitlines()
    why = str(json.loads(said[-1]).get("why", "")) if said and said[-1].startswith("{") else ""
    if not why.startswith("the database ") or "Traceback" in log.read_text():
        raise Broken(f"it does not start and does not say why: {said}")
    return "says that the database is damaged"


def _client(copy: Path, port: int) -> httpx.Client:
    token = (copy / "operator.token").read_text().strip()
    context = ssl.create_default_context(cafile=str(copy / "peer-ca.pem"))  # one authority for both servers of a pair
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(
        base_url=f"https://127.0.0.1:{port}", verify=context, headers=headers, trust_env=False, timeout=60
    )


def _ready(process: Forked, copy: Path, port: int) -> bool:
    until = time.monotonic() + 30
    with _client(copy, port) as client:
        while process.poll() is None:
            try:
                if client.get("/readyz").status_code == 200:
                    return True
            except httpx.HTTPError:
                pass
            if time.monotonic() > until:
                raise Broken("it neither starts nor ends")
            time.sleep(0.02)
    return False


def _phases(copy: Path, port: int) -> list[str]:
    """What has become of the sealed campaigns: evaluated, or failed with a reason."""
    phases = []
    with _client(copy, port) as client:
        for campaign in client.get("/v1/campaigns").json():
            until = time.monotonic() + 60
            while campaign["state"] == SEALED:
                status = client.get(f"/v1/campaigns/{campaign['id']}/status").json()
                if status.get("phase") == "failed" and "restore" not in status["problem"]:
                    raise Broken(f"a campaign failed and does not say what to do: {status}")
                if status.get("phase") in ("ready", "failed"):
                    phases.append(status["phase"])
                    break
                if time.monotonic() > until:
                    raise Broken(f"a sealed campaign is never ready: {status}")
                time.sleep(0.02)
    return phases


def _check_rows(path: Path, stored: set[tuple[bytes, bytes]]) -> None:
    with sqlite3.connect(path) as db:
        rows = set(db.execute("SELECT c.id, u.id FROM uploads u JOIN campaigns c ON c.number = u.campaign").fetchall())
        unsealed = "SELECT id, stored FROM campaigns JOIN waves ON campaign = id WHERE state IN ('open', 'frozen')"
        counts = dict(db.execute(unsealed).fetchall())
    db.close()
    if lost := stored - rows:
        raise Broken(f"{len(lost)} acknowledged uploads are lost")
    if counts != {campaign: sum(row[0] == campaign for row in rows) for campaign in counts}:
        raise Broken("numbers of uploads do not fit the rows")
