"""A server's words of a table: as bytes, or expanded from a seed of 32 bytes, whole or piece by piece.

One server gets a seed, the other the words less what the seed expands to; `seed_server` says which, by a bit of the
table's id, so that each stores half of them. As bytes, words are little-endian, below p, and nothing else.

    block i of a seed    H(seed[:16] xor i) under the key that follows from the binder, the sizes and seed[16:]

which is XofFixedKeyAes128 (`fss/prg.py`) with a secret in its binder: key and input are both unknown to whoever has not
the seed. A block is two words, of which the low 61 bits are taken, and p becomes 0: an element is 0 with probability
2^-60 instead of 2^-61, so that all words of a table are within 2^-61 each of uniform.
"""

from collections.abc import Iterator

import numpy as np

from fss import field
from fss.backends import current
from fss.errors import ShapeError, TableFormatError
from fss.field import Words
from fss.prg import derive_key
from fss.table_check import PIECE
from fss.table_shape import SEED_BYTES, WORD_BYTES, Shape

_HALF = SEED_BYTES // 2
_USE = b"table 1"


def seed_server(id: bytes) -> int:
    """The server, 0 or 1, that gets the seed of the table with this id."""
    if not id:
        raise ShapeError("an id has at least one byte")
    return id[0] & 1


def expanded(seed: bytes, binder: bytes, shape: Shape) -> Iterator[Words]:
    """The words of a seed, piece by piece. `binder` is what both who deals and the server know of this table only."""
    check_seed(seed)
    if not isinstance(binder, bytes) or not binder:
        raise ShapeError("the binder must be non-empty bytes")
    sizes = b"".join(number.to_bytes(8, "little") for number in (shape.positions, shape.count))
    key = derive_key(_USE, binder + sizes + seed[_HALF:])
    for start in range(0, shape.words, PIECE):
        piece = np.empty(min(PIECE, shape.words - start), np.uint64)
        current().table_expand(key, seed[:_HALF], start // 2, piece)
        yield piece


def expand(seed: bytes, binder: bytes, shape: Shape) -> Words:
    """All words of a seed."""
    return np.concatenate(list(expanded(seed, binder, shape)))


def check_seed(seed: bytes) -> bytes:
    """Raise unless this is a seed."""
    if not isinstance(seed, bytes) or len(seed) != SEED_BYTES:
        raise TableFormatError(f"the seed of a table has {SEED_BYTES} bytes")
    return seed


def encode_words(words: Words, shape: Shape) -> bytes:
    """The words as bytes."""
    if words.shape != (shape.words,):
        raise ShapeError(f"this table has {shape.words} words, got an array of shape {words.shape}")
    return field.check_elements(words, "words").tobytes()


def decode_words(data: bytes, shape: Shape) -> Words:
    """All words, or raise `TableFormatError`. What is accepted re-encodes to the same bytes."""
    reader = WordReader(shape)
    words = reader.feed(data)
    reader.finish()
    return words


class WordReader:
    """Decodes words as their bytes come, in pieces of any size, and refuses others as early as it can."""

    def __init__(self, shape: Shape) -> None:
        self._shape, self._read, self._rest = shape, 0, b""

    def feed(self, data: bytes) -> Words:
        """The words that are complete with these bytes, or `TableFormatError`."""
        if 8 * self._read + len(self._rest) + len(data) > self._shape.bytes:
            raise TableFormatError(f"the words of this table have {self._shape.bytes} bytes, got more")
        data = self._rest + data
        whole = len(data) - len(data) % WORD_BYTES
        words, self._rest = np.frombuffer(data[:whole], np.uint64), data[whole:]
        if not field.is_canonical(words):
            raise TableFormatError(
                f"word {self._read + int(np.argmax(words >= field.MASK))} of a table: expected an element of Z_p, "
                "below 2^61 - 1"
            )
        self._read += words.size
        return words

    def finish(self) -> None:
        """Raise unless the bytes were exactly those of a table."""
        got = WORD_BYTES * self._read + len(self._rest)
        if got != self._shape.bytes:
            raise TableFormatError(f"the words of this table have {self._shape.bytes} bytes, got {got}")
