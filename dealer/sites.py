"""A campaign at both its servers: asking them, again where that helps, and one clear problem where it does not."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from campaign.errors import (
    DigestMismatch,
    InvalidInput,
    InvalidValue,
    PeerUnavailable,
    Problem,
    TryAgain,
    parse_problem,
)
from campaign.spec import ID_BYTES, Campaign, from_base64url, to_base64url
from client import remote

ATTEMPTS = 6


class Sites:
    """The campaign's address at both servers, in order, and the token that admits to it."""

    def __init__(
        self, urls: list[str], token: str, ca: Path | None = None, *, timeout_s: float = 60.0, attempts: int = ATTEMPTS
    ) -> None:
        if len(urls) != 2:
            raise InvalidValue(f"a campaign lives at two servers: give two addresses, got {len(urls)}")
        for url in urls:
            if not remote.is_address(url):
                raise InvalidValue(remote.NOT_AN_ADDRESS.format(url))
        if len({urlsplit(url).netloc for url in urls}) != 2:
            raise InvalidValue("both addresses name the same server; a campaign lives at two")
        self.urls = [url.rstrip("/") for url in urls]
        self.token, self._timeout, self.attempts = token, timeout_s, attempts
        self._context = ssl.create_default_context(cafile=None if ca is None else str(ca))

    def __repr__(self) -> str:
        return f"<Sites {' '.join(self.urls)}>"

    @property
    def campaign(self) -> str:
        """The campaign's name, as both addresses have it."""
        names = {urlsplit(url).path.rpartition("/")[2] for url in self.urls}
        try:
            (name,) = names
            return to_base64url(from_base64url(name, ID_BYTES, "a campaign's id"))
        except ValueError:
            raise InvalidValue(f"the addresses do not name one campaign: {' '.join(sorted(names))}") from None

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(verify=self._context, headers=headers, timeout=self._timeout, trust_env=False)

    async def call(self, client: httpx.AsyncClient, server: int, method: str, path: str = "", **body: Any) -> bytes:
        """One request about the campaign; a server that is away or busy is asked again."""
        return await _call(client, server, method, self.urls[server] + path, self.attempts, **body)

    def fetch(self) -> Campaign:
        """The campaign, asked of both servers, which must agree on it."""
        return asyncio.run(self._fetch())

    async def _fetch(self) -> Campaign:
        async with self.client() as client:
            answers = await asyncio.gather(*(self.call(client, s, "GET") for s in (0, 1)))
        campaigns = []
        for number, data in enumerate(answers):
            try:
                found = json.loads(data)
                campaign, server = Campaign.from_dict(found["campaign"]), found["server"]
            except (ValueError, KeyError, TypeError) as error:
                raise PeerUnavailable(f"server {number} did not send a campaign ({type(error).__name__})") from None
            if server != number:
                raise InvalidValue(f"the addresses are in the wrong order: {self.urls[number]} is server {server}")
            campaigns.append(campaign)
        first, second = campaigns
        if first.digest != second.digest:
            raise DigestMismatch(
                f"the two servers describe different campaigns: {to_base64url(first.digest)} and "
                f"{to_base64url(second.digest)}; nothing was sent"
            )
        return first


async def _call(
    client: httpx.AsyncClient,
    server: int,
    method: str,
    url: str,
    attempts: int,
    content: bytes | None = None,
    media_type: str = "",
) -> bytes:
    """One request, repeated while the server is away or busy. What stays wrong is one clear problem."""
    headers = {"Content-Type": media_type} if media_type else {}
    wait = 0.5
    for attempt in range(1, attempts + 1):
        try:
            response = await client.request(method, url, content=content, headers=headers)
            if response.status_code == 200:
                return response.content
            problem = _problem(response, server)
            if not isinstance(problem, TryAgain) or attempt == attempts:
                raise problem
            wait = max(wait, remote.retry_after_s(response.headers, 0.0))
        except httpx.HTTPError as error:
            if remote.is_certificate_error(error):
                raise InvalidInput(f"server {server} shows a certificate that is not trusted here (see --ca)") from None
            if attempt == attempts:
                raise PeerUnavailable(f"server {server} cannot be reached ({type(error).__name__})") from None
        await asyncio.sleep(wait)
        wait = min(2 * wait, remote.LONGEST_WAIT_S)
    raise AssertionError("unreachable")


def _problem(response: httpx.Response, server: int) -> Problem:
    problem = parse_problem(response.content)
    if problem is None:
        return PeerUnavailable(f"server {server} answered {response.status_code}, which is no answer of this protocol")
    return type(problem)(f"server {server}: {problem.detail}")
