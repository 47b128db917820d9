"""KeyBatch: many keys of one kind, level by level, and their strict bytes.

A key is a column of 64-bit words. For D domain bits, of which the last `leaf_bits` = min(4, D) are answered by one
terminal node, and `depth` = D - leaf_bits tree levels above it:

    word 0, 1       root seed, lo and hi; the top bit of lo is the root's control bit, which is the party (0 or 1)
    word 2          bit i: whether the control-bit corrections of the two children on level i differ
    per level       seed correction lo, hi; the top bit of lo corrects the left child's control bit
                    (DCF only) value correction, an element of Z_p
    last            one value correction for each of the 2^leaf_bits leaves of the terminal node, elements of Z_p

A batch is a (words, keys) array: row w holds word w of all keys, so that every step of an evaluation reads contiguous
memory, straight from a mapped file. On the wire a key is an 8-byte header (version, scheme, domain bits, party, tag of
the campaign) and its words, little-endian.
"""

import enum
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fss import field
from fss.errors import DomainError, KeyFormatError, KeyMismatchError, ShapeError
from fss.field import Words
from fss.prg import binder_tag

VERSION = 3
HEADER_BYTES = 8
MAX_BITS = 32
MAX_LEAF_BITS = 4

FILE_MAGIC = b"FSSKEYS3"
FILE_HEADER_BYTES = 64

ROOT_LO, ROOT_HI, CONTROL, FIRST_LEVEL = 0, 1, 2, 3

# Of a seed's lo word and of its correction: the control bit. On top, one arithmetic shift makes a mask of it.
TOP_BIT = np.uint64(1 << 63)


class Scheme(enum.IntEnum):
    """What a key computes at t, for its secret alpha and payload beta."""

    DCF = 1  # beta if alpha <= t, else 0
    DPF = 2  # beta if alpha == t, else 0


@dataclass(frozen=True)
class KeyType:
    """What all keys of a batch have in common, and where their words lie."""

    scheme: Scheme
    bits: int
    server: int
    binder: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.scheme, Scheme):
            raise DomainError(f"scheme must be a Scheme, got {self.scheme!r}")
        check_bits(self.bits)
        if type(self.server) is not int or self.server not in (0, 1):
            raise DomainError(f"server must be 0 or 1, got {self.server!r}")
        if not isinstance(self.binder, bytes) or not self.binder:
            raise ShapeError("the binder must be the campaign's nonce, as non-empty bytes")

    @cached_property
    def leaf_bits(self) -> int:
        return min(MAX_LEAF_BITS, self.bits)

    @cached_property
    def depth(self) -> int:
        return self.bits - self.leaf_bits

    @cached_property
    def leaves(self) -> int:
        return 1 << self.leaf_bits

    @cached_property
    def level_words(self) -> int:
        return 3 if self.scheme is Scheme.DCF else 2

    @cached_property
    def words(self) -> int:
        return FIRST_LEVEL + self.depth * self.level_words + self.leaves

    @cached_property
    def key_bytes(self) -> int:
        return HEADER_BYTES + 8 * self.words

    @cached_property
    def header(self) -> bytes:
        return bytes((VERSION, self.scheme, self.bits, self.server)) + binder_tag(self.binder)

    def level(self, i: int) -> int:
        """The first word of level i; level(depth) is the first leaf word."""
        return FIRST_LEVEL + i * self.level_words

    @cached_property
    def largest(self) -> Words:
        """What each word is at most, as a column."""
        most = np.full((self.words, 1), 0xFFFFFFFFFFFFFFFF, np.uint64)
        most[CONTROL] = (1 << self.depth) - 1
        most[self.value_words()] = field.MASK - np.uint64(1)
        return most

    @cached_property
    def on_the_wire(self) -> tuple[Words, Words]:
        """What the header and each word are at least, and at most: all keys in their one legal form, and no others."""
        header = np.frombuffer(self.header, np.uint64)
        least, most = np.zeros(1 + self.words, np.uint64), np.append(header, self.largest)
        least[0], root = header[0], 1 + ROOT_LO
        if self.server:
            least[root] = TOP_BIT
        else:
            most[root] = TOP_BIT - np.uint64(1)
        return least, most

    def value_words(self) -> list[int]:
        """The words that must be canonical field elements."""
        on_levels = range(FIRST_LEVEL + 2, self.level(self.depth), 3) if self.scheme is Scheme.DCF else range(0)
        return [*on_levels, *range(self.level(self.depth), self.words)]


