"""A campaign's release: the curves of all its strata. Every statistic is computed from it, without asking again.

The statistics of the registry are its methods.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyst import registry
from analyst.estimation import public_constraints
from analyst.estimation.cells import on_simplex
from analyst.estimation.estimate import Estimates
from analyst.estimation.uncertainty import CountNoise
from analyst.options import Smoothing
from analyst.statistics.curve import Curve, smoothed
from analyst.statistics.survival import Arm
from fss_ecdf.campaign.array_inputs import names
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery

Floats = NDArray[np.float64]
Stratum = str | int | np.integer[Any] | Sequence[str] | Sequence[int] | None


@dataclass(frozen=True)
class Release:
    """What the servers published: noisy counts at all positions, strata one after the other, padding included.

    `on_grid` says that values were measured in steps of the grid, so that a cell's values are its threshold.
    """

    campaign: Campaign
    n: int
    published: Floats
    on_grid: bool = False
    _curves: dict[tuple[tuple[str, ...], str], Curve] = field(default_factory=dict, repr=False)
    _arms: dict[str, list[Arm]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_curve(cls, campaign: Campaign, n: int, whole: NDArray[Any], on_grid: bool = False) -> "Release":
        """From counts over all positions, as servers and simulations have them."""
        released = campaign.position(len(campaign.strata), 0)
        return cls(campaign, n, whole[:released].astype(np.float64), on_grid)

    @classmethod
    def from_strata(cls, campaign: Campaign, n: int, parts: Sequence[Floats], on_grid: bool = False) -> "Release":
        """From each stratum's counts up to the end of its padding."""
        before = np.cumsum([0.0, *(part[-1] for part in parts[:-1])])
        return cls(campaign, n, np.concatenate([p + b for p, b in zip(parts, before, strict=True)]), on_grid)

    @property
    def counts(self) -> Mapping[str, Floats]:
        """Each stratum's counts as they were published."""
        return {name: self._part(self.published, name) for name in self.campaign.strata}

    @cached_property
    def adjusted(self) -> Floats:
        """The published counts given what is public; raises InvalidQuery where there are categories and no curve."""
        _ = self.campaign.variable.grid
        return public_constraints.public_constraints(self.campaign).adjust(self.published, float(self.n))

    @cached_property
    def totals(self) -> Mapping[str, float]:
        """How many values each stratum has, without missing ones; not negative, and with these n in all."""
        strata = self.campaign.strata
        last = np.array([self._part(self.adjusted, name)[-1] for name in strata])
        if self.campaign.variable.missing:
            last = np.append(last, [self._missing(name) for name in strata])
        return dict(zip(strata, on_simplex(last, float(self.n)).tolist(), strict=False))

    def _missing(self, stratum: str) -> float:
        at = self.campaign.position(self.campaign.stratum(stratum), self.campaign.variable.value_count)
        return float(self.adjusted[at] - self.adjusted[at - 1])

    def _part(self, whole: Floats, stratum: str) -> Floats:
        start = self.campaign.position(self.campaign.stratum(stratum), 0)
        return whole[start : start + self.campaign.variable.grid.size] - (whole[start - 1] if start else 0.0)

    def strata(self, stratum: Stratum) -> tuple[str, ...]:
        """The strata that are meant: those named, each once, or all."""
        chosen = self.campaign.strata if stratum is None else names(stratum)
        if not chosen or len(set(chosen)) != len(chosen):
            raise InvalidQuery(f"name each stratum once, got {', '.join(map(repr, chosen)) or 'none'}")
        for name in chosen:
            self.campaign.stratum(name)
        return tuple(chosen)

    def curve(self, stratum: Stratum = None, *, smoothing: Smoothing = "limited") -> Curve:
        """A stratum's curve, that of several pooled, or, if none is named, that of all."""
        chosen = self.strata(stratum)
        if (chosen, smoothing) not in self._curves:
            raw = np.sum([self._part(self.adjusted, name) for name in chosen], axis=0)
            counts = self._smoothed(chosen, smoothing)
            inverted = self._smoothed(chosen, "isotonic") if smoothing == "limited" else None
            raw.flags.writeable = False
            error = CountNoise(self.campaign, chosen).total_variance ** 0.5
            error = 0.0 if error < 1e-6 else error
            about = self.campaign, chosen, self.n, raw, counts, smoothing, error, self.on_grid
            self._curves[chosen, smoothing] = Curve(*about, inverted)
        return self._curves[chosen, smoothing]

    def _smoothed(self, chosen: tuple[str, ...], how: Smoothing) -> Floats:
        """The sum of the strata's smoothed curves: nearer to the truth than their smoothed sum, and it adds up."""
        each = [smoothed(self.campaign, self._part(self.adjusted, s), self.totals[s], how) for s in chosen]
        counts = np.asarray(np.sum(each, axis=0))
        counts.flags.writeable = False
        return counts

    def mean(self, stratum: Stratum = None, *, confidence: float = 0.95) -> Estimates:
        """The mean of the values."""
        return self.curve(stratum, smoothing="isotonic").mean(confidence)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every statistic of the registry that is computed from a release, as a method."""
        statistic = registry.find(name)
        return statistic.bind(lambda entry, *args, **options: entry(self, *args, **options))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *registry.statistics()]

    def arms(self, smoothing: Smoothing = "isotonic") -> list[Arm]:
        """The arms of a campaign of kind = "survival"."""
        registry.find("survival").check(self.campaign)
        if smoothing not in self._arms:
            self._arms[smoothing] = [
                Arm(name, self.curve(event, smoothing=smoothing), self.curve(censored, smoothing=smoothing))
                for name, (event, censored) in self.campaign.arms.items()
            ]
        return self._arms[smoothing]

    def pair(
        self,
        first: Stratum,
        second: Stratum,
        smoothing: Smoothing,
        roles: tuple[str, str] = ("negative", "positive"),
    ) -> tuple[Curve, Curve]:
        """The curves of two strata; by default of the only two.

        Raises `InvalidQuery` if the campaign has others, so that both must be named.
        """
        strata = self.campaign.strata
        if len(strata) != 2 and (first is None or second is None):
            known = ", ".join(map(repr, strata))
            raise InvalidQuery(f"name the {roles[0]} and the {roles[1]} stratum: this campaign has {known}")
        chosen = strata[0] if first is None else first, strata[1] if second is None else second
        below, above = (self.curve(stratum, smoothing=smoothing) for stratum in chosen)
        return below, above
