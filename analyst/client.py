"""Asking a server. `Client` for scripts and notebooks, `AsyncClient` for programs that do other things meanwhile.

client = Client("https://a.example/v1/campaigns/ID", token)
client.quantile([0.25, 0.5, 0.75]).to_frame()

The release is fetched once and kept. The statistics of the registry are methods, and most are computed from it here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack

import httpx

from analyst import registry
from analyst.queries import Exclusive, Need, Parallel, Plan, Queries, Request, RunInThread
from analyst.release import Release

P = ParamSpec("P")
R = TypeVar("R")
Question = Callable[Concatenate[Queries, P], Plan[R]]


class ClientOptions(TypedDict, total=False):
    """What `Asking` takes besides an address and a token."""

    timeout_s: float
    patience_s: float
    on_grid: bool
    wave: int | None
    through: int | None
    pooled: int | None


def _of_release(method: Callable[Concatenate[Release, P], R]) -> Question[P, R]:
    """A method of the release as a question."""

    @wraps(method)
    def plan(asking: Queries, /, *args: P.args, **more: P.kwargs) -> Plan[R]:
        release = yield from asking.release()
        result: R = yield RunInThread(partial(method, release, *args, **more))
        return result

    return plan


def _now(question: Question[P, R]) -> Callable[Concatenate["Client", P], R]:
    """A question as a method that answers it."""

    @wraps(question)
    def ask(self: "Client", /, *args: P.args, **more: P.kwargs) -> R:
        return self._follow(question(self._asking, *args, **more))

    return ask


def _later(question: Question[P, R]) -> Callable[Concatenate["AsyncClient", P], Awaitable[R]]:
    @wraps(question)
    async def ask(self: "AsyncClient", /, *args: P.args, **more: P.kwargs) -> R:
        return await self._follow(question(self._asking, *args, **more))

    return ask


class _Client:
    statistic: Callable[..., Any]

    def __init__(self, url: str, token: str, ca: str | Path | None = None, **more: Unpack[ClientOptions]) -> None:
        self._asking = Queries(url, token, ca, **more)
        self.url = self._asking.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every statistic of the registry as a method; an `AsyncClient` returns what can be awaited."""
        return registry.find(name).bind(self.statistic)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *registry.statistics()]


class Client(_Client):
    """Ask one server of a campaign. Both servers' noise is in every answer."""

    def __init__(self, url: str, token: str, ca: str | Path | None = None, **more: Unpack[ClientOptions]) -> None:
        super().__init__(url, token, ca, **more)
        self._http = httpx.Client(**self._asking.options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    campaign = _now(Queries.campaign)
    release = _now(Queries.release)
    waves = _now(Queries.waves)
    is_whole = _now(Queries.is_whole)
    statistic = _now(Queries.statistic)
    reported = _now(Queries.reported)
    sums = _now(Queries.sums)
    budget = _now(Queries.budget)
    curve = _now(_of_release(Release.curve))
    mean = _now(_of_release(Release.mean))

    def _follow(self, plan: Plan[R]) -> R:
        try:
            need = next(plan)
            while True:
                try:
                    given = self._given(need)
                except Exception as problem:  # a plan may know what to do about it
                    need = plan.throw(problem)
                else:
                    need = plan.send(given)
        except StopIteration as done:
            result: R = done.value
            return result

    def _given(self, need: Need) -> Any:
        match need:
            case Request():
                return self._ask(need)
            case Parallel():
                return [self._follow(plan) for plan in need.plans]
            case Exclusive():
                return self._follow(need.plan)
            case RunInThread():
                return need.work()

    def _ask(self, request: Request) -> bytes:
        url, about = self.url + request.path, {"most": request.most, **request.more}
        return self._asking.server.ask(self._http, request.method, url, **about).content


class AsyncClient(_Client):
    """The same, for a running event loop. Statistics are computed in a thread."""

    def __init__(self, url: str, token: str, ca: str | Path | None = None, **more: Unpack[ClientOptions]) -> None:
        super().__init__(url, token, ca, **more)
        # a campaign may have thousands of strata
        self._http = httpx.AsyncClient(**{**self._asking.options, "limits": httpx.Limits(max_connections=4)})
        self._alone = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    campaign = _later(Queries.campaign)
    release = _later(Queries.release)
    waves = _later(Queries.waves)
    is_whole = _later(Queries.is_whole)
    statistic = _later(Queries.statistic)
    reported = _later(Queries.reported)
    sums = _later(Queries.sums)
    budget = _later(Queries.budget)
    curve = _later(_of_release(Release.curve))
    mean = _later(_of_release(Release.mean))

    async def _follow(self, plan: Plan[R]) -> R:
        try:
            need = next(plan)
            while True:
                try:
                    given = await self._given(need)
                except Exception as problem:
                    need = plan.throw(problem)
                else:
                    need = plan.send(given)
        except StopIteration as done:
            result: R = done.value
            return result

    async def _given(self, need: Need) -> Any:
        match need:
            case Request():
                url = self.url + need.path
                return (
                    await self._asking.server.ask_async(self._http, need.method, url, most=need.most, **need.more)
                ).content
            case Parallel():
                return await asyncio.gather(*map(self._follow, need.plans))
            case Exclusive():
                async with self._alone:
                    return await self._follow(need.plan)
            case RunInThread():
                return await asyncio.to_thread(need.work)
