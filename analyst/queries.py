"""Everything that can be asked of a server, without input and output: each question is a plan.

A plan yields what it needs (an answer of the server, other plans, some computing) and gets it back; `Client` and
`AsyncClient` see to that, each in its own way, so that every question is written once.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from analyst import point_queries
from analyst.point_queries import Answered, PointRelease, Steps
from analyst.registry import Statistic
from analyst.release import Floats, Release
from analyst.statistics import calibration
from analyst.statistics.calibration import Calibration
from analyst.statistics.ecdf_points import Index
from analyst.statistics.trend import Trend
from analyst.statistics.wave_names import as_trend, asked_for, release_names, until_of
from analyst.sum_queries import Sums, read_result, sum_query
from fss_ecdf.campaign.array_inputs import Values, many
from fss_ecdf.campaign.campaign import Campaign, check_digest
from fss_ecdf.campaign.errors import InvalidInput, InvalidPeerResponse, InvalidQuery
from fss_ecdf.campaign.json_messages import (
    BudgetResponse,
    CountsResponse,
    EcdfResponse,
    ResultResponse,
    WavesResponse,
    read,
)
from fss_ecdf.campaign.score_groups import score_group_sums
from fss_ecdf.net import https

ATTEMPTS = 5
# Points in one question that servers answer from the keys: at first, and however many keys there are.
POINTS, FEWEST_POINTS = 64, 14
NUMPY = {"Accept": "application/x-npy"}
JSON = {"Content-Type": "application/json"}


# Of an answer; a campaign whose thresholds are listed is the longest that is not a curve.
MOST_BYTES, NUMPY_HEAD = 33 << 20, 1000

R = TypeVar("R")


@dataclass(frozen=True)
class Request:
    """Gives the bytes of an answer."""

    method: str
    path: str
    more: dict[str, Any] = field(default_factory=dict)
    most: int = MOST_BYTES


@dataclass(frozen=True)
class Parallel:
    """Gives the results of plans that do not need each other."""

    plans: Sequence["Plan[Any]"]


@dataclass(frozen=True)
class Exclusive:
    """Gives the result of a plan that must not run twice at the same time."""

    plan: "Plan[Any]"


@dataclass(frozen=True)
class RunInThread:
    """Gives the result of some computing that would hold up others."""

    work: Callable[[], Any]


Need = Request | Parallel | Exclusive | RunInThread
Plan = Generator[Need, Any, R]


class Queries:
    """One campaign at one server: where to ask, what was learned, the questions, and how answers are read."""

    def __init__(
        self,
        url: str,
        token: str,
        ca: str | Path | None = None,
        *,
        timeout_s: float = 60.0,
        patience_s: float = 300.0,
        on_grid: bool = False,
        wave: int | None = None,
        through: int | None = None,
        pooled: int | None = None,
    ) -> None:
        """`patience_s`: how long to wait for a server that is still preparing the curve, or is busy.

        `on_grid`: values were measured in steps of the grid; otherwise a cell of the grid stands for its middle.
        `wave`, `through`, `pooled`: of a campaign of waves, one wave, all up to one, or what was pooled after one; all
        that there is unless one of them is said.
        """
        said = {"wave": wave, "through": through, "pooled": pooled}
        self._which = {name: str(number) for name, number in said.items() if number is not None}
        if len(self._which) > 1:
            raise InvalidInput("say one of wave, through and pooled")
        if not https.is_address(url):
            raise InvalidInput(https.NOT_AN_ADDRESS.format(url))
        self.url, self._on_grid = url.rstrip("/"), on_grid
        self.options = https.options(token, ca, timeout_s)
        self.server = https.ServerEndpoint(self.url, https.RetryPolicy(ATTEMPTS, patience_s))
        self._campaign: Campaign | None = None
        self._release: Release | None = None
        self._by_points = False  # learned when the server refuses a whole curve
        self._points = POINTS

    def campaign(self) -> Plan[Campaign]:
        """What is measured, and how privately."""
        return self._campaign or self._read_campaign((yield Request("GET", "")))

    def release(self) -> Plan[Release]:
        """The curves of all strata."""
        if self._release is None:
            yield Exclusive(self._kept())
        assert self._release is not None
        return self._release

    def _kept(self) -> Plan[None]:
        if self._release is None:
            self._release = yield from self._fetched(self._which)

    def _fetched(self, which: dict[str, str]) -> Plan[Release]:
        campaign = yield from self.campaign()
        ask = self._categories if campaign.variable.is_categorical else self._stratum
        first, last = yield from ask(campaign, campaign.strata[0], which)
        which = which or until_of(last)  # another wave may be released meanwhile
        others = yield Parallel([ask(campaign, name, which) for name in campaign.strata[1:]])
        parts = [first, *(curve for curve, _ in others)]
        return Release.from_strata(self._seen(campaign, last), last.n, parts, self._on_grid)

    def _stratum(self, campaign: Campaign, stratum: str, which: dict[str, str]) -> Plan[tuple[Floats, EcdfResponse]]:
        at_the_end = {"at": last_threshold(campaign), "stratum": stratum, **which}
        last = read(EcdfResponse, (yield Request("GET", "/ecdf", {"params": at_the_end})))
        params = {"stratum": stratum, **(which or until_of(last))}
        most = NUMPY_HEAD + (8 << campaign.variable.index_bits)
        data = yield Request("GET", "/curve", {"params": params, "headers": NUMPY}, most)
        return self._read_counts(data, last, campaign), last

    def _categories(
        self, campaign: Campaign, stratum: str, which: dict[str, str]
    ) -> Plan[tuple[Floats, CountsResponse]]:
        """Counts of categories, added up as on a curve; there is no noise behind the last one."""
        answer = read(CountsResponse, (yield Request("GET", "/counts", {"params": {"stratum": stratum, **which}})))
        check_digest(campaign.digest, answer.digest)
        if tuple(answer.categories) != campaign.variable.cells:
            raise InvalidPeerResponse(f"{self.url} sent counts of other categories than the campaign has")
        padding = (1 << campaign.variable.index_bits) - len(answer.counts)
        return np.cumsum(np.pad(np.array(answer.counts, np.float64), (0, padding))), answer

    def waves(self) -> Plan[Trend]:
        """All waves of a campaign that reports as it runs, and what was pooled of them."""
        told, releases = read(WavesResponse, (yield Request("GET", "/waves"))), []
        for one in told.releases:
            releases.append((yield from self._fetched(asked_for(one))))
        return as_trend((yield from self.campaign()), told, releases)

    def is_whole(self) -> Plan[bool]:
        """Whether the server has the whole curve; of a grid that is too large for it, points are asked for."""
        if self._release is None and not self._by_points:
            try:
                yield from self.release()
            except InvalidQuery:
                self._by_points = True
        return not self._by_points

    def statistic(self, entry: Statistic, *args: Any, **options: Any) -> Plan[Any]:
        """A statistic of the registry, from what it is computed from.

        Raises `InvalidQuery` if the campaign does not support it.
        """
        campaign = yield from self.campaign()
        entry.check(campaign)
        if entry.source == "server":
            return (yield from entry.compute(self, *args, **options))
        if entry.source == "waves":
            source: Any = yield from self.waves()
        elif entry.by_points is None or (yield from self.is_whole()):
            source = yield from self.release()
        else:
            given = entry.arguments(*args, **options)
            name = point_queries.one_stratum(campaign, given.pop("stratum"))
            return (yield from self._by_asking(campaign, name, entry.by_points(campaign, name, **given)))
        return (yield RunInThread(partial(entry.compute, source, *args, **options)))

    def reported(self) -> Plan[Release | PointRelease]:
        """What a report is made of: the release, or of a grid that is too large for it points of every stratum."""
        if (yield from self.is_whole()):
            return (yield from self.release())
        campaign, n, parts = (yield from self.campaign()), 0, {}
        for stratum in campaign.strata:
            count, parts[stratum] = yield from self._by_asking(campaign, stratum, point_queries.page(campaign, stratum))
            n = max(n, count)
        return PointRelease(campaign, n, parts)

    def _by_asking(self, campaign: Campaign, stratum: str, steps: Steps[R]) -> Plan[R]:
        """What needs counts at points, one question after the other."""
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send((yield from self._answered(campaign, stratum, wanted)))
        except StopIteration as done:
            result: R = done.value
            return result

    def _answered(self, campaign: Campaign, stratum: str, index: Index) -> Plan[Answered]:
        while True:
            n, counts = 0, dict[int, int]()
            try:
                for part in batches(index, self._points):
                    data = yield Request("GET", "/ecdf", {"params": at_indices(campaign, part, stratum)})
                    n, more = self._read_answered(data, campaign, part)
                    counts.update(more)
                return n, counts
            except InvalidQuery as problem:
                self._fewer_points(problem)

    def score_groups(self, upper_ends: Values, epsilon: float, fitted: bool) -> Plan[Calibration]:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same query."""
        ends = many(upper_ends)
        if len(ends) < 3:
            raise InvalidQuery(f"calibration needs at least 3 groups, got {len(ends)}")
        asked = score_group_sums((yield from self.campaign()), [float(x) for x in ends])
        found = yield from self.sums(asked.weights, epsilon, asked.units)
        groups = calibration.from_sums(found.noisy, asked, found.n, epsilon, found.query.delta)
        result: Calibration = yield RunInThread(partial(calibration.hosmer_lemeshow, groups, fitted=fitted))
        return result

    def sums(self, weights: Any, epsilon: float, units: Sequence[int] | None = None) -> Plan[Sums]:
        """Weighted sums over all values of one release: spends epsilon of the reserve, once for the same query.

        `weights`: for each sum a whole number for each threshold of each stratum. `units`: for each sum what counts as
        a change of one; a sum with a larger unit has more noise and leaves more of the epsilon to the others.
        """
        campaign = yield from self.campaign()
        if campaign.waves is not None and not {"wave", "pooled"} & self._which.keys():
            raise InvalidQuery("sums are of one release: name a wave or a pool")
        query, content = yield RunInThread(partial(sum_query, campaign, weights, epsilon, units))
        more = {"content": content, "headers": JSON, "params": self._which}
        return read_result((yield Request("POST", "/sums", more)), campaign, query)

    def budget(self) -> Plan[BudgetResponse]:
        """What the campaign may spend and has spent; of the reserve, what is left for the release that is asked for."""
        which = {name: number for name, number in self._which.items() if name != "through"}
        return read(BudgetResponse, (yield Request("GET", "/budget", {"params": which})))

    def _read_campaign(self, data: bytes) -> Campaign:
        try:
            self._campaign = Campaign.from_dict(json.loads(data)["campaign"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidPeerResponse(f"{self.url} did not send a campaign ({type(error).__name__})") from None
        return self._campaign

    def _seen(self, campaign: Campaign, answer: ResultResponse) -> Campaign:
        """The campaign as the releases that an answer is made of know it, with their noise."""
        if campaign.waves is None or not answer.releases:
            return campaign
        try:
            each = [name.epsilon(campaign.waves, campaign.epsilon) for name in release_names(answer)]
        except ValueError:
            raise InvalidPeerResponse(f"{self.url} answers with releases that the campaign does not have") from None
        return campaign.released(tuple(Counter(each).items()))

    def _read_counts(self, data: bytes, last: EcdfResponse, campaign: Campaign) -> Floats:
        """A curve in numpy's format, to the end of its padding; the count asked for by itself must be in it."""
        check_digest(campaign.digest, last.digest)
        try:
            counts = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise InvalidPeerResponse(f"{self.url} did not send a curve ({type(error).__name__})") from None
        padded = 1 << campaign.variable.index_bits
        if not isinstance(counts, np.ndarray) or counts.dtype.kind != "i" or counts.shape != (padded,):
            raise InvalidPeerResponse(f"{self.url} sent something else than a curve of {padded} counts")
        if last.counts != [int(counts[campaign.variable.grid.size - 1])]:
            raise InvalidPeerResponse(f"{self.url} sent a curve that does not fit its own last count")
        return counts.astype(np.float64)

    def _read_answered(self, data: bytes, campaign: Campaign, index: Index) -> Answered:
        """Published counts at grid indices."""
        answer = read(EcdfResponse, data)
        check_digest(campaign.digest, answer.digest)
        if len(answer.counts) != index.size:
            raise InvalidPeerResponse(f"{self.url} answered {len(answer.counts)} of {index.size} questions")
        return answer.n, dict(zip(index.tolist(), answer.counts, strict=True))

    def _fewer_points(self, problem: InvalidQuery) -> None:
        """A server with many uploads takes few points in one question; how few it says only when asked."""
        if self._points <= FEWEST_POINTS:
            raise problem
        self._points = max(FEWEST_POINTS, self._points // 2)


def texts(at: Sequence[object]) -> list[str]:
    """Thresholds as the server reads them; a float's repr is the shortest text that is the same number."""
    return [x if isinstance(x, str) else str(x) for x in (v.item() if isinstance(v, np.generic) else v for v in at)]


def last_threshold(campaign: Campaign) -> str:
    return str(campaign.variable.grid.labels(np.array([campaign.variable.grid.size - 1]))[0])


def at_indices(campaign: Campaign, index: Index, stratum: str) -> dict[str, str]:
    """What to ask for published counts at grid indices."""
    return {"at": ",".join(texts(campaign.variable.grid.labels(index))), "stratum": stratum}


def batches(index: Index, most: int) -> list[Index]:
    return [index[i : i + most] for i in range(0, index.size, most)]
