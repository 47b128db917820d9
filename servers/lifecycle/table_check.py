"""The check of a wave's tables, in the stage that checks keys and by the same challenge (`key_check.py`).

Each server tells the other 32 bytes about each table, in the order of their ids. A table that fails is rejected like a
key, with all people that it counts as; its site is named to the operator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fss import table
from fss.field import Words
from servers import log
from servers.compute.table_sums import TableSums, WaveTables, accepted, encode_messages, wave_point
from servers.storage.tables import StoredTable

NAMED = 100  # rejected tables that are named in the log


@dataclass(frozen=True)
class CheckedTables:
    """A wave's tables after this server's pass, before it is known which of them count."""

    of: WaveTables
    messages: list[table.Message]
    sums: Words

    @staticmethod
    def make(of: WaveTables, seeds: Sequence[bytes], progress: Callable[[float], None]) -> "CheckedTables":
        if not of.tables:
            return CheckedTables(of, [], of.no_sums())
        return CheckedTables(of, *of.check(wave_point(of.campaign.digest, of.wave, seeds), progress))

    def decide(self, theirs: list[table.Message]) -> "TableVerdict":
        """Both servers come to the same one."""
        pair = (self.messages, theirs) if self.of.server == 0 else (theirs, self.messages)
        return TableVerdict(self, accepted(self.of.campaign, self.of.tables, *pair))


@dataclass(frozen=True)
class TableVerdict:
    """Which tables of a wave count."""

    checked: CheckedTables
    passed: list[bool]

    @property
    def listed(self) -> bytes:
        """Of each its id and how many people it is of, for an auditor."""
        return b"".join(one.id + one.people.to_bytes(8, "little") for one in self.checked.of.tables)

    @property
    def by_id(self) -> dict[bytes, bool]:
        return {one.id: good for one, good in zip(self.checked.of.tables, self.passed, strict=True)}

    def those(self, *, passed: bool) -> list[StoredTable]:
        return [one for one, good in zip(self.checked.of.tables, self.passed, strict=True) if good == passed]

    @property
    def counts(self) -> tuple[int, int]:
        """How many tables count, and for how many people."""
        kept = self.those(passed=True)
        return len(kept), sum(one.people for one in kept)

    @property
    def messages(self) -> bytes:
        """What was told about tables that count."""
        return encode_messages(m for m, good in zip(self.checked.messages, self.passed, strict=True) if good)

    def keep(self, sums: TableSums) -> None:
        """Save the sum of those that count; only the others are read again."""
        if self.checked.of.tables:
            left = self.checked.sums.copy()
            self.checked.of.add(left, self.those(passed=False), subtract=True)
            sums.save(left)

    def log_rejected(self, campaign: str, site: Callable[[bytes], str | None]) -> None:
        failed = self.those(passed=False)
        for one in failed[:NAMED]:
            log.event("table-rejected", level="warning", campaign=campaign, site=site(one.id), people=one.people)
        if len(failed) > NAMED:
            log.event("tables-rejected", level="warning", campaign=campaign, tables=len(failed))
