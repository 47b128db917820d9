"""The check of keys, between freezing and sealing, on both servers at once: background work on a set that is fixed.

    1. keys and proofs of the set go into files
    2. the servers tell each other their parts of the challenge, each of which must fit the campaign's commitments
    3. one pass over the keys: their sum, and a message about each key
    4. the messages are exchanged, signed and kept; both servers come to the same verdict
    5. what failed is put aside, its sum is subtracted, the rest is sealed; of a plain campaign with too little left
       nothing is ever released, and nothing is added to it, for the challenge is known

Every step is durable or can be made again, and each server goes through them at its own pace. A wave has one challenge
for ever: both parts follow from secrets that were committed to in the campaign itself.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fss import FssError, table
from fss.check import MESSAGE_BYTES, Messages, accept
from fss.proof_file import is_whole as proofs_are_whole
from fss_ecdf.campaign.campaign import Campaign, check_digest, to_base64url
from fss_ecdf.campaign.errors import ChallengeMismatch, InvalidPeerResponse, NotReady, PeerUnavailable
from fss_ecdf.campaign.json_messages import CheckMessagesQuery, CheckSeed, read
from fss_ecdf.net.server_identity import SIGNATURE_BYTES, Identity, verify_commitment
from servers import log, metrics
from servers.compute.executor import Executor
from servers.compute.shares import CheckedShare
from servers.compute.sums import KeyFile
from servers.compute.table_sums import TableSums, WaveTables, decode_messages, encode_messages
from servers.compute.worker import Check
from servers.lifecycle.table_check import CheckedTables, TableVerdict
from servers.peer import PeerClient
from servers.release.evidence import CHECK, Evidence
from servers.release.statement import covered_messages, messages_question, require_messages_signed, split
from servers.storage import key_files
from servers.storage.campaigns import StoredCampaign
from servers.storage.entries import ENTRY_BYTES, as_table, id_of, set_hash
from servers.storage.entries import split as split_entries
from servers.storage.key_files import KEYS, TABLES, Expected, Folder
from servers.storage.storage import Storage, Writer
from servers.storage.waves import StateChanged, UploadSet, Wave, is_too_few

AT_ONCE = 1 << 16  # messages in one answer
SIZES = {KEYS: MESSAGE_BYTES, TABLES: table.MESSAGE_BYTES}

T = TypeVar("T")

Note = Callable[[str, float], None]
Crash = Callable[[str], None]


class NotReadyYet(Exception):
    """The other server is not so far yet; go on with this job in a moment."""


@dataclass(frozen=True)
class KeyChecker:
    """Takes one wave through the check."""

    server: int
    folder: Callable[[bytes, int], Folder]
    storage: Storage
    writer: Writer
    peer: PeerClient
    identity: Identity
    executor: Executor
    crash: Crash
    seen: set[bytes] = field(default_factory=set)  # digests of key files that are whole, with their proofs

    async def run(self, entry: StoredCampaign, wave: Wave, note: Note) -> Wave:
        """Returns the wave, sealed."""
        campaign, folder, candidates = entry.campaign, self.folder(entry.campaign.id, wave.number), wave.set
        assert candidates is not None
        note("writing keys", 0.0)
        folder.make()
        digest = await self._files(campaign, wave, candidates, note)
        self.crash("check-files-written")
        seeds = await self._seeds(campaign, wave)
        self.crash("check-seeds-exchanged")

        async def report(done: float) -> None:
            note("checking", done)

        check = Check(str(folder.proofs), campaign.digest, seeds)
        file = KeyFile(folder.candidates, campaign.key_type(self.server), digest, candidates.keys, check)
        share = await CheckedShare.of(file, self.executor, report)
        tables = await asyncio.to_thread(self._tables, campaign, wave, seeds, note)
        for of, told in ((KEYS, share.messages.to_bytes()), (TABLES, encode_messages(tables.messages))):
            if await asyncio.to_thread(folder.load_messages, candidates.checksum, of) is None:
                await asyncio.to_thread(folder.save_messages, candidates.checksum, told, of)
        self.crash("check-messages-saved")
        note("waiting for the other server", 1.0)
        theirs = await self._peer_messages(campaign, wave.number, candidates)
        pair = (share.messages, theirs) if self.server == 0 else (theirs, share.messages)
        accepted = await asyncio.to_thread(accept, *pair, check.challenge(file.type))
        verdict = tables.decide(await self._peer_table_messages(campaign, wave.number, candidates))
        note("waiting for the other server", 1.0)
        return await self._settle(entry, wave, Verdict(file, share, accepted, verdict))

    def _tables(self, campaign: Campaign, wave: Wave, seeds: tuple[bytes, bytes], note: Note) -> CheckedTables:
        """One pass over the tables of the set."""
        of = wave_tables(self.storage, campaign, self.server, wave.number)
        if wave.set is None or len(of.tables) != wave.set.tables:
            raise key_files.NotTheSealedSet
        return CheckedTables.make(of, seeds, lambda done: note("checking tables", done))

    async def _files(self, campaign: Campaign, wave: Wave, candidates: UploadSet, note: Note) -> bytes:
        """Keys and proofs, written anew where they are missing or damaged; the digest of the keys."""
        known, folder = candidates.key_file, self.folder(campaign.id, wave.number)
        if known is not None and await asyncio.to_thread(self._are_whole, folder, known):
            self.seen.add(known)
            return known
        expected = Expected(campaign.key_type(self.server), candidates.keys, candidates.checksum, candidates.tables)
        rows = self.storage.uploads.rows(campaign.id, key_files.CHUNK, wave.number)

        def write() -> bytes:
            def progress(done: int) -> None:
                note("writing keys", done / max(1, candidates.keys))

            return key_files.write_keys(folder.candidates, rows, expected, progress, proofs=folder.proofs)

        def keep() -> None:
            def drop() -> None:  # messages about other keys under these ids, perhaps
                folder.drop_messages(candidates.checksum)

            try:
                self.storage.waves.keep_key_file(campaign.id, wave, digest, drop)
            except StateChanged:
                self.storage.waves.unless_checking(campaign.id, wave.number, folder.drop_candidates)
                raise

        digest = await asyncio.to_thread(write)
        await self.writer.run(keep)
        return digest

    def _are_whole(self, folder: Folder, keys: bytes) -> bool:
        if keys in self.seen and folder.candidates.exists() and folder.proofs.exists():
            return True
        return key_files.is_whole(folder.candidates, keys) and proofs_are_whole(folder.proofs)

    async def _seeds(self, campaign: Campaign, wave: Wave) -> tuple[bytes, bytes]:
        """Both parts of the wave's challenge, ours first told to the other server."""
        number, mine, theirs = wave.number, self.identity.check_seed(campaign, wave.number), wave.peer_seed
        if theirs is None:
            message = CheckSeed(digest=campaign.digest, seed=mine).to_json().encode()
            try:
                path = f"/challenge?wave={number}"
                answer = read(CheckSeed, await self.peer.call("POST", campaign.id, path, content=message))
            except (PeerUnavailable, NotReady) as problem:
                raise NotReadyYet(problem.detail) from None
            check_digest(campaign.digest, answer.digest)
            if not verify_commitment(campaign, 1 - self.server, answer.seed, number):
                raise ChallengeMismatch("the other server's part of the challenge is not the one it committed to")
            theirs = answer.seed
            await self.writer.run(lambda: self.storage.waves.keep_peer_seed(campaign.id, theirs, number))
        return (mine, theirs) if self.server == 0 else (theirs, mine)

    async def _peer_messages(self, campaign: Campaign, number: int, candidates: UploadSet) -> Messages:
        def decode(data: bytes, count: int) -> Messages:
            return Messages.from_bytes(data, count)

        parts = await self._told(campaign, number, candidates.checksum, candidates.keys, KEYS, decode)
        return Messages.concatenate(parts) if parts else Messages(np.zeros((3, 0), np.uint64))

    async def _peer_table_messages(self, campaign: Campaign, number: int, candidates: UploadSet) -> list[table.Message]:
        def decode(data: bytes, count: int) -> list[table.Message]:
            found = decode_messages(data)
            if len(found) != count:
                raise InvalidPeerResponse(f"the other server tells about {len(found)} tables in place of {count}")
            return found

        parts = await self._told(campaign, number, candidates.checksum, candidates.tables, TABLES, decode)
        return [message for part in parts for message in part]

    async def _told(
        self, campaign: Campaign, number: int, checksum: bytes, count: int, of: str, decode: Callable[[bytes, int], T]
    ) -> list[T]:
        """The other server's messages about so many keys or tables of a set, part by part, each kept with its
        signature."""
        parts, kept = [], self._evidence(campaign, number, checksum)
        for start in range(0, count, AT_ONCE):
            stop = min(start + AT_ONCE, count)
            about = {"digest": campaign.digest, "checksum": checksum, "start": start, "stop": stop}
            message = CheckMessagesQuery.model_validate(about).to_json().encode()
            most = SIZES[of] * AT_ONCE + SIGNATURE_BYTES
            try:
                path = f"/{of}?wave={number}"
                answer = await self.peer.call("POST", campaign.id, path, content=message, most=most)
                parts.append(decode(split(answer)[0], stop - start))
            except (PeerUnavailable, NotReady) as problem:
                raise NotReadyYet(problem.detail) from None
            except FssError as error:
                raise InvalidPeerResponse(f"the other server's messages: {error}") from None
            question = messages_question(number, message, of)
            require = partial(require_messages_signed, campaign, 1 - self.server, question)
            require(answer)
            await asyncio.to_thread(kept.keep_answer, question, answer, require)
        return parts

    def _evidence(self, campaign: Campaign, number: int, checked: bytes) -> Evidence:
        return Evidence(self.folder(campaign.id, number).path, checked, CHECK)

    async def _settle(self, entry: StoredCampaign, wave: Wave, verdict: "Verdict") -> Wave:
        campaign, folder, candidates = entry.campaign, self.folder(entry.campaign.id, wave.number), wave.set
        assert candidates is not None
        rejected, checksum = await asyncio.to_thread(self._divide, campaign, wave.number, candidates, verdict)
        final = UploadSet(
            verdict.people, checksum, candidates.unmatched, candidates.checksum, None, *verdict.tables.counts
        )
        final = await asyncio.to_thread(self._keep, campaign, wave.number, final, rejected, verdict)
        self.crash("check-decided")
        settled = await self.writer.run(
            lambda: self.storage.waves.finish_check(
                campaign.id, candidates.checksum, sorted(rejected), final, wave.number
            )
        )
        self.crash("check-settled")
        name, left = to_base64url(campaign.id), candidates.count - final.count
        metrics.REJECTED.inc(left)
        verdict.tables.log_rejected(name, partial(self.storage.tables.site_of, campaign.id))
        log.event("keys-checked", campaign=name, accepted=final.count, rejected=left, state=settled.state)
        if is_too_few(campaign, final):
            least = campaign.min_uploads
            log.event("too-few-passed", level="error", campaign=name, accepted=final.count, min_uploads=least)
        await asyncio.to_thread(folder.drop_candidates)
        return settled

    def _divide(
        self, campaign: Campaign, number: int, candidates: UploadSet, verdict: "Verdict"
    ) -> tuple[set[bytes], bytes]:
        """The ids that failed, and the checksum of the others. All of them are kept for an auditor."""
        rejected: set[bytes] = set()
        hashed, of_tables = set_hash(), verdict.tables.by_id

        def divided() -> Iterator[bytes]:
            done = 0
            for part in self.storage.uploads.entries(campaign.id, number):
                entries = as_table(part)
                passed, keys = passed_entries(part, verdict.keys[done:], of_tables)
                hashed.update(entries[passed].tobytes())
                rejected.update(id_of(entry.tobytes()) for entry in entries[~passed])
                done += keys
                yield part

        kept = self._evidence(campaign, number, candidates.checksum)
        kept.keep_entries(divided())
        if of_tables:
            kept.keep_tables(verdict.tables.listed)
        return rejected, hashed.digest()

    def _keep(
        self,
        campaign: Campaign,
        number: int,
        final: UploadSet,
        rejected: set[bytes],
        verdict: "Verdict",
    ) -> UploadSet:
        """Keys, sums and messages of what passed, on disk before anything is settled."""
        folder, type = self.folder(campaign.id, number), campaign.key_type(self.server)
        rows = self.storage.uploads.rows(campaign.id, key_files.CHUNK, number)
        kept = ([row for row in some if row[0] not in rejected] for some in rows)
        expected = Expected(type, final.keys, final.checksum, final.tables)
        digest = key_files.write_keys(folder.keys, kept, expected, lambda _: None)
        told = Messages(np.ascontiguousarray(verdict.share.messages.words[:, verdict.keys]))
        folder.save_messages(final.checksum, told.to_bytes())
        folder.save_messages(final.checksum, verdict.tables.messages, TABLES)
        verdict.share.keep(verdict.keys, KeyFile(folder.keys, type, digest, final.keys))
        verdict.tables.keep(TableSums(folder.table_sums, final.checksum))
        return replace(final, key_file=digest)


