"""Values to positions to key pairs. Nothing here talks to anybody."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fss import SCHEMES, KeyBatch
from fss.generate import PROVED_RAND_BYTES, RAND_BYTES
from fss.proof import Proofs
from fss_ecdf.campaign.array_inputs import Strata, Values
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES, encode_rows, hash_rows, stored_bytes
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.campaign.contribution import ONE_KEY, Contribution
from fss_ecdf.campaign.sealed_uploads import seal_upload

Rand = Callable[[int], bytes]


@dataclass(frozen=True)
class KeyPairs:
    """One party's values as uploads for both servers. Does not print secrets."""

    campaign: Campaign
    placed: Positions
    ids: NDArray[np.uint8]
    keys: tuple[KeyBatch, KeyBatch]
    proofs: tuple[Proofs, Proofs] | None = None
    contribution: Contribution = ONE_KEY

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<KeyPairs {len(self)} values, {self.key_bytes} bytes to each server>"

    @property
    def key_bytes(self) -> int:
        return self.campaign.key_type(0).key_bytes

    def envelope(self, server: int, part: slice = slice(None)) -> bytes:
        """What one server gets of some of the values."""
        others, stored = self._hashes[1 - server][part], self._stored[server][part]
        return encode_rows(self.campaign, self.keys[server].type, self.contribution, self.ids[part], others, stored)

    def sealed(self, server: int, token: str, part: slice = slice(None)) -> bytes:
        """The same, encrypted to that server: what travels with this token."""
        return seal_upload(self.campaign, server, self.envelope(server, part), token)

    def leaves(self) -> bytes:
        """What stands for each value in its set, joined: both servers sign it when they have stored the keys."""
        rows, leaf = zip(self.ids, *self._hashes, strict=True), self.contribution.leaf
        return b"".join(leaf(i.tobytes(), (a.tobytes(), b.tobytes())) for i, a, b in rows)

    @cached_property
    def _stored(self) -> list[NDArray[np.uint8]]:
        """What each server stores of each value."""
        return [stored_bytes(self.keys[i], None if self.proofs is None else self.proofs[i]) for i in (0, 1)]

    @cached_property
    def _hashes(self) -> list[NDArray[np.uint8]]:
        """Of each value, the hash of what each server stores: the other server is told it."""
        return [hash_rows(rows) for rows in self._stored]


def make_keys(
    values: Values,
    campaign: Campaign,
    strata: Strata | None = None,
    *,
    wave: int | None = None,
    rand: Rand = os.urandom,
) -> KeyPairs:
    """Keys and random ids for these values, with a proof beside each key where the campaign checks them.

    They are for one wave; for the first if none is named.

    `rand` must be uniform and secret; it is asked for 48 bytes a value, or 136 with proofs.
    """
    placed = campaign.to_positions(values, strata)
    n = placed.positions.size
    key_rand = rand(n * key_rand_bytes(campaign))
    ids = np.frombuffer(rand(n * UPLOAD_ID_BYTES), np.uint8).reshape(n, UPLOAD_ID_BYTES)
    return make_keys_at(placed, campaign, key_rand, ids, campaign.first_wave if wave is None else wave)


def key_rand_bytes(campaign: Campaign) -> int:
    """Random bytes that the keys of one value need."""
    return PROVED_RAND_BYTES if campaign.check_keys else RAND_BYTES


def make_keys_at(placed: Positions, campaign: Campaign, rand: bytes, ids: NDArray[np.uint8], wave: int) -> KeyPairs:
    """The keys that this randomness makes; the same again for the same, so use it for no other positions."""
    scheme, bits, binder = SCHEMES[campaign.variable.scheme], campaign.bits, campaign.id
    contribution = Contribution(campaign.variable.scheme, wave=wave)
    if not campaign.check_keys:
        keys = scheme.gen(placed.positions, bits=bits, binder=binder, rand=rand)
        return KeyPairs(campaign, placed, ids, keys, None, contribution)
    keys, proofs = scheme.gen_proved(placed.positions, bits=bits, binder=binder, rand=rand)
    return KeyPairs(campaign, placed, ids, keys, proofs, contribution)
