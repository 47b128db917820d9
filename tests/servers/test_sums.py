"""Weighted sums with noise: the privacy loss enumerated, draws fitted, repeated, bound to the query; groups as sums.

Statistical tests fix their seed; each states its false-alarm probability.
"""

import itertools
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from fss import field
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS
from fss_ecdf.campaign.noise.sums import SumQuery, laplace_distance, laplace_variance, read_sums
from fss_ecdf.campaign.score_groups import ScoreGroupSums, score_group_sums
from servers.compute.raw_share import RawShare
from servers.release import add_noise
from servers.release.noise import DiscreteLaplace, Draws, Prf
from servers.release.sum_noise import WideLaplace, purpose, sum_noise
from servers.release.sum_queries import used_positions
from tests.campaign.helpers import campaign
from tests.servers.test_noise import FALSE_ALARM, chi_square
from tests.servers.test_privacy import log

Array = np.ndarray[Any, Any]


def prf(seed: int = 0, use: bytes = b"sums") -> Prf:
    return Prf(seed.to_bytes(32, "little"), 0, bytes(64), use)


class Recorded(Prf):
    """Remembers which draws were used."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed.to_bytes(32, "little"), 0, bytes(64), b"sums")
        self.used: list[tuple[int, int]] = []

    def draws(self, level: int, nodes: ArrayLike) -> Draws:
        self.used += [(level, int(node)) for node in np.asarray(nodes)]
        return super().draws(level, nodes)


def drawn(cumulative: list[int]) -> list[int]:
    """How many of the 2^128 draws give each value, through the integers that production compares."""
    total, below, counts = cumulative[-1], 0, []
    for reached in cumulative:
        upto = -(-(reached << DRAW_BITS) // total)
        counts.append(upto - below)
        below = upto
    assert below == 1 << DRAW_BITS
    return counts


def laplace_weights(source: DiscreteLaplace) -> dict[int, int]:
    return dict(enumerate(drawn(source._exact), -source._table.reach))


class WideWeights:
    """Relative probabilities of digit - digit' + B (...), by adding up all ways to get a value."""

    def __init__(self, source: WideLaplace) -> None:
        self._digits = [drawn(digit._exact) for digit in source._digits]
        self._rest = laplace_weights(source._rest)
        self._known: dict[tuple[int, int], int] = {}

    def _difference(self, i: int, d: int) -> int:
        if (i, d) not in self._known:
            w = self._digits[i]
            self._known[i, d] = sum(w[k] * w[k - d] for k in range(max(0, d), min(len(w), len(w) + d)))
        return self._known[i, d]

    def __getitem__(self, value: int) -> int:
        return self._from(0, value)

    def _from(self, i: int, value: int) -> int:
        if i == len(self._digits):
            return self._rest[value]
        base = len(self._digits[i])
        low, rest = value % base, value // base
        ways = [(low, rest), (low - base, rest + 1)] if low else [(low, rest)]
        return sum(self._difference(i, d) * self._from(i + 1, r) for d, r in ways)


@pytest.mark.parametrize(("rate", "digits"), [(0.7, 0), (0.003, 1), (0.25e-3, 1), (1e-6, 2), (1e-9, 3)])
def test_noise_of_every_rate_falls_by_the_rate(rate: float, digits: int) -> None:
    """log P(k) / P(k + c) = c rate for changes within and across digits, to 1e-15, through the 128-bit draws."""
    source = WideLaplace(prf(), rate)
    assert len(source._digits) == digits
    weights = WideWeights(source)
    with localcontext(Context(prec=60)):
        for value in (0, 3, -1, 1023, 1024, -5000):
            for change in (1, 5, 1024, 3000) if digits else (1, 5):
                sign = 1 if value >= 0 else -1
                if digits == 0 and abs(value) > 100:
                    continue
                loss = log(Fraction(weights[value], weights[value + sign * change]))
                assert abs(loss - change * Decimal(rate)) < Decimal("1e-15"), (value, change)


QUERIES = [
    ("a mean", [[10, 20, 35, 50]], [1], 1),
    ("mean and squares", [[0, 1, 2, 3], [0, 1, 4, 9]], None, 1),
    ("a table", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], None, 1),
    ("units", [[0, 400, 1000, 250], [0, 1, 0, 1]], [1000, 1], 1),
    ("three values a person", [[0, 3, 1, 2], [5, 5, 0, 5]], None, 3),
]


