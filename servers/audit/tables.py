"""Tables of one wave as the audited server hands them over, and what follows from them.

of each, in the order of their ids: id(16) people(8) hash of the other server's share(32) length(8), then its share
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from fss import table
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import TABLE, Contribution
from fss_ecdf.campaign.tables import table_shape
from servers.audit.verdict import Wrong
from servers.compute.raw_share import RawShare
from servers.compute.table_sums import WaveTables, table_share, wave_point
from servers.storage.tables import StoredTable, Tables

PIECE = 1 << 20

_HEAD = struct.Struct("<16sQ32sQ")
CHECKED = struct.Struct("<16sQ")  # of the list of the tables that were checked: id, people


def write_tables(file: BinaryIO, campaign_id: bytes, stored: Tables, tables: Sequence[StoredTable]) -> None:
    """The tables of a wave, for an auditor."""
    for one in tables:
        size = sum(len(part) for part in stored.parts(campaign_id, one.id))
        file.write(_HEAD.pack(one.id, one.people, one.other, size))
        for part in stored.parts(campaign_id, one.id):
            file.write(part)


@dataclass(frozen=True)
class ExportedTables:
    """The tables of a wave; their shares stay in the file."""

    campaign: Campaign
    server: int
    wave: int
    path: Path

    @cached_property
    def _found(self) -> dict[bytes, tuple[StoredTable, int, int]]:
        """By id: the table with the leaf that follows from its bytes, where its share starts, and its length."""
        found: dict[bytes, tuple[StoredTable, int, int]] = {}
        if not self.path.is_file():
            return found
        with self.path.open("rb") as file:
            while head := file.read(_HEAD.size):
                if len(head) != _HEAD.size:
                    raise Wrong(self.server, f"{self.path.name} does not hold whole tables")
                upload_id, people, other, size = _HEAD.unpack(head)
                start, hashed = file.tell(), hashlib.sha256()
                for length in _lengths(size):
                    hashed.update(file.read(length))
                if file.tell() != start + size:
                    raise Wrong(self.server, f"{self.path.name} does not hold whole tables")
                hashes = hashed.digest(), other
                leaf = Contribution(TABLE, people, self.wave).leaf(
                    upload_id, hashes if self.server == 0 else hashes[::-1]
                )
                found[upload_id] = StoredTable(upload_id, leaf, other, people), start, size
        return found

    @property
    def tables(self) -> list[StoredTable]:
        return [one for one, _, _ in self._found.values()]

    @property
    def entries(self) -> list[bytes]:
        return [one.id + one.leaf for one in self.tables]

    def _read(self, upload_id: bytes) -> Iterator[bytes]:
        _, start, size = self._found[upload_id]
        with self.path.open("rb") as file:
            file.seek(start)
            for length in _lengths(size):
                yield file.read(length)

    def _of_wave(self) -> WaveTables:
        return WaveTables(self.campaign, self.server, self.wave, self.tables, self._read)

    def messages(self, seeds: Sequence[bytes]) -> dict[bytes, table.Message]:
        """What the words and the challenge make, by id."""
        made, of = dict[bytes, table.Message](), self._of_wave()
        point = wave_point(self.campaign.digest, self.wave, seeds)
        for one in of.tables:
            made[one.id] = table.message(of.words(one), table_shape(self.campaign, one.people), point)
        return made

    def share(self) -> RawShare:
        """The share of all of them at every position."""
        of = self._of_wave()
        sums = of.no_sums()
        of.add(sums, of.tables)
        return table_share(self.campaign, sums)


def _lengths(size: int) -> Iterator[int]:
    for start in range(0, size, PIECE):
        yield min(PIECE, size - start)


def read_checked(path: Path) -> dict[bytes, int]:
    """The tables among the uploads that were checked, and how many people each is of."""
    data = path.read_bytes() if path.is_file() else b""
    return dict(CHECKED.iter_unpack(data[: len(data) - len(data) % CHECKED.size]))
