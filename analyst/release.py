"""A campaign's release: the curves of all its strata. Every statistic is computed from it, without asking again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from analyst import calibration
from analyst.calibration import Calibration
from analyst.compare import Comparison, compare
from analyst.curve import Curve, Histogram, Mean
from analyst.options import QUARTILES, Smoothing
from analyst.quantile import Quantiles
from analyst.roc import Roc
from campaign.errors import InvalidQuery
from campaign.spec import Campaign

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Release:
    """What the servers published: for each stratum, its noisy counts at all thresholds."""

    campaign: Campaign
    n: int
    counts: Mapping[str, Floats]
    _curves: dict[tuple[str, str], Curve] = field(default_factory=dict, repr=False)

    @classmethod
    def of_whole(cls, campaign: Campaign, n: int, whole: NDArray[Any]) -> "Release":
        """From counts over all positions, as servers and simulations have them: strata one after the other."""
        counts = {}
        for number, stratum in enumerate(campaign.strata):
            start = number << campaign.grid.bits
            part = whole[start : start + campaign.grid.size].astype(np.float64)
            counts[stratum] = part - (whole[start - 1] if start else 0)
        return cls(campaign, n, counts)

    def curve(self, stratum: str | None = None, *, smoothing: Smoothing = "isotonic") -> Curve:
        """A stratum's curve; the first stratum's, if none is named."""
        name = self.campaign.strata[0] if stratum is None else stratum
        self.campaign.stratum(name)
        if (name, smoothing) not in self._curves:
            made = Curve.make(self.campaign, name, self.n, self.counts[name], smoothing)
            self._curves[name, smoothing] = made
        return self._curves[name, smoothing]

    def quantile(
        self,
        levels: Sequence[float] = QUARTILES,
        stratum: str | None = None,
        *,
        smoothing: Smoothing = "isotonic",
        confidence: float = 0.95,
    ) -> Quantiles:
        """Where the curve reaches each level, with intervals."""
        return self.curve(stratum, smoothing=smoothing).quantile(levels, confidence)

    def histogram(
        self,
        edges: Sequence[object] | SupportsIndex = 20,
        stratum: str | None = None,
        *,
        smoothing: Smoothing = "isotonic",
    ) -> Histogram:
        """Counts of bins."""
        return self.curve(stratum, smoothing=smoothing).histogram(edges)

    def mean(self, stratum: str | None = None) -> Mean:
        """The mean of the values."""
        return self.curve(stratum, smoothing="none").mean()

    def compare(
        self, first: str, second: str, *, smoothing: Smoothing = "isotonic", confidence: float = 0.95
    ) -> Comparison:
        """Kolmogorov-Smirnov distance and Mann-Whitney statistic of two strata."""
        return compare(self.curve(first, smoothing=smoothing), self.curve(second, smoothing=smoothing), confidence)

    def roc(
        self, negative: str | None = None, positive: str | None = None, *, smoothing: Smoothing = "isotonic"
    ) -> Roc:
        """ROC and precision-recall curves; by default the first stratum is negative, the second positive."""
        below, above = self._two(negative, positive)
        return Roc(self.curve(below, smoothing=smoothing), self.curve(above, smoothing=smoothing))

    def calibration(
        self,
        groups: SupportsIndex | Sequence[float] = 10,
        negative: str | None = None,
        positive: str | None = None,
        *,
        fitted: bool = True,
    ) -> Calibration:
        """Calibration and the Hosmer-Lemeshow statistic."""
        below, above = self._two(negative, positive)
        made = calibration.from_curves(self.curve(below), self.curve(above), groups)
        return calibration.hosmer_lemeshow(made, fitted=fitted)

    def _two(self, negative: str | None, positive: str | None) -> tuple[str, str]:
        strata = self.campaign.strata
        if len(strata) != 2 and (negative is None or positive is None):
            raise InvalidQuery(
                "name the negative and the positive stratum: this campaign has " + ", ".join(map(repr, strata))
            )
        return negative or strata[0], positive or strata[1]
