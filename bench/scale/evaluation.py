"""Processor time of the same sum by the local pool and by a Dask cluster on this machine."""

import asyncio
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fss import dcf
from servers.compute.cluster import DaskCluster
from servers.compute.executor import Executor, LocalPool
from servers.compute.sums import KeyFile, complete
from servers.settings import Cluster
from servers.storage.key_files import file_digest
from tests.harness.dask import Dask

PART = 20_000


def key_file(folder: Path, keys: int, bits: int, seed: int) -> KeyFile:
    """So many keys of one party: a few, repeated, for how long a sum takes does not depend on what they share."""
    rng, binder, few = np.random.default_rng(seed), b"bench" * 6, min(PART, keys)
    batch, _ = dcf.gen(rng.integers(0, 1 << bits, few), bits=bits, binder=binder, rand=os.urandom(few * dcf.RAND_BYTES))
    path = folder / "keys"
    batch.take(np.arange(keys) % few).save(path)
    return KeyFile(path, batch.type, file_digest(path), keys)


async def _quiet(_: float) -> None: ...


def summed(file: KeyFile, executor: Executor) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    file.sum_path.unlink(missing_ok=True)
    return asyncio.run(complete(file, executor, _quiet)).total


def by_pool(file: KeyFile, workers: int) -> tuple[float, float, bytes]:
    """Processor seconds, seconds, and the sum."""
    before, started = _own(), time.perf_counter()
    pool = LocalPool(workers)
    total = summed(file, pool)
    seconds = time.perf_counter() - started
    pool.close()
    return _own() - before, seconds, total.tobytes()


def by_dask(file: KeyFile, dask: Dask, chunk_keys: int) -> tuple[float, float, bytes]:
    """The same; the cluster runs already, as it would."""
    given = {"scheduler": dask.address, "chunk_keys": chunk_keys, **dask.tls}
    executor = DaskCluster(Cluster.model_validate(given))
    before, started = _own() + dask.cpu_seconds(), time.perf_counter()
    total = summed(file, executor)
    seconds = time.perf_counter() - started
    executor.close()
    return _own() + dask.cpu_seconds() - before, seconds, total.tobytes()


def _own() -> float:
    """Of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Dask]:
    with Dask(folder / "dask", workers) as dask:
        dask.wait(120)
        yield dask
