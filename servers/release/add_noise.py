"""The one file in which a share and its noise meet, and from which anything leaves.

Everything these functions return carries this server's full noise. Nothing else in the program opens a share
(`Unnoised.open_for_noise`); tests/servers/test_unnoised.py reads every other module for it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fss import field as zp
from fss.field import Words
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.sums import SumQuery
from servers.compute.raw_share import RawShare
from servers.release.noise import NoiseTree, Prf
from servers.release.sum_noise import purpose, sum_noise


@dataclass(frozen=True)
class NoiseKey:
    """Where the noise of one server and one sealed set comes from. The seed does not print."""

    seed: bytes = field(repr=False)
    server: int
    covers: bytes  # everything the noise is bound to: see `noise.covers`
    campaign: Campaign

    def tree(self) -> NoiseTree:
        return NoiseTree(self.seed, server=self.server, covers=self.covers, mechanism=self.campaign.noise)

    def prf(self, purpose: str) -> Prf:
        return Prf(self.seed, self.server, self.covers, purpose.encode())


def noisy_curve(share: RawShare, source: NoiseKey) -> Words:
    """The whole curve."""
    return zp.add(share.open_for_noise(), zp.encode(source.tree().curve()))


def noisy_points(share: RawShare, source: NoiseKey, positions: NDArray[np.int64]) -> Words:
    """The curve at some positions, whose share this is."""
    return zp.add(share.open_for_noise(), zp.encode(source.tree().at(positions)))


def noisy_sums(share: RawShare, source: NoiseKey, query: SumQuery, used: NDArray[np.int64]) -> Words:
    """Weighted sums over the cells at these positions, from the share of the whole curve; padding counts nothing."""
    whole = share.open_for_noise()
    if used.size != query.weights.shape[1]:
        raise InvalidQuery(f"{query.weights.shape[1]} weights for {used.size} cells")
    cells = zp.sub(whole, np.concatenate([np.zeros(1, np.uint64), whole[:-1]]))[used]
    noise = zp.encode(sum_noise(query, source.prf(purpose(query))))
    return zp.add(np.array([zp.total(zp.mul(cells, zp.encode(w))) for w in query.weights], np.uint64), noise)
