"""Sending keys to both servers: the same campaign at both, the same ids, retries, and a receipt.

sites = Sites.parse(["https://a.example/v1/campaigns/ID", "https://b.example/v1/campaigns/ID"], token)
campaign = sites.fetch()                       # from both; refuses if they differ
upload(share(values, campaign).placed, campaign, sites)
"""

import asyncio
import json
import os
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from campaign import remote
from campaign.errors import (
    DigestMismatch,
    InvalidInput,
    InvalidValue,
    PeerUnavailable,
    Problem,
    TryAgain,
    from_document,
    parse_problem,
)
from campaign.spec import Campaign, Placed, to_base64url
from campaign.wire import UPLOAD_TYPE
from dealer.receipt import Receipt, open_receipt
from dealer.share import Rand, Shared, share_positions

BATCH = 1000
IN_FLIGHT = 3
ATTEMPTS = 6


@dataclass(frozen=True)
class Outcome:
    """What an upload did."""

    sent: int
    already_done: int
    clipped: int


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
        self._token, self._timeout, self.attempts = token, timeout_s, attempts
        self._context = ssl.create_default_context(cafile=None if ca is None else str(ca))

    def __repr__(self) -> str:
        return f"<Sites {' '.join(self.urls)}>"

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self._token}"}
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


def upload(
    placed: Placed,
    campaign: Campaign,
    sites: Sites,
    *,
    receipt: Path | None = None,
    rand: Rand = os.urandom,
    progress: Callable[[int], object] = lambda _: None,
) -> Outcome:
    """Send one key of every value to each server. Returns when both have stored all of them.

    With a receipt file, an upload that was interrupted goes on where it stopped, and no value counts twice.
    """
    return asyncio.run(_upload(placed, campaign, sites, receipt, rand, progress))


async def _upload(
    placed: Placed, campaign: Campaign, sites: Sites, path: Path | None, rand: Rand, progress: Callable[[int], object]
) -> Outcome:
    count = placed.positions.size
    kept = None if path is None else open_receipt(path, to_base64url(campaign.digest), count, BATCH)
    batch = BATCH if kept is None else kept.batch
    numbers = [n for n in range(-(-count // batch)) if kept is None or n not in kept.done]
    done_before = count - sum(min(batch, count - n * batch) for n in numbers)
    progress(done_before)
    queue = iter(numbers)
    async with sites.client() as client:
        sender = _Sender(client, sites, campaign, kept)
        await sender.withdraw_unfinished()

        async def work() -> None:
            for number in queue:
                part = slice(number * batch, min(count, (number + 1) * batch))
                some = Placed(placed.positions[part], 0, 0)
                shared = await asyncio.to_thread(share_positions, some, campaign, rand)
                await sender.send(number, shared)
                progress(len(shared))

        await _all_or_first_error([work() for _ in range(IN_FLIGHT)])
    return Outcome(count - done_before, done_before, placed.clipped)


async def _all_or_first_error(works: Sequence[Coroutine[None, None, None]]) -> None:
    """Run together; when one fails, let the others finish what they are sending, then raise."""
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


class _Sender:
    def __init__(self, client: httpx.AsyncClient, sites: Sites, campaign: Campaign, receipt: Receipt | None) -> None:
        self._client, self._sites, self._campaign, self._receipt = client, sites, campaign, receipt

    async def send(self, number: int, shared: Shared) -> None:
        """One batch to both servers at once. If one refuses it, it is withdrawn from the other."""
        if self._receipt is not None:
            self._receipt.begin(number, shared.ids.tobytes())
        outcomes = await asyncio.gather(*(self._to(s, shared) for s in (0, 1)), return_exceptions=True)
        errors = [o for o in outcomes if isinstance(o, BaseException)]
        if errors:
            refused = [e for e in errors if isinstance(e, Problem) and not isinstance(e, TryAgain)]
            if refused:
                await self._withdraw(shared.ids.tobytes())
            raise (refused or errors)[0]
        if self._receipt is not None:
            self._receipt.finish(number)

    async def _to(self, server: int, shared: Shared) -> None:
        data = await asyncio.to_thread(shared.envelope, server)
        body = {"content": data, "media_type": UPLOAD_TYPE}
        answer = await self._sites.call(self._client, server, "POST", "/uploads", **body)
        failures = json.loads(answer)["failures"]
        if failures:
            problem = from_document({"type": f"urn:fss-ecdf:problem:{failures[0]['code']}"})
            raise type(problem)(f"server {server} refused {len(failures)} values: {failures[0]['detail']}")

    async def withdraw_unfinished(self) -> None:
        """What an interrupted upload was sending: nobody knows what arrived, so nothing of it may count."""
        if self._receipt is None or not self._receipt.sending:
            return
        await self._withdraw(b"".join(bytes.fromhex(ids) for ids in self._receipt.sending.values()))
        self._receipt.sending.clear()
        self._receipt.save()

    async def _withdraw(self, ids: bytes) -> None:
        body = {"content": ids, "media_type": "application/octet-stream"}
        path = "/uploads/withdraw"
        await asyncio.gather(*(self._sites.call(self._client, s, "POST", path, **body) for s in (0, 1)))


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
