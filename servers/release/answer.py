"""Answers: from noised counts of both servers to what an analyst asked. Everything here is post-processing."""

import hashlib
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from campaign.errors import InvalidQuery
from campaign.noise.mechanism import MIN_EPSILON_EACH, SERVERS
from campaign.spec import Campaign
from campaign.wire import EcdfAnswer, GroupsQuery, HistogramAnswer, QuantileAnswer, Threshold
from fss import field
from fss.field import Words
from servers.release.noise import DiscreteLaplace, FineLaplace, Prf

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Index = NDArray[np.int64]
CountAt = Callable[[Index], Awaitable[Counts]]


@dataclass(frozen=True)
class Question:
    """A campaign, one of its strata, n, and a way to get noised counts at positions."""

    campaign: Campaign
    stratum: str
    n: int
    count_at: CountAt
    known_errors: Mapping[str, Floats]  # of the stratum's curve, once it is ready

    @property
    def _start(self) -> int:
        return self.campaign.stratum(self.stratum) << self.campaign.grid.bits

    async def counts(self, index: Index) -> Counts:
        """Values of the stratum at or below each grid index; index -1 is below all."""
        start = self._start
        wanted = np.concatenate([start + index, [start - 1]])
        got = np.zeros(wanted.size, np.int64)
        got[wanted >= 0] = await self.count_at(wanted[wanted >= 0])
        return np.where(index < 0, 0, got[:-1] - got[-1])

    def errors(self, index: Index) -> list[float]:
        """Standard errors of the counts at indices."""
        known = self.known_errors.get(self.stratum)
        if known is None:
            return self.bin_errors(index, np.full_like(index, -1))
        return np.where(index < 0, 0.0, known[index]).tolist()  # type: ignore[no-any-return]

    def bin_errors(self, above: Index, below: Index) -> list[float]:
        """Standard errors of the counts between two indices, both servers' noise included."""
        return _errors(self.campaign, self._start, above, below).tolist()  # type: ignore[no-any-return]

    def labels(self, index: Index) -> list[Threshold]:
        return self.campaign.grid.labels(index)

    def about(self) -> dict[str, object]:
        c = self.campaign
        return {
            "digest": c.digest,
            "n": self.n,
            "epsilon": c.epsilon,
            "mechanism": c.mechanism,
            "stratum": self.stratum,
        }


def _errors(campaign: Campaign, start: int, above: Index, below: Index) -> Floats:
    return np.sqrt(SERVERS * campaign.noise.difference_variance(start + above, start + below))


def curve_errors(campaign: Campaign) -> dict[str, Floats]:
    """The standard errors of every stratum's curve."""
    index = np.arange(campaign.grid.size)
    below = np.full_like(index, -1)
    return {
        stratum: _errors(campaign, number << campaign.grid.bits, index, below)
        for number, stratum in enumerate(campaign.strata)
    }


async def ecdf(question: Question, at: list[str]) -> EcdfAnswer:
    """Counts at any thresholds. Between thresholds of the grid the curve is flat."""
    index = question.campaign.grid.index_at(at)
    counts = await question.counts(index)
    return EcdfAnswer.model_validate(
        question.about()
        | {
            "thresholds": [_as_asked(question.campaign, text) for text in at],
            "counts": counts.tolist(),
            "standard_errors": question.errors(index),
        }
    )


def _as_asked(campaign: Campaign, text: str) -> Threshold:
    return text if campaign.grid.values == "date" else float(text)


def curve(question: Question, counts: Counts) -> EcdfAnswer:
    """The whole curve of a stratum, from its counts."""
    index = np.arange(counts.size)
    return EcdfAnswer.model_validate(
        question.about()
        | {
            "thresholds": question.labels(index),
            "counts": counts.tolist(),
            "standard_errors": question.errors(index),
        }
    )


async def histogram(question: Question, edges: list[str]) -> HistogramAnswer:
    """Counts above one edge and at or below the next; the first bin has no lower edge."""
    index = question.campaign.grid.index_at(edges)
    if not (np.diff(index) > 0).all():
        raise InvalidQuery("the edges of a histogram must increase by at least one step of the grid")
    below = np.concatenate([[-1], index[:-1]])
    counts = await question.counts(index)
    return HistogramAnswer.model_validate(
        question.about()
        | {
            "edges": [_as_asked(question.campaign, text) for text in edges],
            "counts": np.diff(counts, prepend=0).tolist(),
            "standard_errors": question.bin_errors(index, below),
        }
    )


