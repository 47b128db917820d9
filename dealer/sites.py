"""A campaign at both its servers: asking them, again where that helps, and one clear problem where it does not."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from campaign.errors import DigestMismatch, InvalidValue, PeerUnavailable
from campaign.spec import ID_BYTES, Campaign, from_base64url, to_base64url
from client import https

ATTEMPTS = 6


class Sites:
    """The campaign's address at both servers, in order, and the token that admits to it."""

    def __init__(
        self, urls: list[str], token: str, ca: Path | None = None, *, timeout_s: float = 60.0, attempts: int = ATTEMPTS
    ) -> None:
        if len(urls) != 2:
            raise InvalidValue(f"a campaign lives at two servers: give two addresses, got {len(urls)}")
        for url in urls:
            if not https.is_address(url):
                raise InvalidValue(https.NOT_AN_ADDRESS.format(url))
        if len({urlsplit(url).netloc for url in urls}) != 2:
            raise InvalidValue("both addresses name the same server; a campaign lives at two")
        self.urls = [url.rstrip("/") for url in urls]
        self.token = token
        self._options = https.options(token, ca, timeout_s)
        self._servers = [https.Server(f"server {i}", https.Patience(attempts), f"server {i}: ") for i in (0, 1)]

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
        return httpx.AsyncClient(**self._options)

    async def call(
        self,
        client: httpx.AsyncClient,
        server: int,
        method: str,
        path: str = "",
        *,
        content: bytes | None = None,
        media_type: str = "",
    ) -> bytes:
        """One request about the campaign; a server that is away or busy is asked again."""
        headers = {"Content-Type": media_type} if media_type else {}
        url = self.urls[server] + path
        answer = await self._servers[server].ask_async(client, method, url, content=content, headers=headers)
        return answer.content

    def fetch(self) -> Campaign:
        """The campaign, asked of both servers, which must agree on it."""
        return asyncio.run(self._fetch())

    async def _fetch(self) -> Campaign:
        async with self.client() as client:
            answers = await asyncio.gather(*(self.call(client, s, "GET") for s in (0, 1)))
        campaigns = []
        for number, data in enumerate(answers):
            try:
                answer = json.loads(data)
                campaign, server = Campaign.from_dict(answer["campaign"]), answer["server"]
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
