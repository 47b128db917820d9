"""Chunks of keys in a bucket of a real S3-compatible store: the same sums, nothing left, damage noticed."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fss import KeyBatch, dcf
from fss_ecdf.cli.common import UsageError
from servers.compute.chunks import Chunks, Damaged, chunk_sum
from servers.compute.cluster import DaskCluster
from servers.compute.sums import KeyFile, complete
from servers.compute.worker import Slice
from servers.server import executor_for
from servers.settings import Cluster, load
from servers.storage.key_files import file_digest
from tests.harness.dask import Dask
from tests.harness.s3 import BUCKET, S3, NoStore
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign, values

BITS, BINDER, URL = 9, b"b" * 32, f"s3://{BUCKET}/of/server0"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """Its clients, here and in the cluster, know it from their environment."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            with S3(tmp_path_factory.mktemp("s3") / "store") as started:
                for name, value in started.environment.items():
                    patch.setenv(name, value)
                yield started
        except NoStore as error:
            pytest.skip(str(error))


@pytest.fixture(scope="module")
def dask(store: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    with Dask(tmp_path_factory.mktemp("dask")) as started:
        started.wait(120)
        yield started


def key_file(path: Path, count: int) -> KeyFile:
    alphas = np.random.default_rng(1).integers(0, 1 << BITS, count)
    batch, _ = dcf.gen(alphas, bits=BITS, binder=BINDER, rand=os.urandom(count * dcf.RAND_BYTES))
    batch.save(path)
    return KeyFile(path, batch.type, file_digest(path), count)


def pair_with(dask: Dask, folder: Path) -> LivePair:
    """Servers with this environment, of which the first evaluates there."""
    pair = LivePair(folder)
    pair.nursery = None
    config = pair.folder / "server0" / "server.toml"
    config.write_text(config.read_text() + dask.settings() + f'chunks = "{URL}"\nchunk_keys = 64\n')
    return pair


@pytest.mark.faults
def test_sums_are_those_of_one_machine_and_nothing_is_left(tmp_path: Path, store: S3, dask: Dask) -> None:
    keys, seen = key_file(tmp_path / "keys", 2000), set[str]()
    given = {"scheduler": dask.address, "chunk_keys": 150, "chunks": URL, **dask.tls}
    executor = DaskCluster(Cluster.model_validate(given))

    async def report(_: float) -> None:
        seen.update(store.names())

    total = asyncio.run(complete(keys, executor, report)).total
    executor.close()
    assert (total == dcf.sum_over_domain(KeyBatch.open(keys.path, BINDER))).all()
    assert {name.rsplit("/", 1)[1] for name in seen} == {f"keys-{n:06d}" for n in range(14)} | {"manifest.json"}
    assert store.names() == []


@pytest.mark.faults
def test_a_chunk_in_a_bucket_is_what_its_digest_says_or_nothing(tmp_path: Path, store: S3) -> None:
    """Also one that is sent in several parts: they have up to ten million bytes."""
    count = 49_152
    keys = key_file(tmp_path / "keys", count)
    made = Chunks(f"{URL}/damage")
    chunks = made.write([Slice(str(keys.path), keys.type, 0, count)], "these")
    assert keys.path.stat().st_size > 10_000_000
    assert (chunk_sum(chunks[0]).sums == dcf.sum_over_domain(KeyBatch.open(keys.path, BINDER))).all()
    name = "of/server0/damage/keys-000000"
    right = store.bucket.get(name).bytes().to_bytes()
    store.bucket.put(name, right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(Damaged):
        chunk_sum(chunks[0])
    store.bucket.delete(name)
    with pytest.raises(Damaged, match="FileNotFoundError"):
        chunk_sum(chunks[0])
    for _ in range(2):
        made.erase()
    assert store.names() == []


@pytest.mark.faults
def test_a_server_checks_and_evaluates_there(tmp_path: Path, store: S3, dask: Dask) -> None:
    """The other server evaluates on its own machine, and both fit; the secret is in no file and no log of a server."""
    pair = pair_with(dask, tmp_path)
    campaign = new_campaign(check_keys=True)
    with pair:
        pair.create(campaign)
        pair.upload_values(campaign, campaign.to_positions(values(300)).positions)
        pair.seal(campaign)
        pair.wait_ready(campaign, seconds=120)
        first, second = (pair.ask(role, campaign, "curve")["counts"] for role in (0, 1))
    assert first == second
    assert store.names() == []
    written = b"".join(path.read_bytes() for path in pair.folder.rglob("*") if path.is_file())
    assert written
    assert store.secret.encode() not in written


@pytest.mark.faults
def test_a_store_that_refuses_is_said_without_its_secret(
    tmp_path: Path, store: S3, dask: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another secret")
    pair = pair_with(dask, tmp_path)
    campaign = new_campaign(check_keys=False)
    with pair:
        pair.create(campaign)
        pair.upload_values(campaign, campaign.to_positions(values(300)).positions)
        pair.seal(campaign)
        failed = _failed(pair)
    assert failed["error"] == "PermissionDeniedError"
    assert "another secret" not in pair.log(0)


def _failed(pair: LivePair) -> dict[str, object]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for event in pair.events(0):
            if event["event"] == "prepare-failed":
                return event
        time.sleep(0.1)
    raise AssertionError(pair.log(0))


@pytest.mark.parametrize("url", ["s3://key:hush@bucket/prefix", "s3://hush@bucket"])
def test_a_secret_in_a_url_is_refused(tmp_path: Path, url: str) -> None:
    config = LivePair(tmp_path).folder / "server0" / "server.toml"
    config.write_text(config.read_text() + f'\n[cluster]\nscheduler = "tcp://127.0.0.1:9"\nchunks = "{url}"\n')
    with pytest.raises(UsageError, match="who asks is no part of the URL") as refused:
        load(config)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "why"), [("s3://bucket", r"needs obstore: pip install 'fss-ecdf\[server,cluster,s3\]'"), ("s4://b", "s4")]
)
def test_storage_that_cannot_be_used_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    monkeypatch.setitem(sys.modules, "obstore.fsspec", None)
    config = LivePair(tmp_path).folder / "server0" / "server.toml"
    config.write_text(config.read_text() + f'\n[cluster]\nscheduler = "tcp://127.0.0.1:9"\nchunks = "{url}"\n')
    with pytest.raises(UsageError, match=why):
        executor_for(load(config))
