"""What it costs two servers to agree on the uploads that reached both: bytes between them, memory, seconds.

Two real servers, TLS through a proxy that counts. Their databases are filled past them, in no order of ids, with rows
of a key's size that are not keys. What follows a sealing, keys into a file and their evaluation, is no part of the
figures: these servers have no background.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from bench.measure import reset_peak, status_mb
from bench.output import Result
from bench.scale.ingest import KEY_BYTES
from bench.system.uploading import new_campaign
from fss_ecdf.campaign.campaign import Campaign
from servers.storage.database import open_engine
from servers.storage.dialects.postgres import partition
from servers.storage.key_files import split_ids
from tests.harness.postgres import Postgres
from tests.harness.proxy import Proxy
from tests.harness.server_pair import LivePair, name

CLAIMED = 10_000_000
ALONE = 500  # ids of each server that the other one does not have
A_COMMIT = 1_000_000
SECONDS = 3600  # that a sealing may take
_INSERT = "INSERT INTO uploads (campaign, id, leaf, key, wave) VALUES (?, ?, ?, ?, 0)"
_COPY = "COPY {} (campaign, id, leaf, key, wave) FROM STDIN (FORMAT BINARY)"

Fresh = Callable[[Path], str]  # the URL of a new database, in this folder if it is a file


@dataclass(frozen=True)
class Cost:
    """Of one sealing."""

    mb: float  # between the servers, both ways
    rss_mb: float  # of the larger one at its peak: all of the process
    idle_mb: float  # of the same before it began
    s: float


def databases(postgres: Postgres | None) -> dict[str, Fresh]:
    fresh: dict[str, Fresh] = {"sqlite": lambda folder: f"sqlite:///{tempfile.mkdtemp(dir=folder)}/server.db"}
    return fresh if postgres is None else {**fresh, "postgres": lambda _: postgres.database()}


def results(count: int, seed: int, folder: Path, postgres: Postgres | None) -> tuple[list[Result], dict[str, float]]:
    """The larger figures of the databases, the claim's only where as many ids were sealed as it names; and all."""
    figures: dict[str, float] = {}
    for database, fresh in databases(postgres).items() if count else ():
        cost = sealed(fresh, folder, count, seed)
        figures |= {f"seal_{what}_{database}": round(value, 3) for what, value in vars(cost).items()}
    what = f"sealing {count} ids, {2 * ALONE} of them of one server only"
    rows = [
        Result(key, value, f"seconds, {what}, {key[7:]}") for key, value in figures.items() if key.startswith("seal_s_")
    ]
    for key, limit, of in (
        ("mb", 20, "MB between both servers"),
        ("rss_mb", 300, "MB of memory of the larger server at its peak"),
    ):
        value = max((figure for name, figure in figures.items() if name.startswith(f"seal_{key}_")), default=None)
        if count == CLAIMED:
            rows.append(Result.at_most(f"seal_10m_{key}", value, limit, f"{of}, {what}"))
        else:
            rows.append(Result(f"seal_{key}", value, f"{of}, {what}"))
            rows.append(Result.at_most(f"seal_10m_{key}", None, limit, f"the same with --sealed {CLAIMED}"))
    return rows, figures


def sealed(fresh: Fresh, folder: Path, count: int, seed: int) -> Cost:
    campaign = new_campaign(16, max_uploads=count)
    with tempfile.TemporaryDirectory(dir=folder) as place, _pair(Path(place), fresh) as (pair, urls, proxies):
        pair.create(campaign)
        for role, url in enumerate(urls):
            fill(url, campaign, ids_of(role, count, seed))
        pair.agree(campaign, 1)
        pids = [_pid(pair, role) for role in (0, 1)]
        for pid in pids:
            reset_peak(pid)
        before, sent = [status_mb(pid, "VmHWM") for pid in pids], _bytes(proxies)
        started = time.perf_counter()
        with pair.client(0, pair.servers[0].operator, SECONDS) as operator:
            answer = operator.post(f"/v1/campaigns/{name(campaign)}/seal")
        seconds = time.perf_counter() - started
        peaks, sent = [status_mb(pid, "VmHWM") for pid in pids], _bytes(proxies) - sent
        _require_sealed(answer.json(), pair.status(campaign, 1), count)
        return Cost(sent / 1e6, max(peaks), before[int(np.argmax(peaks))], seconds)


