"""By how much noise, and sampling, move a statistic of two curves on average: seen in simulated releases."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from analyst.estimation import bands
from analyst.estimation.estimate import INTERVALS, Interval
from analyst.estimation.smooth import rates_with_noise
from analyst.statistics.curve import Curve

Floats = NDArray[np.float64]

_SIMULATED = 100


def biases(curves: Sequence[Curve], statistic: Callable[[Sequence[Floats]], float]) -> dict[Interval, float]:
    """The mean of a statistic of both curves' F over simulated releases of the smoothed curves, less its own value."""
    counted, rng = [np.maximum(curve.cells, 0.0) for curve in curves], np.random.default_rng(0)
    seen: dict[Interval, list[float]] = {kind: [] for kind in INTERVALS}
    for noise in bands.simulated_parts(curves[0].campaign, [curve.strata for curve in curves], _SIMULATED):
        again = [rng.poisson(c).astype(np.float64) for c in counted]
        people: dict[Interval, list[Floats]] = {"noise": counted, "population": again}
        for kind, cells in people.items():
            seen[kind].append(statistic([rates_with_noise(c, e) for c, e in zip(cells, noise, strict=True)]))
    here = statistic([np.cumsum(c) / max(float(c.sum()), 1e-9) for c in counted])
    return {kind: float(np.mean(values)) - here for kind, values in seen.items()}
