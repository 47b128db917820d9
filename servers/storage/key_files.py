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
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fss import KeyBatch, KeyType, proof_file
from fss.field import Words
from fss.keys import file_header
from fss.proof import Proofs, proof_bytes, proof_words
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES, Row, is_table
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.files import partial_name, sync_directory, write_durably
from servers.storage.entries import ENTRY_BYTES, set_hash

CHUNK = 8192
KEYS, TABLES = "messages", "table-messages"  # what is told about each of them in a check
_DIGEST = 32


def split_ids(ids: bytes) -> list[bytes]:
    return [ids[i : i + UPLOAD_ID_BYTES] for i in range(0, len(ids), UPLOAD_ID_BYTES)]


def chunk_folder(keys: Path) -> Path:
    """Beside a key file: the copies of its keys that a cluster reads."""
    return keys.with_name(f"{keys.name}-chunks")


class Folder:
    """The files of one wave of a campaign. A plain campaign's are in its folder; any other's folder has one each."""

    def __init__(self, data: Path, campaign: bytes, wave: int = 0) -> None:
        whole = data / to_base64url(campaign)
        self.path = whole / f"wave-{wave}" if wave else whole

    @property
    def keys(self) -> Path:
        """The keys of the sealed set."""
        return self.path / "keys"

    @property
    def candidates(self) -> Path:
        """The keys that are being checked."""
        return self.path / "candidates"

    @property
    def proofs(self) -> Path:
        return self.path / "proofs"

    @property
    def table_sums(self) -> Path:
        """The sum of this server's shares of the tables of the sealed set."""
        return self.path / "table-sums"

    def drop_keys(self) -> None:
        """Everything that was made from keys but what was published of them."""
        self.drop_candidates()
        shutil.rmtree(chunk_folder(self.keys), ignore_errors=True)
        left = (path for name in ("keys", "proofs", "candidates") for path in self.path.glob(f"{name}.*.partial"))
        told = (path for kind in (KEYS, TABLES) for path in self.path.glob(f"{kind}-*"))
        for path in (self.keys, self.path / "curve", self.table_sums, *told, *left):
            path.unlink(missing_ok=True)
        for folder in self.path.glob("evidence-check-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def drop_candidates(self) -> None:
        """What only the check needed."""
        for path in (self.candidates, self.proofs, self.path / "candidates-curve"):
            path.unlink(missing_ok=True)
        shutil.rmtree(chunk_folder(self.candidates), ignore_errors=True)

    def save_messages(self, checksum: bytes, messages: bytes, of: str = KEYS) -> None:
        """What the other server is told about the keys, or the tables, of a set, in the order of their ids."""
        write_durably(self._messages(checksum, of), hashlib.sha256(messages).digest() + messages)

    def drop_messages(self, checksum: bytes) -> None:
        for of in (KEYS, TABLES):
            self._messages(checksum, of).unlink(missing_ok=True)

    def load_messages(self, checksum: bytes, of: str = KEYS) -> bytes | None:
        return _undamaged(self._messages(checksum, of))

    def some_messages(self, checksum: bytes, start: int, stop: int, of: str = KEYS) -> bytes | None:
        """From one byte to before another. The other server asks part by part, so the file is not read for each."""
        path = self._messages(checksum, of)
        there = identity(path)
        if there is None or not _was_whole(path, there):
            return None
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size - _DIGEST
            file.seek(_DIGEST + min(start, size))
            return file.read(max(0, min(stop, size) - start))

    def _messages(self, checksum: bytes, of: str) -> Path:
        return self.path / f"{of}-{to_base64url(checksum)}"

    def make(self) -> None:
        self.path.parent.mkdir(exist_ok=True, mode=0o700)
        self.path.mkdir(exist_ok=True, mode=0o700)

    def erase(self) -> None:
        """All of it, also what somebody at work on it would write now: that has no folder any more."""
        erased = self.path.with_name(self.path.name + ".erased")
        shutil.rmtree(erased, ignore_errors=True)  # what an interruption left
        with suppress(FileNotFoundError):
            self.path.rename(erased)
        while erased.exists():
            with suppress(FileNotFoundError):  # another process erases it, too
                shutil.rmtree(erased)

    def save_curve(self, kind: str, covers: bytes, values: NDArray[np.int64] | NDArray[np.uint64]) -> None:
        """Named after the ids and keys it was computed from, so that nothing else is answered with it."""
        body = io.BytesIO()
        np.save(body, values)
        write_durably(self._curve(kind, covers), hashlib.sha256(body.getvalue()).digest() + body.getvalue())

    def load_curve(self, kind: str, covers: bytes, bits: int, dtype: type[np.generic]) -> NDArray[np.generic] | None:
        """A curve of so many bits, if it was saved and is whole."""
        body = _undamaged(self._curve(kind, covers))
        if body is None:
            return None
        values = np.load(io.BytesIO(body), allow_pickle=False)
        return values if values.shape == (1 << bits,) and values.dtype == dtype else None

    def _curve(self, kind: str, covers: bytes) -> Path:
        return self.path / f"{kind}-{to_base64url(hashlib.sha256(covers).digest())}"


def _undamaged(path: Path) -> bytes | None:
    """What was written after its digest, if it is there and whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, body = data[:_DIGEST], data[_DIGEST:]
    return body if hashlib.sha256(body).digest() == digest else None


@lru_cache(maxsize=64)
def _was_whole(path: Path, there: tuple[int, ...]) -> bool:  # noqa: ARG001
    """Whether what was written after its digest is whole, in the file that was `there`: compared once a process."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(_DIGEST) == hashlib.file_digest(file, "sha256").digest()
    return False


class NotTheSealedSet(Exception):
    """The rows of the database are not those that were sealed."""


Rows = Iterable[list[Row]]


@dataclass(frozen=True)
class Expected:
    """What a file of keys must hold: so many of this type, of uploads with this checksum."""

    type: KeyType
    count: int
    checksum: bytes
    tables: int = 0  # that are of the set, too, and are not in the file


def write_keys(
    path: Path, rows: Rows, expected: Expected, progress: Callable[[int], None], *, proofs: Path | None = None
) -> bytes:
    """Write the keys of a set, and the proofs behind them if a path for those is given; returns the digest of the keys.

    Older files are replaced at the very end.
    """
    type, count = expected.type, expected.count
    keys = _Columns(path, file_header(type, count), type.words, count)
    proved = None if proofs is None else _Columns(proofs, proof_file.header(type, count), proof_words(type), count)
    try:
        return _fill(keys, proved, rows, expected, progress)
    finally:
        for columns in (keys, *(() if proved is None else (proved,))):
            columns.drop()


def _fill(
    keys: "_Columns", proved: "_Columns | None", rows: Rows, expected: Expected, progress: Callable[[int], None]
) -> bytes:
    type, count = expected.type, expected.count
    entries, done, tables = set_hash(), 0, 0
    for rows_of_part in rows:
        some = rows_of_part
        if expected.tables:
            entries.update(b"".join(upload_id + leaf for upload_id, leaf, _ in rows_of_part))
            some = [row for row in rows_of_part if not is_table(row)]
            tables += len(rows_of_part) - len(some)
        if done + len(some) > count:
            raise NotTheSealedSet
        if not some:  # all of this part were rejected, or are tables
            continue
        table = _as_table(some)
        if not expected.tables:
            entries.update(table[:, :ENTRY_BYTES].tobytes())
        stored = table[:, ENTRY_BYTES:]
        batch = KeyBatch.from_bytes(stored[:, : type.key_bytes].tobytes(), type.binder, expected=type)
        keys.put(done, batch.words)
        if proved is not None:
            proof = stored[:, type.key_bytes : type.key_bytes + proof_bytes(type)]
            proved.put(done, Proofs.from_bytes(proof.tobytes(), type).words)
        done += len(some)
        progress(done)
    if (done, tables) != (count, expected.tables) or entries.digest() != expected.checksum:
        raise NotTheSealedSet
    if proved is not None:
        proof_file.finish(proved.partial)
        proved.replace()
    digest = file_digest(keys.partial)
    keys.replace()
    return digest


def _as_table(rows: list[Row]) -> NDArray[np.uint8]:
    """A row for each upload: its entry, and behind it what was sent."""
    width = sum(map(len, rows[0]))
    joined = b"".join(chain.from_iterable(rows))
    if len(joined) != width * len(rows):
        raise NotTheSealedSet
    return np.frombuffer(joined, np.uint8).reshape(-1, width)


class _Columns:
    """A file of so many columns of words, level-major, written part by part beside the one that it replaces."""

    def __init__(self, path: Path, header: bytes, words: int, count: int) -> None:
        for left in path.parent.glob(f"{path.name}.*.partial"):  # by one that was killed, or lost the job to this one
            left.unlink(missing_ok=True)
        self._path, self.partial = path, partial_name(path)
        self._count, self._start = count, len(header)
        self._file = self.partial.open("wb", buffering=0)
        self.partial.chmod(0o600)
        self._file.write(header)
        self._file.truncate(len(header) + 8 * words * count)

    def put(self, start: int, columns: Words) -> None:
        for number, row in enumerate(columns):
            self._write(row.tobytes(), self._start + 8 * (number * self._count + start))

    def _write(self, data: bytes, at: int) -> None:
        while data:  # a disk that is full takes a part first, then says so
            written = os.pwrite(self._file.fileno(), data, at)
            data, at = data[written:], at + written

    def replace(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()
        self.partial.replace(self._path)
        sync_directory(self._path.parent)

    def drop(self) -> None:
        """What did not come to its name."""
        self._file.close()
        self.partial.unlink(missing_ok=True)


def file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def identity(path: Path) -> tuple[int, ...] | None:
    """Another one where a file was written or replaced; None where there is none."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def is_whole(path: Path, digest: bytes) -> bool:
    """The file is there, and what it was when it was written."""
    try:
        return file_digest(path) == digest
    except FileNotFoundError:
        return False