@dataclass(frozen=True)
class Verdict:
    """What both servers came to about the uploads of a set, and this server's share of them."""

    file: KeyFile
    share: CheckedShare
    keys: NDArray[np.bool_]  # which passed
    tables: TableVerdict

    @property
    def people(self) -> int:
        """Whose values count."""
        return int(self.keys.sum()) + self.tables.counts[1]


def passed_entries(
    entries: bytes, keys: NDArray[np.bool_], tables: Mapping[bytes, bool]
) -> tuple[NDArray[np.bool_], int]:
    """Which of some entries passed: of each key the next of `keys`, of a table what stands under its id; and how many
    of them are keys."""
    count = len(entries) // ENTRY_BYTES
    if not tables:
        return keys[:count], count
    by_id = [tables.get(id_of(entry)) for entry in split_entries(entries)]
    is_key = np.array([found is None for found in by_id])
    passed, count = np.array([bool(found) for found in by_id]), int(is_key.sum())
    passed[is_key] = keys[:count]
    return passed, count


def wave_tables(storage: Storage, campaign: Campaign, server: int, number: int) -> WaveTables:
    """The tables of a wave's set, as this server has them."""
    tables = storage.tables.in_wave(campaign.id, number) if campaign.tables else []
    return WaveTables(campaign, server, number, tables, partial(storage.tables.parts, campaign.id))


