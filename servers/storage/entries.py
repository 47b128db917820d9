"""What stands for the uploads of a set: of each its id and its leaf, in the order of the ids.

Both servers compare these, and the set's checksum covers them: hence the wave and both servers' shares of each upload.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES
from fss_ecdf.campaign.contribution import HASH_BYTES

ENTRY_BYTES = UPLOAD_ID_BYTES + HASH_BYTES
SET_CONTEXT = b"fss-ecdf set 2\n"


def set_hash(parts: Iterable[bytes] = ()) -> "hashlib._Hash":
    """A hash of entries, to be gone on with."""
    hashed = hashlib.sha256(SET_CONTEXT)
    for part in parts:
        hashed.update(part)
    return hashed


def set_checksum(entries: bytes) -> bytes:
    """What both servers compare: the entries of the agreed uploads."""
    return set_hash([entries]).digest()


def split(entries: bytes) -> list[bytes]:
    return [entries[i : i + ENTRY_BYTES] for i in range(0, len(entries), ENTRY_BYTES)]


def id_of(entry: bytes) -> bytes:
    return entry[:UPLOAD_ID_BYTES]


def id_of_last(entries: bytes) -> bytes:
    """The id of the last of some entries."""
    return id_of(entries[-ENTRY_BYTES:])


def as_table(entries: bytes) -> NDArray[np.uint8]:
    """A row for each entry."""
    return np.frombuffer(entries, np.uint8).reshape(-1, ENTRY_BYTES)


def ids_in(entries: bytes) -> bytes:
    """Their ids alone."""
    return as_table(entries)[:, :UPLOAD_ID_BYTES].tobytes()
