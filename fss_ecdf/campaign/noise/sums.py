"""Weighted sums over the cells of a variable, several in one query: how far one person moves them, and their noise.

A query has integer weights, one for each cell (position that values can have) and sum, a unit for each sum, and an
epsilon. With W_i the weights of cell i, one column, replacing a value in cell a by one in cell b changes the sums by
W_b - W_a. The sensitivity is the largest change, each sum measured in its unit:

    S  =  max over cells a, b of  sum over j of |W_ja - W_jb| / unit_j

Sum j gets discrete Laplace noise of rate epsilon / (m S unit_j), m values a person: the log-probability of what is
published changes by at most m S epsilon / (m S) = epsilon. Any public weights are safe, also those that were chosen
after other results were seen. A sum with a larger unit has more noise and uses less of the epsilon.

Everything here is public and one server's; both servers add their noise.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, MAX_EPSILON, MIN_EPSILON_EACH, SERVERS
from fss_ecdf.campaign.noise.tables import KEPT_BITS, Floats

MAX_SUMS = 4096
MAX_WEIGHT = (1 << 31) - 1
MAX_ENTRIES = 1 << 22  # weights of all sums
MAX_UNITS = 64  # different ones: each needs tables of its own to draw from
# A sum of both servers' shares is known modulo 2^61 - 1, signs included.
_MAX_TOTAL = 1 << 59
# Products that finding a sensitivity may take: half a second. A step of a loop takes as long as so many of them.
_MAX_WORK = 1 << 28
_STEP = 1 << 12
_BLOCK = 8  # sums whose signs are enumerated together, where those of all are too many

# Below this rate noise is put together from digits: a table of the rest has at most some 20 000 entries.
LEAST_RATE = 2.0**-8
DIGIT_BITS = 10

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Sensitivity:
    """The largest change by replacing one value, and whether it is attained or an upper bound."""

    value: Fraction
    exact: bool


@dataclass(frozen=True, eq=False)
class SumQuery:
    """Sums with weights (sums, cells), a unit for each, and the epsilon of all of them for `instances` values."""

    weights: Integers
    units: tuple[int, ...]
    epsilon: float
    instances: int = 1

    @property
    def digest(self) -> str:
        """Of everything that is asked: the same query has the same noise, and no other one has."""
        head = f"sums 1;{self.weights.shape};{self.units};{self.epsilon.hex()};{self.instances};"
        return hashlib.sha256(head.encode() + np.ascontiguousarray(self.weights, "<i8").tobytes()).hexdigest()

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return joint_sensitivity(self.weights, self.units)

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """For each sum what the log-probability of its noise falls by at each step, rounded down."""
        return tuple(self._rate(unit) for unit in self.units)

    def _rate(self, unit: int) -> float:
        cost = self.instances * self.sensitivity.value * unit
        rate = float(Fraction(self.epsilon) / cost)
        while Fraction(rate) * cost > Fraction(self.epsilon):
            rate = math.nextafter(rate, 0.0)
        return rate

    @property
    def loss(self) -> Fraction:
        """The privacy loss of a person, at most epsilon: exact if the sensitivity is."""
        largest = max(Fraction(rate) * unit for rate, unit in zip(self.rates, self.units, strict=True))
        return self.instances * self.sensitivity.value * largest

    @property
    def variances(self) -> Floats:
        """Of each sum's noise, both servers together, as integers are summed."""
        return np.array([SERVERS * laplace_variance(rate) for rate in self.rates])

    @property
    def errors(self) -> Floats:
        """Standard errors of the sums by the noise."""
        return np.sqrt(self.variances)

    @property
    def distance(self) -> float:
        """A bound on the total variation distance of one server's noise of all sums from the ideal distribution."""
        return math.fsum(map(laplace_distance, self.rates))

    @property
    def delta(self) -> float:
        """The delta that goes with epsilon: what is ideal within d is (epsilon, (1 + e^epsilon) d)-DP."""
        return (1 + math.exp(self.epsilon)) * self.distance

    def check_total(self, n: int) -> None:
        """Refuses sums over n values that could be too large to be told from others."""
        reach = 2 * KEPT_BITS / min(self.rates)
        if n * int(np.abs(self.weights).max()) + reach >= _MAX_TOTAL:
            raise InvalidQuery(f"sums of {n} values with these weights are too large; divide the weights")

    def over_positions(self, used: Integers, positions: int) -> Integers:
        """The weights at all positions: cells at those that are used, 0 at all others."""
        if used.size != self.weights.shape[1]:
            raise InvalidQuery(f"{self.weights.shape[1]} weights for {used.size} cells")
        whole = np.zeros((len(self.weights), positions), np.int64)
        whole[:, used] = self.weights
        return whole


