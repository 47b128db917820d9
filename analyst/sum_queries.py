"""A query for weighted sums as an analyst sends it: checked before it costs anything, and its results with their noise.

Servers charge a query before they answer it, so that one that is of no use would be paid all the same.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyst.estimation.noisy import Noisy
from fss_ecdf.campaign.campaign import Campaign, check_digest
from fss_ecdf.campaign.errors import InvalidPeerResponse
from fss_ecdf.campaign.json_messages import SumsResponse, read
from fss_ecdf.campaign.noise.sums import SumQuery, read_sums


@dataclass(frozen=True, eq=False)
class Sums:
    """What was asked, and both servers' noisy sums."""

    query: SumQuery
    noisy: Noisy
    n: int
    release: str


def sum_query(
    campaign: Campaign, weights: Any, epsilon: float, units: Sequence[int] | None = None
) -> tuple[SumQuery, bytes]:
    """A query about every value of a campaign, and the bytes that ask for it. Raises InvalidQuery, and says why."""
    cells = campaign.variable.size * len(campaign.strata)
    query = read_sums(weights, float(epsilon), cells=cells, units=units, instances=campaign.max_values_per_person)
    fields = {"weights": query.weights.tolist(), "units": list(query.units), "epsilon": query.epsilon}
    return query, json.dumps(fields, separators=(",", ":")).encode()


def read_result(data: bytes, campaign: Campaign, query: SumQuery) -> Sums:
    """The server's answer, if it is about this campaign and query and claims the noise that the query has."""
    answer = read(SumsResponse, data)
    check_digest(campaign.digest, answer.digest)
    if (len(answer.sums), answer.epsilon) != (len(query.units), query.epsilon):
        raise InvalidPeerResponse("the server answered another query for sums")
    if not np.allclose(answer.standard_errors, query.errors, rtol=1e-9):
        raise InvalidPeerResponse("the server added other noise than the query has; do both run the same version?")
    return Sums(query, Noisy.from_sums(answer.sums, query), answer.n, answer.release)
