"""Evaluation on a real Dask cluster: the same sums, bit for bit, whatever is killed; and a stall that is said."""

import asyncio
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss import KeyBatch, dcf, field
from fss_ecdf.campaign.errors import NotReady
from fss_ecdf.cli.common import UsageError
from servers.compute import cluster as cluster_module
from servers.compute.chunks import Chunks, Damaged, chunk_sum
from servers.compute.cluster import DaskCluster
from servers.compute.executor import LocalPool
from servers.compute.sums import BadPart, KeyFile, Sum, complete
from servers.compute.worker import Part, Slice
from servers.maintenance import diagnostics
from servers.settings import Cluster, load
from servers.storage.key_files import chunk_folder, file_digest
from tests.harness.dask import Dask
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign, values

BITS, KEYS, BINDER = 9, 2000, b"b" * 32


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFile:
    path = tmp_path_factory.mktemp("keys") / "keys"
    alphas = np.random.default_rng(1).integers(0, 1 << BITS, KEYS)
    batch, _ = dcf.gen(alphas, bits=BITS, binder=BINDER, rand=os.urandom(KEYS * dcf.RAND_BYTES))
    batch.save(path)
    return KeyFile(path, batch.type, file_digest(path), KEYS)


def direct(file: KeyFile) -> np.ndarray[Any, Any]:
    return dcf.sum_over_domain(KeyBatch.open(file.path, BINDER))


def fresh(file: KeyFile) -> KeyFile:
    file.sum_path.unlink(missing_ok=True)
    return file


async def nothing(_: float) -> None: ...


def test_a_chunk_is_what_its_digest_says_or_nothing(keys: KeyFile, tmp_path: Path) -> None:
    slices = [Slice(str(keys.path), keys.type, s, min(s + 300, KEYS)) for s in range(0, KEYS, 300)]
    made = Chunks(str(tmp_path / "chunks"))
    chunks = made.write(slices, "these")
    total = np.zeros(1 << BITS, np.uint64)
    for chunk in chunks:
        total = field.add(total, chunk_sum(chunk).sums)
    assert (total == direct(keys)).all()
    manifest = json.loads((tmp_path / "chunks" / "manifest.json").read_text())
    assert sum(entry["count"] for entry in manifest["chunks"]) == KEYS
    damaged = tmp_path / "chunks" / "keys-000003"
    right = damaged.read_bytes()
    assert hashlib.sha256(right).hexdigest() == manifest["chunks"][3]["keys"]
    damaged.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(Damaged):
        chunk_sum(chunks[3])
    # Another run finds them; of other keys, or without a manifest, they are written anew.
    assert [c.keys for c in made.write(slices, "these")] == [c.keys for c in chunks]
    assert damaged.read_bytes() != right
    made.write(slices, "others")
    assert damaged.read_bytes() == right
    made.erase()
    assert not (tmp_path / "chunks").exists()


@pytest.mark.parametrize(
    "sums",
    [
        np.ones(1, np.uint64),  # numpy would add it to every position
        np.ones((1 << BITS, 1), np.uint64),
        np.ones(1 << BITS, np.int64),
        np.full(1 << BITS, field.P, np.uint64),
    ],
)
def test_a_part_of_another_form_is_not_added(keys: KeyFile, sums: np.ndarray[Any, Any]) -> None:
    whole = Sum(replace(fresh(keys), slice=KEYS))
    with pytest.raises(BadPart):
        whole.add(0, Part(sums, np.empty((3, 0), np.uint64)))
    assert not whole.done
    assert not whole.total.any()
    whole.add(0, Part(direct(keys), np.empty((3, 0), np.uint64)))
    with pytest.raises(AssertionError):
        whole.add(0, Part(direct(keys), np.empty((3, 0), np.uint64)))
    assert (whole.total == direct(keys)).all()


def test_a_saved_sum_is_of_these_keys_or_not_used(keys: KeyFile) -> None:
    """Of others, or by another challenge, it would leave with the noise of these."""
    whole = Sum(replace(fresh(keys), slice=KEYS))
    whole.add(0, Part(direct(keys), np.empty((3, 0), np.uint64)))
    whole.save()
    assert Sum(keys).is_complete
    other = replace(keys, digest=bytes(32))
    assert not Sum(other).done
    assert not Sum(other).total.any()
    saved = keys.sum_path.read_bytes()
    keys.sum_path.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    assert not Sum(keys).done
    fresh(keys)


def test_chunks_lie_where_an_fsspec_url_says(keys: KeyFile) -> None:
    slices = [Slice(str(keys.path), keys.type, 0, KEYS)]
    made = Chunks("memory://bucket/campaign/keys")
    assert (chunk_sum(made.write(slices, "these")[0]).sums == direct(keys)).all()
    made.erase()


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ('scheduler = "tls://dask:8786"', "tls:// needs ca, certificate and key"),
        ('scheduler = "tcp://dask:8786"', "whoever reaches it reads keys and runs programs; use tls://"),
        ('scheduler = "dask"', "cluster.scheduler"),
    ],
)
def test_a_cluster_without_tls_is_refused(tmp_path: Path, section: str, why: str) -> None:
    config = LivePair(tmp_path).folder / "server0" / "server.toml"
    config.write_text(config.read_text() + f"\n[cluster]\n{section}\n")
    with pytest.raises(UsageError, match=why):
        load(config)


