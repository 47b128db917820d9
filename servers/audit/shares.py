"""The numbers of one release: every share that the audited server signed, and what both servers published."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add, attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fss import SCHEMES, field
from fss.field import Words
from fss_ecdf.campaign.binary_messages import decode_shares
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidUpload, Problem
from fss_ecdf.campaign.json_messages import PeerSumsQuery, ShareQuery, read
from fss_ecdf.campaign.release import CURVE, ReleaseName
from servers.audit.material import Export, release_folder, release_name, signed_answers
from servers.audit.verdict import HONEST, Finding, Nothing, Wrong, finding
from servers.compute.raw_share import RawShare
from servers.compute.shares import share_at, share_of
from servers.release import add_noise
from servers.release.noise import covers
from servers.release.release_service import SHARES, SUMS
from servers.release.sealed_releases import SealedRelease
from servers.release.statement import Signed, Statement, check, commits, require_signed, split
from servers.release.sum_queries import QueryReader, used_positions

Counts = NDArray[np.int64]
WaveShares = dict[int, RawShare]  # of waves whose whole share was computed already


@dataclass(frozen=True)
class ReleaseAudit:
    """One release of the audited server: what it handed over, and what the other server kept."""

    export: Export
    evidence: Path
    name: ReleaseName
    shares: WaveShares

    @property
    def release(self) -> SealedRelease:
        """As it follows from the uploads that were handed over."""
        found = self.export.releases.get(self.name)
        if found is None:
            raise Wrong(self.server, f"{self.name} does not follow from the uploads that were handed over")
        return found

    @property
    def server(self) -> int:
        return self.export.server

    @property
    def campaign(self) -> Campaign:
        return self.release.campaign

    def findings(self) -> Iterator[Finding]:
        """Until the first one on which all later ones rest."""
        for what, whose, compare in (
            ("statement", 1 - self.server, self._statement),
            ("set of uploads", self.server, self._set),
            ("keys", self.server, self._keys),
            ("noise", self.server, self._noise),
        ):
            found = finding(self._called(what), whose, compare)
            yield found
            if found.verdict != HONEST:
                return
        kept = release_folder(self.evidence, self.name)
        for question, answer in signed_answers(kept):
            what = self._called(_in_words(question))
            yield finding(what, 1 - self.server, partial(self._answer, question, answer))
        if (kept / "release.npy").is_file() and (kept / "noised.npy").is_file():
            what = f"published curve of server {1 - self.server}"
            yield finding(self._called(what), 1 - self.server, partial(self._published_there, kept))
        own = release_folder(self.export.kept, self.name)
        if (own / "release.npy").is_file():
            what = f"published curve of server {self.server}"
            yield finding(self._called(what), self.server, partial(self._published_here, own))

    def _called(self, what: str) -> str:
        return what if self.name == CURVE else f"{self.name}: {what}"

    @cached_property
    def _said(self) -> Statement:
        """The statement that the other server kept; where it kept none, the one that is handed over."""
        kept = release_folder(self.evidence, self.name) / "statement"
        own = release_folder(self.export.folder, self.name) / "statement"
        return read(Signed, (kept if kept.is_file() else own).read_bytes()).statement

    def _statement(self) -> int:
        """The one that was kept is signed; so is the one that is handed over, and it says the same."""
        for folder, by in ((self.evidence, 1 - self.server), (self.export.folder, self.server)):
            path = release_folder(folder, self.name) / "statement"
            if not path.is_file():
                continue
            try:
                said = read(Signed, path.read_bytes()).statement
                check(path.read_bytes(), self.export.campaign, self.server, said)
            except Problem as problem:
                raise Wrong(by, f"the statement handed over is not one of server {self.server}: {problem}") from None
            if said != self._said:
                raise Wrong(self.server, "it has signed two different statements about this release")
        return 0

    def _set(self) -> int:
        said = self._said
        gone = [number for number, _ in self.release.parts if number not in self.export.uploads]
        if gone:
            raise Nothing(f"the keys of wave {', '.join(map(str, gone))} were erased after their last release")
        made = self.release.sealed
        if made.count != said.count:
            raise Wrong(self.server, f"{made.count} uploads are handed over, {said.count} were signed for")
        if made.checksum != said.checksum:
            raise Wrong(self.server, "the uploads handed over are not those that were signed for")
        return 0

    def _keys(self) -> int:
        if self.release.sealed.key_file != self._said.keys:
            raise Wrong(self.server, "the keys handed over are not those that were signed for")
        return 0

    def _noise(self) -> int:
        if not commits(self._said, self.export.noise_secret(self.name)):
            raise Wrong(self.server, "the noise secret handed over is not the one that was committed to")
        return 0

    @property
    def _source(self) -> add_noise.NoiseKey:
        said = self._said
        bound = covers(self.campaign.id, self.campaign.variable.name, said.checksum, said.keys)
        return add_noise.NoiseKey(self.export.noise_secret(self.name), self.server, bound, self.campaign)

    @cached_property
    def _whole(self) -> RawShare:
        """Of all waves of this release together."""
        for number, _ in self.release.parts:
            if number not in self.shares:
                self.shares[number] = share_of(self.campaign, self.export.uploads[number].keys())
                if self.export.tables[number].tables:
                    self.shares[number] += self.export.tables[number].share()
        return reduce(add, (self.shares[number] for number, _ in self.release.parts))

    @cached_property
    def _curve(self) -> Words:
        return add_noise.noisy_curve(self._whole, self._source)

    def _computed(self, question: bytes) -> Words:
        """The answer that the keys and the noise make."""
        what, _, query = question.partition(b"\n")
        if what == SUMS.encode():
            sums = QueryReader.of(self.campaign).from_peer(query)
            return add_noise.noisy_sums(self._whole, self._source, sums, used_positions(self.campaign))
        if what != SHARES.encode():
            raise InvalidPeerResponse("what was asked is no question of this protocol")
        positions = read(ShareQuery, query).positions
        if positions == "all":
            return self._curve
        at = np.array(positions, np.int64)
        by_points = SCHEMES[self.campaign.variable.scheme].is_cumulative and len(self.release.parts) == 1
        by_points = by_points and not self.release.sealed.tables
        if not by_points or self.campaign.bits <= _WHOLE_BITS:
            return self._curve[at]
        (part,) = self.release.parts
        share = asyncio.run(share_at(self.export.uploads[part[0]].keys(), at, _never))
        return add_noise.noisy_points(share, self._source, at)

    def _answer(self, question: bytes, answer: bytes) -> int:
        self._require_signed(self._said, question, answer)
        computed = self._computed(question)
        try:
            shares = decode_shares(split(answer)[0], self.campaign, self.server, computed.size)
        except Problem as problem:
            raise Wrong(self.server, problem.detail) from None  # it is signed
        if (shares.key_set, shares.uploads) != (self._said.checksum, self._said.count):
            raise Wrong(self.server, "it has signed shares of another set of uploads")
        off = field.decode(field.sub(shares.elements, computed))
        _require_same(self.server, off, "numbers")
        return int(off.size)

    def _require_signed(self, said: Statement, question: bytes, answer: bytes) -> None:
        """What a server did not sign proves nothing against it: it is wrong at the server that kept it."""
        try:
            require_signed(self.campaign, said, question, answer)
        except InvalidPeerResponse:
            detail = f"the answer handed over is not signed by server {said.server} for the set of its statement"
            raise Wrong(1 - said.server, detail) from None

    def _published_there(self, kept: Path) -> int:
        """The other server published the sum of its own share and the signed one."""
        release, ours = (
            _saved(kept, kind, self.campaign, dtype) for kind, dtype in (("release", np.int64), ("noised", np.uint64))
        )
        theirs = self._signed_curve(kept, self.server, self._said)
        if theirs is None:
            raise Nothing(f"the share of server {self.server} that it was made with is not in the evidence")
        _require_same(1 - self.server, release - field.decode(field.add(ours, theirs)), "published numbers")
        return int(release.size)

    def _published_here(self, kept: Path) -> int:
        """The audited server published the sum of what its keys and noise make and what the other one signed."""
        other = 1 - self.server
        said = read(Signed, (kept / "statement").read_bytes()).statement
        check((kept / "statement").read_bytes(), self.export.campaign, other, self._said)
        theirs = self._signed_curve(kept, other, said)
        if theirs is None:
            raise Nothing(f"the share of server {other} that it was made with is not handed over")
        release = _saved(kept, "release", self.campaign, np.int64)
        _require_same(self.server, release - field.decode(field.add(self._curve, theirs)), "published numbers")
        return int(release.size)

    def _signed_curve(self, kept: Path, server: int, said: Statement) -> Words | None:
        """A server's whole share, as it signed it."""
        for question, answer in signed_answers(kept):
            if question == _whole_question(self.campaign):
                self._require_signed(said, question, answer)
                return decode_shares(split(answer)[0], self.campaign, server, 1 << self.campaign.bits).elements
        return None


