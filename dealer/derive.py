"""Everything random of an upload, from one secret: sending it again sends the same bytes, which count once.

The secret comes from the receipt's random salt and the token that admits to the campaign, so neither alone tells
anything. Ids depend on the place of a value only, so that they can be withdrawn without the values; keys depend on the
positions and the wave too, so that other values and other waves never meet the same randomness.
"""

import hmac
import struct
from dataclasses import dataclass, field
from hashlib import sha256, shake_256

import numpy as np
from numpy.typing import NDArray

from campaign.envelopes import UPLOAD_ID_BYTES
from campaign.spec import Campaign, Placed
from dealer.sharing import Shared, key_rand_bytes, share_positions

SALT_BYTES = 32
_PLACE = struct.Struct("<QQ")
_WAVE = struct.Struct("<Q")


@dataclass(frozen=True)
class Source:
    """What the ids and keys of one receipt are made from."""

    _key: bytes = field(repr=False)

    @classmethod
    def of(cls, salt: bytes, token: str) -> "Source":
        return cls(hmac.digest(salt, token.encode(), sha256))

    def mark(self) -> str:
        """Tells whether it is the same token; not which."""
        return self._bytes(b"mark", 16).hex()

    def tag(self, positions: NDArray[np.int64]) -> str:
        """Tells whether these are the same values in the same order. Whoever has salt and token can test guesses."""
        return self._bytes(b"data", 32, _little_endian(positions)).hex()

    def ids(self, number: int, generation: int, count: int) -> NDArray[np.uint8]:
        data = self._bytes(b"ids ", count * UPLOAD_ID_BYTES, _PLACE.pack(number, generation))
        return np.frombuffer(data, np.uint8).reshape(count, UPLOAD_ID_BYTES)

    def shared(
        self, number: int, generation: int, positions: NDArray[np.int64], campaign: Campaign, wave: int
    ) -> Shared:
        """One batch of values as keys under their ids, for one wave: other waves never meet the same keys."""
        ids = self.ids(number, generation, positions.size)
        seed = _PLACE.pack(number, generation) + campaign.digest + _WAVE.pack(wave) + _little_endian(positions)
        rand = self._bytes(b"keys", positions.size * key_rand_bytes(campaign), seed)
        return share_positions(Placed(positions, 0, 0), campaign, rand, ids, wave)

    def _bytes(self, purpose: bytes, count: int, about: bytes = b"") -> bytes:
        return shake_256(self._key + purpose + about).digest(count)


def _little_endian(positions: NDArray[np.int64]) -> bytes:
    return positions.astype("<i8").tobytes()