def test_a_stall_is_said(keys: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "STALL_S", 0.5)
    monkeypatch.setattr(cluster_module, "CONNECT_S", 0.2)
    executor = DaskCluster(Cluster(scheduler="tcp://127.0.0.1:9", chunk_keys=500))
    with pytest.raises(NotReady, match=r"no worker at the Dask scheduler tcp://127.0.0.1:9 for 0.5 s"):
        asyncio.run(complete(fresh(keys), executor, nothing))
    executor.close()
    assert chunk_folder(keys.path).exists()


def test_chunks_of_one_who_was_killed_with_the_sum_complete_are_erased(keys: KeyFile, tmp_path: Path) -> None:
    """It saves the sum, then erases the chunks; whoever goes on with the job finds the sum and nothing to do."""
    pool = LocalPool(1)
    asyncio.run(complete(fresh(keys), pool, nothing))
    pool.close()
    executor = DaskCluster(Cluster(scheduler="tcp://127.0.0.1:9", chunks=f"file://{tmp_path}/chunks"))
    asyncio.run(executor.prepare(keys.path, keys.slices(), keys.name()))
    assert list((tmp_path / "chunks").rglob("keys-*"))
    assert asyncio.run(complete(keys, executor, nothing)).is_complete
    assert not list((tmp_path / "chunks").rglob("keys-*"))


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    with Dask(tmp_path_factory.mktemp("dask")) as started:
        started.wait(120)
        yield started


def executor_at(dask: Dask, chunk_keys: int) -> DaskCluster:
    return DaskCluster(Cluster.model_validate({"scheduler": dask.address, "chunk_keys": chunk_keys, **dask.tls}))


@pytest.mark.faults
def test_doctor_looks_at_the_cluster(dask: Dask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_S", 2)
    settings = Cluster.model_validate({"scheduler": dask.address, **dask.tls})
    found = diagnostics.cluster(settings)
    assert (found.verdict, "workers" in found.detail) == (diagnostics.OK, True)
    away = diagnostics.cluster(Cluster(scheduler="tcp://127.0.0.1:9"))
    assert (away.verdict, "does not answer" in away.detail) == (diagnostics.WRONG, True)


@pytest.mark.faults
def test_sums_are_those_of_one_machine(keys: KeyFile, dask: Dask) -> None:
    executor = executor_at(dask, 150)
    seen: list[float] = []

    async def report(done: float) -> None:
        seen.append(done)

    total = asyncio.run(complete(fresh(keys), executor, report)).total
    executor.close()
    assert (total == direct(keys)).all()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert not chunk_folder(keys.path).exists()
    # Whole, it is whole for the local pool too, which cuts otherwise.
    pool = LocalPool(1)
    assert (asyncio.run(complete(keys, pool, nothing)).total == total).all()
    pool.close()


@pytest.mark.faults
@pytest.mark.parametrize("victim", ["worker0", "scheduler"])
def test_what_is_killed_costs_time_and_no_chunk(
    keys: KeyFile, dask: Dask, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    monkeypatch.setattr(cluster_module, "STALL_S", 300.0)  # a busy machine starts a scheduler slowly
    executor, added, ended = executor_at(dask, 64), [], threading.Event()

    def supervise() -> None:
        while not ended.wait(0.3):
            dask.supervise()

    async def report(done: float) -> None:
        added.append(done)
        if len(added) == 12:
            dask.kill(victim)
            await asyncio.sleep(0.5)
            dask.start(victim)

    keeper = threading.Thread(target=supervise)
    keeper.start()
    started = time.monotonic()
    try:
        total = asyncio.run(complete(fresh(keys), executor, report)).total
    finally:
        ended.set()
        keeper.join()
        executor.close()
    assert (total == direct(keys)).all()
    assert added == sorted(added)  # nothing that was finished is done again
    print(f"{victim}: {time.monotonic() - started:.1f} s")


@pytest.mark.faults
@pytest.mark.parametrize("what", ["damaged", "missing"])
def test_a_chunk_that_cannot_be_read_fails_the_job_and_is_written_anew(
    keys: KeyFile, dask: Dask, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    executor, chunk = executor_at(dask, 500), chunk_folder(keys.path) / "keys-000002"
    real = DaskCluster.prepare

    async def spoilt(self: DaskCluster, path: Path, slices: list[Slice], of: str) -> None:
        await real(self, path, slices, of)
        if what == "missing":
            chunk.unlink()
        else:
            kept = chunk.read_bytes()
            chunk.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))

    async def twice() -> np.ndarray[Any, Any]:
        monkeypatch.setattr(DaskCluster, "prepare", spoilt)
        async with asyncio.timeout(60):
            with pytest.raises(Damaged):
                await complete(fresh(keys), executor, nothing)
        monkeypatch.setattr(DaskCluster, "prepare", real)
        return (await complete(keys, executor, nothing)).total

    total = asyncio.run(twice())
    executor.close()
    assert (total == direct(keys)).all()


@pytest.mark.faults
def test_a_server_checks_and_evaluates_there(tmp_path: Path, dask: Dask) -> None:
    """Keys are checked in the same pass; the other server evaluates on its own machine, and both fit."""
    pair = LivePair(tmp_path)
    config = pair.folder / "server0" / "server.toml"
    config.write_text(config.read_text() + dask.settings())
    campaign = new_campaign(check_keys=True)
    with pair:
        pair.create(campaign)
        positions = campaign.to_positions(values(300)).positions
        pair.upload_values(campaign, positions)
        pair.seal(campaign)
        pair.wait_ready(campaign, seconds=120)
        first, second = (pair.ask(role, campaign, "curve")["counts"] for role in (0, 1))
    assert first == second
