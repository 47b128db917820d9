"""What is published of a sealed wave: this server's noised shares, and with the other server's the counts.

Nothing here sees a share without noise: it is made, opened and noised by what `noised.py` returns.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import cast
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from fss import SCHEMES, KeyBatch
from fss import field as zp
from fss.field import Words
from fss_ecdf.campaign.binary_messages import decode_shares
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidQuery, NotReady, PeerUnavailable, Problem
from fss_ecdf.campaign.json_messages import ShareQuery
from fss_ecdf.campaign.noise.sums import SumQuery
from fss_ecdf.campaign.release import CURVE, ReleaseName
from fss_ecdf.net.server_identity import Identity
from servers import log, metrics
from servers.compute.evaluation_queue import EvaluationQueue
from servers.compute.raw_share import RawShare
from servers.compute.shares import Gone, saved_share, share_at
from servers.compute.sums import KeyFile
from servers.peer import PeerClient
from servers.release import add_noise
from servers.release.budget import Budget
from servers.release.evidence import Evidence
from servers.release.query_results import curve_errors
from servers.release.release_state import Counts, ReleaseState
from servers.release.sealed_releases import SealedRelease, find, key_files, some_releases, source
from servers.release.statement import Signed, Statement, check, covered, require_signed, split, state
from servers.release.sum_queries import expense, used_positions
from servers.rollback import RollbackGuard
from servers.settings import Settings
from servers.storage.jobs import READY, Job
from servers.storage.key_files import Folder, identity, is_whole
from servers.storage.storage import Storage

Positions = NDArray[np.int64]

SHARES, SUMS = "/shares", "/sums"
WHOLE_CURVES = "whole curves go up to 2^{}. Ask for points (ecdf) instead"
MIN_POINTS = 16  # that can be asked for in one question, however many keys there are


class ReleaseService:
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
        self._slots = EvaluationQueue(settings.limits.evaluations, settings.limits.evaluations_waiting)
        self._known: dict[bytes, dict[ReleaseName, ReleaseState]] = {}

    def in_memory(self) -> set[bytes]:
        return set(self._known)

    def forget(self, campaign_id: bytes) -> None:
        self._known.pop(campaign_id, None)

    async def open(self, campaign_id: bytes, name: ReleaseName = CURVE) -> ReleaseState:
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
            known = of_campaign.setdefault(name, ReleaseState(made))
            if known.sealed.checksum != made.sealed.checksum:
                known = of_campaign[name] = ReleaseState(made)
        return known

    async def releases(self, campaign_id: bytes) -> dict[ReleaseName, SealedRelease]:
        """What can be published of a campaign now."""

        def look() -> dict[ReleaseName, SealedRelease]:
            entry = self._storage.campaigns.get(campaign_id)
            return some_releases(entry, self._storage.waves.all(campaign_id))

        return await asyncio.to_thread(look)

    # This server's noised shares: all that ever leaves it

    async def shares(self, of: ReleaseState, positions: Positions | None, gone: Gone) -> Words:
        whole = await self._noisy(of)
        if whole is not None:
            await self._budget.spend_curve(of.release.account)
            return whole if positions is None else whole[positions]
        if positions is None or of.release.name != CURVE:  # of several waves' keys there is no file to answer from
            self._require_small(of, WHOLE_CURVES)
            raise await self._not_ready(of)
        keys = await self._few_points(of, positions)
        of_tables = await self._tables_at(of, positions)
        await self._budget.spend_curve(of.release.account)
        async with self._slots.one():
            with metrics.EVALUATION_SECONDS.time():
                share = await share_at(keys, positions, gone)
                if of_tables is not None:
                    share += of_tables
                return await asyncio.to_thread(add_noise.noisy_points, share, self._source(of), positions)

    async def sums(self, of: ReleaseState, query: SumQuery) -> Words:
        """Weighted sums, paid from the reserve before they are computed."""
        self._require_small(of, "sums are computed up to 2^{}")
        query.check_total(of.sealed.count)
        if await self._noisy(of) is None:
            raise await self._not_ready(of)
        await self._budget.spend_reserve(of.release.account, expense(query, of.release.name), query.epsilon)
        async with self._slots.one():
            share = await asyncio.to_thread(saved_share, of.campaign, key_files(self._settings, of.release))
            if share is None:
                await asyncio.to_thread(self._make_shares_again, of)
                raise await self._not_ready(of)
            used = used_positions(of.campaign)
            return await asyncio.to_thread(add_noise.noisy_sums, share, self._source(of), query, used)

    # Published counts: the other server's noised shares and ours, added

    async def counts_at(self, of: ReleaseState, positions: Positions, gone: Gone) -> Counts:
        whole = await self.whole(of) if of.release.name == CURVE else await self.need_whole(of)
        if whole is not None:
            return whole[positions]
        distinct, back = np.unique(positions, return_inverse=True)
        ours, theirs = await _both(self.shares(of, distinct, gone), self._peer_shares(of, distinct))
        return zp.decode(zp.add(ours, theirs))[back]

    async def sum_counts(self, of: ReleaseState, query: SumQuery, body: bytes) -> Counts:
        """Both servers pay. If one has paid and the other has not, the same query again completes it.

        `body`: the same query, as the other server is asked.
        """
        self._require_small(of, "sums are computed up to 2^{}")
        query.check_total(of.sealed.count)
        await self.need_whole(of)  # a server that has no curve computes no sums: nothing is paid for that
        await self.fetch_peer_statement(of)
        # Server 0 always pays first, so that two queries at once cannot each take the other's budget at one server.
        if self._settings.server == 0:
            ours = await self.sums(of, query)
        theirs = await self._peer_noisy(of, SUMS, body, len(query.units))
        if self._settings.server == 1:
            ours = await self.sums(of, query)
        return zp.decode(zp.add(ours, theirs))

    async def whole(self, of: ReleaseState) -> Counts | None:
        """The published curve, if both servers have evaluated theirs; if not, points can be asked one by one."""
        if of.counts is None and await self._noisy(of) is not None:
            async with of.lock:
                if of.counts is None:
                    await self._publish(of)
        return of.counts

    def is_kept(self, release: SealedRelease) -> bool:
        """Whether the published curve is on disk, so that nothing is needed any more to answer for it."""
        folder = Folder(self._settings.data, release.campaign.id, release.last)
        covered = source(self._settings.server, release).covers
        return folder.load_curve("release", covered, release.campaign.bits, np.int64) is not None

    async def need_whole(self, of: ReleaseState) -> Counts:
        """The published curve, or why there is none."""
        self._require_small(of, WHOLE_CURVES)
        counts = await self.whole(of)
        if counts is None:
            if of.refused_by_peer is not None:
                raise InvalidQuery(of.refused_by_peer)
            if of.noisy is not None:
                raise NotReady("the other server's curve is not ready yet", retry_after=2)
            raise await self._not_ready(of)
        return counts

    def _require_small(self, of: ReleaseState, why_not: str) -> None:
        """What needs the whole curve of a campaign that never has one is refused, not put off."""
        bits, most = of.campaign.bits, self._settings.curve_bits
        if bits > most:
            raise InvalidQuery(f"this campaign has 2^{bits} positions; {why_not.format(most)}")

    async def _publish(self, of: ReleaseState) -> None:
        """Fetch the other server's whole noised curve, once, and keep the sum."""
        assert of.noisy is not None
        folder, bits = self._folder(of), of.campaign.bits
        saved = await asyncio.to_thread(folder.load_curve, "release", self._covers(of), bits, np.int64)
        if saved is None:
            try:
                theirs = await self._peer_shares(of, None)
            except PeerUnavailable:
                return
            except InvalidQuery as problem:  # its settings allow no whole curve of this size; points can be asked
                of.refused_by_peer = problem.detail
                return
            await self._budget.spend_curve(of.release.account)
            saved = zp.decode(zp.add(of.noisy, theirs))
            with log.failures("release-not-saved", OSError):  # a full disk costs a fetch after the next start
                await asyncio.to_thread(folder.save_curve, "release", self._covers(of), saved)
        of.errors.update(await asyncio.to_thread(curve_errors, of.campaign))
        of.counts = cast(Counts, saved)

    async def _peer_shares(self, of: ReleaseState, positions: Positions | None) -> Words:
        asked = {"digest": of.campaign.digest, "positions": "all" if positions is None else positions.tolist()}
        query = ShareQuery.model_validate(asked).to_json().encode()
        wanted = 1 << of.campaign.bits if positions is None else positions.size
        await self.fetch_peer_statement(of)
        return await self._peer_noisy(of, SHARES, query, wanted)

    async def _peer_noisy(self, of: ReleaseState, what: str, query: bytes, wanted: int) -> Words:
        """So many elements of the other server, of the same set of uploads, signed; and the signature is kept."""
        assert of.peer_statement is not None
        try:
            answer = await self._peer.noisy_shares(of.campaign, what + _asked(of), query, wanted)
        except PeerUnavailable as failure:
            if isinstance(failure.__cause__, InvalidQuery):  # by its settings, now and later: nothing to wait for
                raise InvalidQuery(failure.detail) from failure
            raise
        shares = decode_shares(split(answer)[0], of.campaign, 1 - self._settings.server, wanted)
        if (shares.key_set, shares.uploads) != (of.sealed.checksum, of.sealed.count):
            raise InvalidPeerResponse("the other server answers for another set of uploads")
        question = what.encode() + b"\n" + query
        require = partial(require_signed, of.campaign, of.peer_statement, question)
        require(answer)
        async with of.keeping:
            await asyncio.to_thread(self._evidence(of).keep_answer, question, answer, require)
        return shares.elements

    # Statements: each server has the other's before it lets a share out

    async def fetch_peer_statement(self, of: ReleaseState) -> None:
        """The other server has said which keys and which noise its shares come from, and that is on disk here."""
        async with of.keeping:  # the first word counts
            if of.peer_statement is None:
                of.peer_statement = await self._fetch_peer_statement(of)

    async def _fetch_peer_statement(self, of: ReleaseState) -> Statement:
        evidence, about = self._evidence(of), (of.campaign, 1 - self._settings.server, of.sealed)
        kept = await asyncio.to_thread(evidence.statement)
        if kept is not None:
            try:
                return check(kept, *about).statement
            except InvalidPeerResponse:  # damaged here: what is signed anew must be the same, or its answers do not fit
                log.event("evidence-damaged", level="warning", campaign=to_base64url(of.campaign.id))
        data = await self._peer.call("GET", of.campaign.id, "/statement" + _asked(of))
        check(data, *about)
        first = await asyncio.to_thread(partial(evidence.keep_statement, data, replace=kept is not None))
        return check(first, *about).statement

    async def statement(self, of: ReleaseState) -> Signed:
        """This server's own; there is none before its keys are in one file."""
        await self._refresh(of)
        return state(self._identity, of.campaign, of.sealed, self._source(of))

    async def signed(self, of: ReleaseState, what: str, query: bytes, shares: bytes) -> bytes:
        """Shares with this server's signature behind them, as they leave."""
        statement = (await self.statement(of)).statement
        return shares + self._identity.sign(covered(statement, what.encode() + b"\n" + query, shares))

    # What the background work made

    async def _noisy(self, of: ReleaseState) -> Words | None:
        """This server's whole noised curve, once the background work has made it."""
        if of.noisy is None and of.campaign.bits <= self._settings.curve_bits:
            job = await asyncio.to_thread(self._storage.jobs.get, of.campaign.id, of.release.last)
            if job.phase == READY:
                await self._refresh(of)
                folder, bits = self._folder(of), of.campaign.bits
                saved = await asyncio.to_thread(folder.load_curve, "noised", self._covers(of), bits, np.uint64)
                of.noisy = cast(Words | None, saved)
                if saved is None:
                    await asyncio.to_thread(self._storage.jobs.again, of.campaign.id, of.release.last)
        return of.noisy

    async def _few_points(self, of: ReleaseState, positions: Positions) -> KeyBatch:
        """The keys, if these points can be answered from them without keeping others waiting."""
        await self._refresh(of)
        by_points = SCHEMES[of.campaign.variable.scheme].is_cumulative
        if not by_points:
            self._require_small(of, "point keys (dpf) are evaluated up to 2^{}")
        if not by_points or of.sealed.key_file is None:
            raise await self._not_ready(of)
        keys = await self._whole_keys(of)
        if keys is None:
            raise await self._not_ready(of)
        most = max(MIN_POINTS, self._settings.limits.point_evaluations // max(1, of.sealed.keys))
        if positions.size <= most:
            return keys
        if of.campaign.bits > self._settings.curve_bits:
            raise InvalidQuery(f"at most {most} points in one question about {of.sealed.keys} keys")
        raise NotReady(f"at most {most} points in one question until the curve is ready", retry_after=5)

    async def _whole_keys(self, of: ReleaseState) -> KeyBatch | None:
        """The keys that the noise is bound to. Their file is read once, and again where another has taken its place:
        other keys under the same noise would show what differs."""
        file = self._key_file(of)

        def opened() -> KeyBatch | None:
            there = identity(file.path)
            if there is None or (there != of.keys_checked and not is_whole(file.path, file.digest)):
                self._storage.jobs.again(of.campaign.id, of.release.last)
                return None
            of.keys_checked, keys = there, KeyBatch.open(file.path, file.type.binder, expected=file.type)
            return keys if identity(file.path) == there else None

        async with of.lock:
            return await asyncio.to_thread(opened)

    async def _tables_at(self, of: ReleaseState, positions: Positions) -> RawShare | None:
        """The share of the tables at some positions, where the set has any."""
        tables = self._key_file(of).tables
        if tables is None:
            return None
        share = await asyncio.to_thread(tables.share_at, of.campaign, positions)
        if share is None:
            await asyncio.to_thread(self._storage.jobs.again, of.campaign.id, of.release.last)
            raise await self._not_ready(of)
        return share

    def _make_shares_again(self, of: ReleaseState) -> None:
        """Of every wave in the release: which of the saved ones is missing is found by the job."""
        for number, _ in of.release.parts:
            self._storage.jobs.again(of.campaign.id, number)

    async def _refresh(self, of: ReleaseState) -> None:
        """The key file's digest comes after the sealing, and stays."""
        if of.sealed.key_file is None:
            of.release = find(await self.releases(of.campaign.id), of.release.name)

    async def _not_ready(self, of: ReleaseState) -> NotReady:
        job: Job = await asyncio.to_thread(self._storage.jobs.get, of.campaign.id, of.release.last)
        return NotReady(f"this server's curve is not ready yet ({job.phase}, {job.progress:.0%})", retry_after=2)

    def _folder(self, of: ReleaseState) -> Folder:
        return Folder(self._settings.data, of.campaign.id, of.release.last)

    def _evidence(self, of: ReleaseState) -> Evidence:
        if of.evidence is None:
            of.evidence = Evidence(self._folder(of).path, of.sealed.checksum)
        return of.evidence

    def _key_file(self, of: ReleaseState) -> KeyFile:
        """Of a plain campaign: others are not answered from keys."""
        (file,) = key_files(self._settings, of.release)
        return file

    def _covers(self, of: ReleaseState) -> bytes:
        return self._source(of).covers

    def _source(self, of: ReleaseState) -> add_noise.NoiseKey:
        return source(self._settings.server, of.release)


def _asked(of: ReleaseState) -> str:
    """How the other server is told which release is meant."""
    query = urlencode(of.release.name.query)
    return f"?{query}" if query else ""


async def _both(one: Awaitable[Words], other: Awaitable[Words]) -> tuple[Words, Words]:
    """Both results; where one fails, the other is given up, and whoever works on it notices."""
    first, second = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        return await asyncio.gather(first, second)
    finally:
        first.cancel()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
