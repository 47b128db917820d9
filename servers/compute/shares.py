"""One server's share of the curve: at points, directly, or whole, in the background, by an executor.

Shares leave this room wrapped up (`Unnoised`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from fss import SCHEMES, KeyBatch, dcf, field, scheme_of
from fss.challenge import Challenge
from fss.check import Messages, sum_and_messages
from fss.proof import Proofs
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import NotReady
from servers.compute.executor import Executor
from servers.compute.raw_share import RawShare
from servers.compute.sums import KeyFile, Report, Sum, complete

Gone = Callable[[], Awaitable[bool]]  # has whoever asked gone away?

MIN_SLICE = 4096
SLICE_WORK = 4_000_000  # keys times points: some tenths of a second


async def share_at(keys: KeyBatch, positions: NDArray[np.int64], gone: Gone) -> RawShare:
    """This server's share of the counts at these positions, from comparison keys.

    A slice of the keys at a time: a thread cannot be stopped, but the next slice need not begin when whoever asked has
    gone.
    """
    total = np.zeros(positions.size, np.uint64)
    step = max(MIN_SLICE, SLICE_WORK // max(1, positions.size))
    for start in range(0, len(keys), step):
        if await gone():
            raise NotReady("whoever asked has gone")
        part = await asyncio.to_thread(dcf.sum_at_points, keys[start : start + step], positions)
        total = field.add(total, part)
    return RawShare(total)


def share_of(campaign: Campaign, keys: KeyBatch) -> RawShare:
    """The share of these keys at every position, at once."""
    scheme = SCHEMES[campaign.variable.scheme]
    return RawShare(scheme.curve(scheme.sum_over_domain(keys)))


def messages_of(keys: KeyBatch, proofs: Proofs, by: Challenge) -> Messages:
    """What a server tells the other one about these keys in their check."""
    return sum_and_messages(keys, proofs, by)[1]


async def whole_share(campaign: Campaign, file: KeyFile, executor: Executor, report: Report) -> RawShare:
    """This server's share at every position, of keys and tables."""
    share = (await complete(file, executor, report)).curve(campaign)
    of_tables = await asyncio.to_thread(_of_tables, campaign, [file])
    if of_tables is None:
        raise NotReady("the sum of the tables is missing; it is made again")
    return reduce(add, of_tables, share)


def saved_share(campaign: Campaign, files: Sequence[KeyFile]) -> RawShare | None:
    """The whole share of some sets together as it was saved, if it is complete."""
    sums, of_tables = [Sum(file) for file in files], _of_tables(campaign, files)
    if of_tables is None or not all(one.is_complete for one in sums):
        return None
    for more in sums[1:]:
        sums[0].total = field.add(sums[0].total, more.total)
    return reduce(add, of_tables, sums[0].curve(campaign))


def _of_tables(campaign: Campaign, files: Sequence[KeyFile]) -> list[RawShare] | None:
    """The shares of the tables of some sets, if all of them are there."""
    shares = [file.tables.share(campaign) for file in files if file.tables is not None]
    found = [share for share in shares if share is not None]
    return found if len(found) == len(shares) else None


class CheckedShare:
    """The sum of keys that have been checked on this side, before it is known which of them count."""

    def __init__(self, sum: Sum) -> None:
        self._sum = sum
        self.messages = Messages(sum.messages)

    @staticmethod
    async def of(file: KeyFile, executor: Executor, report: Report) -> "CheckedShare":
        """In one pass: every key is expanded once."""
        return CheckedShare(await complete(file, executor, report))

    def keep(self, accepted: NDArray[np.bool_], file: KeyFile) -> None:
        """Save the sum of the accepted keys beside the file that has just those; only the others are summed again."""
        old = self._sum.file
        keys = KeyBatch.open(old.path, old.type.binder, expected=old.type).take(np.flatnonzero(~accepted))
        self._sum.become(file, scheme_of(old.type).sum_over_domain(keys))
