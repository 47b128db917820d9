"""Waves: how a campaign that reports as it runs is cut into sets of parties, and what is released of them.

Each party is in one wave, the one that was open when both servers had stored it. Every wave is released by itself, at
the campaign's `epsilon`; what was said beforehand to be pooled is released once more, all waves up to one together, at
an epsilon of its own. A wave with fewer than `min_uploads` uploads is not released by itself but together with the
next.

>>> waves = Waves(every="week", count=52, pooled=(Pooled(through=26, epsilon=0.5), Pooled(through="end", epsilon=1.0)))
>>> [waves.pooled_from(wave) for wave in (1, 26, 27)]
[1.5, 1.5, 1.0]
"""

import calendar
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fss.challenge import MAX_BITS, MAX_WAVE

MANUAL = "manual"
Every = Literal["week", "month", "manual"] | Annotated[int, Field(ge=1, le=100_000_000)]


class Pooled(BaseModel):
    """One more release, of all waves up to this one together."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    through: Annotated[int, Field(ge=1, le=MAX_WAVE)] | Literal["end"]
    epsilon: float = Field(gt=0, allow_inf_nan=False)


Milestones = Annotated[tuple[Pooled, ...], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)]


class Waves(BaseModel):
    """When a wave ends, how many there are, and what is pooled."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    every: Every
    count: int = Field(ge=1, le=MAX_WAVE)
    pooled: Milestones = Field(default=(), max_length=100)

    @property
    def milestones(self) -> dict[int, float]:
        """The pooled releases' epsilon by the number of the last wave in each."""
        return {self.count if one.through == "end" else one.through: one.epsilon for one in self.pooled}

    def pooled_from(self, wave: int) -> float:
        """The epsilon of all pooled releases that a party of this wave, or of a later one, may be in."""
        return sum(epsilon for at, epsilon in self.milestones.items() if at >= wave)

    @property
    def is_timed(self) -> bool:
        return self.every in ("week", "month")

    def end(self, opens: datetime, wave: int) -> datetime | None:
        """When a wave closes, if that is a matter of time."""
        if self.every == "week":
            return opens + timedelta(weeks=wave)
        return _months_later(opens, wave) if self.every == "month" else None

    def describe(self) -> str:
        """What consent, status and reports say of it."""
        how = {"week": "every week", "month": "every month", MANUAL: "when the operators say so"}
        each = how.get(str(self.every), f"every {self.every} uploads")
        pools = [f"{at} at epsilon {epsilon:g}" for at, epsilon in self.milestones.items()]
        pooled = f"; pooled once more after wave {', '.join(pools)}" if pools else ""
        return f"{self.count} waves, a new one {each}, each released by itself{pooled}"


def _months_later(time: datetime, months: int) -> datetime:
    """The same day so many months later, or the last one of a month that is shorter."""
    year, month = time.year + (time.month - 1 + months) // 12, (time.month - 1 + months) % 12 + 1
    return time.replace(year=year, month=month, day=min(time.day, calendar.monthrange(year, month)[1]))


class _Described(Protocol):
    """What a campaign says besides its waves."""

    @property
    def bits(self) -> int: ...
    @property
    def opens(self) -> datetime | None: ...
    @property
    def closes(self) -> datetime | None: ...
    @property
    def seal(self) -> str: ...
    @property
    def min_uploads(self) -> int: ...


def check(waves: Waves, campaign: _Described) -> None:
    """Raise unless a campaign can have these waves."""
    if campaign.closes is not None or campaign.seal != "by-agreement":
        raise ValueError("a campaign of waves ends with its last one: leave out closes and seal, waves.count says when")
    if waves.is_timed and campaign.opens is None:
        raise ValueError(f"waves that close every {waves.every} need opens, the time from which they are counted")
    if waves.is_timed and campaign.opens is not None and campaign.opens.year + waves.count > 9998:
        raise ValueError("the last wave would end after the year 9998")
    if isinstance(waves.every, int) and waves.every < campaign.min_uploads:
        raise ValueError(f"waves of {waves.every} uploads are smaller than min_uploads ({campaign.min_uploads})")
    ends = [waves.count if one.through == "end" else one.through for one in waves.pooled]
    if any(a >= b for a, b in pairwise(ends)) or any(at > waves.count for at in ends):
        raise ValueError(f"waves.pooled: each after another of the {waves.count} waves, in their order")
    if campaign.bits > MAX_BITS:
        raise ValueError(f"waves are evaluated whole, up to {MAX_BITS} bits; grid and strata need {campaign.bits}")