def read_sums(
    weights: Any, epsilon: float, *, cells: int, units: Sequence[int] | None = None, instances: int = 1
) -> SumQuery:
    """A query from rows of whole numbers, one for each sum, with a weight for each cell.

    Without units, a sum's unit is its range (largest less smallest weight). With units, sums without a range may be
    among others, as a score group of scores 0 has no expected positives. Raises InvalidQuery, and says why.
    """
    if not 0 < epsilon <= MAX_EPSILON or epsilon / instances < MIN_EPSILON_EACH:
        raise InvalidQuery(
            f"epsilon must be at least {MIN_EPSILON_EACH} for each of the {instances} values of a person and at most "
            f"{MAX_EPSILON:g}, got {epsilon:g}"
        )
    rows = _rows(weights, cells)
    ranges = [int(high) - int(low) for low, high in zip(rows.min(axis=1), rows.max(axis=1), strict=True)]
    if not any(ranges) or (units is None and 0 in ranges):
        raise InvalidQuery(f"all weights of sum {ranges.index(0)} are equal: it is known without a query")
    found = tuple(ranges) if units is None else _units(units, len(rows))
    if len(set(found)) > MAX_UNITS:
        raise InvalidQuery(f"the sums of a query have at most {MAX_UNITS} different units, got {len(set(found))}")
    return SumQuery(rows, found, float(epsilon), instances)


def _rows(weights: Any, cells: int) -> Integers:
    lengths = [len(row) for row in weights]
    if not 1 <= len(lengths) <= MAX_SUMS:
        raise InvalidQuery(f"a query has 1 to {MAX_SUMS} sums, got {len(lengths)}")
    wrong = [length for length in lengths if length != cells]
    if wrong:
        raise InvalidQuery(f"a sum has {cells} weights, one for each cell, got {wrong[0]}")
    if len(lengths) * cells > MAX_ENTRIES:
        raise InvalidQuery(f"a query has at most {MAX_ENTRIES} weights in all, got {len(lengths) * cells}")
    rows = np.asarray(weights)
    if rows.dtype.kind not in "iu" or int(rows.max()) > MAX_WEIGHT or int(rows.min()) < -MAX_WEIGHT:
        raise InvalidQuery(f"weights are whole numbers from {-MAX_WEIGHT} to {MAX_WEIGHT}")
    return rows.astype(np.int64)


def _units(units: Sequence[int], sums: int) -> tuple[int, ...]:
    whole = all(isinstance(unit, int) and not isinstance(unit, bool) for unit in units)
    if len(units) != sums or not whole or not all(1 <= unit <= 2 * MAX_WEIGHT for unit in units):
        raise InvalidQuery(f"units are {sums} whole numbers from 1 to {2 * MAX_WEIGHT}, one for each sum")
    return tuple(units)


def joint_sensitivity(weights: Integers, units: Sequence[int]) -> Sensitivity:
    """The largest change of all sums together by replacing one value, exactly where that takes little work.

    It is the diameter of the columns in the L1 norm: the largest of |x - y| over pairs, or, with s sums, the largest of
    max sigma x - min sigma x over 2^(s - 1) vectors of signs. Where both are too many, two upper bounds: diameters of
    blocks of sums added up, and, by the triangle inequality, twice the largest distance from any one point.
    """
    scaled, denominator, fits = _in_units(weights, units)
    columns = _distinct(scaled)
    sums, distinct = columns.shape
    each = sums * distinct + _STEP
    by_signs, by_pairs = each << min(sums - 1, 62), each * distinct
    if min(by_signs, by_pairs) > _MAX_WORK:
        return Sensitivity(Fraction(_bound(columns), denominator), False)
    found = _by_signs(columns) if by_signs <= by_pairs else _by_pairs(columns)
    return Sensitivity(Fraction(found, denominator), fits)


