"""Everything random of an upload, from one secret: sending it again sends the same bytes, which count once.

Keys come from the receipt's random salt and the token that admits to the campaign, so neither alone tells anything of
a value; they depend on the positions and the wave too, so that other values and other waves never meet the same
randomness. Ids depend on the salt and the place of a value only, so that they can be withdrawn without the values, and
with another token: whoever says that the first one was not known may have stored them.
"""

import hmac
import struct
from dataclasses import dataclass, field
from hashlib import sha256, shake_256

import numpy as np
from numpy.typing import NDArray

from dealer.key_pairs import KeyPairs, key_rand_bytes, make_keys_at
from dealer.table_shares import TableShares, make_table
from fss.table import SECRET_BYTES
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES
from fss_ecdf.campaign.campaign import Campaign, Positions

SALT_BYTES = 32
_PLACE = struct.Struct("<QQ")
_WAVE = struct.Struct("<Q")


@dataclass(frozen=True)
class UploadSecrets:
    """What the ids and keys of one receipt are made from."""

    _key: bytes = field(repr=False)
    _salt: bytes = field(repr=False)

    @classmethod
    def of(cls, salt: bytes, token: str) -> "UploadSecrets":
        return cls(hmac.digest(salt, token.encode(), sha256), salt)

    def token_fingerprint(self) -> str:
        """Tells whether it is the same token; not which."""
        return self._bytes(b"mark", 16).hex()

    def values_fingerprint(self, positions: NDArray[np.int64]) -> str:
        """Tells whether these are the same values in the same order. Whoever has salt and token can test guesses."""
        return self._bytes(b"data", 32, _little_endian(positions)).hex()

    def ids(self, number: int, generation: int, count: int) -> NDArray[np.uint8]:
        data = shake_256(self._salt + b"ids " + _PLACE.pack(number, generation)).digest(count * UPLOAD_ID_BYTES)
        return np.frombuffer(data, np.uint8).reshape(count, UPLOAD_ID_BYTES)

    def make_keys(
        self, number: int, generation: int, positions: NDArray[np.int64], campaign: Campaign, wave: int
    ) -> KeyPairs:
        """One batch of values as keys under their ids, for one wave: other waves never meet the same keys."""
        ids = self.ids(number, generation, positions.size)
        seed = _PLACE.pack(number, generation) + campaign.digest + _WAVE.pack(wave) + _little_endian(positions)
        rand = self._bytes(b"keys", positions.size * key_rand_bytes(campaign), seed)
        return make_keys_at(Positions(positions, 0, 0), campaign, rand, ids, wave)

    def table_id(self, number: int, generation: int, wave: int) -> NDArray[np.uint8]:
        """The id of a table: one, in the form of `ids`."""
        place = _PLACE.pack(number, generation) + _WAVE.pack(wave)
        data = shake_256(self._salt + b"tid " + place).digest(UPLOAD_ID_BYTES)
        return np.frombuffer(data, np.uint8).reshape(1, UPLOAD_ID_BYTES)

    def make_table(
        self, number: int, generation: int, positions: NDArray[np.int64], campaign: Campaign, wave: int
    ) -> TableShares:
        """One batch of values as a table under its id, for one wave."""
        upload_id = self.table_id(number, generation, wave).tobytes()
        secret = self._bytes(b"tabl", SECRET_BYTES, _PLACE.pack(number, generation))
        return make_table(positions, campaign, secret=secret, upload_id=upload_id, wave=wave, attempt=generation)

    def _bytes(self, purpose: bytes, count: int, about: bytes = b"") -> bytes:
        return shake_256(self._key + purpose + about).digest(count)


def _little_endian(positions: NDArray[np.int64]) -> bytes:
    return positions.astype("<i8").tobytes()
