"""A part of a report: text, figures and tables; and the sentences that several parts use."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

from analyst.present.table import Tabular, short
from fss_ecdf.campaign.campaign import Campaign

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.estimation.estimate import Estimate

MOST_STRATA = 12


@dataclass(frozen=True)
class Section:
    """A title, words, and named figures and tables; what is drawn has a caption for those who cannot see it."""

    title: str
    words: list[str] = field(default_factory=list)
    figures: "dict[str, tuple[str, Figure]]" = field(default_factory=dict)
    tables: dict[str, Tabular] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def merged(sections: Iterable[Section]) -> list[Section]:
    """Sections with the same title as one, each at the place of its first part; a note is said once."""
    by_title: dict[str, Section] = {}
    for section in sections:
        whole = by_title.setdefault(section.title, Section(section.title))
        for part in fields(Section)[1:]:
            kept, more = getattr(whole, part.name), getattr(section, part.name)
            if isinstance(kept, dict):
                kept.update(more)
            else:
                kept += [text for text in more if text not in kept]
    return list(by_title.values())


class StratumPart(NamedTuple):
    """A stratum that a report describes by itself: its section, what captions call it, the key of its files."""

    stratum: str
    title: str
    name: str
    key: str


def stratum_parts(campaign: Campaign) -> Iterator[StratumPart]:
    """The strata that a report describes by themselves."""
    single = len(campaign.strata) == 1
    for stratum in campaign.strata[:MOST_STRATA]:
        title = "Distribution" if single else f"Distribution: {stratum}"
        yield StratumPart(stratum, title, campaign.title if single else stratum, _key(stratum))


def _key(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")[:40] or "stratum"


def estimate_text(row: "Estimate") -> str:
    """A value with its population interval, as people write it."""
    low, high = row.interval("population")
    if math.isinf(row.value):
        return "not reached"
    to = f"{short(low)} to {short(high)}" if math.isfinite(high) else f"from {short(low)} on"
    if math.isnan(row.value):
        return f"not told, for the noise is too large (95 % population interval {to})"
    return f"{short(row.value)} (95 % population interval {to})"