def _distinct(columns: Integers) -> Integers:
    """Each column once. Sorted row by row: numpy compares whole columns far more slowly."""
    ordered = columns[:, np.lexsort(columns)]
    new = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return ordered[:, np.concatenate([[True], new])]


def _in_units(weights: Integers, units: Sequence[int]) -> tuple[Integers, int, bool]:
    """Weights over units as integers over one denominator, and whether they are equal to that or rounded up.

    Rounded up are the factors of whole rows, so that no difference becomes smaller.
    """
    ranges = [int(high) - int(low) for low, high in zip(weights.min(axis=1), weights.max(axis=1), strict=True)]
    lowest = weights.min(axis=1, keepdims=True)
    # Sums without a range change nothing; the factor of one could be more than 64 bits hold.
    common = math.lcm(*(unit for unit, r in zip(units, ranges, strict=True) if r))
    factors, denominator = [common // unit if r else 0 for unit, r in zip(units, ranges, strict=True)], common
    fits = sum(f * r for f, r in zip(factors, ranges, strict=True)) < 1 << 61
    if not fits:
        in_all = sum(Fraction(r, unit) for r, unit in zip(ranges, units, strict=True))
        denominator = 1 << (60 - math.ceil(in_all + len(units)).bit_length())
        factors = [-(-denominator // unit) for unit in units]
    return (weights - lowest) * np.array(factors, np.int64)[:, np.newaxis], denominator, fits


def _by_signs(columns: Integers) -> int:
    """The first sign may be +: with all signs turned, the range is the same."""
    best = 0
    for signs in product((1, -1), repeat=len(columns) - 1):
        along = np.array([1, *signs], np.int64) @ columns
        best = max(best, int(along.max()) - int(along.min()))
    return best


def _by_pairs(columns: Integers) -> int:
    best = 0
    for i in range(columns.shape[1] - 1):
        best = max(best, int(np.abs(columns[:, i + 1 :] - columns[:, i : i + 1]).sum(axis=0).max()))
    return best


def _bound(columns: Integers) -> int:
    sums, distinct = columns.shape
    size = _BLOCK if sums * distinct << (_BLOCK - 1) <= _MAX_WORK else 1
    blocks = sum(_by_signs(columns[start : start + size]) for start in range(0, sums, size))
    # The middle one of each row: of weights that are mostly alike, that one. Any point would do.
    centre = np.sort(columns, axis=1)[:, distinct // 2, np.newaxis]
    return min(blocks, 2 * int(np.abs(columns - centre).sum(axis=0).max()))


def laplace_variance(rate: float) -> float:
    """Of k with probability proportional to exp(-rate |k|)."""
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def laplace_digits(rate: float) -> int:
    """How many digits noise of this rate is put together from, besides the rest."""
    digits = 0
    while rate < LEAST_RATE:
        rate, digits = rate * (1 << DIGIT_BITS), digits + 1
    return digits


def laplace_distance(rate: float) -> float:
    """A bound on the total variation distance of one variable from the ideal one.

    Of the rest: what was cut off its table, its rounding, and that of a draw; two draws for each digit.
    """
    digits = laplace_digits(rate)
    rest = rate * 2.0 ** (DIGIT_BITS * digits)
    reach = KEPT_BITS / rest + 1
    cut = (4 / -math.expm1(-rest) + 4) * 2.0**-KEPT_BITS + (2 * reach + 1) * 2.0**-DRAW_BITS
    return cut + 2 * digits * (4 * 2.0**-KEPT_BITS + (1 << DIGIT_BITS) * 2.0**-DRAW_BITS)
