"""Talking to the other server: one HTTPS client, a deadline for everything, and errors that say whose fault it was."""

import ssl
from collections.abc import Sequence

import httpx

from campaign.errors import PeerMismatch, PeerUnavailable, Problem, Refused, from_document
from campaign.spec import Campaign, to_base64url
from campaign.wire import ShareQuery, Shares, decode_shares
from servers.settings import Peer

RETRY_AFTER_S = 5


class PeerClient:
    """The other server, as this one sees it."""

    def __init__(self, settings: Peer, token: str, *, role: int) -> None:
        context = ssl.create_default_context(cafile=str(settings.ca))
        self._role, self._timeout = role, settings.timeout_s
        self._http = httpx.AsyncClient(
            base_url=str(settings.url),
            verify=context,
            timeout=settings.timeout_s,
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=8),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def call(
        self, method: str, campaign: bytes, what: str, *, content: bytes | None = None, json: object = None
    ) -> httpx.Response:
        """One request about one campaign. Whatever goes wrong is a problem of this server's table."""
        url = f"/v1/peer/campaigns/{to_base64url(campaign)}{what}"
        try:
            response = await self._http.request(method, url, content=content, json=json)
        except httpx.TimeoutException:
            raise PeerUnavailable(
                f"the other server did not answer within {self._timeout:g} s", retry_after=RETRY_AFTER_S
            ) from None
        except httpx.HTTPError as error:
            raise PeerUnavailable(
                f"the other server cannot be reached ({type(error).__name__})", retry_after=RETRY_AFTER_S
            ) from None
        if response.status_code < 400:
            return response
        raise self._as_problem(response)

    @staticmethod
    def _as_problem(response: httpx.Response) -> Problem:
        try:
            problem = from_document(response.json())
        except (ValueError, AttributeError):
            return PeerMismatch(f"the other server answered {response.status_code} and no problem document")
        if response.status_code in (401, 403) and problem.code in ("not-authenticated", "not-authorised"):
            return PeerMismatch("the other server does not accept this server's token")
        if isinstance(problem, Refused):
            return type(problem)(f"the other server: {problem.detail}")
        return PeerUnavailable(f"the other server: {problem.detail}", retry_after=RETRY_AFTER_S)

    async def shares(self, campaign: Campaign, positions: Sequence[int] | None, key_set: bytes, count: int) -> Shares:
        """The other server's noised shares, at some positions or at all, of the same set of uploads."""
        query = ShareQuery(digest=campaign.digest, positions="all" if positions is None else list(positions))
        response = await self.call("POST", campaign.id, "/shares", content=query.to_json().encode())
        wanted = 1 << campaign.bits if positions is None else len(positions)
        shares = decode_shares(response.content, campaign, 1 - self._role, wanted)
        if shares.key_set != key_set or shares.uploads != count:
            raise PeerMismatch("the other server answers for another set of uploads")
        return shares
