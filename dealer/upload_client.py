"""Sending keys or tables to both servers, and taking them back: a receipt makes every value count at most once.

sites = Sites(["https://a.example/v1/campaigns/ID", "https://b.example/v1/campaigns/ID"], token, digest=digest)
campaign = sites.fetch()                       # from both; refuses if they differ, or if the digest is another
upload(campaign.place(values), campaign, sites)

What a server answers is not believed further than the rules of `dealer/receipt.py` allow. When sending fails, what may
have arrived is withdrawn at both servers; what they do not confirm is in the receipt, and the next run begins with it.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dealer.key_pairs import Rand
from dealer.receipt import DONE, KEYS, NEW, PENDING, SENDING, TABLES, WITHDRAWING, Receipt, default_path, open_receipt
from dealer.servers import ServerPair
from fss_ecdf.campaign import confirmations
from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign, Positions, to_base64url
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.errors import (
    CampaignFull,
    InvalidQuery,
    InvalidValue,
    PeerUnavailable,
    Problem,
    TryAgain,
    UploadConflict,
    UploadWithdrawn,
    WaveClosed,
    from_document,
)
from fss_ecdf.campaign.json_messages import UploadResponse, read
from fss_ecdf.campaign.parsing import parse_json
from fss_ecdf.campaign.tables import plan_upload

BATCH = 1000  # values a request; servers take as many ids in a withdrawal
IN_FLIGHT = 3
TRIES = 3  # of a batch, each with new keys: waves may close again and again
IDS_TYPE = "application/octet-stream"


class Sealable(Protocol):
    """What is sent of a batch: keys or a table."""

    @property
    def contribution(self) -> Contribution: ...

    def sealed(self, server: int, token: str) -> bytes: ...
    def leaves(self) -> bytes: ...


Make = Callable[[int, int, NDArray[np.int64], Campaign, int], Sealable]


@dataclass(frozen=True)
class UploadResult:
    """What an upload did."""

    sent: int
    already_sent: int
    clipped: int
    tables: int = 0  # that the values went in; 0 for keys


def upload(
    placed: Positions,
    campaign: Campaign,
    servers: ServerPair,
    *,
    receipt: Path | None = None,
    replace: bool = False,
    rand: Rand = os.urandom,
    progress: Callable[[int], object] = lambda _: None,
) -> UploadResult:
    """Send one key of every value to each server, or where the campaign takes tables and they are smaller, one share of
    a table of all values (`fss_ecdf/campaign/tables.py`). Returns when both have stored all of them.

    The receipt is kept in the user's data folder unless another path is given. By it an upload that failed or was
    interrupted goes on, one that is complete is not sent again, and one of other values is refused, or replaced.
    """
    servers.require(campaign)
    name = to_base64url(campaign.id)
    path = receipt or default_path(name, os.environ)
    with open_receipt(path, name, servers.receipt_token, rand) as kept:
        return servers.run(_upload(placed, campaign, servers, kept, replace, progress))


def withdraw(servers: ServerPair, *, receipt: Path | None = None) -> int:
    """Take back everything that was sent by this receipt; returns the number of values when both have confirmed."""
    path = receipt or default_path(servers.campaign, os.environ)
    if not path.exists():
        raise InvalidValue(f"there is no receipt at {path}, so nothing is known that could be withdrawn")
    servers.require_digest()
    with open_receipt(path, servers.campaign, servers.receipt_token, os.urandom) as kept:
        return servers.run(_withdraw(servers, kept))


async def _withdraw(servers: ServerPair, kept: Receipt) -> int:
    numbers = kept.numbers(SENDING, DONE, WITHDRAWING, PENDING)
    values = kept.size(numbers)
    kept.note(numbers, WITHDRAWING)
    await _Exchange(servers, kept, await servers.pinned()).finish_withdrawals()
    kept.forget_data()
    return values


async def _upload(
    placed: Positions,
    campaign: Campaign,
    servers: ServerPair,
    kept: Receipt,
    replace: bool,
    progress: Callable[[int], object],
) -> UploadResult:
    count, data = placed.positions.size, kept.source.values_fingerprint(placed.positions)
    out = kept.numbers(SENDING, DONE)
    if replace:
        kept.note(out, WITHDRAWING)
    elif out and kept.data != data:
        raise InvalidValue(_OTHER_VALUES.format(kept.path))
    exchange = _Exchange(servers, kept, campaign)
    await exchange.finish_withdrawals()
    if campaign.waves is not None and not servers.wave:  # nobody has asked yet which one is open
        await servers.look(campaign)
    plan = plan_upload(campaign, count)
    kept.take(data, count, plan.each or BATCH, TABLES if plan.each else KEYS)
    done_before = kept.size(kept.numbers(DONE))
    progress(done_before)
    try:
        await exchange.send_all(placed.positions, campaign, progress)
    except Problem as problem:
        raise await exchange.withdraw(problem) from None
    return UploadResult(count - done_before, done_before, placed.clipped, plan.tables)


_OTHER_VALUES = (
    "other values than these were sent to this campaign before (receipt {}), and nothing was sent now. Take those back "
    "with `fss-dealer withdraw`, or put these in their place with `fss-dealer upload --replace`; another party's "
    "values need another receipt (--receipt FILE)"
)


class _Exchange:
    """One run's dealings with both servers. Everything is in the receipt before it is on the wire."""

    def __init__(self, sites: ServerPair, kept: Receipt, campaign: Campaign) -> None:
        self._sites, self._kept, self._campaign = sites, kept, campaign

    async def send_all(
        self, positions: NDArray[np.int64], campaign: Campaign, progress: Callable[[int], object]
    ) -> None:
        """A few batches at a time; after a failure no further one is begun, and those under way come to their end."""
        kept = self._kept
        queue = [n for n in kept.numbers(NEW, SENDING) if n * kept.batch < kept.count][::-1]

        async def work() -> None:
            while queue:
                number = queue.pop()
                try:
                    await self._send(number, positions[kept.within(number)], campaign)
                    progress(kept.size([number]))
                except BaseException:
                    queue.clear()
                    raise

        at_once = IN_FLIGHT if kept.form == KEYS else 1  # a table may have 15 MiB
        outcomes = await asyncio.gather(*(work() for _ in range(at_once)), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _send(self, number: int, positions: NDArray[np.int64], campaign: Campaign) -> None:
        """Send a batch; where its ids cannot be used, or its wave has closed, again with new ids and keys.

        But not before both servers have confirmed that the old ones do not count: a server that lies about it would
        have a person counted twice.
        """
        for left in reversed(range(TRIES)):
            try:
                await self._send_once(number, positions, campaign)
                return
            except (UploadWithdrawn, UploadConflict, WaveClosed) as problem:
                late = isinstance(problem, WaveClosed)
                self._kept.note([number], PENDING if late else WITHDRAWING)
                await self.finish_withdrawals([number])
                if not left:
                    raise
                if late:
                    await self._sites.look(campaign)

    async def _send_once(self, number: int, positions: NDArray[np.int64], campaign: Campaign) -> None:
        """One batch to both servers at once."""
        part = self._kept.parts[number]
        wave = self._sites.wave if part.state == NEW else part.wave
        source = self._kept.source
        make: Make = source.make_table if self._kept.form == TABLES else source.make_keys
        shared = await asyncio.to_thread(make, number, part.attempt, positions, campaign, wave)
        self._kept.note_sending(number, wave)
        leaves = await asyncio.to_thread(shared.leaves)
        outcomes = await asyncio.gather(*(self._to(s, shared, leaves) for s in (0, 1)), return_exceptions=True)
        errors = [o for o in outcomes if isinstance(o, BaseException)]
        if not errors:
            self._kept.note_stored(number, tuple(o for o in outcomes if isinstance(o, str)))
            return
        raise min(errors, key=lambda e: isinstance(e, TryAgain))  # a refusal says more

    async def _to(self, server: int, shared: "Sealable", leaves: bytes) -> str:
        """The server's signature that it has stored them all."""
        data = await asyncio.to_thread(shared.sealed, server, self._sites.token)
        answer = await self._sites.call(server, "POST", "/uploads", content=data, media_type=UPLOAD_TYPE)
        try:
            response = read(UploadResponse, answer)
        except InvalidQuery:
            raise PeerUnavailable(_NO_ANSWER.format(server)) from None
        if failures := response.failures:
            problem = from_document({"type": f"urn:fss-ecdf:problem:{failures[0].code}", "detail": failures[0].detail})
            raise type(problem)(f"server {server} refused {len(failures)} values: {problem.detail}")
        message = confirmations.stored(self._campaign.digest, server, shared.contribution.wave, leaves)
        return _require_signature(self._campaign, server, message, response.signature)

    async def withdraw(self, problem: Problem) -> Problem:
        """After a failure: withdraw what may have arrived. Returns the problem with what has become of it."""
        self._kept.note(self._kept.numbers(SENDING), WITHDRAWING)
        if not self._kept.numbers(WITHDRAWING, PENDING):
            return problem
        try:
            await self.finish_withdrawals()
        except Problem as second:
            return type(problem)(f"{problem.detail}; {second.detail}")
        return type(problem)(f"{problem.detail}; what had arrived of it is withdrawn at both servers")

    async def finish_withdrawals(self, only: list[int] | None = None) -> None:
        """All that were begun, at both servers; each is asked for all of them, whatever the other one answers."""
        numbers = self._kept.numbers(WITHDRAWING, PENDING) if only is None else only
        if not numbers:
            return
        first, second = await asyncio.gather(*(self._withdraw_at(s, numbers) for s in (0, 1)))
        self._kept.withdrawn(first.confirmed & second.confirmed)
        for server, answer in enumerate((first, second)):
            if answer.problem is not None:
                late = all(self._kept.parts[number].state == PENDING for number in numbers)
                message = _PENDING if late else _NOT_CONFIRMED
                raise type(answer.problem)(message.format(server, answer.problem.detail))

    async def _withdraw_at(self, server: int, numbers: list[int]) -> "_Withdrawal":
        confirmed: set[int] = set()
        for number in numbers:
            ids = self._kept.ids(number).tobytes()
            try:
                answer = await self._sites.call(server, "POST", "/uploads/withdraw", content=ids, media_type=IDS_TYPE)
                _require_confirmation(answer, self._campaign, server, ids)
            except Problem as problem:
                return _Withdrawal(confirmed, problem)
            confirmed.add(number)
        return _Withdrawal(confirmed)


_NO_ANSWER = "server {} answered what is no answer of this protocol"
_NOT_CONFIRMED = (
    "server {} has not confirmed that what was sent before is withdrawn ({}). Run it again: it begins with that, and "
    "nothing is sent under other ids before both servers have confirmed"
)


_PENDING = (
    "the wave closed while this was being sent, and server {} has not confirmed yet that it does not count ({}). The "
    "receipt says pending: run it again, and it is sent for the open wave once both servers have confirmed"
)


@dataclass(frozen=True)
class _Withdrawal:
    """Of which batches a server has confirmed the withdrawal, and what kept it from the others."""

    confirmed: set[int]
    problem: Problem | None = None


def _require_confirmation(answer: bytes, campaign: Campaign, server: int, ids: bytes) -> None:
    """None of it counts, signed; what came with another token, or could not be remembered, is among the failures."""
    try:
        found = parse_json(answer)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or type(found.get("withdrawn")) is not int:
        raise PeerUnavailable(_NO_ANSWER.format(server))
    if found.get("failures", []) != []:
        raise CampaignFull(
            f"server {server} cannot say of every value that it does not count: it has it from another token, or "
            "remembers no more ids that were withdrawn before they arrived"
        )
    message = confirmations.withdrawn(campaign.digest, server, ids)
    _require_signature(campaign, server, message, found.get("signature"))


def _require_signature(campaign: Campaign, server: int, message: bytes, given: object) -> str:
    if not isinstance(given, str) or not confirmations.is_confirmed(campaign, server, message, given):
        raise PeerUnavailable(
            f"server {server} answered without the signature that confirms it: the answer may be made up on the way. "
            "Run it again, and tell the operators if it stays so"
        )
    return given
