"""Counts at thresholds, with their standard errors: from what both servers published to what an analyst asked.

Every other statistic of the distribution is computed from these by the analyst's programs: one definition of each.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import CountsResponse, EcdfResponse, Threshold
from fss_ecdf.campaign.noise.mechanism import SERVERS

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Index = NDArray[np.int64]
# Thresholds of a curve that are written down at a time: writing a million numbers at once stops every other thread.
STEP = 1 << 12
CountAt = Callable[[Index], Awaitable[Counts]]


@dataclass(frozen=True)
class Query:
    """A campaign, one of its strata, n, and a way to get published counts at positions."""

    campaign: Campaign
    stratum: str
    n: int
    count_at: CountAt
    known_errors: Mapping[str, Floats]  # of the strata's curves, once they are ready
    releases: Sequence[str] = ()

    async def counts(self, index: Index) -> Counts:
        """Values of the stratum at or below each grid index; index -1 is below all."""
        wanted = self.campaign.position(self.campaign.stratum(self.stratum), np.append(index, -1))
        counts = np.zeros(wanted.size, np.int64)
        counts[wanted >= 0] = await self.count_at(wanted[wanted >= 0])
        return np.where(index < 0, 0, counts[:-1] - counts[-1])

    def errors(self, index: Index) -> list[float]:
        """Standard errors of the counts at indices, both servers' noise included."""
        known = self.known_errors.get(self.stratum)
        if known is None:
            return _errors(self.campaign, self.stratum, index).tolist()  # type: ignore[no-any-return]
        return np.where(index < 0, 0.0, known[index]).tolist()  # type: ignore[no-any-return]

    def about(self) -> dict[str, object]:
        c = self.campaign
        return {
            "digest": c.digest,
            "n": self.n,
            "epsilon": c.epsilon,
            "mechanism": c.variable.mechanism,
            "check_keys": c.check_keys,
            "stratum": self.stratum,
            "releases": list(self.releases),
        }


def _errors(campaign: Campaign, stratum: str, index: Index) -> Floats:
    number = campaign.stratum(stratum)
    below = campaign.position(number, np.full_like(index, -1))
    return np.sqrt(SERVERS * campaign.noise.difference_variance(campaign.position(number, index), below))


def curve_errors(campaign: Campaign) -> dict[str, Floats]:
    """The standard errors of every stratum's curve."""
    index = np.arange(campaign.variable.size)
    return {stratum: _errors(campaign, stratum, index) for stratum in campaign.strata}


async def counts(question: Query) -> CountsResponse:
    """How many values are in each category, and how many are missing."""
    variable = question.campaign.variable
    if not variable.cells:
        raise InvalidQuery(
            f"the variable {short(repr(variable.name))} has a grid and does not count missing values: query its curve"
        )
    index = np.arange(variable.size - len(variable.cells), variable.size)
    found = np.diff(await question.counts(np.append(index[0] - 1, index)))
    number, noise = question.campaign.stratum(question.stratum), question.campaign.noise
    at = question.campaign.position(number, index)
    errors = np.sqrt(SERVERS * noise.difference_variance(at, at - 1)).tolist()
    columns = {"categories": list(variable.cells), "counts": found.tolist(), "standard_errors": errors}
    return CountsResponse.model_validate(question.about() | columns)


async def ecdf(question: Query, at: list[str]) -> EcdfResponse:
    """Counts at any thresholds. Between thresholds of the grid the curve is flat."""
    grid = question.campaign.variable.grid
    index = await asyncio.to_thread(grid.index_at, at)
    thresholds: list[Threshold] = [text if grid.values == "date" else float(text) for text in at]
    counts = await question.counts(index)
    return await asyncio.to_thread(lambda: _answer(question, thresholds, counts, question.errors(index)))


def curve_json(question: Query, counts: Counts) -> bytes:
    """The whole curve of a stratum, from its counts, as an EcdfAnswer."""
    whole = _answer(question, [], np.array([], np.int64), []).model_dump(mode="json")
    columns: dict[str, list[str]] = {"thresholds": [], "counts": [], "standard_errors": []}
    for row in _columns(question, counts):
        for parts, values in zip(columns.values(), row, strict=True):
            parts.append(json.dumps(values, separators=(",", ":"), allow_nan=False)[1:-1])
    about = json.dumps({name: value for name, value in whole.items() if name not in columns}, separators=(",", ":"))
    lists = (f'"{name}":[{",".join(parts)}]' for name, parts in columns.items())
    return f"{about[:-1]},{','.join(lists)}}}".encode()


def curve_csv(question: Query, counts: Counts) -> bytes:
    lines = ["threshold,count,standard_error\n"]
    for columns in _columns(question, counts):
        lines.append("".join(f"{t},{c},{e:.6g}\n" for t, c, e in zip(*columns, strict=True)))
    return "".join(lines).encode()


def _columns(question: Query, counts: Counts) -> Iterator[tuple[list[Threshold], list[int], list[float]]]:
    """Thresholds, counts and standard errors, some at a time."""
    for start in range(0, counts.size, STEP):
        index = np.arange(start, min(start + STEP, counts.size))
        yield question.campaign.variable.grid.labels(index), counts[index].tolist(), question.errors(index)


def _answer(question: Query, thresholds: list[Threshold], counts: Counts, errors: list[float]) -> EcdfResponse:
    values = {"thresholds": thresholds, "counts": counts.tolist(), "standard_errors": errors}
    return EcdfResponse.model_validate(question.about() | values)
