"""The privacy claim of `/groups`, enumerated: what one party changes, under the exact probabilities of the noise."""

import itertools
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from fss import field
from fss_ecdf.campaign.json_messages import ScoreGroupsQuery
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, SERVERS
from servers.compute.raw_share import RawShare
from servers.release import add_noise, score_groups
from servers.release.noise import DiscreteLaplace, Draws, FineLaplace, Prf
from tests.campaign.helpers import campaign
from tests.servers.test_privacy import log

Weights = dict[int, int]


class Recorded(Prf):
    """Remembers which draws were used."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed.to_bytes(32, "little"), 0, bytes(64), b"groups")
        self.used: list[tuple[int, int]] = []

    def draws(self, level: int, nodes: ArrayLike) -> Draws:
        self.used += [(level, int(node)) for node in np.asarray(nodes)]
        return super().draws(level, nodes)


def question(ends: list[float], epsilon: float, size: int = 5, **changes: Any) -> score_groups.ScoreGroupQuery:
    """Groups of scores 0, ..., 1 in `size` steps."""
    grid = {"kind": "explicit", "at": [i / (size - 1) for i in range(size)]}
    spec = campaign(grid=grid, strata=["negative", "positive"], reserve=19.0, **changes)
    return score_groups.read_groups(spec, ScoreGroupsQuery(upper_ends=ends, epsilon=epsilon))


def histogram(asked: score_groups.ScoreGroupQuery, cells: dict[tuple[int, int], int]) -> Any:
    """A whole curve, as one server's share of itself, from counts of (stratum, index)."""
    counts = np.zeros(1 << asked.campaign.bits, np.int64)
    for (stratum, index), count in cells.items():
        counts[(stratum << asked.campaign.variable.index_bits) + index] += count
    return field.encode(np.cumsum(counts))


@dataclass(frozen=True)
class Drawing(add_noise.NoiseKey):
    """Noise from a function that remembers."""

    from_: Recorded = dataclass_field(default_factory=Recorded)

    def prf(self, purpose: str) -> Prf:
        return self.from_


def shares(asked: score_groups.ScoreGroupQuery, share: Any, prf: Recorded) -> Any:
    return add_noise.noisy_score_groups(RawShare(share), Drawing(bytes(32), 0, b"", asked.campaign, prf), asked)


def as_counts(words: Any) -> Any:
    return field.decode(words)


