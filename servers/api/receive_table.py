"""Receiving a table: it is decrypted, hashed and looked at part by part as it comes, so that it is held once.

What stands before its share is a part of its own, with the table's id: so a table that will be rejected is rejected
before its share is read, as keys are (`judging.py`). The number of people has been judged by the header alone.
"""

import asyncio
import hashlib
from collections.abc import Iterator

from fss import FssError, table
from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES, Row, UploadHeader
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidUpload
from fss_ecdf.campaign.sealed_uploads import Opener, SealedParts
from fss_ecdf.campaign.tables import table_shape
from servers.api.requests import Incoming

SEED, WORDS = "seed", "words"


class TableReader:
    """One table on its way to one server."""

    def __init__(
        self, start: bytes, header: UploadHeader, campaign: Campaign, server: int, token: bytes, open_part: Opener
    ) -> None:
        self._header, self._server = header, server
        self._shape = table_shape(campaign, header.contribution.people)
        self._sealed = SealedParts(start[:UPLOAD_HEADER_BYTES], campaign, server, token, open_part)
        self._reader, self._hash, self._parts = table.WordReader(self._shape), hashlib.sha256(), list[bytes]()

    @property
    def sizes(self) -> Iterator[int]:
        """Of the parts as they travel."""
        return iter(self._sealed.sizes)

    def open_first(self, sealed: bytes) -> bytes:
        """The table's id, when what stands before the share has come."""
        opened = self._sealed.open(sealed)
        self.id, self._other = opened[:UPLOAD_ID_BYTES], opened[UPLOAD_ID_BYTES:]
        is_seed = table.seed_server(self.id) == self._server
        if self._header.share_bytes != (table.SEED_BYTES if is_seed else self._shape.bytes):
            raise InvalidUpload(f"server {self._server} gets the {SEED if is_seed else WORDS} of a table with this id")
        self._is_seed = is_seed
        return self.id

    def add(self, sealed: bytes) -> None:
        """The next part of the share; a word that is none is refused at once."""
        part = self._sealed.open(sealed)
        self._hash.update(part)
        if not self._is_seed:
            try:
                self._reader.feed(part)
            except FssError as error:
                raise InvalidUpload(str(error)) from None
        self._parts.append(part)

    def finish(self) -> tuple[Row, list[bytes]]:
        """The table as it is stored: its row among the uploads, and its share in parts."""
        hashes = self._hash.digest(), self._other
        leaf = self._header.contribution.leaf(self.id, hashes if self._server == 0 else hashes[::-1])
        return (self.id, leaf, self._other), self._parts


async def read_share(incoming: Incoming, reader: TableReader, sizes: Iterator[int]) -> tuple[Row, list[bytes]]:
    """All parts behind the first."""
    for size in sizes:
        await asyncio.to_thread(reader.add, await incoming.take(size))
    return reader.finish()
