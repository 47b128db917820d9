"""Tables of one wave on this server: their check messages and the sum of their shares, in one pass over their words.

A table needs no evaluation: its words are shares of counts. So the process that does the background work reads them
itself, one part at a time; the sum, a word for each position, is kept beside the key file.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fss import FssError, field, table
from fss.field import Words
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import TABLE, Contribution
from fss_ecdf.campaign.files import write_durably
from fss_ecdf.campaign.tables import position_count, table_binder, table_shape, to_domain
from servers.compute.raw_share import RawShare
from servers.storage.key_files import NotTheSealedSet
from servers.storage.tables import StoredTable

Read = Callable[[bytes], Iterable[bytes]]  # the share of a table, part by part, by the table's id

_DIGEST = 32
_CHALLENGE = b"fss-ecdf table challenge 1\n"


def wave_point(digest: bytes, wave: int, seeds: Sequence[bytes]) -> table.Point:
    """The point at which all tables of a wave are checked, from both servers' parts of its challenge."""
    return table.draw_point(_CHALLENGE + digest + wave.to_bytes(4, "little") + b"".join(seeds))


@dataclass(frozen=True)
class WaveTables:
    """The tables of a wave, in the order of their ids, as one server has them."""

    campaign: Campaign
    server: int
    wave: int
    tables: Sequence[StoredTable]
    read: Read

    def words(self, one: StoredTable) -> Iterator[Words]:
        """This server's words of a table. What does not belong to its leaf is not the table that was sealed."""
        shape = table_shape(self.campaign, one.people)
        hashed, reader = hashlib.sha256(), table.WordReader(shape)
        if table.seed_server(one.id) == self.server:
            seed = b"".join(self.read(one.id))
            self._require_leaf(one, hashlib.sha256(seed).digest())
            yield from table.expanded(seed, table_binder(self.campaign, one.id, self.wave, one.people), shape)
            return
        try:
            for part in self.read(one.id):
                hashed.update(part)
                yield reader.feed(part)
            reader.finish()
        except FssError:
            raise NotTheSealedSet from None
        self._require_leaf(one, hashed.digest())

    def _require_leaf(self, one: StoredTable, share: bytes) -> None:
        hashes = (share, one.other) if self.server == 0 else (one.other, share)
        if Contribution(TABLE, one.people, self.wave).leaf(one.id, hashes) != one.leaf:
            raise NotTheSealedSet

    def check(self, point: table.Point, progress: Callable[[float], None]) -> tuple[list[table.Message], Words]:
        """What the other server is told about each, and the sum of all."""
        sums, messages = self.no_sums(), list[table.Message]()
        for one in self.tables:
            messages.append(table.message(self.words(one), table_shape(self.campaign, one.people), point, sums))
            progress(len(messages) / len(self.tables))
        return messages, sums

    def add(self, sums: Words, which: Iterable[StoredTable], *, subtract: bool = False) -> None:
        """Add the shares of some of them to a sum, or take them from it."""
        for one in which:
            table.add_counts(self.words(one), table_shape(self.campaign, one.people), sums, subtract=subtract)

    def no_sums(self) -> Words:
        return np.zeros(position_count(self.campaign), np.uint64)


def encode_messages(messages: Iterable[table.Message]) -> bytes:
    return b"".join(message.to_bytes() for message in messages)


def decode_messages(data: bytes) -> list[table.Message]:
    """Raises `FssError`."""
    size = table.MESSAGE_BYTES
    return [table.Message.from_bytes(data[start : start + size]) for start in range(0, len(data), size)]


def accepted(
    campaign: Campaign,
    tables: Sequence[StoredTable],
    of_server0: Sequence[table.Message],
    of_server1: Sequence[table.Message],
) -> list[bool]:
    """Which of some tables are kept, by both servers' messages."""
    pairs = zip(tables, of_server0, of_server1, strict=True)
    return [table.accept(first, second, table_shape(campaign, one.people)) for one, first, second in pairs]


@dataclass(frozen=True)
class TableSums:
    """The sum of this server's shares of the tables of a sealed set, as it is kept: for this set and no other."""

    path: Path
    checksum: bytes

    def save(self, sums: Words) -> None:
        body = io.BytesIO()
        np.save(body, sums)
        write_durably(self.path, self._digest(body.getvalue()) + body.getvalue())

    def load(self, campaign: Campaign) -> Words | None:
        """The sum, if it was saved for this set and is whole."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        if data[:_DIGEST] != self._digest(data[_DIGEST:]):
            return None
        sums: Words = np.load(io.BytesIO(data[_DIGEST:]), allow_pickle=False)
        fits = sums.shape == (position_count(campaign),) and sums.dtype == np.uint64 and field.is_canonical(sums)
        return sums if fits else None

    def share(self, campaign: Campaign) -> RawShare | None:
        """This server's share, from tables, of how many are at each position of the domain or below."""
        sums = self.load(campaign)
        return None if sums is None else table_share(campaign, sums)

    def share_at(self, campaign: Campaign, positions: NDArray[np.int64]) -> RawShare | None:
        """The same at some positions."""
        sums = self.load(campaign)
        return None if sums is None else RawShare(field.prefix_sum(to_domain(campaign, sums))[positions])

    def _digest(self, body: bytes) -> bytes:
        return hashlib.sha256(self.checksum + body).digest()


def table_share(campaign: Campaign, sums: Words) -> RawShare:
    return RawShare(field.prefix_sum(to_domain(campaign, sums)))
