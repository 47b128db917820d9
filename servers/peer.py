"""Talking to the other server: one HTTPS client, a deadline for everything, and errors that say whose fault it was."""

import asyncio

import httpx

from campaign.errors import PeerMismatch, PeerUnavailable, Problem, Refused, parse_problem
from campaign.reading import parse_json
from campaign.spec import Campaign, Pledge, to_base64url
from client import https
from servers.settings import Peer

RETRY_AFTER_S = 5


class PeerClient:
    """The other server, as this one sees it."""

    def __init__(self, settings: Peer, token: str, *, role: int) -> None:
        self._role, self._timeout = role, settings.timeout_s
        self._http = httpx.AsyncClient(
            base_url=str(settings.url),
            **https.options(token, settings.ca, settings.timeout_s),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def call(
        self, method: str, campaign: bytes, what: str, *, content: bytes | None = None, most: int = 1 << 20
    ) -> bytes:
        """One request about one campaign, within the time limit and with an answer of at most so many bytes.

        Whatever goes wrong is a problem of this server's table.
        """
        return await self._call(method, f"/v1/peer/campaigns/{to_base64url(campaign)}{what}", content, most)

    async def pledge(self, campaign: bytes) -> Pledge:
        """What the other server pledges to a campaign of this id."""
        data = await self._call("GET", f"/v1/peer/pledges/{to_base64url(campaign)}", None, 1 << 16)
        try:
            return Pledge.model_validate(parse_json(data))
        except ValueError:
            raise PeerMismatch("the other server's pledge is not well-formed") from None

    async def _call(self, method: str, url: str, content: bytes | None, most: int) -> bytes:
        try:
            async with asyncio.timeout(self._timeout):
                status, data = await self._exchange(method, url, content, max(most, 1 << 16))
        except (TimeoutError, httpx.TimeoutException):
            raise PeerUnavailable(
                f"the other server did not answer within {self._timeout:g} s", retry_after=RETRY_AFTER_S
            ) from None
        except httpx.HTTPError as error:
            raise PeerUnavailable(
                f"the other server cannot be reached ({type(error).__name__})", retry_after=RETRY_AFTER_S
            ) from None
        if status == 200:
            return data
        raise self._as_problem(status, data)

    async def _exchange(self, method: str, url: str, content: bytes | None, most: int) -> tuple[int, bytes]:
        parts, size = [], 0
        async with self._http.stream(method, url, content=content) as response:
            async for part in response.aiter_bytes():
                size += len(part)
                if size > most:
                    raise PeerMismatch(f"the other server's answer is longer than {most} bytes")
                parts.append(part)
            return response.status_code, b"".join(parts)

    @staticmethod
    def _as_problem(status: int, data: bytes) -> Problem:
        problem = parse_problem(data)
        if problem is None:
            return PeerMismatch(f"the other server answered {status} and no problem document")
        if status in (401, 403) and problem.code in ("not-authenticated", "not-authorised"):
            return PeerMismatch("the other server does not accept this server's token")
        if isinstance(problem, Refused):
            return type(problem)(f"the other server: {problem.detail}")
        failure = PeerUnavailable(f"the other server: {problem.detail}", retry_after=RETRY_AFTER_S)
        failure.__cause__ = problem  # what it said itself: one that is busy is waited for
        return failure

    async def noised(self, campaign: Campaign, what: str, body: bytes, wanted: int) -> bytes:
        """So many noised elements in answer to a question, with a signature, as they came."""
        return await self.call("POST", campaign.id, what, content=body, most=1000 + 8 * wanted)
