"""What is published of a sealed wave: this server's noised shares, and with the other server's the counts.

Nothing here sees a share without noise: it is made, opened and noised by what `noised.py` returns.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from campaign.envelopes import decode_shares
from campaign.errors import InvalidQuery, PeerMismatch, PeerUnavailable, Problem, Unavailable
from campaign.spec import to_base64url
from campaign.wire import PeerGroupsQuery, ShareQuery
from client.identity import Identity
from fss import KeyBatch
from fss import field as zp
from fss.field import Words
from servers import log, metrics
from servers.compute.shares import Gone, saved_share, share_at
from servers.compute.slots import Slots
from servers.compute.sums import KeyFile
from servers.lifecycle.budget import Budget
from servers.peer import PeerClient
from servers.release import noised
from servers.release.answers import curve_errors
from servers.release.evidence import Evidence
from servers.release.groups import GroupQuestion
from servers.release.published import Counts, Published
from servers.release.releases import CURVE, Release, find, key_files, releases, source
from servers.release.statement import Signed, Statement, check, covered, require_signed, split, state
from servers.rollback import RollbackGuard
from servers.settings import Settings
from servers.storage.jobs import READY, Job
from servers.storage.objects import Folder, identity, is_whole
from servers.storage.storage import Storage

Positions = NDArray[np.int64]

SHARES, GROUPS = "/shares", "/groups"
MIN_POINTS = 16  # that can be asked for in one question, however many keys there are


class Publisher:
    """Answers for sealed campaigns, each expense paid before anything leaves."""

    def __init__(
        self,
        settings: Settings,
        storage: Storage,
        peer: PeerClient,
        identity: Identity,
        budget: Budget,
        guard: RollbackGuard,
    ) -> None:
        self._settings, self._storage, self._peer, self._guard = settings, storage, peer, guard
        self._identity, self._budget = identity, budget
        self._slots = Slots(settings.limits.evaluations, settings.limits.evaluations_waiting)
        self._known: dict[bytes, dict[str, Published]] = {}

    def forget(self, campaign_id: bytes) -> None:
        self._known.pop(campaign_id, None)

    async def open(self, campaign_id: bytes, name: str = CURVE) -> Published:
        """A campaign's release; a problem if there is none, or while this server is on hold."""
        await self._guard.require()
        known = self._known.get(campaign_id, {}).get(name)
        if known is None or not self._storage.alone:
            try:
                made = find(await self.releases(campaign_id), name)
            except Problem:
                self.forget(campaign_id)  # another process may have deleted it since
                raise
            of_campaign = self._known.setdefault(campaign_id, {})
            known = of_campaign.setdefault(name, Published(made))
            if known.sealed.checksum != made.sealed.checksum:
                known = of_campaign[name] = Published(made)
        return known

    async def releases(self, campaign_id: bytes) -> dict[str, Release]:
        """What can be published of a campaign now."""

        def look() -> dict[str, Release]:
            entry = self._storage.campaigns.get(campaign_id)
            return releases(entry, self._storage.waves.all(campaign_id))

        return await asyncio.to_thread(look)

    # This server's noised shares: all that ever leaves it

    async def shares(self, of: Published, positions: Positions | None, gone: Gone) -> Words:
        whole = await self._noised(of)
        if whole is not None:
            await self._budget.spend_curve(of.made.account)
            return whole if positions is None else whole[positions]
        if positions is None or of.made.plan is not None:  # of several waves' keys there is no file to answer from
            raise await self._not_ready(of)
        keys = await self._few_points(of, positions)
        await self._budget.spend_curve(of.made.account)
        async with self._slots.one():
            with metrics.EVALUATION_SECONDS.time():
                share = await share_at(keys, positions, gone)
                return await asyncio.to_thread(noised.points, share, self._source(of), positions)

    async def groups(self, of: Published, asked: GroupQuestion) -> Words:
        if of.made.plan is not None:
            raise InvalidQuery("a campaign of waves has no reserve, so no groups are counted")
        self._require_small(of, "groups are counted up to 2^{}")
        if await self._noised(of) is None:
            raise await self._not_ready(of)
        await self._budget.spend(of.made.account, asked.purpose, asked.query.epsilon)
        async with self._slots.one():
            share = await asyncio.to_thread(saved_share, of.campaign, key_files(self._settings, of.made))
            if share is None:
                await asyncio.to_thread(self._storage.jobs.again, of.campaign.id, of.made.last)
                raise await self._not_ready(of)
            return await asyncio.to_thread(noised.groups, share, self._source(of), asked)

    # Published counts: the other server's noised shares and ours, added

    async def counts_at(self, of: Published, positions: Positions, gone: Gone) -> Counts:
        whole = await self.whole(of) if of.made.plan is None else await self.need_whole(of)
        if whole is not None:
            return whole[positions]
        distinct, back = np.unique(positions, return_inverse=True)
        try:
            ours, theirs = await _both(self.shares(of, distinct, gone), self._peer_shares(of, distinct))
        except PeerUnavailable as failure:
            if isinstance(failure.__cause__, InvalidQuery):  # too many points for it, now and later
                raise InvalidQuery(failure.detail) from failure
            raise
        return zp.decode(zp.add(ours, theirs))[back]

    async def group_counts(self, of: Published, asked: GroupQuestion) -> Counts:
        message = PeerGroupsQuery(digest=of.campaign.digest, **asked.query.model_dump()).to_json().encode()
        self._require_small(of, "groups are counted up to 2^{}")
        await self.witness(of)
        # Server 0 always pays first, so that two questions at once cannot each take the other's budget at one server.
        if self._settings.role == 0:
            ours = await self.groups(of, asked)
        theirs = await self._peer_noised(of, GROUPS, message, 4 * asked.ends.size)
        if self._settings.role == 1:
            ours = await self.groups(of, asked)
        return zp.decode(zp.add(ours, theirs))

    async def whole(self, of: Published) -> Counts | None:
        """The published curve, if both servers have evaluated theirs; if not, points can be asked one by one."""
        if of.counts is None and await self._noised(of) is not None:
            async with of.lock:
                if of.counts is None:
                    await self._publish(of)
        return of.counts

    def is_kept(self, release: Release) -> bool:
        """Whether the published curve is on disk, so that nothing is needed any more to answer for it."""
        folder = Folder(self._settings.data, release.campaign.id, release.last)
        covered = source(self._settings.role, release).covers
        return folder.load_curve("release", covered, release.campaign.bits, np.int64) is not None

    async def need_whole(self, of: Published) -> Counts:
        """The published curve, or why there is none."""
        self._require_small(of, "whole curves go up to 2^{}. Ask for points (ecdf) instead")
        counts = await self.whole(of)
        if counts is None:
            if of.noised is not None:
                raise Unavailable("the other server's curve is not ready yet", retry_after=2)
            raise await self._not_ready(of)
        return counts

    def _require_small(self, of: Published, why_not: str) -> None:
        """What needs the whole curve of a campaign that never has one is refused, not put off."""
        bits, most = of.campaign.bits, self._settings.curve_bits
        if bits > most:
            raise InvalidQuery(f"this campaign has 2^{bits} positions; {why_not.format(most)}")

    async def _publish(self, of: Published) -> None:
        """Fetch the other server's whole noised curve, once, and keep the sum."""
        assert of.noised is not None
        folder, bits = self._folder(of), of.campaign.bits
        saved = await asyncio.to_thread(folder.load_curve, "release", self._covers(of), bits, np.int64)
        if saved is None:
            try:
                theirs = await self._peer_shares(of, None)
            except PeerUnavailable:
                return
            await self._budget.spend_curve(of.made.account)
            saved = zp.decode(zp.add(of.noised, theirs))
            with log.failures("release-not-saved", OSError):  # a full disk costs a fetch after the next start
                await asyncio.to_thread(folder.save_curve, "release", self._covers(of), saved)
        of.errors.update(await asyncio.to_thread(curve_errors, of.campaign))
        of.counts = cast(Counts, saved)

    async def _peer_shares(self, of: Published, positions: Positions | None) -> Words:
        asked = {"digest": of.campaign.digest, "positions": "all" if positions is None else positions.tolist()}
        query = ShareQuery.model_validate(asked).to_json().encode()
        wanted = 1 << of.campaign.bits if positions is None else positions.size
        try:
            await self.witness(of)
            return await self._peer_noised(of, SHARES, query, wanted)
        except Problem:
            metrics.PEER_FAILURES.inc()
            raise

    async def _peer_noised(self, of: Published, what: str, query: bytes, wanted: int) -> Words:
        """So many elements of the other server, of the same set of uploads, signed; and the signature is kept."""
        assert of.witnessed is not None
        answer = await self._peer.noised(of.campaign, what + _asked(of), query, wanted)
        shares = decode_shares(split(answer)[0], of.campaign, 1 - self._settings.role, wanted)
        if (shares.key_set, shares.uploads) != (of.sealed.checksum, of.sealed.count):
            raise PeerMismatch("the other server answers for another set of uploads")
        question = what.encode() + b"\n" + query
        require = partial(require_signed, of.campaign, of.witnessed, question)
        require(answer)
        async with of.keeping:
            await asyncio.to_thread(self._evidence(of).keep_answer, question, answer, require)
        return shares.elements

    # Statements: each server has the other's before it lets a share out

    async def witness(self, of: Published) -> None:
        """The other server has said which keys and which noise its shares come from, and that is on disk here."""
        async with of.keeping:  # the first word counts
            if of.witnessed is None:
                of.witnessed = await self._witness(of)

    async def _witness(self, of: Published) -> Statement:
        evidence, about = self._evidence(of), (of.campaign, 1 - self._settings.role, of.sealed)
        kept = await asyncio.to_thread(evidence.statement)
        if kept is not None:
            try:
                return check(kept, *about).statement
            except PeerMismatch:  # damaged here: what is signed anew must be the same, or its answers do not fit
                log.event("evidence-damaged", level="warning", campaign=to_base64url(of.campaign.id))
        data = await self._peer.call("GET", of.campaign.id, "/statement" + _asked(of))
        check(data, *about)
        first = await asyncio.to_thread(partial(evidence.keep_statement, data, replace=kept is not None))
        return check(first, *about).statement

    async def statement(self, of: Published) -> Signed:
        """This server's own; there is none before its keys are in one file."""
        await self._refresh(of)
        return state(self._identity, of.campaign, of.sealed, self._source(of))

    async def signed(self, of: Published, what: str, query: bytes, shares: bytes) -> bytes:
        """Shares with this server's signature behind them, as they leave."""
        statement = (await self.statement(of)).statement
        return shares + self._identity.sign(covered(statement, what.encode() + b"\n" + query, shares))

    # What the background work made

    async def _noised(self, of: Published) -> Words | None:
        """This server's whole noised curve, once the background work has made it."""
        if of.noised is None and of.campaign.bits <= self._settings.curve_bits:
            job = await asyncio.to_thread(self._storage.jobs.get, of.campaign.id, of.made.last)
            if job.phase == READY:
                await self._refresh(of)
                folder, bits = self._folder(of), of.campaign.bits
                saved = await asyncio.to_thread(folder.load_curve, "noised", self._covers(of), bits, np.uint64)
                of.noised = cast(Words | None, saved)
                if saved is None:
                    await asyncio.to_thread(self._storage.jobs.again, of.campaign.id, of.made.last)
        return of.noised

    async def _few_points(self, of: Published, positions: Positions) -> KeyBatch:
        """The keys, if these points can be answered from them without keeping others waiting."""
        await self._refresh(of)
        if of.campaign.scheme == "dpf":
            self._require_small(of, "point keys (dpf) are evaluated up to 2^{}")
        if of.campaign.scheme == "dpf" or of.sealed.key_file is None:
            raise await self._not_ready(of)
        keys = await self._whole_keys(of)
        if keys is None:
            raise await self._not_ready(of)
        most = max(MIN_POINTS, self._settings.limits.points_times_keys // max(1, of.sealed.count))
        if positions.size <= most:
            return keys
        if of.campaign.bits > self._settings.curve_bits:
            raise InvalidQuery(f"at most {most} points in one question about {of.sealed.count} uploads")
        raise Unavailable(f"at most {most} points in one question until the curve is ready", retry_after=5)

    async def _whole_keys(self, of: Published) -> KeyBatch | None:
        """The keys that the noise is bound to. Their file is read once, and again where another has taken its place:
        other keys under the same noise would show what differs."""
        file = self._key_file(of)

        def opened() -> KeyBatch | None:
            there = identity(file.path)
            if there is None or (there != of.keys_checked and not is_whole(file.path, file.digest)):
                self._storage.jobs.again(of.campaign.id, of.made.last)
                return None
            of.keys_checked, keys = there, KeyBatch.open(file.path, file.type.binder, expected=file.type)
            return keys if identity(file.path) == there else None

        async with of.lock:
            return await asyncio.to_thread(opened)

    async def _refresh(self, of: Published) -> None:
        """The key file's digest comes after the sealing, and stays."""
        if of.sealed.key_file is None:
            of.made = find(await self.releases(of.campaign.id), of.made.name)

    async def _not_ready(self, of: Published) -> Unavailable:
        job: Job = await asyncio.to_thread(self._storage.jobs.get, of.campaign.id, of.made.last)
        return Unavailable(f"this server's curve is not ready yet ({job.phase}, {job.progress:.0%})", retry_after=2)

    def _folder(self, of: Published) -> Folder:
        return Folder(self._settings.data, of.campaign.id, of.made.last)

    def _evidence(self, of: Published) -> Evidence:
        if of.evidence is None:
            of.evidence = Evidence(self._folder(of).path, of.sealed.checksum)
        return of.evidence

    def _key_file(self, of: Published) -> KeyFile:
        """Of a plain campaign: others are not answered from keys."""
        (file,) = key_files(self._settings, of.made)
        return file

    def _covers(self, of: Published) -> bytes:
        return self._source(of).covers

    def _source(self, of: Published) -> noised.Source:
        return source(self._settings.role, of.made)


def _asked(of: Published) -> str:
    """How the other server is told which release is meant."""
    return "" if of.made.plan is None else f"?{of.made.plan.kind}={of.made.plan.at}"


async def _both(one: Awaitable[Words], other: Awaitable[Words]) -> tuple[Words, Words]:
    """Both results; where one fails, the other is given up, and whoever works on it notices."""
    first, second = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        return await asyncio.gather(first, second)
    finally:
        first.cancel()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