class _Sealers(LivePair):
    program = ("bench.scale.sealer",)


@contextmanager
def _pair(folder: Path, fresh: Fresh) -> Iterator[tuple[LivePair, Sequence[str], Sequence[Proxy]]]:
    """Two servers on new databases that reach each other through proxies."""
    pair, urls = _Sealers(folder), (fresh(folder), fresh(folder))
    with ExitStack() as opened:
        proxies = [opened.enter_context(Proxy(port)) for port in pair.ports]
        for role in (0, 1):
            pair.configure(role, database=f'"{urls[role]}"')
            pair.reach_peer_at(role, proxies[1 - role].port)
        opened.enter_context(pair)
        yield pair, urls, proxies


def _pid(pair: LivePair, role: int) -> int:
    process = pair.processes[role]
    assert process is not None
    return process.pid


def _bytes(proxies: Sequence[Proxy]) -> int:
    return sum(proxy.count().bytes for proxy in proxies)


def _require_sealed(here: dict[str, Any], there: dict[str, Any], count: int) -> None:
    """Both servers have the set that they should have; a figure about anything else would be about nothing."""
    good = here.get("count") == count - ALONE and here.get("unmatched") == {"here": ALONE, "there": ALONE}
    if not good or (there["state"], there["checksum"]) != ("sealed", here["checksum"]):
        raise RuntimeError(f"not the set that reached both: {here}, {there}")


def ids_of(role: int, count: int, seed: int) -> Iterator[bytes]:
    """Random ids, part by part: those of both servers, and a few of this one's own among them."""
    common, own = np.random.default_rng([seed, 2]), np.random.default_rng([seed, role])
    left = count - ALONE
    yield own.bytes(16 * ALONE)
    while left:
        part = min(left, A_COMMIT)
        yield common.bytes(16 * part)
        left -= part


def fill(url: str, campaign: Campaign, parts: Iterator[bytes]) -> None:
    """Put rows into a server's database beside it."""
    engine = open_engine(url)
    with closing(engine.connect()) as db:
        one = sa.text("SELECT number FROM campaigns WHERE id = :id")
        number = int(db.execute(one, {"id": campaign.id}).scalar_one())
    put = _into_sqlite if engine.dialect.name == "sqlite" else _into_postgres
    stored = put(engine, number, parts)
    with engine.begin() as db:
        db.execute(sa.text("UPDATE campaigns SET stored = :n WHERE number = :of"), {"n": stored, "of": number})
    engine.dispose()


def _into_sqlite(engine: Engine, number: int, parts: Iterator[bytes]) -> int:
    stored, key = 0, bytes(KEY_BYTES)
    with closing(engine.raw_connection()) as db:
        db.cursor().execute("PRAGMA cache_size = -2000000")  # its index grows everywhere at once
        for part in parts:
            db.cursor().executemany(_INSERT, [(number, upload_id, 2 * upload_id, key) for upload_id in split_ids(part)])
            db.commit()
            stored += len(part) // 16
    return stored


def _into_postgres(engine: Engine, number: int, parts: Iterator[bytes]) -> int:
    stored, key = 0, bytes(KEY_BYTES)
    with closing(engine.raw_connection()) as db:
        for part in parts:
            cursor: Any = db.cursor()
            with cursor.copy(_COPY.format(partition(number))) as copy:
                copy.set_types(["int4", "bytea", "bytea", "bytea", "int4"])
                for upload_id in split_ids(part):
                    copy.write_row((number, upload_id, 2 * upload_id, key, 0))
            db.commit()
            stored += len(part) // 16
    return stored
