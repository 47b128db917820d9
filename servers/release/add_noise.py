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
from servers.release.score_groups import SCORE_UNIT, ScoreGroupQuery, group_noise
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


def noisy_score_groups(share: RawShare, source: NoiseKey, asked: ScoreGroupQuery) -> Words:
    """(O_0, O_1, E_0, E_1) of every group, from the share of the whole curve: shape (4 groups,)."""
    noise, noised = group_noise(asked, source.prf(asked.purpose)), []
    for level, (column, laplace) in enumerate(zip(_columns(share, asked.campaign), noise, strict=True)):
        sums = [int(zp.total(column[a + 1 : b + 1])) for a, b in zip(asked.starts, asked.ends, strict=True)]
        noised.append(zp.add(np.array(sums, np.uint64), zp.encode(laplace.at(level, np.arange(len(sums))))))
    return np.concatenate(noised)


def sums(share: RawShare, source: NoiseKey, query: SumQuery, used: NDArray[np.int64]) -> Words:
    """Weighted sums over the cells at these positions, from the share of the whole curve; padding counts nothing."""
    whole = share.open_for_noise()
    if used.size != query.weights.shape[1]:
        raise InvalidQuery(f"{query.weights.shape[1]} weights for {used.size} cells")
    cells = zp.sub(whole, np.concatenate([np.zeros(1, np.uint64), whole[:-1]]))[used]
    noise = zp.encode(sum_noise(query, source.prf(purpose(query))))
    return zp.add(np.array([zp.total(zp.mul(cells, zp.encode(w))) for w in query.weights], np.uint64), noise)


def _columns(share: RawShare, campaign: Campaign) -> list[Words]:
    """For every cell of the grid: negatives, positives, and both weighted by one minus the score and by the score."""
    whole, size = share.open_for_noise(), campaign.variable.grid.size
    scores = np.rint(campaign.variable.grid.all_thresholds * SCORE_UNIT).astype(np.uint64)
    cells = []
    for stratum in (0, 1):
        at = campaign.position(stratum, np.arange(-1, size))
        counts = np.where(at < 0, np.uint64(0), whole[np.maximum(at, 0)])
        cells.append(zp.sub(counts[1:], counts[:-1]))
    both = zp.add(cells[0], cells[1])
    return [*cells, zp.scale(both, np.uint64(SCORE_UNIT) - scores), zp.scale(both, scores)]
