"""Variables with categories: counts and proportions in each stratum, and whether strata differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from analyst.estimation import public_constraints
from analyst.estimation.estimate import INTERVALS, Estimate
from analyst.estimation.noisy import Noisy, noise_factor, proportion
from analyst.present.table import Columns, Tabular
from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import InvalidQuery, TooNoisy
from fss_ecdf.campaign.noise.flat import Flat

if TYPE_CHECKING:
    from analyst.release import Release

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

    def count(self, stratum: str, category: str, confidence: float = 0.95) -> Estimate:
        """How many there are. The interval for these people; those of a population have no count."""
        picked = self.counts.combine(self._row(*self._at(stratum, category)))
        error = math.sqrt(float(picked.covariance[0, 0])) * noise_factor(confidence)
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


KNOWN = "not missing"


def category_counts(release: "Release") -> CategoryCounts:
    """Of a release: counts of the categories, or of a variable with a grid, of its known and its missing values."""
    campaign = release.campaign
    variable, strata = campaign.variable, range(len(campaign.strata))
    if not variable.cells:
        raise InvalidQuery(f"the variable {short(repr(variable.name))} has a grid and does not count missing values")
    if isinstance(campaign.noise, Flat):
        at = np.concatenate([campaign.position(s, np.arange(variable.size)) for s in strata])
        counts = Noisy.from_cells(np.diff(release.published, prepend=0.0)[at], campaign.noise)
        return CategoryCounts(counts, campaign.strata, variable.cells)
    rows = np.zeros((2 * len(campaign.strata), 1 << campaign.bits))
    for s in strata:
        start = campaign.position(s, 0)
        rows[2 * s, start : start + variable.value_count] = 1.0
        rows[2 * s + 1, start + variable.value_count] = 1.0
    cells = np.diff(release.adjusted, prepend=0.0)
    covariance = public_constraints.public_constraints(campaign).covariance(rows)
    counts = Noisy(rows[:, : cells.size] @ cells, covariance)
    return CategoryCounts(counts, campaign.strata, (KNOWN, *variable.cells))


@dataclass(frozen=True, eq=False)
class CategoryTable(Tabular, picture="categories"):
    """Counts and proportions of each category in some strata, with both intervals of the proportions."""

    counts: CategoryCounts
    strata: tuple[str, ...]
    about: dict[str, Any]
    confidence: float = 0.95

    def columns(self) -> Columns:
        cells = [(stratum, category) for stratum in self.strata for category in self.counts.categories]
        counts = [self.counts.count(*cell) for cell in cells]
        fractions = [self.counts.proportion(*cell, self.confidence) for cell in cells]
        found: dict[str, list[Any]] = {
            "stratum": [stratum for stratum, _ in cells],
            "category": [category for _, category in cells],
            "count": [count.value for count in counts],
            "standard_error": [math.sqrt(float(self._variance(*cell))) for cell in cells],
            "proportion": [fraction.value for fraction in fractions],
        }
        for kind in INTERVALS:
            ends = [fraction.interval(kind, self.confidence) for fraction in fractions]
            found |= {f"{kind}_lower": [low for low, _ in ends], f"{kind}_upper": [high for _, high in ends]}
        return found

    def _variance(self, stratum: str, category: str) -> float:
        at = self.counts.strata.index(stratum) * len(self.counts.categories) + self.counts.categories.index(category)
        return max(float(self.counts.counts.covariance[at, at]), 0.0)

    def metadata(self) -> dict[str, Any]:
        return {**self.about, "confidence": self.confidence, "notes": self.notes}

    @property
    def notes(self) -> list[str]:
        """Strata whose number of values is lost in the noise."""
        hidden = [s for s in self.strata if math.isnan(self.counts.proportion(s, self.counts.categories[0]).value)]
        return [f"the number of values of stratum {s!r} is lost in the noise: it has no proportions" for s in hidden]


@dataclass(frozen=True, eq=False)
class CategoryComparison(Tabular, picture="categories"):
    """Whether strata have the same proportions, and the proportions themselves."""

    test: Homogeneity
    table: CategoryTable

    @property
    def p_value(self) -> float:
        return self.test.p_value

    @property
    def drawn(self) -> CategoryTable:
        return self.table

    def columns(self) -> Columns:
        return self.table.columns()

    def metadata(self) -> dict[str, Any]:
        notes = list(self.table.notes)
        if self.test.least_expected < 5:
            notes.append("a category has fewer than 5 expected values: the p-value is a rough guide")
        told = {
            "chi_square": self.test.statistic,
            "degrees_of_freedom": self.test.degrees,
            "p_value": self.test.p_value,
        }
        about = {**self.table.about, **told, "p_values": "for the population, noise included"}
        return {**about, "hypothesis": "the strata have the same proportions", "notes": notes}


def compare_proportions(
    counts: CategoryCounts, strata: tuple[str, ...], about: dict[str, Any], confidence: float = 0.95
) -> CategoryComparison:
    """The test with the table that it is about."""
    return CategoryComparison(compare_categories(counts, strata), CategoryTable(counts, strata, about, confidence))
