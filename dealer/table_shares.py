"""A site's values as one table: shares of its counts for both servers. Nothing here talks to anybody."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fss import table
from fss.errors import SelfCheckError
from fss_ecdf.campaign.binary_messages import encode_table
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import TABLE, Contribution
from fss_ecdf.campaign.errors import TryAgain
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.campaign.tables import table_binder, table_context, table_shape, to_histogram


@dataclass(frozen=True, repr=False)
class TableShares:
    """One table for both servers. Does not print secrets."""

    campaign: Campaign
    upload_id: bytes
    people: int
    shares: tuple[bytes, bytes]  # of server 0 and of server 1
    wave: int = 0

    def __len__(self) -> int:
        return self.people

    def __repr__(self) -> str:
        return f"<Table of {self.people} values, {len(self.shares[0])} and {len(self.shares[1])} bytes>"

    @cached_property
    def _hashes(self) -> list[bytes]:
        return [hashlib.sha256(share).digest() for share in self.shares]

    @property
    def contribution(self) -> Contribution:
        return Contribution(TABLE, self.people, self.wave)

    def leaves(self) -> bytes:
        """What stands for the table in its set: both servers sign it when they have stored their shares."""
        return self.contribution.leaf(self.upload_id, (self._hashes[0], self._hashes[1]))

    def envelope(self, server: int) -> bytes:
        """What one server gets."""
        about = self.wave, self.people, self.upload_id, self._hashes[1 - server]
        return encode_table(self.campaign, server, *about) + self.shares[server]

    def sealed(self, server: int, token: str) -> bytes:
        """The same, encrypted to that server: what travels with this token."""
        return seal_upload(self.campaign, server, self.envelope(server), token)


def make_table(
    positions: NDArray[np.int64],
    campaign: Campaign,
    *,
    secret: bytes,
    upload_id: bytes,
    wave: int = 0,
    attempt: int = 0,
) -> TableShares:
    """The table of these positions; the same again for the same, and other randomness if anything differs.

    Before it is returned it has passed the check that the servers make, at a random point. `secret` has 32 bytes, is
    uniform, and is used for one receipt.
    """
    people = int(positions.size)
    shape = table_shape(campaign, people)
    context = table_context(campaign, upload_id, wave, people, attempt)
    binder = table_binder(campaign, upload_id, wave, people)
    try:
        shared = table.share(to_histogram(campaign, positions), shape, secret=secret, context=context, binder=binder)
    except SelfCheckError as error:
        raise TryAgain(f"{error}; nothing was sent") from None
    words = table.encode_words(shared.words, shape)
    shares = (shared.seed, words) if table.seed_server(upload_id) == 0 else (words, shared.seed)
    return TableShares(campaign, upload_id, people, shares, wave)
