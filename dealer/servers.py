"""A campaign at both its servers: asking them, again where that helps, and one clear problem where it does not."""

import json
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx

from fss_ecdf.campaign.campaign import DIGEST_BYTES, ID_BYTES, Campaign, from_base64url, to_base64url
from fss_ecdf.campaign.errors import DigestMismatch, DigestNeeded, InvalidValue, PeerUnavailable, Problem
from fss_ecdf.net import https
from fss_ecdf.net.background_loop import BackgroundLoop

ATTEMPTS = 6
MOST_BYTES = 33 << 20  # of an answer; a campaign whose thresholds are listed is the longest
NO_DIGEST = (
    "the campaign's digest is needed, so that nothing is sent to another campaign: give the one on your invitation "
    "(fss-dealer --digest, the environment variable FSS_CAMPAIGN_DIGEST, dealer.Sites(..., digest=...))"
)

R = TypeVar("R")


class ServerPair:
    """The campaign's address at both servers, in order, the token that admits to it, and the digest of the campaign.

    `ca` is a certificate authority for both servers or one for each of them, where the system does not know it. A
    digest is needed to upload: the campaign that the servers describe must have it.

    One connection to each is kept from reading the campaign to the last upload: a handshake is most of what a party
    with one value sends. It is closed with `close`, at the end of a `with`, or when nobody needs it any more.
    """

    def __init__(
        self,
        urls: list[str],
        token: str,
        ca: https.Authorities = None,
        *,
        digest: str | bytes | None = None,
        receipt_token: str | None = None,
        timeout_s: float = 60.0,
        attempts: int = ATTEMPTS,
        patience_s: float | None = None,
        waiting: Callable[[Problem, float], None] | None = None,
    ) -> None:
        """A server that is away or busy is asked `attempts` times, or for `patience_s` seconds; `waiting` is told."""
        if len(urls) != 2:
            raise InvalidValue(f"a campaign lives at two servers: give two addresses, got {len(urls)}")
        for url in urls:
            if not https.is_address(url):
                raise InvalidValue(https.NOT_AN_ADDRESS.format(url))
        if len({urlsplit(url).netloc for url in urls}) != 2:
            raise InvalidValue("both addresses name the same server; a campaign lives at two")
        self.urls = [url.rstrip("/") for url in urls]
        self.token = token
        self.receipt_token = receipt_token or token  # ids follow from it; operators may have exchanged the other one
        self.digest = None if digest is None else _read_digest(digest)
        self._options = [https.options(None, one, timeout_s) for one in https.one_each(ca)]
        self._admitted = https.bearer(token)
        self.wave = 0  # that is open, the later one where the servers differ; of a campaign of waves, once fetched
        self._open: _Open | None = None
        patience = https.RetryPolicy(attempts, total_s=patience_s)
        self._servers = [https.ServerEndpoint(f"server {i}", patience, f"server {i}: ", waiting) for i in (0, 1)]

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Something that calls the servers, to its end."""
        if self._open is None:
            self._open = _Open([https.lean(httpx.AsyncClient(**about)) for about in self._options])
            weakref.finalize(self, self._open.close)
        return self._open.loop.run(work)

    async def call(
        self,
        server: int,
        method: str,
        path: str = "",
        *,
        content: bytes | None = None,
        media_type: str = "",
    ) -> bytes:
        """One request about the campaign; a server that is away or busy is asked again. Only uploads need the token."""
        headers = {"Content-Type": media_type, **self._admitted} if media_type else {}
        url = self.urls[server] + path
        assert self._open is not None, "call inside run"
        about: dict[str, Any] = {"content": content, "headers": headers, "most": MOST_BYTES}
        answer = await self._servers[server].ask_async(self._open.clients[server], method, url, **about)
        return answer.content

    def fetch_campaign(self) -> Campaign:
        """The campaign, asked of both servers, which must agree on it."""
        return self.run(self._fetch())

    async def look(self, campaign: Campaign) -> None:
        """Ask both servers again which wave is open; the campaign must still be the same."""
        known = f"?known={to_base64url(campaign.digest)}"
        for number in (0, 1):
            again = self._described(number, await self.call(number, "GET", known), campaign)
            if again.digest != campaign.digest:
                raise DigestMismatch(f"server {number} describes another campaign now; nothing more was sent")

    async def _fetch(self) -> Campaign:
        """All of it from server 0; server 1 need not repeat what has the same digest."""
        first = self._described(0, await self.call(0, "GET"))
        if self.digest is not None:
            self.require(first)
        digest = to_base64url(first.digest)
        second = self._described(1, await self.call(1, "GET", f"?known={digest}"), first)
        if first.digest != second.digest:
            raise DigestMismatch(
                f"the two servers describe different campaigns: {digest} and "
                f"{to_base64url(second.digest)}; nothing was sent"
            )
        return first

    def require(self, campaign: Campaign) -> None:
        """The campaign is the one whose digest the caller gave; without a digest nothing can be sent.

        Uploads are encrypted to keys that stand in the campaign, so whoever could choose the campaign could read them.
        """
        digest = self.require_digest()
        if campaign.digest != digest:
            raise DigestMismatch(
                f"the servers describe a campaign with the digest {to_base64url(campaign.digest)}, and you gave "
                f"{to_base64url(digest)}; nothing was sent. Ask the operators which one is right"
            )

    def require_digest(self) -> bytes:
        if self.digest is None:
            raise DigestNeeded(NO_DIGEST)
        return self.digest

    async def pinned(self) -> Campaign:
        """The campaign of the digest, from whichever server describes it: the other one may be away."""
        try:
            campaign = self._described(0, await self.call(0, "GET"))
        except Problem:
            campaign = self._described(1, await self.call(1, "GET"))
        self.require(campaign)
        return campaign

    def _described(self, number: int, data: bytes, known: Campaign | None = None) -> Campaign:
        """The campaign that a server describes, whole or by the digest of the known one."""
        try:
            answer = json.loads(data)
            same = known is not None and answer.get("digest") == to_base64url(known.digest)
            campaign = known if same and "campaign" not in answer else Campaign.from_dict(answer["campaign"])
            server, wave = answer["server"], answer.get("wave", 0)
            assert campaign is not None
            if type(wave) is not int or not 0 <= wave <= campaign.last_wave:
                raise ValueError("not a wave of this campaign")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PeerUnavailable(f"server {number} did not send a campaign ({type(error).__name__})") from None
        if server != number:
            raise InvalidValue(f"the addresses are in the wrong order: {self.urls[number]} is server {server}")
        # A server takes uploads for its open wave and the next one, so the later one is taken by both.
        self.wave = wave if number == 0 else max(self.wave, wave)
        return campaign


def _read_digest(given: str | bytes) -> bytes:
    try:
        return from_base64url(given, DIGEST_BYTES, "the campaign's digest")
    except ValueError as error:
        raise InvalidValue(f"{error}, as on the invitation") from None


class _Open:
    """Connections to each server, and the loop that they live in."""

    def __init__(self, clients: list[httpx.AsyncClient]) -> None:
        self.loop, self.clients, self._is_open = BackgroundLoop(), clients, True

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            for client in self.clients:
                self.loop.run(client.aclose())
            self.loop.close()
