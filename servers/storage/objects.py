"""Files beside the database: the keys of a sealed set, level-major and mapped by every evaluation, and whole curves.

All of them can be made again. The key file is made from the rows of the database in one scan in the order of their ids;
its digest is kept in the database, so that damage is noticed, and names what else belongs to it.
"""

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from campaign.files import sync_directory, write_durably
from campaign.spec import to_base64url
from campaign.wire import UPLOAD_ID_BYTES
from fss import KeyBatch, KeyType
from fss.keys import FILE_HEADER_BYTES, file_header

CHUNK = 8192
_READ = 1 << 22
_SET = b"fss-ecdf key set 1\n"
_DIGEST = 32


def set_checksum(ids: bytes) -> bytes:
    """What both servers compare: the sorted ids of the agreed uploads."""
    return hashlib.sha256(_SET + ids).digest()


def split_ids(ids: bytes) -> list[bytes]:
    return [ids[i : i + UPLOAD_ID_BYTES] for i in range(0, len(ids), UPLOAD_ID_BYTES)]


class Folder:
    """The files of one campaign."""

    def __init__(self, data: Path, campaign: bytes) -> None:
        self.path = data / to_base64url(campaign)

    @property
    def keys(self) -> Path:
        return self.path / "keys"

    def make(self) -> None:
        self.path.mkdir(exist_ok=True, mode=0o700)

    def erase(self) -> None:
        """All of it, also what somebody at work on it would write now: that has no folder any more."""
        erased = self.path.with_name(self.path.name + ".erased")
        shutil.rmtree(erased, ignore_errors=True)  # what an interruption left
        with suppress(FileNotFoundError):
            self.path.rename(erased)
        if erased.exists():
            shutil.rmtree(erased)

    def save_curve(self, kind: str, covers: bytes, values: NDArray[np.int64] | NDArray[np.uint64]) -> None:
        """Named after the ids and keys it was computed from, so that nothing else is answered with it."""
        body = io.BytesIO()
        np.save(body, values)
        write_durably(self._curve(kind, covers), hashlib.sha256(body.getvalue()).digest() + body.getvalue())

    def load_curve(self, kind: str, covers: bytes, bits: int, dtype: type[np.generic]) -> NDArray[np.generic] | None:
        """A curve of so many bits, if it was saved and is whole."""
        try:
            data = self._curve(kind, covers).read_bytes()
        except OSError:
            return None
        digest, body = data[:_DIGEST], data[_DIGEST:]
        if hashlib.sha256(body).digest() != digest:
            return None
        values = np.load(io.BytesIO(body), allow_pickle=False)
        return values if values.shape == (1 << bits,) and values.dtype == dtype else None

    def _curve(self, kind: str, covers: bytes) -> Path:
        return self.path / f"{kind}-{to_base64url(hashlib.sha256(covers).digest())}"


class NotTheSealedSet(Exception):
    """The rows of the database are not those that were sealed."""


def write_keys(
    path: Path,
    rows: Iterable[list[tuple[bytes, bytes]]],
    type: KeyType,
    count: int,
    checksum: bytes,
    progress: Callable[[int], None],
) -> bytes:
    """Write the keys of the sealed set, which must have this checksum; returns the digest of the file.

    An older file is replaced at the very end.
    """
    partial, ids, done = path.with_suffix(".partial"), hashlib.sha256(_SET), 0
    with partial.open("wb") as file:
        file.write(file_header(type, count))
        file.truncate(FILE_HEADER_BYTES + 8 * type.words * count)
    partial.chmod(0o600)
    words = np.memmap(partial, np.uint64, "r+", FILE_HEADER_BYTES, (type.words, count)) if count else None
    for some in rows:
        if words is None or done + len(some) > count:
            raise NotTheSealedSet
        ids.update(b"".join(upload_id for upload_id, _ in some))
        batch = KeyBatch.from_bytes(b"".join(key for _, key in some), type.binder, expected=type)
        words[:, done : done + len(some)] = batch.words
        done += len(some)
        progress(done)
    if done != count or ids.digest() != checksum:
        raise NotTheSealedSet
    if words is not None:
        words.flush()
    digest = file_digest(partial)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)
    return digest


def file_digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ):
            digest.update(block)
    return digest.digest()


def is_whole(path: Path, digest: bytes) -> bool:
    """The file is there, and what it was when it was written."""
    try:
        return file_digest(path) == digest
    except FileNotFoundError:
        return False
