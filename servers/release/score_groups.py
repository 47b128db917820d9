"""Algorithm 2 of the paper, corrected: observed and expected counts of score groups, each with noise of its own.

What is asked, what it is called in the ledger, and how large its noise is; `noised.py` computes it.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import ScoreGroupsQuery, ScoreGroupsResponse
from fss_ecdf.campaign.noise.mechanism import DRAW_BITS, MIN_EPSILON_EACH, SERVERS
from fss_ecdf.campaign.noise.tables import KEPT_BITS
from servers.release.noise import DiscreteLaplace, FineLaplace, Prf

Counts = NDArray[np.int64]
Index = NDArray[np.int64]

# A record adds 1 to one observed count and p + (1 - p) = 1 to two expected ones; replacing it changes both twice.
GROUPS_SENSITIVITY = 4
# Expected counts are sums of scores in units of one thousandth.
SCORE_UNIT = 1000


@dataclass(frozen=True)
class ScoreGroupQuery:
    """The groups of one query: each from one grid index, exclusive, to another."""

    campaign: Campaign
    query: ScoreGroupsQuery
    ends: Index

    @property
    def purpose(self) -> str:
        """What the ledger calls it: the same question again is not paid again."""
        text = ",".join(map(str, self.ends.tolist())) + f";{self.query.epsilon!r}"
        return "groups " + hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def rate(self) -> float:
        """What the log-probability of the noise falls by for each unit of a record."""
        return self.query.epsilon / GROUPS_SENSITIVITY / self.campaign.max_values_per_person

    @property
    def starts(self) -> Index:
        return np.concatenate([[-1], self.ends[:-1]])


def read_groups(campaign: Campaign, query: ScoreGroupsQuery) -> ScoreGroupQuery:
    if len(campaign.strata) != 2:
        raise InvalidQuery(
            f"groups need a campaign of two strata (negative, positive), this one has {len(campaign.strata)}"
        )
    if query.epsilon / campaign.max_values_per_person < MIN_EPSILON_EACH:
        raise InvalidQuery(
            f"epsilon must be at least {MIN_EPSILON_EACH} for each of the {campaign.max_values_per_person} values of a "
            "person"
        )
    ends = campaign.variable.grid.index_at([float(x) for x in query.upper_ends])
    if not ends.size or not (np.diff(np.concatenate([[-1], ends])) > 0).all():
        raise InvalidQuery("the upper ends of groups must increase by at least one step of the grid")
    taus = campaign.variable.grid.thresholds(np.array([0, campaign.variable.grid.size - 1]))
    if taus[0] < 0 or taus[1] > 1:
        raise InvalidQuery("groups need a grid of scores between 0 and 1")
    return ScoreGroupQuery(campaign, query, ends)


def group_noise(asked: ScoreGroupQuery, prf: Prf) -> list[DiscreteLaplace | FineLaplace]:
    """One server's noise of O_0, O_1, E_0 and E_1."""
    observed, expected = DiscreteLaplace(prf, asked.rate), FineLaplace(prf, asked.rate / SCORE_UNIT)
    return [observed, observed, expected, expected]


def standard_errors(asked: ScoreGroupQuery) -> tuple[float, float]:
    """Standard errors of an observed and of an expected count."""

    def deviation(r: float) -> float:
        return math.sqrt(SERVERS * 2 * math.exp(-r) / math.expm1(-r) ** 2)

    return deviation(asked.rate), deviation(asked.rate / SCORE_UNIT) / SCORE_UNIT


def distance(asked: ScoreGroupQuery) -> float:
    """A bound on the total variation distance of one server's noise of all groups from the ideal distribution.

    By group: a draw for each observed count, and for each expected one a draw and two digits (`FineLaplace`).
    """
    digit = 4 * 2.0**-KEPT_BITS + FineLaplace.BASE * 2.0**-DRAW_BITS
    fine = _draw_distance(asked.rate / SCORE_UNIT * FineLaplace.BASE) + 2 * digit
    return 2 * asked.ends.size * (_draw_distance(asked.rate) + fine)


def _draw_distance(rate: float) -> float:
    """Of one discrete Laplace variable: what was cut off its table, its rounding, and that of a draw."""
    reach = KEPT_BITS / rate + 1
    return (4 / -math.expm1(-rate) + 4) * 2.0**-KEPT_BITS + (2 * reach + 1) * 2.0**-DRAW_BITS


def delta(asked: ScoreGroupQuery) -> float:
    """The delta that goes with the question's epsilon: what is ideal within d is (epsilon, (1 + e^epsilon) d)-DP."""
    return (1 + math.exp(asked.query.epsilon)) * distance(asked)


def answer(asked: ScoreGroupQuery, n: int, counts: Counts) -> ScoreGroupsResponse:
    """From the noised counts of both servers together."""
    o0, o1, e0, e1 = counts.reshape(4, -1)
    observed, expected = standard_errors(asked)
    return ScoreGroupsResponse(
        digest=asked.campaign.digest,
        n=n,
        epsilon=asked.query.epsilon,
        delta=delta(asked),
        upper_ends=asked.query.upper_ends,
        observed_negative=o0.tolist(),
        observed_positive=o1.tolist(),
        expected_negative=(e0 / SCORE_UNIT).tolist(),
        expected_positive=(e1 / SCORE_UNIT).tolist(),
        observed_error=observed,
        expected_error=expected,
    )
