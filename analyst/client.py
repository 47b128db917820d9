"""Asking a server. `Client` for scripts and notebooks, `AsyncClient` for programs that do other things meanwhile.

client = Client("https://a.example/v1/campaigns/ID", token)
client.quantile([0.25, 0.5, 0.75]).to_frame()

The release is fetched once and kept: every statistic but `ecdf`, `groups` and `budget` is computed from it here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from analyst import by_points
from analyst.asking import JSON, NUMPY, Asking, Patience, at_indices, batches, groups_query, last_threshold
from analyst.by_points import PointRelease, Steps
from analyst.calibration import Calibration
from analyst.histogram import Histogram
from analyst.options import QUARTILES, Smoothing
from analyst.points import Index, Points
from analyst.quantile import Quantiles
from analyst.release import Floats, Release, Stratum
from analyst.trend import Trend
from analyst.waves import as_trend, asked_for, until_of
from campaign.errors import InvalidQuery
from campaign.inputs import Values
from campaign.spec import Campaign
from campaign.wire import BudgetAnswer, EcdfAnswer, WavesAnswer, read

P = ParamSpec("P")
R = TypeVar("R")


def _now(method: Callable[Concatenate[Release, P], R]) -> Callable[Concatenate["Client", P], R]:
    """A method of the release as one of the client."""

    @wraps(method)
    def ask(self: "Client", /, *args: P.args, **more: P.kwargs) -> R:
        return method(self.release(), *args, **more)

    return ask


def _later(method: Callable[Concatenate[Release, P], R]) -> Callable[Concatenate["AsyncClient", P], Awaitable[R]]:
    @wraps(method)
    async def ask(self: "AsyncClient", /, *args: P.args, **more: P.kwargs) -> R:
        release = await self.release()
        return await asyncio.to_thread(method, release, *args, **more)

    return ask


class Client(Asking):
    """Ask one server of a campaign. Both servers' noise is in every answer."""

    def __init__(self, url: str, token: str, ca: str | Path | None = None, **more: Unpack[Patience]) -> None:
        super().__init__(url, token, ca, **more)
        self._http = httpx.Client(**self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def campaign(self) -> Campaign:
        """What is measured, and how privately."""
        return self._campaign or self._read_campaign(self._ask("GET", ""))

    def release(self) -> Release:
        """The curves of all strata."""
        if self._release is None:
            self._release = self._fetched(self._which)
        return self._release

    def _fetched(self, which: dict[str, str]) -> Release:
        campaign, parts = self.campaign(), []
        for stratum in campaign.strata:
            params = {"at": last_threshold(campaign), "stratum": stratum, **which}
            last = read(EcdfAnswer, self._ask("GET", "/ecdf", params=params))
            which = which or until_of(last)  # another wave may be released meanwhile
            data = self._ask("GET", "/curve", params={"stratum": stratum, **which}, headers=NUMPY)
            parts.append(self._read_counts(data, last, campaign))
        return Release.of_strata(self._seen(campaign, last), last.n, parts, self._on_grid)

    def trend(self) -> Trend:
        """All waves of a campaign that reports as it runs, and what was pooled of them."""
        told = read(WavesAnswer, self._ask("GET", "/waves"))
        return as_trend(self.campaign(), told, [self._fetched(asked_for(one)) for one in told.releases])

    def is_whole(self) -> bool:
        """Whether the server has the whole curve; of a grid that is too large for it, points are asked for."""
        if self._release is None and not self._by_points:
            try:
                self.release()
            except InvalidQuery:
                self._by_points = True
        return not self._by_points

    def ecdf(self, at: Values, stratum: Stratum = None, *, smoothing: Smoothing = "isotonic") -> Points:
        """F at some values."""
        if self.is_whole():
            return self.release().curve(stratum, smoothing=smoothing).at(at)
        campaign = self.campaign()
        name = by_points.one_stratum(campaign, stratum)
        return self._by_asking(campaign, name, by_points.some(campaign, name, at, smoothing != "none"))

    def quantile(
        self,
        levels: Values = QUARTILES,
        stratum: Stratum = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
    ) -> Quantiles:
        """Where the curve reaches each level, with intervals."""
        if self.is_whole():
            return self.release().quantile(levels, stratum, smoothing=smoothing, confidence=confidence)
        campaign = self.campaign()
        name = by_points.one_stratum(campaign, stratum)
        return self._by_asking(campaign, name, by_points.quantiles(campaign, name, levels, confidence))

    def histogram(
        self,
        edges: Values = 20,
        stratum: Stratum = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
    ) -> Histogram:
        """Counts and shares of bins."""
        if self.is_whole():
            return self.release().histogram(edges, stratum, smoothing=smoothing, confidence=confidence)
        campaign = self.campaign()
        name = by_points.one_stratum(campaign, stratum)
        return self._by_asking(campaign, name, by_points.histogram(campaign, name, edges, confidence))

    def reported(self) -> Release | PointRelease:
        """What a report is made of: the release, or of a grid that is too large for it points of every stratum."""
        if self.is_whole():
            return self.release()
        campaign = self.campaign()
        parts = {s: self._by_asking(campaign, s, by_points.page(campaign, s)) for s in campaign.strata}
        return PointRelease(campaign, max(n for n, _ in parts.values()), {s: page for s, (_, page) in parts.items()})

    def _by_asking(self, campaign: Campaign, stratum: str, steps: Steps[R]) -> R:
        """What needs counts at points, one question after the other."""
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(self._answered(campaign, stratum, wanted))
        except StopIteration as done:
            found: R = done.value
            return found

    def _answered(self, campaign: Campaign, stratum: str, index: Index) -> by_points.Answered:
        while True:
            n, counts = 0, dict[int, int]()
            try:
                for part in batches(index, self._points):
                    data = self._ask("GET", "/ecdf", params=at_indices(campaign, part, stratum))
                    n, more = self._read_answered(data, campaign, part)
                    counts.update(more)
                return n, counts
            except InvalidQuery as problem:
                self._fewer_points(problem)

    def groups(self, upper_ends: Values, epsilon: float, *, fitted: bool = True) -> Calibration:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same question."""
        content, campaign = groups_query(upper_ends, epsilon), self.campaign()
        return self._read_groups(self._ask("POST", "/groups", content=content, headers=JSON), campaign, fitted)

    def budget(self) -> BudgetAnswer:
        """What the campaign may spend and has spent."""
        return read(BudgetAnswer, self._ask("GET", "/budget"))

    curve = _now(Release.curve)
    mean = _now(Release.mean)
    compare = _now(Release.compare)
    roc = _now(Release.roc)
    calibration = _now(Release.calibration)
    calibration_curve = _now(Release.calibration_curve)
    model = _now(Release.model)
    summary = _now(Release.summary)
    compare_areas = _now(Release.compare_areas)
    survival = _now(Release.survival)
    survival_summary = _now(Release.survival_summary)

    def _ask(self, method: str, path: str, **more: Any) -> bytes:
        return self._server.ask(self._http, method, self.url + path, **more).content


class AsyncClient(Asking):
    """The same, for a running event loop. Statistics are computed in a thread."""

    def __init__(self, url: str, token: str, ca: str | Path | None = None, **more: Unpack[Patience]) -> None:
        super().__init__(url, token, ca, **more)
        # a campaign may have thousands of strata
        self._http = httpx.AsyncClient(**{**self._options, "limits": httpx.Limits(max_connections=4)})
        self._fetching = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def campaign(self) -> Campaign:
        """What is measured, and how privately."""
        return self._campaign or self._read_campaign(await self._ask("GET", ""))

    async def release(self) -> Release:
        """The curves of all strata, fetched together."""
        async with self._fetching:
            if self._release is None:
                self._release = await self._fetched(self._which)
        return self._release

    async def _fetched(self, which: dict[str, str]) -> Release:
        campaign = await self.campaign()
        first, last = await self._stratum(campaign, campaign.strata[0], which)
        which = which or until_of(last)
        others = await asyncio.gather(*(self._stratum(campaign, name, which) for name in campaign.strata[1:]))
        parts = [first, *(curve for curve, _ in others)]
        return Release.of_strata(self._seen(campaign, last), last.n, parts, self._on_grid)

    async def _stratum(self, campaign: Campaign, stratum: str, which: dict[str, str]) -> tuple[Floats, EcdfAnswer]:
        params = {"at": last_threshold(campaign), "stratum": stratum, **which}
        last = read(EcdfAnswer, await self._ask("GET", "/ecdf", params=params))
        params = {"stratum": stratum, **(which or until_of(last))}
        data = await self._ask("GET", "/curve", params=params, headers=NUMPY)
        return self._read_counts(data, last, campaign), last

    async def trend(self) -> Trend:
        """All waves of a campaign that reports as it runs, and what was pooled of them."""
        told = read(WavesAnswer, await self._ask("GET", "/waves"))
        releases = [await self._fetched(asked_for(one)) for one in told.releases]
        return as_trend(await self.campaign(), told, releases)

    async def is_whole(self) -> bool:
        """Whether the server has the whole curve; of a grid that is too large for it, points are asked for."""
        if self._release is None and not self._by_points:
            try:
                await self.release()
            except InvalidQuery:
                self._by_points = True
        return not self._by_points

    async def ecdf(self, at: Values, stratum: Stratum = None, *, smoothing: Smoothing = "isotonic") -> Points:
        """F at some values."""
        if await self.is_whole():
            release = await self.release()
            return await asyncio.to_thread(lambda: release.curve(stratum, smoothing=smoothing).at(at))
        campaign = await self.campaign()
        name = by_points.one_stratum(campaign, stratum)
        return await self._by_asking(campaign, name, by_points.some(campaign, name, at, smoothing != "none"))

    async def quantile(
        self,
        levels: Values = QUARTILES,
        stratum: Stratum = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
    ) -> Quantiles:
        """Where the curve reaches each level, with intervals."""
        if await self.is_whole():
            release = await self.release()
            run = partial(release.quantile, smoothing=smoothing, confidence=confidence)
            return await asyncio.to_thread(run, levels, stratum)
        campaign = await self.campaign()
        name = by_points.one_stratum(campaign, stratum)
        return await self._by_asking(campaign, name, by_points.quantiles(campaign, name, levels, confidence))

    async def histogram(
        self,
        edges: Values = 20,
        stratum: Stratum = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
    ) -> Histogram:
        """Counts and shares of bins."""
        if await self.is_whole():
            release = await self.release()
            run = partial(release.histogram, smoothing=smoothing, confidence=confidence)
            return await asyncio.to_thread(run, edges, stratum)
        campaign = await self.campaign()
        name = by_points.one_stratum(campaign, stratum)
        return await self._by_asking(campaign, name, by_points.histogram(campaign, name, edges, confidence))

    async def reported(self) -> Release | PointRelease:
        """What a report is made of: the release, or of a grid that is too large for it points of every stratum."""
        if await self.is_whole():
            return await self.release()
        campaign = await self.campaign()
        parts = {s: await self._by_asking(campaign, s, by_points.page(campaign, s)) for s in campaign.strata}
        return PointRelease(campaign, max(n for n, _ in parts.values()), {s: page for s, (_, page) in parts.items()})

    async def _by_asking(self, campaign: Campaign, stratum: str, steps: Steps[R]) -> R:
        """What needs counts at points, one question after the other."""
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(await self._answered(campaign, stratum, wanted))
        except StopIteration as done:
            found: R = done.value
            return found

    async def _answered(self, campaign: Campaign, stratum: str, index: Index) -> by_points.Answered:
        while True:
            n, counts = 0, dict[int, int]()
            try:
                for part in batches(index, self._points):
                    data = await self._ask("GET", "/ecdf", params=at_indices(campaign, part, stratum))
                    n, more = self._read_answered(data, campaign, part)
                    counts.update(more)
                return n, counts
            except InvalidQuery as problem:
                self._fewer_points(problem)

    async def groups(self, upper_ends: Values, epsilon: float, *, fitted: bool = True) -> Calibration:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same question."""
        content, campaign = groups_query(upper_ends, epsilon), await self.campaign()
        return self._read_groups(await self._ask("POST", "/groups", content=content, headers=JSON), campaign, fitted)

    async def budget(self) -> BudgetAnswer:
        """What the campaign may spend and has spent."""
        return read(BudgetAnswer, await self._ask("GET", "/budget"))

    curve = _later(Release.curve)
    mean = _later(Release.mean)
    compare = _later(Release.compare)
    roc = _later(Release.roc)
    calibration = _later(Release.calibration)
    calibration_curve = _later(Release.calibration_curve)
    model = _later(Release.model)
    summary = _later(Release.summary)
    compare_areas = _later(Release.compare_areas)
    survival = _later(Release.survival)
    survival_summary = _later(Release.survival_summary)

    async def _ask(self, method: str, path: str, **more: Any) -> bytes:
        answer = await self._server.ask_async(self._http, method, self.url + path, **more)
        return answer.content
