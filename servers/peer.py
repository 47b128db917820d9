"""Talking to the other server: one HTTPS client, a deadline for everything, and errors that say whose fault it was."""

import asyncio

import httpx

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, PeerUnavailable, Problem, Refused, parse_problem
from fss_ecdf.campaign.hpke import Kem
from fss_ecdf.campaign.parsing import parse_json
from fss_ecdf.net import https
from servers import metrics
from servers.rollback import HEADER, RollbackGuard
from servers.settings import Peer, Settings

RETRY_AFTER_S = 5
COMPARE = "/v1/peer/history"


class PeerForCommands:
    """The other server, as a command on this server's machine asks it."""

    def __init__(self, settings: Settings) -> None:
        options = https.options(settings.peer_token(), settings.peer.ca, settings.peer.timeout_s)
        self._client = httpx.Client(base_url=str(settings.peer.url), **options)

    def get(self, path: str) -> httpx.Response:
        """Whatever it answers, of at most a mebibyte. Raises httpx.HTTPError, or a problem where it is longer."""
        return https.bounded(self._client, "the other server", "GET", path, most=1 << 20)

    def close(self) -> None:
        self._client.close()


class PeerClient:
    """The other server, as this one sees it."""

    def __init__(self, settings: Peer, token: str, *, role: int, guard: RollbackGuard | None = None) -> None:
        """`guard` compares histories with every message; only a server without a database has none."""
        self._role, self._guard = role, guard
        self._old: list[httpx.AsyncClient] = []
        self._connect(settings, token)

    def _connect(self, settings: Peer, token: str) -> None:
        self._timeout = settings.timeout_s
        options = https.options(token, settings.ca, settings.timeout_s)
        self._http = httpx.AsyncClient(base_url=str(settings.url), **options)

    def reload(self, settings: Peer, token: str) -> None:
        """Another token, CA or address, for what is asked from now on; what is under way goes on."""
        self._old.append(self._http)
        self._connect(settings, token)

    async def close(self) -> None:
        for one in (*self._old, self._http):
            await one.aclose()

    async def call(
        self, method: str, campaign: bytes, what: str, *, content: bytes | None = None, most: int = 1 << 20
    ) -> bytes:
        """One request about one campaign, within the time limit and with an answer of at most so many bytes.

        Whatever goes wrong is a problem of this server's table.
        """
        return await self._call(method, f"/v1/peer/campaigns/{to_base64url(campaign)}{what}", content, most)

    async def commitment(self, campaign: bytes, kem: Kem) -> dict[str, object]:
        """What the other server says that it commits to for a campaign of this id; nothing of it is checked."""
        data = await self._call("GET", f"/v1/peer/commitments/{to_base64url(campaign)}?kem={kem}", None, 1 << 16)
        try:
            given = parse_json(data)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InvalidPeerResponse("the other server's commitment is not well-formed")
        return given

    async def compare(self) -> None:
        """See, on both sides, whether anything was rolled back."""
        await self._call("GET", COMPARE, None, 1 << 16, always=True)

    async def require_compared(self) -> None:
        """Nothing here was rolled back, as far as the other server or this one knows; raises if so, or if unknown."""
        if self._guard is not None:
            if not self._guard.is_compared:
                await self.compare()
            await self._guard.require(peer=True)

    async def status(self, campaign: bytes) -> bytes:
        """Where a campaign stands there; also while one of the two is on hold."""
        return await self._call("GET", f"/v1/peer/campaigns/{to_base64url(campaign)}", None, 1 << 20, always=True)

    async def _call(self, method: str, url: str, content: bytes | None, most: int, *, always: bool = False) -> bytes:
        try:
            return await self._compared(method, url, content, most, always=always)
        except (PeerUnavailable, InvalidPeerResponse):
            metrics.PEER_FAILURES.inc()
            raise

    async def _compared(self, method: str, url: str, content: bytes | None, most: int, *, always: bool) -> bytes:
        if self._guard is None:
            status, data, _ = await self._reach(method, url, content, most, {})
        else:
            if not always:
                await self._guard.require(peer=True)
            told = await self._guard.told()
            status, data, answer = await self._reach(method, url, content, most, {HEADER: str(told)})
            if answer is not None:
                await self._guard.heard(answer, told)
            elif status == 200:
                raise InvalidPeerResponse(f"the other server's answer has no {HEADER}; is it removed on the way?")
            if not always:
                await self._guard.require(peer=True)
        if status == 200:
            return data
        raise self._as_problem(status, data)

    async def _reach(
        self, method: str, url: str, content: bytes | None, most: int, headers: dict[str, str]
    ) -> tuple[int, bytes, str | None]:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(method, url, content, max(most, 1 << 16), headers)
        except (TimeoutError, httpx.TimeoutException):
            raise PeerUnavailable(
                f"the other server did not answer within {self._timeout:g} s", retry_after=RETRY_AFTER_S
            ) from None
        except httpx.HTTPError as error:
            raise PeerUnavailable(
                f"the other server cannot be reached ({type(error).__name__})", retry_after=RETRY_AFTER_S
            ) from None

    async def _exchange(
        self, method: str, url: str, content: bytes | None, most: int, headers: dict[str, str]
    ) -> tuple[int, bytes, str | None]:
        parts, size = [], 0
        async with self._http.stream(method, url, content=content, headers=headers) as response:
            async for part in response.aiter_bytes():
                size += len(part)
                if size > most:
                    raise InvalidPeerResponse(f"the other server's answer is longer than {most} bytes")
                parts.append(part)
            return response.status_code, b"".join(parts), response.headers.get(HEADER)

    @staticmethod
    def _as_problem(status: int, data: bytes) -> Problem:
        problem = parse_problem(data)
        if problem is None:
            return InvalidPeerResponse(f"the other server answered {status} and no problem document")
        if status in (401, 403) and problem.code in ("not-authenticated", "not-authorised"):
            return InvalidPeerResponse("the other server does not accept this server's token")
        if isinstance(problem, Refused):
            return type(problem)(f"the other server: {problem.detail}")
        failure = PeerUnavailable(f"the other server: {problem.detail}", retry_after=RETRY_AFTER_S)
        failure.__cause__ = problem  # what it said itself: one that is busy is waited for
        return failure

    async def noisy_shares(self, campaign: Campaign, what: str, body: bytes, wanted: int) -> bytes:
        """So many noised elements in answer to a question, with a signature, as they came."""
        return await self.call("POST", campaign.id, what, content=body, most=1000 + 8 * wanted)