def exchange_challenge_seed(identity: Identity, entry: StoredCampaign, wave: Wave, given: CheckSeed) -> CheckSeed:
    """The other server asks for this one's part of a wave's challenge, and tells its own.

    Only when the wave's set is fixed, so that nothing is added to it under a challenge that somebody knows; and only
    the one challenge that the campaign was made with.
    """
    campaign = entry.campaign
    check_digest(campaign.digest, given.digest)
    if wave.set is None:
        raise NotReady("the set of uploads is not fixed here; there is no challenge before that", retry_after=2)
    if not verify_commitment(campaign, 1 - identity.server, given.seed, wave.number):
        raise ChallengeMismatch("this is not the part of the challenge that the campaign commits the caller to")
    return CheckSeed(digest=campaign.digest, seed=identity.check_seed(campaign, wave.number))


def key_check_messages(
    identity: Identity, folder: Folder, campaign: Campaign, wave: int, query: bytes, of: str = KEYS
) -> bytes:
    """What this server found about some keys, or tables, of a set, in the order of their ids, with its signature behind
    it."""
    asked = read(CheckMessagesQuery, query)
    check_digest(campaign.digest, asked.digest)
    messages = folder.some_messages(asked.checksum, SIZES[of] * asked.start, SIZES[of] * asked.stop, of)
    if messages is None:
        raise NotReady("these uploads are not checked here yet", retry_after=2)
    question = messages_question(wave, query, of)
    return messages + identity.sign(covered_messages(identity.server, question, messages))
