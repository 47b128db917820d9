"""What an upload costs a server, in its own CPU time: over a /healthz, and over SQLite alone."""

import argparse
import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from bench.output import Result
from bench.system.connection import Connection
from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.sealed_uploads import seal_upload
from servers.storage.storage import Storage
from tests.harness.server_pair import LivePair, envelopes, name

ROUNDS = 5
PER_REQUEST = 1000
BULKS = 20  # requests of a round
_INSERT = "INSERT INTO uploads (campaign, id, leaf, key, wave) VALUES (1, ?, ?, ?, 0)"


def results(args: argparse.Namespace, campaign: Campaign) -> list[Result]:
    """Interleaved rounds of all four, one connection, one request after the other; medians of the ratios."""
    singles = args.singles // ROUNDS
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder)) as pair:
        pair.create(campaign)
        process = pair.processes[0]
        assert process is not None
        token = pair.upload_tokens[campaign.id]
        connection = Connection(pair, 0, token)
        path, pid = f"/v1/campaigns/{name(campaign)}/uploads", process.pid
        rounds = []
        for _ in range(ROUNDS):
            one = [_envelope(campaign, 1) for _ in range(singles)]
            many = [_envelope(campaign, PER_REQUEST) for _ in range(BULKS)]
            sealed, sealed_many = ([seal_upload(campaign, 0, body, token) for body in bodies] for bodies in (one, many))
            single, share = _cpu(pid, sealed, lambda body: connection.post(path, body))
            health, _ = _cpu(pid, one, lambda _: connection.get("/healthz"))
            bulk, bulk_share = _cpu(pid, sealed_many, lambda body: connection.post(path, body))
            raw = _sqlite(Path(folder), campaign, many)
            rounds.append((single, health, bulk / PER_REQUEST, raw, share, bulk_share))
    single, health, bulk, raw, share, bulk_share = (statistics.median(column) for column in zip(*rounds, strict=True))
    return [
        Result("single_cpu_ms", 1000 * single, "CPU of the server for one upload of a checked key, D = 16"),
        Result("health_cpu_ms", 1000 * health, "CPU of the server for one /healthz on the same connection"),
        Result.at_most("single_cpu_vs_health", _ratio(rounds, 0, 1), 5, "one over the other"),
        Result("single_client_share", share, "of the CPU of both, what this client took for single uploads"),
        Result("bulk_cpu_us", 1e6 * bulk, f"CPU of the server for a key, {PER_REQUEST} a request"),
        Result("sqlite_cpu_us", 1e6 * raw, "CPU of sqlite3 for the same rows, same table, same commits"),
        Result.at_most("bulk_cpu_vs_sqlite", _ratio(rounds, 2, 3), 2, "one over the other"),
        Result("bulk_client_share", bulk_share, "of the CPU of both, what this client took for bulk uploads"),
    ]


def _ratio(rounds: Sequence[tuple[float, ...]], above: int, below: int) -> float:
    return statistics.median(one[above] / one[below] for one in rounds)


def _envelope(campaign: Campaign, count: int) -> bytes:
    return envelopes(campaign, np.frombuffer(secrets.token_bytes(2 * count), np.uint16).astype(np.int64))[0]


def _cpu(pid: int, bodies: Sequence[bytes], send: Callable[[bytes], bytes]) -> tuple[float, float]:
    """Seconds of the server's CPU for one request, and the client's part of all CPU."""
    before, mine = _cpu_of(pid), time.process_time()
    for body in bodies:
        send(body)
    server, client = _cpu_of(pid) - before, time.process_time() - mine
    return server / len(bodies), client / (client + server)


def _cpu_of(pid: int) -> float:
    """User and system time of a process, its threads included, to the nanosecond: Linux has a clock for each."""
    return time.clock_gettime(~pid << 3 | 2)


def _sqlite(folder: Path, campaign: Campaign, bodies: Sequence[bytes]) -> float:
    """Seconds of CPU a key: the driver inserts the same rows into such a table as the servers', as durably."""
    path = folder / "alone.db"  # kept from round to round, so that it grows like the server's
    if not path.exists():
        Storage(f"sqlite:///{path}").close()
    rows = [upload_rows(body, campaign, 0)[1] for body in bodies]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            db.execute(f"PRAGMA {pragma}")
        started = time.process_time()
        for some in rows:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(_INSERT, some)
            db.execute("COMMIT")
        return (time.process_time() - started) / (len(bodies) * PER_REQUEST)