@pytest.mark.parametrize(("rows", "units", "instances"), [q[1:] for q in QUERIES], ids=[q[0] for q in QUERIES])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_privacy_loss_is_exactly_epsilon(rows: Any, units: Any, instances: int, epsilon: float) -> None:
    """Over all replacements of all values of a person, with the exact probabilities of the noise of every sum."""
    query = read_sums(rows, epsilon, cells=4, units=units, instances=instances)
    laws = [WideWeights(WideLaplace(prf(), rate)) for rate in query.rates]
    columns, worst = query.weights.T, Decimal(0)
    moves = [columns[b] - columns[a] for a, b in itertools.product(range(4), repeat=2)]
    with localcontext(Context(prec=60)):
        for some in itertools.combinations_with_replacement(range(len(moves)), instances):
            change = np.sum([moves[i] for i in some], axis=0)
            # Sums have independent noise, so their largest losses add up; the largest is at 0 and beyond.
            losses = [log(Fraction(law[0], law[abs(int(c))])) for law, c in zip(laws, change, strict=True) if c]
            worst = max(worst, sum(losses, Decimal(0)))
        assert abs(worst - Decimal(epsilon)) < Decimal("1e-12")
    assert query.sensitivity.exact
    assert query.loss <= Fraction(epsilon)


SCORES = {"kind": "explicit", "at": [0, 0.25, 0.5, 0.75, 1]}
ENDS = [[0.0, 0.25, 0.5, 0.75, 1.0], [0.25, 0.75, 1.0], [0.3, 0.6], [0.0, 1.0]]


def grouped(ends: list[float], epsilon: float = 1.0, instances: int = 1) -> tuple[ScoreGroupSums, SumQuery]:
    """The sums of Algorithm 2 over groups of the scores 0, 1/4, ..., 1."""
    spec = campaign(grid=SCORES, strata=["negative", "positive"])
    asked = score_group_sums(spec, ends)
    return asked, read_sums(asked.weights, epsilon, cells=10, units=asked.units, instances=instances)


@pytest.mark.parametrize("ends", ENDS)
def test_groups_are_those_of_algorithm_2(ends: list[float]) -> None:
    """O_s: values of stratum s in the group; E_1: their scores, E_0: one minus their scores, in thousandths."""
    asked, _ = grouped(ends)
    cells = np.random.default_rng(1).integers(0, 50, (2, 5))
    below, sums = -1.0, (asked.weights @ cells.ravel()).reshape(4, -1)
    for g, end in enumerate(ends):
        inside = [(s, i, int(cells[s, i])) for s in (0, 1) for i in range(5) if below < i / 4 <= end]
        o0, o1 = (sum(n for s, _, n in inside if s == which) for which in (0, 1))
        e1, e0 = sum(n * 250 * i for _, i, n in inside), sum(n * (1000 - 250 * i) for _, i, n in inside)
        assert sums[:, g].tolist() == [o0, o1, e0, e1]
        below = end


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("epsilon", "instances"), [(1.0, 1), (4.0, 4)])
def test_the_privacy_loss_of_groups_is_epsilon(ends: list[float], epsilon: float, instances: int) -> None:
    """Over all replacements: a value adds 1 to one O and 1 to two E together; replacing it changes both twice."""
    _, query = grouped(ends, epsilon, instances)
    laws = {rate: WideWeights(WideLaplace(prf(), rate)) for rate in set(query.rates)}
    worst = Decimal(0)
    with localcontext(Context(prec=60)):
        for a, b in itertools.product(query.weights.T, repeat=2):
            changed = [(rate, abs(int(c))) for rate, c in zip(query.rates, b - a, strict=True) if c]
            losses = [log(Fraction(laws[rate][0], laws[rate][c])) for rate, c in changed]
            worst = max(worst, instances * sum(losses, Decimal(0)))
        assert abs(worst - Decimal(epsilon)) < Decimal("1e-12")
    assert query.sensitivity.value == (4 if len(ends) > 1 else 2)


def test_observed_and_expected_have_noise_of_their_own() -> None:
    """The paper's Algorithm 2 gives E and O of a group the same noise, so that O - E is exact."""
    query, recorded = grouped(ENDS[0])[1], Recorded()
    sum_noise(query, recorded)
    assert len(set(recorded.used)) == len(recorded.used) == 5 * (2 + 2 * 3)  # with one digit, three draws


