"""Releases made from known values: without noise, or with the noise that two real servers would add."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from analyst.release import Release
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.simulate import both_servers
from servers.release.noise import NoiseTree
from tests.campaign.helpers import campaign

SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}
Array = np.ndarray[Any, Any]


def scored(n: int, seed: int = 0, step: float = 0.01) -> tuple[Array, Array]:
    """Scores on the grid, and outcomes of a model that is calibrated."""
    rng = np.random.default_rng(seed)
    scores = np.round(np.round(rng.beta(2, 4, n) / step) * step, 10)
    return scores, rng.random(n) < scores


def publish(
    spec: Campaign, values: Array, strata: Sequence[str] | None = None, noise_seed: int | None = None
) -> Release:
    """What the servers would publish; without a seed, without noise."""
    positions = spec.to_positions(values, strata).positions
    whole = np.cumsum(np.bincount(positions, minlength=1 << spec.bits))
    if noise_seed is not None:
        for server in (0, 1):
            seed = noise_seed.to_bytes(32, "little")
            whole = whole + NoiseTree(seed, server=server, covers=bytes(32), mechanism=spec.noise).curve()
    return Release.from_curve(spec, len(values), whole, on_grid=True)


def simulated(exact: Release, count: int, seed: int = 0) -> Iterator[Release]:
    """What would be published of a release without noise, so many times, with noise as analysts simulate it."""
    spec = exact.campaign
    for noise in both_servers(spec.noise, count, spec.bits, np.random.default_rng(seed)):
        yield Release(spec, exact.n, exact.published + noise[: exact.published.size], exact.on_grid)


def two_strata(
    n: int = 4000, seed: int = 0, noise_seed: int | None = None, **changes: Any
) -> tuple[Release, Array, Array]:
    """A release of scores with outcomes, and the scores and outcomes that only the test knows."""
    spec = campaign(**{"grid": SCORES, "strata": ["no", "yes"], **changes})
    scores, outcome = scored(n, seed)
    return publish(spec, scores, np.where(outcome, "yes", "no").tolist(), noise_seed), scores, outcome


def one_stratum(n: int = 2000, seed: int = 0, noise_seed: int | None = None, **changes: Any) -> tuple[Release, Array]:
    spec = campaign(**{"grid": SCORES, **changes})
    values = scored(n, seed)[0]
    return publish(spec, values, None, noise_seed), values
