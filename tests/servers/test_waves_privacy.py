"""Waves and pools together: the privacy loss of all that is published, enumerated and attacked from samples."""

import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.release import releases_of
from tests.campaign.helpers import campaign
from tests.servers.test_privacy import Joint, drawn, log, log_likelihood, sample_leaves

TINY = {"kind": "explicit", "at": [0.0, 1.0]}
Histogram = tuple[int, ...]


def two_waves(epsilon: float, pooled: float, *, at: int = 2, least: int = 1) -> Campaign:
    waves = {"every": "manual", "count": 2, "pooled": [{"through": at, "epsilon": pooled}]}
    return campaign(waves=waves, grid=TINY, min_uploads=least, epsilon=epsilon)


def published(of: Campaign, waves: Sequence[Histogram]) -> dict[str, tuple[float, Histogram]]:
    """The epsilon and the exact counts of every release that servers make of these waves, by their own rule."""
    assert of.waves is not None
    plans = releases_of(of.waves, of.epsilon, of.min_uploads, [sum(wave) for wave in waves])
    return {
        str(plan.name): (plan.epsilon, tuple(int(x) for x in np.sum([waves[k - 1] for k in plan.waves], axis=0)))
        for plan in plans
    }


def loss(of: Campaign, waves: Sequence[Histogram], others: Sequence[Histogram], span: int = 8) -> Decimal:
    """The largest log-ratio of the probabilities of everything that is published, over all outcomes up to a span.

    Both data sets have the same numbers of uploads, hence the same releases, each with noise of its own.
    """
    before, after = published(of, waves), published(of, others)
    assert list(before) == list(after)
    worst = Fraction(1)
    trees = {name: Joint(SliceTree(of.bits, epsilon), drawn) for name, (epsilon, _) in before.items()}
    noises = [(z, -z) for z in range(-span, span + 1)]
    ratios: dict[str, list[Fraction]] = {}
    for name, (_, counts) in before.items():
        moved = [a - b for a, b in zip(counts, after[name][1], strict=True)]
        ratios[name] = [
            trees[name](z) / trees[name](tuple(a + b for a, b in zip(z, moved, strict=True))) for z in noises
        ]
    for outcome in itertools.product(*ratios.values()):
        product = Fraction(1)
        for ratio in outcome:
            product *= ratio
        worst = max(worst, product)
    return log(worst)


def neighbours(waves: Sequence[Histogram]) -> list[tuple[int, list[Histogram]]]:
    """Every replacement of one value, with the number of its wave."""
    found = []
    for number, wave in enumerate(waves):
        for a, b in itertools.permutations(range(len(wave)), 2):
            if wave[a]:
                moved = tuple(count - (i == a) + (i == b) for i, count in enumerate(wave))
                found.append((number + 1, [*waves[:number], moved, *waves[number + 1 :]]))
    return found


@pytest.mark.parametrize(
    ("epsilon", "pooled", "at"), [(1.0, 0.5, 2), (0.25, 2.0, 2), (1.0, 1.0, 1)], ids=["small", "large", "of one wave"]
)
def test_all_that_is_published_costs_what_was_consented_to(epsilon: float, pooled: float, at: int) -> None:
    """Exactly: the loss of a party of each wave is its consent, attained, and never more."""
    of = two_waves(epsilon, pooled, at=at)
    worst: dict[int, Decimal] = {}
    for wave, others in neighbours([(1, 1), (2, 0)]):
        worst[wave] = max(worst.get(wave, Decimal(0)), loss(of, [(1, 1), (2, 0)], others))
    for wave, found in worst.items():
        assert abs(float(found) - of.epsilon_for_party(wave)) < 1e-12, wave
    assert worst.keys() == {1, 2}


def test_a_small_wave_pays_once_with_the_next() -> None:
    """Wave 1 is too small: its party is in wave 2's release and the pool, and pays its consent all the same."""
    of = two_waves(1.0, 0.5, least=3)
    waves = [(1, 0), (1, 1)]
    assert list(published(of, waves)) == ["wave 2", "pooled 2"]
    found = max(loss(of, waves, others) for wave, others in neighbours(waves) if wave == 1)
    assert abs(float(found) - of.epsilon_for_party(1)) < 1e-12


def test_the_bound_breaks_where_the_rules_are_broken() -> None:
    """A party in two waves; and one noise for two releases, which shows the other wave's counts exactly."""
    of = two_waves(1.0, 0.5)
    twice = loss(of, [(1, 1), (1, 1)], [(0, 2), (0, 2)])
    assert float(twice) > of.epsilon_for_party(1) + 0.9
    tree = Joint(SliceTree(of.bits, 1.0), drawn)
    z = (1, -1)
    wave, pool = (1 + z[0], 1 + z[1]), (3 + z[0], 1 + z[1])  # the same z on the wave (1, 1) and on the pool (3, 1)
    difference = tuple(a - b for a, b in zip(pool, wave, strict=True))
    assert difference == (2, 0)  # wave 2, without noise
    assert tree(z) > 0


def sampled(trees: Sequence[SliceTree], shift: int, runs: int, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    move = _move(trees[0])
    return [sample_leaves(tree, runs, rng) + shift * move for tree in trees]


def _move(tree: SliceTree) -> np.ndarray[Any, Any]:
    move = np.zeros(tree.positions, np.int64)
    move[0], move[-1] = 1, -1
    return move


def audited(released: Sequence[SliceTree], claimed: Sequence[SliceTree], runs: int, seed: int) -> float:
    """A lower bound on the loss of a wave and its pool together; it holds with probability 1 - 1e-4."""
    rng, scores, move = np.random.default_rng(seed), [], _move(claimed[0])
    for shift in (0, 1):
        outs = sampled(released, shift, runs, rng)
        pairs = zip(claimed, outs, strict=True)
        scores.append(sum(log_likelihood(m, out - move) - log_likelihood(m, out) for m, out in pairs))
    half = runs // 2

    def bound(threshold: float, part: slice) -> float:
        hits, false = (int((scores[i][part] >= threshold).sum()) for i in (1, 0))
        low = stats.beta.ppf(0.5e-4, hits, half - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - 0.5e-4, false + 1, half - false)
        return float(np.log(low / high)) if low > 0 else -np.inf

    candidates = np.quantile(scores[1], np.linspace(0.5, 1, 100))
    best = max(candidates, key=lambda c: bound(float(c), slice(0, half)))
    return bound(float(best), slice(half, None))


@pytest.mark.slow
def test_an_audit_of_a_wave_and_its_pool_stays_below_the_consent() -> None:
    consent = two_waves(0.5, 0.5).epsilon_for_party(1)
    claimed = [SliceTree(2, 0.5), SliceTree(2, 0.5)]
    honest = audited(claimed, claimed, 200_000, seed=1)
    assert 0.4 < honest <= consent
    # a pool with a third of its noise, passed off as the claimed one
    broken = audited([claimed[0], SliceTree(2, 1.5)], claimed, 200_000, seed=2)
    assert broken > consent + 0.1


def test_names_of_releases_are_different() -> None:
    """The noise is bound to the name: a pool of one wave and that wave must not share theirs."""
    of = two_waves(1.0, 1.0, at=1)
    found: Mapping[str, Any] = published(of, [(1, 1), (2, 0)])
    assert list(found) == ["wave 1", "pooled 1", "wave 2"]
    assert found["wave 1"][1] == found["pooled 1"][1]