def test_sums_are_those_of_the_cells_and_padding_counts_nothing() -> None:
    spec = campaign(grid={"kind": "linear", "values": "integer", "from": 0, "to": 4}, strata=["a", "b"])
    rng, positions = np.random.default_rng(1), 1 << spec.bits
    counts = rng.integers(0, 100, positions)
    used = used_positions(spec)
    rows = rng.integers(-(10**6), 10**6, (3, 10))
    query = read_sums(rows, 1.0, cells=10)
    source = add_noise.NoiseKey(bytes(32), 0, b"set", spec)
    share = field.encode(np.cumsum(counts))
    out = field.decode(add_noise.noisy_sums(RawShare(share), source, query, used))
    noise = sum_noise(query, source.prf(purpose(query)))
    assert (out - noise).tolist() == (rows @ counts[used]).tolist()
    assert (out - noise).tolist() == (query.over_positions(used, positions) @ counts).tolist()
    with pytest.raises(InvalidQuery, match="10 weights for 9 cells"):
        add_noise.noisy_sums(RawShare(share), source, query, used[:-1])


def test_two_shares_with_noise_add_up_to_the_sum_with_both_noises() -> None:
    spec = campaign(grid={"kind": "linear", "values": "integer", "from": 0, "to": 7})
    query = read_sums([[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 0, 0, 0, 0, 0, 0]], 0.5, cells=8)
    counts = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    mask = np.random.default_rng(2).integers(0, field.P, 8, dtype=np.uint64)
    shares = [field.sub(field.encode(np.cumsum(counts)), mask), mask]
    sources = [add_noise.NoiseKey(bytes([server] * 32), server, b"set", spec) for server in (0, 1)]
    parts = [
        add_noise.noisy_sums(RawShare(s), source, query, np.arange(8))
        for s, source in zip(shares, sources, strict=True)
    ]
    noise = sum(sum_noise(query, source.prf(purpose(query))) for source in sources)
    assert field.decode(field.add(*parts)).tolist() == (query.weights @ counts + noise).tolist()


def noise_of(query: SumQuery, seed: int = 0, server: int = 0, covers: bytes = b"set") -> list[int]:
    source = Prf(seed.to_bytes(32, "little"), server, covers, purpose(query).encode())
    return [int(k) for k in sum_noise(query, source)]


def test_the_same_query_has_the_same_noise_and_every_other_one_another() -> None:
    rows = [list(range(16)), list(range(0, 160, 10))]
    query = read_sums(rows, 0.1, cells=16)
    assert noise_of(query) == noise_of(read_sums(rows, 0.1, cells=16))
    others = [
        noise_of(query, seed=1),
        noise_of(query, server=1),
        noise_of(query, covers=b"other"),
        noise_of(read_sums(rows, 0.1000001, cells=16)),
        noise_of(read_sums([rows[0], [w + 1 for w in rows[1]]], 0.1, cells=16)),
        noise_of(read_sums(rows, 0.1, cells=16, units=[15, 151])),
    ]
    assert len({tuple(noise) for noise in [noise_of(query), *others]}) == 7


def test_every_sum_has_draws_of_its_own() -> None:
    query, recorded = read_sums([[0, 1], [0, 10**6], [0, 10**9]], 1.0, cells=2), Recorded()
    sum_noise(query, recorded)
    assert len(set(recorded.used)) == len(recorded.used) == 1 + (1 + 2 * 2) + (1 + 2 * 3)


@pytest.mark.parametrize("rate", [0.5, 0.002, 3e-6])
def test_noise_fits(rate: float) -> None:
    """Chi-square of 50 000 draws in 40 bins of equal probability, or single values; false alarm 1e-6 each."""
    samples = WideLaplace(prf(7), rate).at(np.arange(50_000))
    r = np.exp(-rate)
    if rate > 0.1:
        k = np.arange(-200, 201)
        assert chi_square(samples, k, (1 - r) / (1 + r) * r ** np.abs(k)) > FALSE_ALARM
        return
    cuts = np.rint(stats.laplace.ppf(np.arange(1, 40) / 40, scale=1 / rate))
    below = [(r ** -(c + 1) / (1 + r)) * r if c < 0 else 1 - r ** (c + 1) / (1 + r) for c in cuts]
    expected = np.diff([0.0, *below, 1.0]) * samples.size
    observed = np.bincount(np.searchsorted(cuts, samples), minlength=40)
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM
    # the kurtosis of Laplace noise is 6: the variance is known to sqrt(5 / 50 000) = 1 %, and 6 % are six of them
    assert samples.var() == pytest.approx(laplace_variance(rate), rel=0.06)