def drawn(cumulative: list[int]) -> list[int]:
    """How many of the 2^128 draws give each value, through the integers that production compares."""
    total, below, counts = cumulative[-1], 0, []
    for reached in cumulative:
        upto = -(-(reached << DRAW_BITS) // total)
        counts.append(upto - below)
        below = upto
    assert below == 1 << DRAW_BITS
    return counts


def laplace_weights(source: DiscreteLaplace) -> Weights:
    return dict(enumerate(drawn(source._exact), -source._table.reach))


class FineWeights:
    """Relative probabilities of digit - digit' + BASE rest, by adding up all ways to get a value."""

    def __init__(self, source: FineLaplace) -> None:
        self._digits, self._rest = drawn(source._exact), laplace_weights(source._rest)
        self._differences: Weights = {}

    def _difference(self, d: int) -> int:
        if d not in self._differences:
            w, n = self._digits, len(self._digits)
            self._differences[d] = sum(w[i] * w[i - d] for i in range(max(0, d), min(n, n + d)))
        return self._differences[d]

    def __getitem__(self, value: int) -> int:
        low = value % FineLaplace.BASE
        ways = [(low, value // FineLaplace.BASE)]
        if low:
            ways.append((low - FineLaplace.BASE, value // FineLaplace.BASE + 1))
        return sum(self._difference(d) * self._rest[rest] for d, rest in ways)


def log_ratio(weights: Any, change: int, values: tuple[int, ...]) -> Decimal:
    """The largest log-ratio of a value's probability and that of the value that the change makes of it."""
    losses = [log(Fraction(weights[v], weights[v + sign * change])) for v in values for sign in (1, -1)]
    return max(losses)


# One with every score in a group of its own, one with groups of several, and one that leaves scores out.
ENDS = [[0.0, 0.25, 0.5, 0.75, 1.0], [0.25, 1.0], [0.0, 0.5]]


def changes(asked: score_groups.ScoreGroupQuery) -> list[Any]:
    """What replacing one record by another does to (O_0, O_1, E_0, E_1) of all groups, through production's own sums.

    Both data sets have the same noise, so it is gone from the difference.
    """
    cells = list(itertools.product((0, 1), range(asked.campaign.variable.grid.size)))
    prf = Recorded()
    by_cell = {cell: shares(asked, histogram(asked, {cell: 1}), prf) for cell in cells}
    pairs = itertools.permutations(cells, 2)
    return [as_counts(field.sub(by_cell[a], by_cell[b])).reshape(4, -1) for a, b in pairs]


@pytest.mark.parametrize(("epsilon", "instances"), [(1.0, 1), (0.25, 1), (3.0, 4)])
def test_the_privacy_loss_of_groups_is_exactly_epsilon(epsilon: float, instances: int) -> None:
    asked = question(ENDS[0], epsilon, max_values_per_person=instances)
    sources = score_groups.group_noise(asked, Recorded())
    assert [type(s) for s in sources] == [DiscreteLaplace, DiscreteLaplace, FineLaplace, FineLaplace]
    assert isinstance(sources[0], DiscreteLaplace)
    assert isinstance(sources[2], FineLaplace)
    coarse, fine = laplace_weights(sources[0]), FineWeights(sources[2])
    assert sources[0] is sources[1]
    assert sources[2] is sources[3]
    known: dict[tuple[bool, int], Decimal] = {}

    def loss(row: int, change: int) -> Decimal:
        key = row < 2, abs(int(change))
        if key not in known:
            # Values around zero, at a carry from digit to rest, and far out.
            values = (0, 1, -5, 20) if key[0] else (0, 3, -1023, 1024, 5000)
            known[key] = log_ratio(coarse if key[0] else fine, key[1], values) if change else Decimal(0)
        return known[key]

    # Coordinates have independent noise (below), so their largest losses add up.
    with localcontext(Context(prec=60)):
        worst = max(sum((loss(r, c) for r in range(4) for c in change[r]), Decimal(0)) for change in changes(asked))
        # All values of a party may be replaced.
        assert abs(instances * worst - Decimal(epsilon)) < Decimal("1e-14")


@pytest.mark.parametrize("ends", ENDS)
def test_replacing_a_record_changes_four_units_at_most(ends: list[float]) -> None:
    """An observed count loses one and one gains one; expected counts lose p + (1 - p) and gain as much."""
    asked = question(ends, 1.0)
    norms = [np.abs(c[:2]).sum() + np.abs(c[2:]).sum() / score_groups.SCORE_UNIT for c in changes(asked)]
    assert max(norms) <= score_groups.GROUPS_SENSITIVITY
    if ends == ENDS[0]:
        assert max(norms) == score_groups.GROUPS_SENSITIVITY


def test_every_statistic_has_noise_of_its_own() -> None:
    """The paper's Algorithm 2 gives E and O of a group the same noise, so that O - E is exact."""
    asked, prf = question(ENDS[0], 1.0), Recorded()
    shares(asked, histogram(asked, {}), prf)
    assert len(set(prf.used)) == len(prf.used)
    assert len(prf.used) == 5 * (2 + 2 * 3)  # a fine one takes three draws


def test_sums_are_those_of_the_definition() -> None:
    """O_s: records of class s in the group; E_1: their scores, E_0: one minus their scores, in thousandths."""
    rng = np.random.default_rng(1)
    for ends in ENDS:
        asked = question(ends, 1.0)
        cells = {(s, i): int(rng.integers(0, 50)) for s in (0, 1) for i in range(5)}
        noise = shares(asked, histogram(asked, {}), Recorded())
        sums = as_counts(field.sub(shares(asked, histogram(asked, cells), Recorded()), noise))
        below = -1.0
        for g, end in enumerate(ends):
            inside = {c: n for c, n in cells.items() if below < c[1] / 4 <= end}
            o0, o1 = (sum(n for (s, _), n in inside.items() if s == which) for which in (0, 1))
            e1 = sum(n * 250 * i for (_, i), n in inside.items())
            e0 = sum(n * (1000 - 250 * i) for (_, i), n in inside.items())
            assert sums.reshape(4, -1)[:, g].tolist() == [o0, o1, e0, e1]
            below = end


@pytest.mark.parametrize(("epsilon", "instances"), [(0.5, 1), (4.0, 4)])
def test_stated_errors_are_those_of_the_noise(epsilon: float, instances: int) -> None:
    """Variance of 3000 draws of each kind against the claim.

    The sample variance of Laplace noise has a relative deviation of sqrt(5 / 3000) = 4.1 %; 25 % are six of them.
    """
    ends = [i / 999 for i in range(1000)]
    asked = question(ends, epsilon, size=1000, max_values_per_person=instances)
    empty = histogram(asked, {})
    runs = [as_counts(shares(asked, empty, Recorded(seed))).reshape(4, -1) for seed in range(3)]
    observed, expected = score_groups.standard_errors(asked)
    for row, error in enumerate((observed, observed, expected * 1000, expected * 1000)):
        sample = np.concatenate([run[row] for run in runs])
        assert SERVERS * sample.var() == pytest.approx(error**2, rel=0.25)
    rate = epsilon / 4 / instances
    exact = SERVERS * 2 * np.exp(-rate) / (1 - np.exp(-rate)) ** 2
    assert observed == pytest.approx(np.sqrt(exact), rel=1e-9)
    assert expected == pytest.approx(np.sqrt(SERVERS * 2) / rate, rel=1e-3)


def total_variation(source: DiscreteLaplace, rate: float) -> Decimal:
    """Of one draw from the ideal discrete Laplace distribution, which goes on beyond every table."""
    with localcontext(Context(prec=80)):
        r = (-Decimal(rate)).exp()
        ideal = (1 - r) / (1 + r)
        weights = laplace_weights(source)
        inside = sum(abs(Decimal(w) / (1 << DRAW_BITS) - ideal * r ** abs(k)) for k, w in weights.items())
        outside = 2 * ideal * r ** (source._table.reach + 1) / (1 - r)
        return (inside + outside) / 2


@pytest.mark.parametrize("epsilon", [20.0, 1.0, 0.25])
def test_the_delta_of_groups_bounds_the_distance_of_every_draw(epsilon: float) -> None:
    asked = question(ENDS[0], epsilon)
    coarse, fine = score_groups.group_noise(asked, Recorded())[1:3]
    fine_rate = asked.rate / score_groups.SCORE_UNIT
    assert isinstance(coarse, DiscreteLaplace)
    assert isinstance(fine, FineLaplace)
    each = [total_variation(coarse, asked.rate), total_variation(fine._rest, fine_rate * FineLaplace.BASE)]
    bounds = [score_groups._draw_distance(asked.rate), score_groups._draw_distance(fine_rate * FineLaplace.BASE)]
    for found, bound in zip(each, bounds, strict=True):
        assert 0 < found < Decimal(bound)
    with localcontext(Context(prec=80)):
        powers = [(-Decimal(fine_rate) * i).exp() for i in range(FineLaplace.BASE)]
        drawn_ = [(Decimal(w) / (1 << DRAW_BITS), p) for w, p in zip(drawn(fine._exact), powers, strict=True)]
        digit = sum((abs(share - p / sum(powers)) for share, p in drawn_), Decimal(0)) / 2
    count = len(ENDS[0])
    whole = 2 * count * (each[0] + each[1] + 2 * digit)
    assert Decimal(score_groups.distance(asked)) >= whole
    assert score_groups.delta(asked) == pytest.approx(
        (1 + np.exp(epsilon)) * score_groups.distance(asked), rel=1e-9, abs=0
    )


def test_the_delta_of_groups_is_always_below_what_the_page_says() -> None:
    worst = 0.0
    for epsilon, instances in ((0.01, 1), (1.0, 1), (1.0, 100), (19.0, 1), (19.0, 100)):
        asked = question([i / 999 for i in range(1000)], epsilon, size=1000, max_values_per_person=instances)
        worst = max(worst, score_groups.delta(asked))
    assert worst < 2.0**-60
