"""The noise of weighted sums: discrete Laplace noise of any rate, exactly, from the servers' pseudorandom function.

What is asked and how large its noise is stands in fss_ecdf/campaign/noise/sums.py; `add_noise.py` adds it to a share.
"""

from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from fss_ecdf.campaign.noise.sums import DIGIT_BITS, SumQuery, laplace_digits
from fss_ecdf.campaign.noise.tables import tilt
from servers.release.noise import Counts, DiscreteLaplace, Draws, Prf, _integer, _pick, _pick_exactly


class _Digit:
    """k below 2^DIGIT_BITS with probability proportional to exp(-rate k)."""

    def __init__(self, rate: float) -> None:
        self._exact = list(accumulate(tilt([1] * (1 << DIGIT_BITS), rate)))
        self._cumulative = np.array([c / self._exact[-1] for c in self._exact])

    def draw(self, u: Draws) -> Counts:
        at, unsure = _pick(self._cumulative, u, 0.0)
        for i in np.flatnonzero(unsure):
            at[i] = _pick_exactly(self._exact, _integer(u[i]))
        return np.asarray(at, np.int64)


@lru_cache(maxsize=64)
def _digit(rate: float) -> _Digit:
    return _Digit(rate)


class WideLaplace:
    """Noise k with probability proportional to exp(-rate |k|), one for each node, at rates too small for one table.

    A geometric variable at rate r is digit + B rest, B = 2^DIGIT_BITS, with independent parts: the digit at rate r
    below B, the rest geometric at rate r B, of which digits can be taken again. A discrete Laplace variable is the
    difference of two geometric ones, so each digit is drawn twice, and the difference of the rests is a discrete
    Laplace variable at rate r B^digits. Multiplying by B is exact in floating point.
    """

    def __init__(self, prf: Prf, rate: float) -> None:
        digits = laplace_digits(rate)
        self._prf = prf
        self._digits = [_digit(rate * 2.0 ** (DIGIT_BITS * i)) for i in range(digits)]
        self._rest = DiscreteLaplace(prf, rate * 2.0 ** (DIGIT_BITS * digits))

    def at(self, nodes: ArrayLike) -> Counts:
        noise = self._rest.at(0, nodes)
        for i in range(len(self._digits) - 1, -1, -1):
            added, taken = (self._digits[i].draw(self._prf.draws(1 + 2 * i + sign, nodes)) for sign in (0, 1))
            noise = (noise << DIGIT_BITS) + added - taken
        return noise


def purpose(query: SumQuery) -> str:
    """What the noise is drawn for: the same query has the same noise, and no other one has."""
    return f"sums {query.digest}"


def sum_noise(query: SumQuery, prf: Prf) -> Counts:
    """One server's noise of every sum."""
    rates, noise = np.array(query.rates), np.empty(len(query.rates), np.int64)
    for rate in np.unique(rates):
        at = np.flatnonzero(rates == rate)
        noise[at] = WideLaplace(prf, float(rate)).at(at)
    return noise