def total_variation(source: DiscreteLaplace, rate: float) -> Decimal:
    """Of one draw from the ideal discrete Laplace distribution, which goes on beyond every table."""
    with localcontext(Context(prec=80)):
        r = (-Decimal(rate)).exp()
        ideal = (1 - r) / (1 + r)
        weights = laplace_weights(source)
        inside = sum(abs(Decimal(w) / (1 << DRAW_BITS) - ideal * r ** abs(k)) for k, w in weights.items())
        outside = 2 * ideal * r ** (source._table.reach + 1) / (1 - r)
        return (inside + outside) / 2


@pytest.mark.parametrize("rate", [1.0, 0.003, 1e-6])
def test_the_distance_bounds_that_of_every_draw(rate: float) -> None:
    source = WideLaplace(prf(), rate)
    rest = rate * 1024.0 ** len(source._digits)
    found = total_variation(source._rest, rest)
    with localcontext(Context(prec=80)):
        for i, digit in enumerate(source._digits):
            powers = [(-Decimal(rate * 1024.0**i) * k).exp() for k in range(1024)]
            each = zip(drawn(digit._exact), powers, strict=True)
            off = sum((abs(Decimal(w) / (1 << 128) - p / sum(powers)) for w, p in each), Decimal(0))
            found += 2 * off / 2
    assert 0 < found < Decimal(laplace_distance(rate))


def lower_bound(scores: Array) -> float:
    """Of epsilon, holds with probability 1 - 1e-4: rows are scores without and with the change.

    Half of the runs choose the threshold of the likelihood-ratio test.
    """
    half = scores.shape[1] // 2

    def bound(threshold: float, part: slice) -> float:
        hits, alarms = (int((s[part] >= threshold - 1e-9).sum()) for s in (scores[1], scores[0]))
        low = stats.beta.ppf(0.5e-4, hits, half - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - 0.5e-4, alarms + 1, half - alarms) if alarms < half else 1.0
        return float(np.log(low / high)) if low > 0 else -np.inf

    best = max(np.quantile(scores[1], np.arange(0.02, 1, 0.02)), key=lambda c: bound(float(c), slice(0, half)))
    return bound(float(best), slice(half, None))


def likelihood_scores(out: Array, query: SumQuery) -> Array:
    """Of results around 0 against those around what replacing a value of the first cell by one of the last changes."""
    change = query.weights[:, -1] - query.weights[:, 0]
    return np.asarray((np.abs(out) - np.abs(out - change)) @ np.array(query.rates))


ROWS = [[0, 3, 10], [0, 500, 1000]]


def test_an_audit_of_the_noise_stays_below_the_claim_and_finds_half_of_it() -> None:
    """200 000 draws of the servers' own noise for each of two neighbours."""
    claimed, twice = (read_sums(ROWS, epsilon, cells=3) for epsilon in (1.0, 2.0))

    def audit(released: SumQuery, seed: int) -> float:
        change, scores = claimed.weights[:, -1] - claimed.weights[:, 0], []
        for shift in (0, 1):
            laws = [WideLaplace(prf(seed + 2 * j + shift, b"audit"), rate) for j, rate in enumerate(released.rates)]
            out = np.stack([law.at(np.arange(200_000)) for law in laws], axis=1) + shift * change
            scores.append(likelihood_scores(out, claimed))
        return lower_bound(np.array(scores))

    assert 0.6 < audit(claimed, 100) <= 1.0
    assert audit(twice, 200) > 1.1


@pytest.mark.slow
def test_an_audit_of_what_leaves_a_server_stays_below_the_claim_and_finds_half_of_it() -> None:
    """20 000 results of the one function that adds noise, each of another set, for each of two neighbours."""
    spec = campaign(grid={"kind": "linear", "values": "integer", "from": 0, "to": 2})
    claimed, twice = (read_sums(ROWS, epsilon, cells=3) for epsilon in (1.0, 2.0))
    curves = [field.encode(np.cumsum(counts)) for counts in ([5, 3, 2, 0], [4, 3, 3, 0])]

    def audit(released: SumQuery, seed: int) -> float:
        scores = []
        for shift, curve in enumerate(curves):
            out = np.empty((20_000, 2), np.int64)
            for run in range(len(out)):
                source = add_noise.NoiseKey(bytes(32), 0, f"{seed} {shift} {run}".encode(), spec)
                out[run] = field.decode(add_noise.noisy_sums(RawShare(curve), source, released, np.arange(3)))
            scores.append(likelihood_scores(out - claimed.weights @ [5, 3, 2], claimed))
        return lower_bound(np.array(scores))

    assert 0.5 < audit(claimed, 1) <= 1.0
    assert audit(twice, 2) > 1.1
