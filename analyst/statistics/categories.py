"""Variables with categories: counts and proportions in each stratum, and whether strata differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from analyst.estimation.estimate import Estimate
from analyst.estimation.noisy import Noisy, noise_factor, proportion
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CategoryCounts:
    """Noisy counts of cells, one row a stratum and one column a category, row after row in `counts`."""

    counts: Noisy
    strata: tuple[str, ...]
    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.counts.values.size != len(self.strata) * len(self.categories):
            raise InvalidQuery(
                f"{self.counts.values.size} counts for {len(self.categories)} categories of {len(self.strata)} strata"
            )

    @property
    def table(self) -> Floats:
        return self.counts.values.reshape(len(self.strata), -1)

    def _row(self, stratum: int, category: int | None = None) -> Floats:
        """What picks a cell, or all cells of a stratum."""
        row = np.zeros((len(self.strata), len(self.categories)))
        row[stratum, slice(None) if category is None else category] = 1.0
        return row.ravel()

    def count(self, stratum: str, category: str) -> Estimate:
        """How many there are. The interval for these people; those of a population have no count."""
        picked = self.counts.combine(self._row(*self._at(stratum, category)))
        error = math.sqrt(float(picked.covariance[0, 0])) * noise_factor(0.95)
        return Estimate(f"{stratum}: {category}", float(picked.values[0]), error, 0.0, (0.0, math.inf), step=1.0)

    def proportion(self, stratum: str, category: str, confidence: float = 0.95) -> Estimate:
        """Of those in a stratum, the fraction in a category."""
        s, c = self._at(stratum, category)
        both = self.counts.combine(np.vstack([self._row(s, c), self._row(s)]))
        return proportion(f"{stratum}: {category}", both, confidence)

    def proportions(self, confidence: float = 0.95) -> list[Estimate]:
        return [self.proportion(s, c, confidence) for s in self.strata for c in self.categories]

    def _at(self, stratum: str, category: str) -> tuple[int, int]:
        for name, names in ((stratum, self.strata), (category, self.categories)):
            if name not in names:
                raise InvalidQuery(f"there is no {name!r} among {', '.join(map(repr, names))}")
        return self.strata.index(stratum), self.categories.index(category)


@dataclass(frozen=True)
class Homogeneity:
    """Whether strata have the same proportions: a chi-square test with the noise in its variance."""

    statistic: float
    degrees: int
    p_value: float
    least_expected: float  # below 5 the distribution is a rough guide

    def metadata(self) -> dict[str, Any]:
        return {**self.__dict__, "hypothesis": "the strata have the same proportions"}


def compare_categories(counts: CategoryCounts, chosen: Sequence[str] | None = None) -> Homogeneity:
    """A test of equal proportions in some strata, or all.

    With d = observed - expected counts, R_i C_j / N from noisy margins, the statistic is d' V^- d. V is the covariance
    of d under the hypothesis: J (M + noise) J', M that of a multinomial sample and J the slopes of d. Without noise
    this is Pearson's statistic; noise makes V larger, and the test as often wrong as it says.
    """
    names = counts.strata if chosen is None else tuple(chosen)
    rows = [counts._at(name, counts.categories[0])[0] for name in names]
    if len(rows) < 2 or len(set(rows)) < len(rows) or len(counts.categories) < 2:
        raise InvalidQuery("a comparison takes two or more strata and two or more categories")
    k = len(counts.categories)
    pick = np.concatenate([np.arange(s * k, (s + 1) * k) for s in rows])
    part = counts.counts.combine(np.eye(counts.counts.values.size)[pick])
    x, n = part.values.reshape(-1, k), float(part.values.sum())
    by_row, by_column = x.sum(axis=1), x.sum(axis=0)
    if n <= 0 or (by_row <= 0).any():
        raise TooNoisy("the number of values in a stratum is lost in the noise; compare larger strata")
    shares = np.maximum(by_column, 0.5)
    expected = np.outer(by_row, shares / shares.sum())
    r, c = len(rows), k
    # d_ij = x_ij - R_i C_j / N
    ones = np.kron(np.eye(r), np.ones((c, c))) * np.tile(by_column / n, r)[:, np.newaxis]
    twos = np.kron(np.ones((r, r)), np.eye(c)) * np.repeat(by_row / n, c)[:, np.newaxis]
    slopes = np.eye(r * c) - ones - twos + np.outer(by_row, by_column).ravel()[:, np.newaxis] / n**2
    flat = expected.ravel()
    multinomial = np.diag(flat) - np.outer(flat, flat) / n
    variance = slopes @ (multinomial + part.covariance) @ slopes.T
    d = (x - np.outer(by_row, by_column) / n).ravel()
    degrees = (r - 1) * (c - 1)
    # V has this rank: the largest eigenvalues, whatever rounding leaves in the others
    values, vectors = np.linalg.eigh(variance)
    along = (vectors[:, -degrees:].T @ d) ** 2 / values[-degrees:]
    statistic = float(along.sum())
    return Homogeneity(statistic, degrees, float(chi2.sf(statistic, degrees)), float(expected.min()))
