"""Releases: what is published together, and the names by which servers, auditors and analysts mean the same one.

>>> ReleaseName.parse("pooled 4"), str(ReleaseName("wave", 5))
(ReleaseName(kind='pooled', through=4), 'wave 5')
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.waves import Waves

Kind = Literal["curve", "wave", "pooled"]


@dataclass(frozen=True)
class ReleaseName:
    """The curve of a plain campaign, one wave by itself, or all waves through one pooled."""

    kind: Kind
    through: int  # the last wave in it; 0 of a plain campaign

    def __str__(self) -> str:
        return self.kind if self.kind == "curve" else f"{self.kind} {self.through}"

    @property
    def order(self) -> tuple[int, str]:
        """Sorts releases by their last wave; a pool before the wave it ends with."""
        return self.through, self.kind

    @property
    def query(self) -> dict[str, str]:
        """The query parameters that ask a server for it."""
        return {} if self.kind == "curve" else {self.kind: str(self.through)}

    @classmethod
    def parse(cls, text: str) -> "ReleaseName":
        """The release that is called so; raises ValueError where none can be."""
        kind, _, through = text.partition(" ")
        for known in get_args(Kind):
            name = cls(known, int(through) if through.isdecimal() else 0)
            if known == kind and str(name) == text:
                return name
        raise ValueError(f"no release is called {text!r}")

    @classmethod
    def from_query(cls, wave: int | None, pooled: int | None) -> "ReleaseName":
        """The release that query parameters name; without any, a plain campaign's."""
        if wave is not None and pooled is not None:
            raise InvalidQuery("name one of wave and pooled")
        if pooled is not None:
            return cls("pooled", pooled)
        return CURVE if wave is None else cls("wave", wave)

    def epsilon(self, waves: Waves, own: float) -> float:
        """What it costs a party, where `own` is the epsilon of a wave by itself; ValueError if there is no such one."""
        epsilon = {"wave": own, "pooled": waves.milestones.get(self.through)}.get(self.kind)
        if epsilon is None:
            raise ValueError(f"a campaign of these waves does not release {self}")
        return epsilon


CURVE = ReleaseName("curve", 0)


@dataclass(frozen=True)
class Release:
    """One release: its name, of which waves it is, and at which epsilon."""

    name: ReleaseName
    waves: tuple[int, ...]
    epsilon: float

    @property
    def kind(self) -> Kind:
        return self.name.kind

    @property
    def through(self) -> int:
        return self.name.through


def releases_of(waves: Waves, epsilon: float, least: int, counts: Sequence[int]) -> list[Release]:
    """What is released of the first waves, which are sealed with so many uploads each.

    Waves are gathered until they have `least` uploads together: the last of them is released with the others in it.
    Nobody is in two of these releases. A pooled release has everybody up to its wave.
    """
    found, gathered, missing = list[Release](), list[int](), least
    for number, count in enumerate(counts, 1):
        gathered.append(number)
        missing -= count
        if missing <= 0:
            found.append(Release(ReleaseName("wave", number), tuple(gathered), epsilon))
            gathered, missing = [], least
        if number in waves.milestones and sum(counts[:number]) >= least:
            pooled = ReleaseName("pooled", number)
            found.append(Release(pooled, tuple(range(1, number + 1)), waves.milestones[number]))
    return found


def is_finished(waves: Waves, least: int, counts: Sequence[int]) -> list[int]:
    """Of the first waves, sealed with so many uploads each: those that no later release can contain."""
    plans = releases_of(waves, 1.0, least, counts)
    ended = len(counts) == waves.count
    alone = {wave for plan in plans if plan.kind == "wave" for wave in plan.waves}
    numbers = range(1, len(counts) + 1)
    open_pools = [at for at in waves.milestones if at > len(counts)]
    return [k for k in numbers if (ended or k in alone) and not any(at >= k for at in open_pools)]


def cumulative(plans: Sequence[Release], through: int) -> list[Release]:
    """Releases that together hold everybody released up to a wave, once, with the least noise.

    The sum of the waves' own releases, or a pooled one and the sum of those after it. The noise of a release has a
    variance that falls with the square of epsilon.
    """
    singles = [plan for plan in plans if plan.kind == "wave" and plan.through <= through]
    ways = [singles]
    for pool in (plan for plan in plans if plan.kind == "pooled" and plan.through <= through):
        after = [plan for plan in singles if plan.through > pool.through]
        held = {wave for plan in singles for wave in plan.waves}
        if not any(wave <= pool.through for plan in after for wave in plan.waves) and held <= {
            *pool.waves,
            *(wave for plan in after for wave in plan.waves),
        }:
            ways.append([pool, *after])
    # A pool may hold a wave that is too small to be released by itself yet: nobody who is released is left out.
    return min(ways, key=lambda way: (-sum(len(p.waves) for p in way), sum(p.epsilon**-2 for p in way)))
