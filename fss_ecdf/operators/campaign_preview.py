"""fss-server campaign preview: expected errors and cost of a campaign, before it exists."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fss import SCHEMES
from fss.generate import RAND_BYTES
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.expected_errors import (
    BINS,
    LEVELS,
    POINTS,
    ExpectedErrors,
    asked_by_points,
    campaign_errors,
    category_errors,
    quantile_questions,
)
from fss_ecdf.campaign.sealed_uploads import sealed_bytes

Supported = Callable[[Campaign, ExpectedErrors], Iterable[tuple[str, str]]]

_SECONDS = 0.2  # that a measurement should take


def lines(
    campaign: Campaign, wanted: list[int] | None, supported: Supported, proportions: list[float] | None = None
) -> Iterator[str]:
    """All of it, as an operator reads it; for min_uploads and ten times as many, if no n is wanted.

    `supported`: the statistics, each with yes or why not.
    """
    expected = wanted or [campaign.min_uploads, 10 * campaign.min_uploads]
    yield f"{campaign.title}: this is a valid campaign"
    yield f"  variable  {campaign.variable.label}: {campaign.variable.summary}"
    yield f"  strata    {len(campaign.strata)}, together 2^{campaign.bits} positions"
    yield f"  privacy   epsilon {campaign.epsilon:g} for the curve, {campaign.reserve:g} in reserve"
    if campaign.waves is not None:
        yield f"  waves     {campaign.waves.describe()}"
        yield f"  consent   epsilon {campaign.total_epsilon:g} in all for whoever joins the first wave"
        yield "            a wave with fewer than min_uploads is released with the next; below, n is that of one wave"
    spread = "" if campaign.variable.is_categorical else ", for values spread evenly over the grid"
    yield f"\nstandard errors by the noise{spread}{_of_strata(campaign, proportions)}"
    if campaign.variable.is_categorical:
        found = category_errors(campaign, expected, proportions)
        yield from _rows({"values in all, n": expected, "a proportion": [f"{o.bin_share:.2%}" for o in found]})
    else:
        found = campaign_errors(campaign, expected, proportions)
        yield from _table(campaign, found)
    yield "\ncosts"
    yield from costs(campaign, expected)
    yield "\nwhat can be asked"
    for statistic, answer in supported(campaign, found[-1]):
        yield f"  {statistic:<32} {answer}"


def _of_strata(campaign: Campaign, proportions: list[float] | None) -> str:
    if len(campaign.strata) == 1:
        return ""
    if proportions is None:
        return ", in strata of equal size;\nrare ones have larger errors: give the expected proportions (--proportions)"
    return f",\nin the rarest stratum, which has {min(proportions):.2%} of them"


def _table(campaign: Campaign, found: list[ExpectedErrors]) -> Iterator[str]:
    rows = {
        "values in all, n": [f"{o.n}" for o in found],
        "a point of the curve": [f"{o.point:.2%}" for o in found],
        "the whole curve, 95 %": [f"{o.band:.2%}" for o in found],
        "a quantile": [quantile_words(campaign, o) for o in found],
        f"a bin of {BINS}": [f"{o.bin_share:.2%}" for o in found],
    }
    if found[0].auc is not None:
        rows["AUC of two strata"] = [f"{o.auc:.4f}" for o in found]
    yield from _rows(rows)


def _rows(rows: Mapping[str, Sequence[object]]) -> Iterator[str]:
    for name, cells in rows.items():
        yield f"  {name:<28}" + "".join(f"{cell:>22}" for cell in cells)


def quantile_words(campaign: Campaign, of: ExpectedErrors) -> str:
    """In the value's own unit where the grid is even, else in steps."""
    if of.quantile_steps > campaign.variable.grid.size / 4:
        return "cannot be told"
    if campaign.variable.grid.kind == "linear" and campaign.variable.grid.values != "date":
        return f"{of.quantile_steps * campaign.variable.grid.step:.3g} {campaign.variable.unit}".rstrip()
    return (
        f"{of.quantile_steps:.1f} steps" if campaign.variable.grid.kind != "linear" else f"{of.quantile_steps:.1f} days"
    )


def costs(campaign: Campaign, expected: list[int]) -> Iterator[str]:
    """Bytes exactly, seconds as measured on this machine, on one core."""
    n = expected[-1]
    yield f"  {'a party sends':<28} {sealed_bytes(campaign, 1)} bytes to each server for one value"
    keys = campaign.key_type(0).key_bytes * n
    yield f"  {'each server keeps':<28} {_size(keys)} of keys for n = {n}"
    if not asked_by_points(campaign):
        seconds = _measured(campaign, None) * n
        memory = _size(8 << campaign.bits)
        yield f"  {'each server computes':<28} {_time(seconds)} once, on one core of this machine; curve {memory}"
        return
    seconds, asked = _measured(campaign, POINTS) * n, quantile_questions(campaign)
    yield f"  {'each server computes':<28} {_time(seconds)} for a question of {POINTS} points, on one core"
    yield f"  {f'{LEVELS} quantiles cost':<28} at most {asked} questions, {_time(asked * seconds)} in all"


def _measured(campaign: Campaign, points: int | None) -> float:
    """Seconds for one key: the whole domain, or so many points."""
    scheme = SCHEMES[campaign.variable.scheme]
    count, domain = 8, 1 << campaign.bits
    while True:
        rand = os.urandom(count * RAND_BYTES)
        keys, _ = scheme.gen(np.arange(count) % domain, bits=campaign.bits, binder=bytes(32), rand=rand)
        start = time.perf_counter()
        if points is None:
            scheme.sum_over_domain(keys)
        else:
            scheme.sum_at_points(keys, np.arange(points) * (domain // points))
        took = time.perf_counter() - start
        if took > _SECONDS or count >= 1 << 14:
            return took / count
        count *= 4


def _size(count: int) -> str:
    for unit, each in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= each:
            return f"{count / each:.3g} {unit}"
    return f"{count} bytes"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