_WHOLE_BITS = 16  # up to which a whole curve is as quick as a few points


async def _never() -> bool:
    return False


def _whole_question(campaign: Campaign) -> bytes:
    return SHARES.encode() + b"\n" + ShareQuery(digest=campaign.digest, positions="all").to_json().encode()


def _in_words(question: bytes) -> str:
    what, _, query = question.partition(b"\n")
    try:
        if what == SUMS.encode():
            return f"shares of {len(read(PeerSumsQuery, query).weights)} sums"
        positions = read(ShareQuery, query).positions
    except Problem:
        return "a question"
    return "shares at all positions" if positions == "all" else f"shares at {len(positions)} positions"


def _saved(folder: Path, kind: str, campaign: Campaign, dtype: type[np.generic]) -> NDArray[Any]:
    curve: NDArray[Any] = np.load(folder / f"{kind}.npy", allow_pickle=False)
    if curve.shape != (1 << campaign.bits,) or curve.dtype != dtype:
        raise InvalidUpload(f"{kind}.npy is not a curve of this campaign")
    return curve


def _require_same(server: int, off: Counts, what: str) -> None:
    wrong = np.flatnonzero(off)
    if wrong.size:
        at = wrong[0]
        raise Wrong(server, f"{wrong.size} of {off.size} {what} differ, the first at place {at}, by {off[at]}")


def release_audits(export: Export, evidence: Path) -> Iterator[ReleaseAudit]:
    """Of every release that the other server has a statement about, or that the audited one published."""
    shares: WaveShares = {}
    folders = {path.parent.name for path in evidence.glob("release-*/statement")}
    folders |= {path.parent.name for path in export.kept.glob("release-*/release.npy")}
    for name in sorted(map(release_name, folders), key=attrgetter("order")):
        yield ReleaseAudit(export, evidence, name, shares)
