"""Asking a server. `Client` for scripts and notebooks, `AsyncClient` for programs that do other things meanwhile.

client = Client("https://a.example/v1/campaigns/ID", token)
client.quantile([0.25, 0.5, 0.75]).to_frame()

The release is fetched once and kept: every statistic but `ecdf`, `groups` and `budget` is computed from it here.
"""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx
import numpy as np

from analyst import calibration
from analyst.calibration import Calibration
from analyst.curve import Points, points
from analyst.options import Smoothing
from analyst.release import Floats, Release
from campaign.errors import InvalidInput, InvalidQuery, PeerMismatch
from campaign.spec import Campaign, check_digest
from campaign.wire import BudgetAnswer, EcdfAnswer, GroupsAnswer, GroupsQuery, read
from client import https

ATTEMPTS = 5
NUMPY = {"Accept": "application/x-npy"}
JSON = {"Content-Type": "application/json"}

P = ParamSpec("P")
R = TypeVar("R")


class _Asking:
    """What both clients share: where to ask, what was learned, and how answers are read."""

    def __init__(
        self, url: str, token: str, ca: str | Path | None = None, *, timeout_s: float = 60.0, patience_s: float = 300.0
    ) -> None:
        """`patience_s`: how long to wait for a server that is still preparing the curve, or is busy."""
        if not https.is_address(url):
            raise InvalidInput(https.NOT_AN_ADDRESS.format(url))
        self.url = url.rstrip("/")
        self._options = https.options(token, ca, timeout_s)
        self._server = https.Server(self.url, https.Patience(ATTEMPTS, patience_s))
        self._campaign: Campaign | None = None
        self._release: Release | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def _read_campaign(self, data: bytes) -> Campaign:
        try:
            self._campaign = Campaign.from_dict(json.loads(data)["campaign"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PeerMismatch(f"{self.url} did not send a campaign ({type(error).__name__})") from None
        return self._campaign

    def _read_counts(self, data: bytes, last: EcdfAnswer, campaign: Campaign) -> Floats:
        """A curve in numpy's format; its last count must be the one that was asked for by itself."""
        check_digest(campaign.digest, last.digest)
        try:
            counts = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise PeerMismatch(f"{self.url} did not send a curve ({type(error).__name__})") from None
        if not isinstance(counts, np.ndarray) or counts.dtype.kind != "i" or counts.shape != (campaign.grid.size,):
            raise PeerMismatch(f"{self.url} sent something else than a curve of {campaign.grid.size} counts")
        if last.counts != [int(counts[-1])]:
            raise PeerMismatch(f"{self.url} sent a curve that does not fit its own last count")
        return counts.astype(np.float64)

    def _read_points(
        self, data: bytes, campaign: Campaign, stratum: str, at: Sequence[object], smoothing: Smoothing
    ) -> Points:
        answer = read(EcdfAnswer, data)
        check_digest(campaign.digest, answer.digest)
        index = campaign.grid.index_at([*_texts(at), _last(campaign)])
        if len(answer.counts) != index.size:
            raise PeerMismatch(f"{self.url} answered {len(answer.counts)} of {index.size} questions")
        answered = {i: c for i, c in zip(index.tolist(), answer.counts, strict=True) if i >= 0}
        return points(campaign, stratum, answer.n, _texts(at), answered, smoothing)

    def _read_groups(self, data: bytes, campaign: Campaign, fitted: bool) -> Calibration:
        answer = read(GroupsAnswer, data)
        check_digest(campaign.digest, answer.digest)
        return calibration.hosmer_lemeshow(calibration.from_answer(answer), fitted=fitted)


def _texts(at: Sequence[object]) -> list[str]:
    """Thresholds as the server reads them; a float's repr is the shortest text that is the same number."""
    return [x if isinstance(x, str) else str(x) for x in (v.item() if isinstance(v, np.generic) else v for v in at)]


def _last(campaign: Campaign) -> str:
    return str(campaign.grid.labels(np.array([campaign.grid.size - 1]))[0])


def _points_question(campaign: Campaign, at: Sequence[object], stratum: str | None) -> tuple[str, dict[str, str]]:
    """The stratum that is meant, and what to ask: the points, and the last threshold for the stratum's total."""
    name = campaign.strata[0] if stratum is None else stratum
    return name, {"at": ",".join([*_texts(at), _last(campaign)]), "stratum": name}


def _groups_query(upper_ends: Sequence[float], epsilon: float) -> bytes:
    """Checked before it is sent: an answer that is of no use would be paid all the same."""
    if len(upper_ends) < 3:
        raise InvalidQuery(f"calibration needs at least 3 groups, got {len(upper_ends)}")
    fields = {"upper_ends": [float(x) for x in upper_ends], "epsilon": float(epsilon)}
    return read(GroupsQuery, fields).to_json().encode()


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


class Client(_Asking):
    """Ask one server of a campaign. Both servers' noise is in every answer."""

    def __init__(
        self, url: str, token: str, ca: str | Path | None = None, *, timeout_s: float = 60.0, patience_s: float = 300.0
    ) -> None:
        super().__init__(url, token, ca, timeout_s=timeout_s, patience_s=patience_s)
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
            campaign, counts, n = self.campaign(), {}, 0
            for stratum in campaign.strata:
                last = read(EcdfAnswer, self._ask("GET", "/ecdf", params={"at": _last(campaign), "stratum": stratum}))
                data = self._ask("GET", "/curve", params={"stratum": stratum}, headers=NUMPY)
                counts[stratum], n = self._read_counts(data, last, campaign), last.n
            self._release = Release(campaign, n, counts)
        return self._release

    def ecdf(self, at: Sequence[object], stratum: str | None = None, *, smoothing: Smoothing = "isotonic") -> Points:
        """F at some values, asked of the server: works on any grid, also one too large for whole curves."""
        campaign = self.campaign()
        name, params = _points_question(campaign, at, stratum)
        return self._read_points(self._ask("GET", "/ecdf", params=params), campaign, name, at, smoothing)

    def groups(self, upper_ends: Sequence[float], epsilon: float, *, fitted: bool = True) -> Calibration:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same question."""
        content, campaign = _groups_query(upper_ends, epsilon), self.campaign()
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

    def _ask(self, method: str, path: str, **more: Any) -> bytes:
        return self._server.ask(self._http, method, self.url + path, **more).content


class AsyncClient(_Asking):
    """The same, for a running event loop. Statistics are computed in a thread."""

    def __init__(
        self, url: str, token: str, ca: str | Path | None = None, *, timeout_s: float = 60.0, patience_s: float = 300.0
    ) -> None:
        super().__init__(url, token, ca, timeout_s=timeout_s, patience_s=patience_s)
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
                found = await asyncio.gather(*(self._stratum(campaign, stratum) for stratum in campaign.strata))
                counts = {stratum: curve for stratum, (curve, _) in zip(campaign.strata, found, strict=True)}
                self._release = Release(campaign, found[0][1], counts)
        return self._release

    async def _stratum(self, campaign: Campaign, stratum: str) -> tuple[Floats, int]:
        answer = await self._ask("GET", "/ecdf", params={"at": _last(campaign), "stratum": stratum})
        last = read(EcdfAnswer, answer)
        data = await self._ask("GET", "/curve", params={"stratum": stratum}, headers=NUMPY)
        return self._read_counts(data, last, campaign), last.n

    async def ecdf(
        self, at: Sequence[object], stratum: str | None = None, *, smoothing: Smoothing = "isotonic"
    ) -> Points:
        """F at some values, asked of the server: works on any grid, also one too large for whole curves."""
        campaign = await self.campaign()
        name, params = _points_question(campaign, at, stratum)
        return self._read_points(await self._ask("GET", "/ecdf", params=params), campaign, name, at, smoothing)

    async def groups(self, upper_ends: Sequence[float], epsilon: float, *, fitted: bool = True) -> Calibration:
        """Calibration by the paper's Algorithm 2: spends epsilon of the reserve, once for the same question."""
        content, campaign = _groups_query(upper_ends, epsilon), await self.campaign()
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

    async def _ask(self, method: str, path: str, **more: Any) -> bytes:
        answer = await self._server.ask_async(self._http, method, self.url + path, **more)
        return answer.content
