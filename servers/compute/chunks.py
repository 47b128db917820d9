"""Chunks of a key file on storage that the machines of a cluster share: files of their own, named in a manifest.

    FOLDER/keys-000007      keys of the chunk, in the form of a key file
    FOLDER/proofs-000007    the proofs behind them, where keys are checked
    FOLDER/manifest.json    which key file they come from, their counts and SHA-256 digests; written last

FOLDER is a URL: s3://bucket/prefix, or one that fsspec knows. Who asks a bucket, and where it is, is in the
environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, AWS_REGION), never here. Whoever uses a chunk
compares its digest first. They are copies of keys, so they are erased as soon as their sum is complete, and with the
campaign.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from fss import KeyBatch, proof_file
from fss.keys import KeyType, file_header
from fss.proof_file import open_proofs
from servers.compute.worker import Check, Part, Slice, slice_sum

_READ = 1 << 22


class Damaged(Exception):
    """A chunk is not what was written, or not there."""


@dataclass(frozen=True, repr=False)
class Chunk:
    """One chunk, as a worker is told of it. Does not print."""

    folder: str
    number: int
    count: int
    type: KeyType
    keys: str  # digests
    proofs: str | None
    check: Check | None


def chunk_sum(chunk: Chunk) -> Part:
    """What a worker of the cluster does; a pure function of what the digests name."""
    try:
        return _chunk_sum(chunk)
    except OSError as error:  # the caller would take it for a lost scheduler
        raise Damaged(f"{_name('keys', chunk.number)}: {type(error).__name__}") from None


def _chunk_sum(chunk: Chunk) -> Part:
    with _fetched(f"{chunk.folder}/{_name('keys', chunk.number)}", chunk.keys) as keys:
        if chunk.check is None or chunk.proofs is None:
            return slice_sum(Slice(keys, chunk.type, 0, chunk.count))
        with _fetched(f"{chunk.folder}/{_name('proofs', chunk.number)}", chunk.proofs) as proofs:
            check = Check(proofs, chunk.check.digest, chunk.check.seeds)
            return slice_sum(Slice(keys, chunk.type, 0, chunk.count, check))


def files_of(url: str) -> tuple[Any, str]:
    """A file system, and the path in it."""
    if not url.startswith("s3://"):
        files, path = fsspec.core.url_to_fs(url)
        return files, path
    from obstore.fsspec import FsspecStore  # an extra

    return FsspecStore("s3"), url.removeprefix("s3://")


@contextmanager
def _fetched(url: str, digest: str) -> Iterator[str]:
    """The file, on this machine, once its digest has been compared."""
    files, path = files_of(url)
    if isinstance(files, LocalFileSystem):
        _compare(Path(path), digest)
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "chunk"
        files.get_file(path, str(copy))
        _compare(copy, digest)
        yield str(copy)


def _compare(path: Path, digest: str) -> None:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise Damaged(path.name)


class Chunks:
    """Those of one key file."""

    def __init__(self, folder: str) -> None:
        self._url = folder
        self._files, self._path = files_of(folder)

    def write(self, slices: list[Slice], of: str) -> list[Chunk]:
        """All of them, or those that an earlier run has written of the same keys."""
        if not slices:
            return []
        entries = self._manifest(of, len(slices))
        if entries is None:
            self.erase()
            self._make()
            entries = [self._write_one(number, task) for number, task in enumerate(slices)]
            about = {"of": of, "chunks": entries}
            self._put("manifest.json", json.dumps(about).encode())
        return [
            Chunk(self._url, n, e["count"], task.type, e["keys"], e.get("proofs"), task.check)
            for n, (e, task) in enumerate(zip(entries, slices, strict=True))
        ]

    def erase(self) -> None:
        with suppress(FileNotFoundError):
            self._files.rm(self._path, recursive=True)

    def _make(self) -> None:
        self._files.makedirs(self._path, exist_ok=True)
        if isinstance(self._files, LocalFileSystem):
            Path(self._path).chmod(0o700)

    def _manifest(self, of: str, count: int) -> list[dict[str, Any]] | None:
        try:
            about = json.loads(self._files.cat_file(f"{self._path}/manifest.json"))
            return about["chunks"] if about["of"] == of and len(about["chunks"]) == count else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write_one(self, number: int, task: Slice) -> dict[str, Any]:
        some, type = slice(task.start, task.stop), task.type
        count = task.stop - task.start
        keys = KeyBatch.open(task.path, type.binder, expected=type)[some]
        entry = {"count": count, "keys": self._put(_name("keys", number), file_header(type, count), *keys.words)}
        if task.check is not None:
            words = open_proofs(task.check.proofs, type)[some].words
            body = b"".join([proof_file.header(type, count), *(row.tobytes() for row in words)])
            entry["proofs"] = self._put(_name("proofs", number), body, hashlib.sha256(body).digest())
        return entry

    def _put(self, name: str, *parts: Any) -> str:
        """Returns the digest of what was written."""
        digest = hashlib.sha256()
        with self._files.open(f"{self._path}/{name}", "wb") as file:
            for part in parts:
                data = part if isinstance(part, bytes) else part.tobytes()
                digest.update(data)
                file.write(data)
        return digest.hexdigest()


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number:06d}"