@lru_cache(maxsize=256)
def key_type(scheme: str, bits: int, server: int, binder: bytes) -> KeyType:
    """Of a scheme by its name. Kept: an upload of one key asks for it several times."""
    return KeyType(Scheme[scheme.upper()], bits, server, binder)


def check_bits(bits: int) -> None:
    if type(bits) is not int or not 1 <= bits <= MAX_BITS:
        raise DomainError(f"domain bits must be an int, 1 to {MAX_BITS}, got {bits!r}")


class KeyBatch:
    """Keys of one party, one scheme, one domain and one campaign."""

    def __init__(self, type: KeyType, words: Words) -> None:
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64:
            raise ShapeError(f"key words must be a uint64 array, got {getattr(words, 'dtype', words.__class__)}")
        if words.ndim != 2 or words.shape[0] != type.words:
            raise ShapeError(f"key words must have shape ({type.words}, keys), got {words.shape}")
        if words.shape[1] > 1 and words.strides[1] != words.itemsize:
            raise ShapeError("key words must be contiguous along the keys (level-major)")
        self.type = type
        self.words = words

    def __len__(self) -> int:
        return int(self.words.shape[1])

    def __repr__(self) -> str:
        t = self.type
        return f"<KeyBatch {t.scheme.name} keys={len(self)} bits={t.bits} server={t.server} key_bytes={t.key_bytes}>"

    def __getitem__(self, part: slice) -> "KeyBatch":
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise ShapeError("a batch is cut by a slice of step 1, e.g. keys[10:20]")
        return KeyBatch(self.type, self.words[:, part])

    @staticmethod
    def concatenate(batches: Sequence["KeyBatch"]) -> "KeyBatch":
        if not batches:
            raise ShapeError("cannot concatenate zero batches: their type is unknown")
        first = batches[0].type
        for batch in batches[1:]:
            require_same(first, batch.type)
        return KeyBatch(first, np.concatenate([batch.words for batch in batches], axis=1))

    def to_bytes(self) -> bytes:
        """All keys, one after the other, `type.key_bytes` each."""
        rows = np.empty((len(self), self.type.key_bytes), np.uint8)
        rows[:, :HEADER_BYTES] = np.frombuffer(self.type.header, np.uint8)
        rows[:, HEADER_BYTES:] = np.ascontiguousarray(self.words.T).view(np.uint8)
        return rows.tobytes()

    @staticmethod
    def from_bytes(data: bytes, binder: bytes, *, expected: KeyType | None = None) -> "KeyBatch":
        """Decode one or more keys, or raise. What is accepted re-encodes to the same bytes."""
        if expected is not None and expected.binder == binder and data[:HEADER_BYTES] == expected.header:
            type = expected
        else:
            type = _parse_header(data[:HEADER_BYTES], binder)
            if expected is not None:
                require_same(expected, type)
        count, rest = divmod(len(data), type.key_bytes)
        if rest or not count:
            raise KeyFormatError(
                f"a {type.scheme.name} key over {type.bits} bits has {type.key_bytes} bytes; got {len(data)} bytes, "
                f"which is {count} keys and {rest} bytes more"
            )
        rows = np.frombuffer(data, np.uint64).reshape(count, 1 + type.words)  # a header is as long as a word
        other = np.flatnonzero(rows[:, 0] != rows[0, 0])
        if other.size:
            # Where a length is wrong, what stands in the header's place may be key material: name the row only.
            raise KeyMismatchError(f"key {other[0]} has another header than key 0")
        batch = KeyBatch(type, rows[:, 1:].T.copy())
        batch.check_canonical()
        return batch

    def take(self, which: NDArray[np.int64]) -> "KeyBatch":
        """A copy of some keys, by their places."""
        return KeyBatch(self.type, np.ascontiguousarray(self.words[:, which]))

    def check_roots(self) -> None:
        """Raise unless every root has the party's control bit."""
        good = self.words[ROOT_LO] >> np.uint64(63) == self.type.server
        self._check(good, ROOT_LO, f"a top bit equal to server {self.type.server}")

    def check_canonical(self) -> None:
        """Raise unless every field of every key has its one legal form."""
        t = self.type
        self.check_roots()
        if (self.words <= t.largest).all():  # in one step, and word by word only to say what is wrong
            return
        self._check(self.words[CONTROL] >> np.uint64(t.depth) == 0, CONTROL, f"at most {t.depth} bits")
        for w in t.value_words():
            self._check(self.words[w] < field.MASK, w, "an element of Z_p, below 2^61 - 1")

    def _check(self, good: NDArray[np.bool_], word: int, what: str) -> None:
        if not good.all():
            raise KeyFormatError(f"key {int(np.argmin(good))}, word {word}: expected {what}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a key file: a 64-byte header and the words, level-major, as `open` maps them.

        The file is complete and on disk before it takes the name, so an older one of that name, and whoever has it
        mapped, is never damaged. Only its owner can read it.
        """
        target = Path(path)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
                file.write(file_header(self.type, len(self)))
                for row in self.words:
                    file.write(np.ascontiguousarray(row).data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    @staticmethod
    def open(path: str | os.PathLike[str], binder: bytes, *, expected: KeyType | None = None) -> "KeyBatch":
        """Map a key file without reading it. The header and the exact size are checked; `check_canonical` reads all."""
        path = Path(path)
        with path.open("rb") as file:
            header, size = file.read(FILE_HEADER_BYTES), os.fstat(file.fileno()).st_size
            if len(header) != FILE_HEADER_BYTES or not header.startswith(FILE_MAGIC) or any(header[24:]):
                raise KeyFormatError(f"{path.name} is not a key file: expected a {FILE_HEADER_BYTES}-byte header")
            type = _parse_header(header[8:16], binder)
            if expected is not None:
                require_same(expected, type)
            count = int.from_bytes(header[16:24], "little")
            wanted = FILE_HEADER_BYTES + 8 * type.words * count
            if size != wanted:
                raise KeyFormatError(f"{path.name} should have {wanted} bytes for {count} keys, but has {size}")
            if not count:
                return KeyBatch(type, np.empty((type.words, 0), np.uint64))
            words = np.memmap(file, np.uint64, "r", FILE_HEADER_BYTES, (type.words, count))
        return KeyBatch(type, words.view(np.ndarray))


def file_header(type: KeyType, count: int) -> bytes:
    """What a key file starts with."""
    return (FILE_MAGIC + type.header + count.to_bytes(8, "little")).ljust(FILE_HEADER_BYTES, b"\0")


def _parse_header(header: bytes, binder: bytes) -> KeyType:
    if len(header) < HEADER_BYTES:
        raise KeyFormatError(f"a key starts with a header of {HEADER_BYTES} bytes, got {len(header)}")
    version, scheme, bits, party = header[:4]
    if version != VERSION:
        raise KeyFormatError(f"key version {version} is not known, expected {VERSION}")
    if scheme not in list(Scheme):
        raise KeyFormatError(f"key scheme {scheme} is not known, expected 1 (DCF) or 2 (DPF)")
    if not 1 <= bits <= MAX_BITS:
        raise KeyFormatError(f"key domain bits must be 1 to {MAX_BITS}, got {bits}")
    if party > 1:
        raise KeyFormatError(f"key server must be 0 or 1, got {party}")
    tag = binder_tag(binder)
    if header[4:8] != tag:
        raise KeyMismatchError(f"the key is of another campaign: its tag is {header[4:8].hex()}, expected {tag.hex()}")
    return KeyType(Scheme(scheme), bits, party, binder)


def require_same(expected: KeyType, given: KeyType) -> None:
    """Raise unless keys of these types may be used together."""
    for name in ("scheme", "bits", "server"):
        want, have = getattr(expected, name), getattr(given, name)
        if want != have:
            raise KeyMismatchError(f"keys of {name} {have!r} where {name} {want!r} was expected")
    if expected.binder != given.binder:
        tags = binder_tag(given.binder).hex(), binder_tag(expected.binder).hex()
        raise KeyMismatchError(f"keys of two campaigns: their tag is {tags[0]}, expected {tags[1]}")
