"""How many uploads a second a database takes: PostgreSQL with a process more than SQLite can have, and single ones."""

import asyncio
import multiprocessing
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from fss_ecdf.campaign.binary_messages import Row
from fss_ecdf.campaign.campaign import Campaign
from servers.storage.admission import NewUploads
from servers.storage.storage import Storage, Writer
from tests.harness.postgres import Postgres

KEY_BYTES, A_COMMIT, AT_ONCE = 400, 1000, 64
TOGETHER_S = 300  # until all writers are ready, or one has failed

Fresh = Callable[[], str]  # the URL of a new database


def databases(folder: Path, postgres: Postgres) -> dict[str, Fresh]:
    def sqlite() -> str:
        return f"sqlite:///{tempfile.mkdtemp(dir=folder)}/server.db"

    return {"sqlite": sqlite, "postgres": postgres.database}


def bulk(url: str, campaign: Campaign, count: int, writers: int) -> float:
    """Keys a second, so many in a commit, by processes that begin together."""
    with closing(Storage(url)) as storage:
        storage.campaigns.add(campaign, "0" * 64, [])
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(writers + 1)
    each = [context.Process(target=_write, args=(url, campaign.id, count // writers, ready)) for _ in range(writers)]
    for process in each:
        process.start()
    ready.wait(TOGETHER_S)
    started = time.perf_counter()
    for process in each:
        process.join()
    seconds = time.perf_counter() - started
    if any(process.exitcode for process in each):
        raise RuntimeError("a writer failed")
    return count // writers * writers / seconds


def _write(url: str, campaign: bytes, count: int, ready: "multiprocessing.synchronize.Barrier") -> None:
    batches = [_rows(min(A_COMMIT, count - start)) for start in range(0, count, A_COMMIT)]
    with closing(Storage(url, look=True)) as storage:
        storage.ping()
        ready.wait(TOGETHER_S)
        for rows in batches:
            if storage.uploads.add([NewUploads(campaign, rows)]) != [[]]:
                os._exit(1)


def _rows(count: int) -> list[Row]:
    body = secrets.token_bytes(KEY_BYTES + count)
    ids = secrets.token_bytes(16 * count)
    return [(ids[16 * i : 16 * i + 16], body[i : i + 32], body[i : i + KEY_BYTES]) for i in range(count)]


def fill(url: str, campaign: Campaign, count: int) -> tuple[float, float]:
    """Keys a second of the first and of the last tenth, as one campaign grows to so many."""
    with closing(Storage(url)) as storage:
        storage.campaigns.add(campaign, "0" * 64, [])
        rates, tenth = [], count // 10
        for _ in range(10):
            spent = 0.0
            for _ in range(0, tenth, A_COMMIT):
                rows = _rows(A_COMMIT)
                started = time.perf_counter()
                storage.uploads.add([NewUploads(campaign.id, rows)])
                spent += time.perf_counter() - started
            rates.append(tenth / spent)
        storage.campaigns.delete(campaign.id)
    return rates[0], rates[-1]


def singles(url: str, campaign: Campaign, count: int) -> float:
    """Uploads of one key a second, many at a time, through the group commit of one process."""
    with closing(Storage(url)) as storage:
        storage.campaigns.add(campaign, "0" * 64, [])
        return asyncio.run(_singles(storage, campaign.id, count))


async def _singles(storage: Storage, campaign: bytes, count: int) -> float:
    writer, left = Writer(storage.uploads), _rows(count)

    async def send() -> None:
        while left:
            if await writer.add(NewUploads(campaign, [left.pop()])):
                raise RuntimeError("an upload failed")

    started = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - started
    await writer.close()
    return count / seconds
