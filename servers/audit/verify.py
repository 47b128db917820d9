"""What an auditor does: compute every share of one server again and compare it with what that server signed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from campaign.envelopes import decode_shares
from campaign.errors import InvalidUpload, PeerMismatch, Problem
from campaign.spec import Campaign, to_base64url
from campaign.wire import PeerGroupsQuery, ShareQuery, read
from fss import FssError, KeyBatch, field
from fss.field import Words
from servers.compute.shares import share_at, share_of
from servers.compute.unnoised import Unnoised
from servers.release import groups, noised
from servers.release.noise import covers
from servers.release.publish import GROUPS, SHARES
from servers.release.statement import Signed, Statement, check, commits, require_signed, split
from servers.storage.entries import ENTRY_BYTES, set_checksum
from servers.storage.objects import file_digest

HONEST = "honest"
_NOTHING = "nothing was published"
_BEFORE_ANSWERS = 5  # findings
_SHARES_HEAD = 88  # bytes before the elements of an answer


@dataclass(frozen=True)
class Finding:
    """What was compared, and `HONEST` or what differs."""

    what: str
    verdict: str

    @property
    def is_honest(self) -> bool:
        return self.verdict == HONEST


@dataclass(frozen=True)
class Audit:
    """One server's keys and noise secret, and what it once said about them."""

    campaign: Campaign
    statement: Statement
    keys: KeyBatch
    secret: bytes

    @property
    def _source(self) -> noised.Source:
        bound = covers(self.campaign.id, self.statement.checksum, self.statement.keys)
        return noised.Source(self.secret, self.statement.server, bound, self.campaign)

    @cached_property
    def _whole(self) -> Unnoised:
        return share_of(self.campaign, self.keys)

    def shares(self, query: ShareQuery) -> Words:
        if query.positions == "all":
            return noised.curve(self._whole, self._source)
        positions = np.array(query.positions, np.int64)
        if self.campaign.scheme == "dpf":
            return noised.curve(self._whole, self._source)[positions]
        return noised.points(asyncio.run(share_at(self.keys, positions, _never)), self._source, positions)

    def groups(self, query: PeerGroupsQuery) -> Words:
        return noised.groups(self._whole, self._source, groups.read_groups(self.campaign, query))


async def _never() -> bool:
    return False


def verify(keys: Path, evidence: Path, digest: str) -> list[Finding]:
    """Every finding; the server was honest if all of them say so. A file that is missing is an OSError.

    `digest` is the campaign's, from neither side: parties and analysts have it. The keys by which servers sign stand in
    the campaign, so whoever could put another campaign in could sign for the other server.
    """
    campaign = Campaign.from_json((evidence / "campaign.json").read_bytes())
    findings = [_finding("campaign", lambda: _campaign(campaign, keys, digest))]
    if not findings[0].is_honest:
        return findings
    said = read(Signed, (evidence / "statement").read_bytes()).statement
    findings += [
        _finding("statement", lambda: _statement(campaign, said, evidence)),
        _finding("set of uploads", lambda: _set(said, keys)),
        _finding("keys", lambda: _keys(said, keys)),
        _finding("noise", lambda: _noise(said, keys)),
    ]
    if not all(finding.is_honest for finding in findings):
        return findings
    opened = KeyBatch.open(keys / "keys", campaign.id, expected=campaign.key_type(said.server))
    audit = Audit(campaign, said, opened, _secret(keys))
    for path in sorted(evidence.glob("*.answer")):
        question, answer = path.with_suffix(".question").read_bytes(), path.read_bytes()
        findings.append(_answer(audit, question, answer))
    if len(findings) == _BEFORE_ANSWERS:
        findings.append(Finding("releases", "there is no answer in the evidence, so nothing can be compared"))
    published = _finding("published curve", lambda: _published(said, evidence))
    return findings if published.verdict == _NOTHING else [*findings, published]


def _campaign(campaign: Campaign, keys: Path, digest: str) -> str:
    if to_base64url(campaign.digest) != digest:
        return f"the evidence is about another campaign than {digest}"
    same = (keys / "campaign.json").read_bytes() == campaign.canonical
    return HONEST if same else "the keys handed over are of another campaign"


def _finding(what: str, compare: Callable[[], str]) -> Finding:
    try:
        return Finding(what, compare())
    except (Problem, FssError, ValueError, EOFError) as problem:
        return Finding(what, str(problem))


def _statement(campaign: Campaign, said: Statement, evidence: Path) -> str:
    check((evidence / "statement").read_bytes(), campaign, said.server, said)
    return HONEST


def _set(said: Statement, keys: Path) -> str:
    entries = (keys / "entries").read_bytes()
    if len(entries) != ENTRY_BYTES * said.count:
        return f"{len(entries) // ENTRY_BYTES} uploads are handed over, {said.count} were signed for"
    same = set_checksum(entries) == said.checksum
    return HONEST if same else "the uploads handed over are not those that were signed for"


def _keys(said: Statement, keys: Path) -> str:
    same = file_digest(keys / "keys") == said.keys
    return HONEST if same else "the keys handed over are not those that were signed for"


def _noise(said: Statement, keys: Path) -> str:
    same = commits(said, _secret(keys))
    return HONEST if same else "the noise secret handed over is not the one that was committed to"


def _secret(keys: Path) -> bytes:
    try:
        return bytes.fromhex((keys / "noise.secret").read_text())
    except ValueError:
        raise InvalidUpload("noise.secret is not hexadecimal") from None


def _answer(audit: Audit, question: bytes, answer: bytes) -> Finding:
    what, _, query = question.partition(b"\n")
    try:
        name, computed = _computed(audit, what.decode(errors="replace"), query)
    except Problem as problem:
        return Finding("a question", str(problem))

    def compare() -> str:
        require_signed(audit.campaign, audit.statement, question, answer)
        shares = decode_shares(split(answer)[0], audit.campaign, audit.statement.server, computed.size)
        return _difference(shares.elements, computed)

    return _finding(name, compare)


def _computed(audit: Audit, what: str, query: bytes) -> tuple[str, Words]:
    if what == SHARES:
        asked = read(ShareQuery, query)
        count = "all positions" if asked.positions == "all" else f"{len(asked.positions)} positions"
        return f"shares at {count}", audit.shares(asked)
    if what == GROUPS:
        return "shares of score groups", audit.groups(read(PeerGroupsQuery, query))
    raise PeerMismatch(f"{what}: no such question")


def _difference(signed: Words, computed: Words) -> str:
    wrong = np.flatnonzero(signed != computed)
    if not wrong.size:
        return HONEST
    by = int(field.decode(field.sub(signed[wrong[:1]], computed[wrong[:1]]))[0])
    return f"{wrong.size} of {signed.size} numbers differ, the first at place {wrong[0]}, by {by}"


def _published(said: Statement, evidence: Path) -> str:
    """The release is the sum of what both servers gave, or whoever kept the evidence published something else."""
    if not (evidence / "release.npy").is_file() or not (evidence / "noised.npy").is_file():
        return _NOTHING
    release, ours = (np.load(evidence / f"{kind}.npy", allow_pickle=False) for kind in ("release", "noised"))
    for path in evidence.glob("*.answer"):
        if b'"positions":"all"' in path.with_suffix(".question").read_bytes():
            theirs: Any = np.frombuffer(split(path.read_bytes())[0], np.uint64, offset=_SHARES_HEAD)
            same = np.array_equal(field.decode(field.add(ours, theirs)), release)
            return HONEST if same else f"server {1 - said.server} published another sum than that of both shares"
    return _NOTHING
