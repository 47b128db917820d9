"""Contribution: what one upload adds to the set of its wave, and the leaf that stands for it there.

Both servers compute the same leaf for an upload, and only if both were given what belongs together. It covers the wave
and the number of people, and whether it is a key or a table: an upload in another wave, or with another weight, is
another upload.

>>> Contribution(wave=3)
Contribution(scheme='dcf', people=1, wave=3)
"""

import hashlib
import struct
from dataclasses import dataclass

HASH_BYTES = 32

TABLE = "table"  # the scheme of what is no key

_CONTEXT, _TABLE_CONTEXT = b"fss-ecdf set leaf 1\n", b"fss-ecdf table leaf 1\n"
_COVERED = struct.Struct("<IQ")


@dataclass(frozen=True)
class Contribution:
    """What every upload of one envelope brings: shares by which scheme, of how many people, for which wave."""

    scheme: str = "dcf"
    people: int = 1
    wave: int = 0

    @property
    def is_table(self) -> bool:
        """Whether it is a table of a site's counts (`fss/table.py`); else it is a key."""
        return self.scheme == TABLE

    @property
    def leaf_parts(self) -> tuple[bytes, bytes]:
        """What is hashed before an upload's id and behind it, before the hashes of both shares."""
        return _TABLE_CONTEXT if self.is_table else _CONTEXT, _COVERED.pack(self.wave, self.people)

    def leaf(self, upload_id: bytes, hashes: tuple[bytes, bytes]) -> bytes:
        """What stands for an upload in its set; `hashes` are the SHA-256 of both servers' shares."""
        before, behind = self.leaf_parts
        return hashlib.sha256(before + upload_id + behind + b"".join(hashes)).digest()

    def opened_leaf(self, upload_id: bytes, opening: bytes, server: int) -> bytes:
        """The same from what one server stores of an upload: its share, and the hash of the other server's share."""
        hashes = hashlib.sha256(opening[:-HASH_BYTES]).digest(), opening[-HASH_BYTES:]
        return self.leaf(upload_id, hashes if server == 0 else hashes[::-1])


ONE_KEY = Contribution()  # of one person, in a plain campaign
