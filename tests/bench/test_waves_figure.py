"""Counters over time, as they are compared with waves: every way holds each wave once, and no node too often."""

import numpy as np
import pytest

from bench.figures import waves


def held(parts: waves.Parts, base: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How often each wave is counted by nodes (level, number) of a tree of this base."""
    found = np.zeros(1000)
    for (level, number), sign in parts:
        assert isinstance(level, int)
        assert isinstance(number, int)
        found[number * base**level : (number + 1) * base**level] += sign
    return found


@pytest.mark.parametrize("t", [1, 2, 3, 29, 58, 182, 364, 365])
def test_every_way_counts_the_first_waves_once(t: int) -> None:
    k = waves.best_k(waves.WAVES)
    expected = (np.arange(1000) < t).astype(float)
    assert np.array_equal(held(waves.chan(t), 2), expected)
    assert np.array_equal(held(waves.subtraction(t, k, waves.heights(k, waves.WAVES)), k), expected)
    for way in (waves.pooled(1.0, []), waves.pooled(0.5, [182, 365])):
        whole = [int(str(node[1])) for node, _ in way.parts(t) if node[0] == "pooled"]
        single = [int(str(node[1])) for node, _ in way.parts(t) if node[0] == "wave"]
        first = max(whole, default=0)
        assert single == list(range(first + 1, t + 1))


def test_a_wave_is_in_as_many_nodes_as_its_epsilon_is_shared_by() -> None:
    """The whole epsilon is spent by each way, and no more."""
    assert waves.levels_of(365) == 10
    assert len(waves.ancestors(200)) == 10
    assert (waves.best_k(52), waves.heights(waves.best_k(52), 52)) == (11, 2)
    used = {(int(str(a)), int(str(b))) for t in range(1, 366) for (a, b), _ in waves.chan(t)}
    assert max(sum(w >> level == number for level, number in used) for w in range(365)) <= 10
    mean = 4 * np.mean([len(waves.subtraction(t, 11, 2)) for t in range(1, 53)])
    assert (round(float(mean)), 4 * len(waves.subtraction(52, 11, 2))) == (21, 32)
