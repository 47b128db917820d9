"""The check of one wave: every message about a key that the audited server signed, and which uploads passed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fss import FssError, field, table
from fss.challenge import Challenge, derive
from fss.check import Messages, accept
from fss.field import Words
from fss_ecdf.campaign.campaign import Campaign, from_base64url, to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidUpload, Problem
from fss_ecdf.campaign.json_messages import CheckMessagesQuery, read
from fss_ecdf.campaign.tables import table_shape
from fss_ecdf.net.server_identity import verify_commitment
from servers.audit.material import Export, Uploads, check_folder, signed_answers, wave_folder
from servers.audit.tables import ExportedTables, read_checked
from servers.audit.verdict import HONEST, Finding, Nothing, Wrong, finding
from servers.compute.shares import messages_of
from servers.compute.table_sums import decode_messages
from servers.release.statement import messages_question, require_messages_signed, split
from servers.storage.entries import id_of, set_checksum
from servers.storage.entries import split as split_entries
from servers.storage.key_files import KEYS, TABLES

AT_ONCE = 1 << 14  # keys that are checked together
_ROWS = ("digest", "f", "q")


@dataclass(frozen=True)
class CheckAudit:
    """The check of one set of a wave."""

    export: Export
    evidence: Path
    number: int
    checked: bytes  # the checksum of the set

    @property
    def server(self) -> int:
        return self.export.server

    @property
    def campaign(self) -> Campaign:
        return self.export.campaign

    def findings(self) -> Iterator[Finding]:
        """Until the first one on which all later ones rest."""
        for what, compare in (("uploads that were checked", self._uploads), ("challenge", self._challenge)):
            found = finding(self._called(what), self.server, compare)
            yield found
            if found.verdict != HONEST:
                return
        yield finding(self._called("check messages"), 1 - self.server, self._messages)
        if self._checked_tables:
            yield finding(self._called("check messages about tables"), 1 - self.server, self._about_tables)
        if self._gone:
            yield finding(self._called("messages about erased uploads"), self.server, self._erased)
        if self.export.about[self.number].checked == self.checked:
            yield finding(self._called("uploads that passed"), self.server, self._passed)

    def _called(self, what: str) -> str:
        return what if self.campaign.waves is None else f"wave {self.number}: {what}"

    def _folder(self, of: Path) -> Path:
        return check_folder(of, self.number, to_base64url(self.checked))

    @cached_property
    def _entries(self) -> list[bytes]:
        """The uploads that were checked, in their order."""
        return split_entries((self._folder(self.export.folder) / "entries").read_bytes())

    def _uploads(self) -> int:
        """They are those that were checked, and so are the keys: a leaf covers the hash of both servers' shares."""
        if not (self._folder(self.export.folder) / "entries").is_file():
            raise Nothing(f"server {self.server} hands over no list of the uploads in this check")
        if set_checksum(b"".join(self._entries)) != self.checked:
            raise Wrong(self.server, "the uploads handed over are not those that were checked")
        there, places = self._rows
        for entry, place in zip(self._keys, places, strict=True):
            if place >= 0 and there.entries[place] != entry:
                detail = f"the key of upload {to_base64url(id_of(entry))} is not the one that was checked"
                raise Wrong(self.server, detail)
        of_tables = {id_of(entry): entry for tables in self._tables for entry in tables.entries}
        for entry in self._entries:
            if of_tables.get(id_of(entry), entry) != entry:
                detail = f"the share of table {to_base64url(id_of(entry))} is not the one that was checked"
                raise Wrong(self.server, detail)
        self._require_list_of_tables()
        return 0

    def _require_list_of_tables(self) -> None:
        """The list of the tables is the audited server's own: what it left out, or added, would not be compared, or
        what the other server kept would seem to be about too many."""
        checked, listed = {id_of(entry) for entry in self._entries}, self._checked_tables
        keys = {id_of(entry) for entry in self._rows[0].entries}
        there = {one.id: one.people for tables in self._tables for one in tables.tables if one.id in checked}
        wrong = {i for i, people in there.items() if listed.get(i) != people}
        wrong |= {i for i in listed if i in keys or i not in checked}
        if wrong:
            detail = f"the list of the tables that were checked is wrong about upload {to_base64url(min(wrong))}"
            raise Wrong(self.server, detail)

    @cached_property
    def _checked_tables(self) -> dict[bytes, int]:
        """The tables among the uploads that were checked, in the order of their ids, each with its people."""
        return dict(sorted(read_checked(self._folder(self.export.folder) / "tables").items()))

    @cached_property
    def _keys(self) -> list[bytes]:
        """The keys among them."""
        return [entry for entry in self._entries if id_of(entry) not in self._checked_tables]

    @cached_property
    def _tables(self) -> tuple[ExportedTables, ExportedTables]:
        """Those that passed, and those that failed and are still there."""
        return self.export.tables[self.number], self.export.rejected_tables(self.number)

    @cached_property
    def _seeds(self) -> tuple[bytes, bytes]:
        try:
            first, second = map(bytes.fromhex, (self._folder(self.export.folder) / "seeds").read_text().split())
        except ValueError:
            raise InvalidUpload("seeds does not hold two parts of a challenge in hexadecimal") from None
        return first, second

    def _challenge(self) -> int:
        """Both parts are those that stand in the campaign."""
        for server, seed in enumerate(self._seeds):
            if not verify_commitment(self.campaign, server, seed, self.number):
                raise Wrong(
                    self.server, f"the part of server {server} in the challenge is not what the campaign commits it to"
                )
        return 0

    @cached_property
    def _by(self) -> Challenge:
        type = self.campaign.key_type(self.server)
        return derive(type.scheme, type.bits, self.campaign.digest, *self._seeds)

    @cached_property
    def _rows(self) -> tuple[Uploads, NDArray[np.int64]]:
        """Uploads that are still there, and the place of each checked one among them, or -1."""
        there = self.export.uploads[self.number].and_those(self.export.rejected(self.number))
        places = {id_of(entry): place for place, entry in enumerate(there.entries)}
        return there, np.array([places.get(id_of(entry), -1) for entry in self._keys], np.int64)

    @property
    def _found(self) -> NDArray[np.bool_]:
        return np.asarray(self._rows[1] >= 0)

    @cached_property
    def _computed(self) -> Words:
        """The messages that the keys, the proofs and the challenge make; 0 about uploads that are erased."""
        uploads, places = self._rows
        words = np.zeros((3, len(self._keys)), np.uint64)
        found = np.flatnonzero(self._found)
        for start in range(0, found.size, AT_ONCE):
            some = found[start : start + AT_ONCE]
            words[:, some] = messages_of(uploads.keys(places[some]), uploads.proofs(places[some]), self._by).words
        return words

    def _told(self, of: Path, server: int) -> tuple[Words, NDArray[np.bool_]]:
        """The messages about keys that a server signed, and about which of them there are some."""
        words, known = np.zeros((3, len(self._keys)), np.uint64), np.zeros(len(self._keys), np.bool_)
        for some, messages in self._signed(of, server, KEYS, len(self._keys)):
            try:
                words[:, some] = Messages.from_bytes(messages, some.stop - some.start).words
            except FssError as error:
                raise Wrong(server, f"it has signed what cannot be messages: {error}") from None
            known[some] = True
        return words, known

    def _told_of_tables(self, of: Path, server: int) -> dict[bytes, table.Message]:
        """The messages about tables that a server signed, by the tables' ids."""
        told, ids = dict[bytes, table.Message](), list(self._checked_tables)
        for some, messages in self._signed(of, server, TABLES, len(ids)):
            try:
                told.update(zip(ids[some], decode_messages(messages), strict=True))
            except (FssError, ValueError) as error:
                raise Wrong(server, f"it has signed what cannot be messages about tables: {error}") from None
        return told

    def _signed(self, of: Path, server: int, what: str, count: int) -> Iterator[tuple[slice, bytes]]:
        """What a server signed about keys, or about tables, of which so many were checked."""
        for question, answer in signed_answers(self._folder(of)):
            try:
                require_messages_signed(self.campaign, server, question, answer)
            except InvalidPeerResponse:  # wrong at the server that kept it
                raise Wrong(1 - server, f"the messages handed over are not signed by server {server}") from None
            query = question.partition(b"\n")[2]
            asked = read(CheckMessagesQuery, query)
            questions = [messages_question(self.number, query, one) for one in (KEYS, TABLES)]
            if question not in questions or (asked.digest, asked.checksum) != (self.campaign.digest, self.checked):
                raise InvalidPeerResponse("these messages are about another set than the one that was checked")
            if question != messages_question(self.number, query, what):
                continue
            if not asked.start <= asked.stop <= count:
                raise InvalidPeerResponse("these messages are about more uploads than were checked")
            yield slice(asked.start, asked.stop), split(answer)[0]

    @cached_property
    def _computed_of_tables(self) -> dict[bytes, table.Message]:
        """The messages that the words and the challenge make, of tables that are still there."""
        return {k: v for tables in self._tables for k, v in tables.messages(self._seeds).items()}

    def _about_tables(self) -> int:
        told, compared = self._told_of_tables(self.evidence, self.server), 0
        for upload_id, message in self._computed_of_tables.items():
            if upload_id in told and told[upload_id] != message:
                name = to_base64url(upload_id)
                raise Wrong(self.server, f"the message about table {name} is not what its words and the challenge make")
            compared += upload_id in told
        if len(told) < len(self._checked_tables):
            detail = f"of {len(self._checked_tables)} messages about tables, server {1 - self.server} kept {len(told)}"
            raise Nothing(detail)
        return 4 * compared

    @cached_property
    def _gone(self) -> int:
        """How many of the uploads that were checked are erased."""
        there = {one.id for tables in self._tables for one in tables.tables}
        return int((~self._found).sum()) + len(self._checked_tables.keys() - there)

    def _messages(self) -> int:
        told, known = self._told(self.evidence, self.server)
        compared = known & self._found
        wrong = np.flatnonzero(compared & (told != self._computed).any(axis=0))
        if wrong.size:
            first = int(wrong[0])
            row = int(np.argmax(told[:, first] != self._computed[:, first]))
            by = int(field.decode(field.sub(told[row, first : first + 1], self._computed[row, first : first + 1]))[0])
            raise Wrong(
                self.server,
                f"messages about {wrong.size} of {len(self._keys)} uploads differ, the first about upload "
                f"{to_base64url(id_of(self._keys[first]))}: its {_ROWS[row]} by {by}",
            )
        if not known.all():
            raise Nothing(f"of {len(self._keys)} messages, server {1 - self.server} kept {int(known.sum())}")
        return 3 * int(compared.sum())

    def _erased(self) -> int:
        raise Nothing(f"{self._gone} rejected uploads were erased; what was said about them cannot be computed again")

    def _passed(self) -> int:
        """The sealed set is what both servers' messages accept."""
        own, other = self._computed.copy(), 1 - self.server
        if not self._found.all():
            try:
                told, known = self._told(self.evidence, self.server)
            except (Wrong, Problem) as problem:
                raise Nothing(str(problem)) from None
            own[:, ~self._found] = told[:, ~self._found]
            if not (known | self._found).all():
                raise Nothing(f"server {other} did not keep all messages about uploads that are erased")
        theirs, known = self._told(self.export.kept, other)
        if not known.all():
            raise Nothing(f"server {self.server} did not keep all messages of server {other}")
        first, second = (own, theirs) if self.server == 0 else (theirs, own)
        passed = accept(Messages(first), Messages(second), self._by)
        expected = {entry for entry, good in zip(self._keys, passed, strict=True) if good} | self._passed_tables()
        sealed = {*self.export.uploads[self.number].entries, *self.export.tables[self.number].entries}
        for off, what in ((expected - sealed, "passed and are not"), (sealed - expected, "failed and are")):
            if off:
                name = to_base64url(id_of(min(off)))
                raise Wrong(self.server, f"{len(off)} uploads {what} in the set, the first {name}")
        return len(self._entries)

    def _passed_tables(self) -> set[bytes]:
        """The entries of tables that both servers' messages accept."""
        if not self._checked_tables:
            return set()
        other = 1 - self.server
        own = {**self._told_of_tables(self.evidence, self.server), **self._computed_of_tables}
        theirs = self._told_of_tables(self.export.kept, other)
        if missing := len(self._checked_tables.keys() - (own.keys() & theirs.keys())):
            raise Nothing(f"messages about {missing} tables were not kept, or the tables are erased")
        pairs = ((entry, id_of(entry)) for entry in self._entries if id_of(entry) in self._checked_tables)
        return {
            entry
            for entry, i in pairs
            if table.accept(own[i], theirs[i], table_shape(self.campaign, self._checked_tables[i]))
        }


def check_audits(export: Export, evidence: Path) -> Iterator[CheckAudit]:
    """Of every check of waves whose keys are still there, those that ended with a wave that was open again included."""
    for number, wave in export.about.items():
        if wave.erased or wave.checked is None:
            continue
        folders = [f for of in (export.folder, evidence) for f in wave_folder(of, number).glob("check-*")]
        found = {from_base64url(folder.name.removeprefix("check-"), 32, "a checksum") for folder in folders}
        for checked in sorted({wave.checked, *found}):
            yield CheckAudit(export, evidence, number, checked)
