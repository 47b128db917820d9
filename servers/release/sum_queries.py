"""Queries for weighted sums: read from a message, called by a name in the ledger, and answered."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.campaign import Campaign, check_digest
from fss_ecdf.campaign.json_messages import PeerSumsQuery, SumsQuery, SumsResponse, read
from fss_ecdf.campaign.noise.sums import SumQuery, read_sums
from fss_ecdf.campaign.release import ReleaseName
from servers.storage.ledger import RESERVE

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class QueryReader:
    """What a query is read against: little, since long queries are read in a process of their own.

    Each server computes the sensitivity of a query for itself, while it reads it.
    """

    digest: bytes
    cells: int
    instances: int

    @classmethod
    def of(cls, campaign: Campaign) -> "QueryReader":
        return cls(campaign.digest, used_positions(campaign).size, campaign.max_values_per_person)

    def from_analyst(self, data: bytes) -> tuple[SumQuery, bytes]:
        """What is asked, and the same as it is sent to the other server."""
        message = read(SumsQuery, data)
        body = PeerSumsQuery(digest=self.digest, **message.model_dump()).to_json().encode()
        return self._query(message), body

    def from_peer(self, data: bytes) -> SumQuery:
        message = read(PeerSumsQuery, data)
        check_digest(self.digest, message.digest)
        return self._query(message)

    def _query(self, message: SumsQuery) -> SumQuery:
        about = {"cells": self.cells, "instances": self.instances}
        query = read_sums(message.weights, message.epsilon, units=message.units, **about)
        _ = query.sensitivity, query.rates
        return query


def used_positions(campaign: Campaign) -> NDArray[np.int64]:
    """Positions that values can have: those of every stratum, missing values included, without the padding."""
    index = np.arange(campaign.variable.size)
    return np.concatenate([campaign.position(stratum, index) for stratum in range(len(campaign.strata))])


def expense(query: SumQuery, release: ReleaseName) -> str:
    """What the ledger calls it: the same query about the same release is not paid again, any other one is."""
    return f"{RESERVE}{query.digest} of {release}"


def result(campaign: Campaign, release: ReleaseName, n: int, query: SumQuery, sums: Counts) -> SumsResponse:
    """From the noisy sums of both servers together."""
    return SumsResponse(
        digest=campaign.digest,
        n=n,
        release=str(release),
        epsilon=query.epsilon,
        delta=query.delta,
        sensitivity=float(query.sensitivity.value),
        exact=query.sensitivity.exact,
        sums=sums.tolist(),
        standard_errors=query.errors.tolist(),
    )
