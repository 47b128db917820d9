"""Tables in a campaign: which positions they count at, when a site sends one, and what binds it to its place.

A site sends its values as keys, one each, or as a table of its counts (`fss/table.py`), whichever has fewer bytes: both
sides compute that from public numbers, and servers refuse a table where keys were smaller. So the bytes of a table are
bounded by the number of people that it counts as, and that number by the site's quota. A table counts at the positions
that values can have: the thresholds of every stratum, without what the domain is padded with.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fss import table
from fss.field import Words
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidUpload

MAX_TABLE_BYTES = 15 << 20  # of one server's words, so that a body has 16 MiB; whoever has more sends several tables

_BINDER = b"fss-ecdf table 1\n"
_PLACE = struct.Struct("<32s16sIIII")
_ABOUT = struct.Struct("<32s16sIQ")


def position_count(campaign: Campaign) -> int:
    """How many positions values can have."""
    return len(campaign.strata) * campaign.variable.size


def real_positions(campaign: Campaign) -> NDArray[np.int64]:
    """The positions that values can have, in the order of a table's counts."""
    strata, index = np.arange(len(campaign.strata)), np.arange(campaign.variable.size)
    return campaign.position(np.repeat(strata, index.size), np.tile(index, strata.size))


def to_histogram(campaign: Campaign, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts of a table, from the positions of values."""
    strata, index = campaign.strata_and_indices(positions)
    return np.bincount(strata * campaign.variable.size + index, minlength=position_count(campaign)).astype(np.int64)


def to_domain(campaign: Campaign, sums: Words) -> Words:
    """Sums of tables at every point of the domain; 0 where no value can be."""
    return table.scatter(sums, real_positions(campaign), 1 << campaign.bits)


def is_for_table(campaign: Campaign, people: int) -> bool:
    """The public rule: whether so many values go as one table."""
    if not campaign.tables or not 0 < people <= campaign.max_uploads:
        return False
    positions = position_count(campaign)
    if not table.worth_it(positions, people, campaign.key_type(0)):
        return False
    return table.shape_for(positions, people).bytes <= MAX_TABLE_BYTES


def table_shape(campaign: Campaign, people: int) -> table.Shape:
    """What a table of so many people's values looks like in this campaign, or why it takes none."""
    if not campaign.tables:
        raise InvalidUpload("this campaign takes keys only: it was made without tables = true")
    if not is_for_table(campaign, people):
        raise InvalidUpload(
            f"{people} values are no table of this campaign: keys are smaller, it is longer than {MAX_TABLE_BYTES} "
            f"bytes, or more than the {campaign.max_uploads} values that the campaign takes"
        )
    return table.shape_for(position_count(campaign), people)


def table_binder(campaign: Campaign, upload_id: bytes, wave: int, people: int) -> bytes:
    """What the expansion of a table's seed is bound to."""
    return _BINDER + _ABOUT.pack(campaign.digest, upload_id, wave, people)


def table_context(campaign: Campaign, upload_id: bytes, wave: int, people: int, attempt: int) -> bytes:
    """What all randomness of a table is for; the last number is that of the variable."""
    return _PLACE.pack(campaign.digest, upload_id, wave, people, attempt, 0)


@dataclass(frozen=True)
class UploadPlan:
    """How a site's values are sent: as keys, or as tables of so many values each."""

    count: int
    each: int | None  # values of one table; None for keys

    @property
    def tables(self) -> int:
        return 0 if self.each is None else -(-self.count // self.each)


def plan_upload(campaign: Campaign, count: int) -> UploadPlan:
    """Keys or tables, by the public rule: one table where its bytes are within the limit, else as few as can be."""
    if not campaign.tables or not count:
        return UploadPlan(count, None)
    positions, tables = position_count(campaign), 1
    while table.shape_for(positions, -(-count // tables)).bytes > MAX_TABLE_BYTES:
        tables += 1
    each = -(-count // tables)
    last = count - (tables - 1) * each
    return UploadPlan(count, each if is_for_table(campaign, each) and is_for_table(campaign, last) else None)
