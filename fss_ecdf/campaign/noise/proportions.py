"""What the noise does to the statistics of one stratum, by how large a share of all values is expected to be in it.

Exact covariances of both servers' noise, given what is public (nobody is in a grid's padding, all strata together hold
n), at a sample of thresholds. Values are taken to be spread evenly over the grid within each stratum; sampling error is
not counted. Noise does not depend on how many values there are, so errors are counts, to be divided by a stratum's own
number of values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.mechanism import SERVERS, Mechanism

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

BINS = 20
_SAMPLED = 256  # thresholds of a stratum
_FACTS = 64  # strata whose padding is used: further away it tells nothing
_RUNS = 2000


@dataclass(frozen=True)
class StratumErrors:
    """Standard errors in numbers of values: of counts at thresholds less their share of the total, and so on."""

    point: float  # root mean square over the grid
    band: float  # holds the whole curve with probability 95 %
    bin: float
    total: float
    below: float  # of the sum over cells with weights from -1/2 to 1/2 along the grid, which an AUC is made of


def check_proportions(proportions: Sequence[float] | None, strata: int) -> list[float]:
    """The expected share of each stratum: those given, which add up to 1, or even ones."""
    if proportions is None:
        return [1 / strata] * strata
    if len(proportions) != strata or min(proportions) <= 0 or abs(sum(proportions) - 1) > 1e-3:
        raise InvalidCampaign(
            f"proportions are {strata} shares above 0 that add up to 1, one for each stratum, got {list(proportions)}"
        )
    return [share / sum(proportions) for share in proportions]


@dataclass(frozen=True)
class Layout:
    """Where strata lie: each on `size` of `each` positions; `used` counts that of missing values, too."""

    noise: Mechanism
    size: int
    each: int
    strata: int
    used: int

    def _positions(self, stratum: int) -> Index:
        """Of some thresholds of a stratum, the last one among them."""
        steps = np.linspace(0, self.size, min(self.size, _SAMPLED) + 1).round().astype(np.int64)
        return np.asarray(stratum * self.each + np.unique(steps)[1:] - 1)

    def _covariance(self, first: Index, second: Index) -> Floats:
        """Of the noise of counts up to positions; -1 stands for none."""
        a, b = first[:, np.newaxis], second[np.newaxis]
        found = self.noise.covariance(np.maximum(a, 0), np.maximum(b, 0))
        return np.asarray(SERVERS * np.where((a >= 0) & (b >= 0), found, 0.0))

    def _facts(self, stratum: int) -> tuple[Index, Floats]:
        """Positions, and rows over them whose true sums are public."""
        near = range(max(0, stratum - _FACTS // 2), min(self.strata, stratum + _FACTS // 2 + 1))
        padded = [(s * self.each + self.used - 1, (s + 1) * self.each - 1) for s in near]
        spans = [*(padded if self.used < self.each else []), (-1, self.strata * self.each - 1)]
        rows = np.zeros((len(spans), 2 * len(spans)))
        for i in range(len(spans)):
            rows[i, 2 * i], rows[i, 2 * i + 1] = -1.0, 1.0
        return np.array(spans, np.int64).ravel(), rows

    def given_facts(self, positions: Index, rows: Floats, stratum: int) -> Floats:
        """The covariance of sums of counts up to positions, given what is public."""
        at, known = self._facts(stratum)
        own = rows @ self._covariance(positions, positions) @ rows.T
        shared = rows @ self._covariance(positions, at) @ known.T
        among = known @ self._covariance(at, at) @ known.T
        return np.asarray(own - shared @ np.linalg.pinv(among, rcond=1e-10) @ shared.T)

    def errors(self, stratum: int) -> StratumErrors:
        at = self._positions(stratum)
        positions = np.append(at, stratum * self.each - 1)
        counts = np.hstack([np.eye(at.size), -np.ones((at.size, 1))])
        rates = (at - stratum * self.each + 1) / self.size
        curve = counts - rates[:, np.newaxis] * counts[-1]
        ends = np.unique(np.linspace(0, at.size, min(BINS, at.size) + 1).round().astype(np.int64))[1:] - 1
        bins = np.diff(curve[ends], axis=0, prepend=0.0)
        weights = np.diff(curve, axis=0, prepend=0.0)
        middle = rates - np.diff(rates, prepend=0.0) / 2 - 0.5
        rows = np.vstack([curve, bins, counts[-1:], middle @ weights])
        covariance = self.given_facts(positions, rows, stratum)
        variance, k = np.maximum(np.diag(covariance), 0.0), at.size
        return StratumErrors(
            point=math.sqrt(variance[:k].mean()),
            band=_largest(covariance[:k, :k]),
            bin=math.sqrt(variance[k : k + bins.shape[0]].mean()),
            total=math.sqrt(variance[-2]),
            below=math.sqrt(variance[-1]),
        )


def _largest(covariance: Floats) -> float:
    """The 95 % quantile of the largest of normal variables."""
    values, vectors = np.linalg.eigh(covariance)
    scale = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(0).normal(size=(_RUNS, values.size)) @ scale.T
    return float(np.quantile(np.abs(draws).max(axis=1), 0.95))


def area_error(layout: Layout, first: int, second: int, values: tuple[float, float]) -> float:
    """Of the area under the ROC curve of two strata with so many values, by the noise."""
    each = [layout.errors(stratum).below / count for stratum, count in zip((first, second), values, strict=True)]
    return math.hypot(*each)
