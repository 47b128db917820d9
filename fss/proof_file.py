"""The file of proofs beside a key file that is yet to be checked: a header, then the words, level-major, to be mapped.

"FSSPROOF" key_header(8) count(8) 0(40), then words x count x element(8), then the SHA-256 of all that
"""

import hashlib
import os
from pathlib import Path

import numpy as np

from fss.errors import KeyFormatError
from fss.keys import KeyType
from fss.proof import Proofs, proof_words

HEADER_BYTES = 64
_DIGEST = 32
_READ = 1 << 22


def header(type: KeyType, count: int) -> bytes:
    return (b"FSSPROOF" + type.header + count.to_bytes(8, "little")).ljust(HEADER_BYTES, b"\0")


def open_proofs(path: str | os.PathLike[str], type: KeyType) -> Proofs:
    """Map a file of proofs without reading it."""
    path, words = Path(path), proof_words(type)
    with path.open("rb") as file:
        head, size = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
        count = int.from_bytes(head[16:24], "little")
        if head != header(type, count) or size != HEADER_BYTES + 8 * words * count + _DIGEST:
            raise KeyFormatError(f"{path.name} is not a file of proofs for these keys")
        if not count:
            return Proofs(type, np.empty((words, 0), np.uint64))
        mapped = np.memmap(file, np.uint64, "r", HEADER_BYTES, (words, count))
    return Proofs(type, mapped.view(np.ndarray))


def body_digest(path: Path, size: int) -> bytes:
    """Of the first `size` bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(_READ, size))):
            digest.update(block)
            size -= len(block)
    return digest.digest()


def finish(path: Path) -> None:
    """Append the digest to header and words that are complete."""
    digest = body_digest(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(digest)


def is_whole(path: Path) -> bool:
    """The file is there, and what it was when it was written: a damaged proof would condemn an honest upload."""
    try:
        size = path.stat().st_size - _DIGEST
        with path.open("rb") as file:
            file.seek(max(0, size))
            return size >= HEADER_BYTES and body_digest(path, size) == file.read()
    except FileNotFoundError:
        return False