def quantiles(question: Question, counts: Counts, levels: list[float], confidence: float = 0.95) -> QuantileAnswer:
    """The threshold at which the count reaches a share of the stratum's total, with an interval.

    On a noisy curve, which need not increase, the answer lies halfway between the first index at which the count
    reaches the target and the last one before which it has not. The interval holds every index whose count is
    within the noise of the target.
    """
    size = counts.size
    index = np.arange(size)
    errors = np.array(question.errors(index))
    total = float(question.n) if len(question.campaign.strata) == 1 else float(max(counts[-1], 0))
    z = _normal_quantile((1 + confidence) / 2)
    middle, lower, upper = [], [], []
    for level in levels:
        target = level * total
        middle.append((_first(counts >= target) + _after_last(counts < target)) // 2)
        lower.append(_first(counts + z * errors >= target))
        upper.append(_after_last(counts - z * errors < target))
    clip = [np.clip(np.array(found), 0, size - 1) for found in (middle, lower, upper)]
    return QuantileAnswer.model_validate(
        question.about()
        | {
            "levels": levels,
            "thresholds": question.labels(clip[0]),
            "lower": question.labels(clip[1]),
            "upper": question.labels(clip[2]),
            "confidence": confidence,
        }
    )


def _first(hit: NDArray[np.bool_]) -> int:
    return int(np.argmax(hit)) if hit.any() else hit.size - 1


def _after_last(miss: NDArray[np.bool_]) -> int:
    return miss.size - int(np.argmax(miss[::-1])) if miss.any() else 0


def _normal_quantile(p: float) -> float:
    return NormalDist().inv_cdf(p)


# Algorithm 2 of the paper, corrected: observed and expected counts of score groups, each with noise of its own.

# A record adds 1 to one observed count and p + (1 - p) = 1 to two expected ones; replacing it changes both twice.
GROUPS_SENSITIVITY = 4
# Expected counts are sums of scores in units of one thousandth.
SCORE_UNIT = 1000


@dataclass(frozen=True)
class Groups:
    """The groups of one query: each from one grid index, exclusive, to another."""

    campaign: Campaign
    query: GroupsQuery
    ends: Index

    @property
    def purpose(self) -> str:
        """What the ledger calls it: the same question again is not paid again."""
        text = ",".join(map(str, self.ends.tolist())) + f";{self.query.epsilon!r}"
        return "groups " + hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def starts(self) -> Index:
        return np.concatenate([[-1], self.ends[:-1]])


def groups(campaign: Campaign, query: GroupsQuery) -> Groups:
    if len(campaign.strata) != 2:
        raise InvalidQuery(
            f"groups need a campaign of two strata (negative, positive), this one has {len(campaign.strata)}"
        )
    if query.epsilon / campaign.max_instances < MIN_EPSILON_EACH:
        raise InvalidQuery(
            f"epsilon must be at least {MIN_EPSILON_EACH} for each of the {campaign.max_instances} values of a party"
        )
    ends = campaign.grid.index_at([float(x) for x in query.upper_ends])
    if not ends.size or not (np.diff(np.concatenate([[-1], ends])) > 0).all():
        raise InvalidQuery("the upper ends of groups must increase by at least one step of the grid")
    taus = campaign.grid.thresholds(np.array([0, campaign.grid.size - 1]))
    if taus[0] < 0 or taus[1] > 1:
        raise InvalidQuery("groups need a grid of scores between 0 and 1")
    return Groups(campaign, query, ends)


def _rate(asked: Groups) -> float:
    """What the log-probability of the noise falls by for each unit of a record."""
    return asked.query.epsilon / GROUPS_SENSITIVITY / asked.campaign.max_instances


def group_noise(asked: Groups, prf: Prf) -> list[DiscreteLaplace | FineLaplace]:
    """One server's noise of O_0, O_1, E_0 and E_1."""
    observed, expected = DiscreteLaplace(prf, _rate(asked)), FineLaplace(prf, _rate(asked) / SCORE_UNIT)
    return [observed, observed, expected, expected]


def group_shares(asked: Groups, share: Words, prf: Prf) -> Words:
    """One server's noised share of (O_0, O_1, E_0, E_1) of every group: shape (4 groups,)."""
    campaign = asked.campaign
    bits, size = campaign.grid.bits, campaign.grid.size
    scores = np.rint(campaign.grid.all_thresholds * SCORE_UNIT).astype(np.uint64)
    cells = []
    for stratum in (0, 1):
        start = stratum << bits
        before = share[start - 1 : start] if stratum else np.zeros(1, np.uint64)
        curve = share[start : start + size]
        cells.append(field.sub(curve, np.concatenate([before, curve[:-1]])))
    both = field.add(cells[0], cells[1])
    unit = np.uint64(SCORE_UNIT)
    columns = [cells[0], cells[1], field.scale(both, unit - scores), field.scale(both, scores)]
    out = []
    for level, (column, source) in enumerate(zip(columns, group_noise(asked, prf), strict=True)):
        sums = [int(field.total(column[a + 1 : b + 1])) for a, b in zip(asked.starts, asked.ends, strict=True)]
        out.append(field.add(np.array(sums, np.uint64), field.encode(source.at(level, np.arange(len(sums))))))
    return np.concatenate(out)


def group_errors(asked: Groups) -> tuple[float, float]:
    """Standard errors of an observed and of an expected count."""
    rate = _rate(asked)

    def deviation(r: float) -> float:
        return math.sqrt(SERVERS * 2 * math.exp(-r) / math.expm1(-r) ** 2)

    return deviation(rate), deviation(rate / SCORE_UNIT) / SCORE_UNIT
