"""Asking a server. `Client` for scripts and notebooks, `AsyncClient` for programs that do other things meanwhile.

client = Client("https://a.example/v1/campaigns/ID", token)
client.quantile([0.25, 0.5, 0.75]).to_frame()

The release is fetched once and kept: every statistic but `ecdf`, `groups` and `budget` is computed from it here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack

import httpx

from analyst.asking import JSON, NUMPY, Asking, groups_query, last_threshold, points_question
from analyst.calibration import Calibration
from analyst.options import Smoothing
from analyst.points import Points
from analyst.release import Floats, Release, Stratum
from campaign.errors import InvalidQuery
from campaign.spec import Campaign
from campaign.wire import BudgetAnswer, EcdfAnswer, read

P = ParamSpec("P")
R = TypeVar("R")


class Patience(TypedDict, total=False):
    """What `Asking` takes besides an address and a token."""

    timeout_s: float
    patience_s: float
    on_grid: bool


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
            campaign, parts, n = self.campaign(), [], 0
            for stratum in campaign.strata:
                last = read(
                    EcdfAnswer, self._ask("GET", "/ecdf", params={"at": last_threshold(campaign), "stratum": stratum})
                )
                data = self._ask("GET", "/curve", params={"stratum": stratum}, headers=NUMPY)
                parts.append(self._read_counts(data, last, campaign))
                n = last.n
            self._release = Release.of_strata(campaign, n, parts, self._on_grid)
        return self._release

    def ecdf(self, at: Sequence[object], stratum: Stratum = None, *, smoothing: Smoothing = "isotonic") -> Points:
        """F at some values: of the release, or, on a grid too large for whole curves, asked for one by one."""
        try:
            release = self.release()
        except InvalidQuery:
            campaign = self.campaign()
        else:
            return release.curve(stratum, smoothing=smoothing).at(at)
        name, params = points_question(campaign, at, stratum)
        return self._read_points(self._ask("GET", "/ecdf", params=params), campaign, name, at, smoothing)

    def groups(self, upper_ends: Sequence[float], epsilon: float, *, fitted: bool = True) -> Calibration:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same question."""
        content, campaign = groups_query(upper_ends, epsilon), self.campaign()
        return self._read_groups(self._ask("POST", "/groups", content=content, headers=JSON), campaign, fitted)

    def budget(self) -> BudgetAnswer:
        """What the campaign may spend and has spent."""
        return read(BudgetAnswer, self._ask("GET", "/budget"))

    curve = _now(Release.curve)
    quantile = _now(Release.quantile)
    histogram = _now(Release.histogram)
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
        self._http = httpx.AsyncClient(**self._options, limits=httpx.Limits(max_connections=4))
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
                campaign = await self.campaign()
                answers = await asyncio.gather(*(self._stratum(campaign, stratum) for stratum in campaign.strata))
                parts = [curve for curve, _ in answers]
                self._release = Release.of_strata(campaign, answers[0][1], parts, self._on_grid)
        return self._release

    async def _stratum(self, campaign: Campaign, stratum: str) -> tuple[Floats, int]:
        answer = await self._ask("GET", "/ecdf", params={"at": last_threshold(campaign), "stratum": stratum})
        last = read(EcdfAnswer, answer)
        data = await self._ask("GET", "/curve", params={"stratum": stratum}, headers=NUMPY)
        return self._read_counts(data, last, campaign), last.n

    async def ecdf(self, at: Sequence[object], stratum: Stratum = None, *, smoothing: Smoothing = "isotonic") -> Points:
        """F at some values: of the release, or, on a grid too large for whole curves, asked for one by one."""
        try:
            release = await self.release()
        except InvalidQuery:
            campaign = await self.campaign()
        else:
            return await asyncio.to_thread(release.curve(stratum, smoothing=smoothing).at, at)
        name, params = points_question(campaign, at, stratum)
        return self._read_points(await self._ask("GET", "/ecdf", params=params), campaign, name, at, smoothing)

    async def groups(self, upper_ends: Sequence[float], epsilon: float, *, fitted: bool = True) -> Calibration:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same question."""
        content, campaign = groups_query(upper_ends, epsilon), await self.campaign()
        return self._read_groups(await self._ask("POST", "/groups", content=content, headers=JSON), campaign, fitted)

    async def budget(self) -> BudgetAnswer:
        """What the campaign may spend and has spent."""
        return read(BudgetAnswer, await self._ask("GET", "/budget"))

    curve = _later(Release.curve)
    quantile = _later(Release.quantile)
    histogram = _later(Release.histogram)
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
