"""The sealed keys of a campaign: one file, sorted by id, level-major, mapped by every evaluation.

It is made from the rows of the store, without holding more than a few thousand of them, and can be made again at any
time; its digest is kept in the store, so that damage is noticed.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from campaign.files import sync_directory
from fss import KeyBatch, KeyType
from fss.keys import FILE_HEADER_BYTES, file_header
from servers.storage.store import Store

_CHUNK = 8192
_READ = 1 << 22


def set_checksum(ids: bytes) -> bytes:
    """What both servers compare: the sorted ids of the agreed uploads."""
    return hashlib.sha256(b"fss-ecdf key set 1\n" + ids).digest()


def split_ids(ids: bytes) -> list[bytes]:
    return [ids[i : i + 16] for i in range(0, len(ids), 16)]


def write(
    path: Path, store: Store, type: KeyType, campaign: bytes, ids: bytes, progress: Callable[[int], None]
) -> bytes:
    """Write the key file for these (sorted) ids; returns its digest. An older file is replaced at the very end."""
    order = split_ids(ids)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(file_header(type, len(order)))
        file.truncate(FILE_HEADER_BYTES + 8 * type.words * len(order))
    partial.chmod(0o600)
    if order:
        words = np.memmap(partial, np.uint64, "r+", FILE_HEADER_BYTES, (type.words, len(order)))
        for start in range(0, len(order), _CHUNK):
            some = order[start : start + _CHUNK]
            batch = KeyBatch.from_bytes(b"".join(store.keys(campaign, some)), type.binder, expected=type)
            words[:, start : start + len(some)] = batch.words
            progress(start + len(some))
        words.flush()
        del words
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
