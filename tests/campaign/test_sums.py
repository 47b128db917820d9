"""Sensitivity, rates and errors of weighted sums, against loops over all pairs of cells; and what is refused."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise import sums
from fss_ecdf.campaign.noise.sums import MAX_WEIGHT, joint_sensitivity, read_sums

Array = np.ndarray[Any, Any]


def slow_sensitivity(weights: Array, units: Any) -> Fraction:
    columns = [[int(w) for w in column] for column in weights.T]
    return max(
        sum((Fraction(abs(x - y), unit) for x, y, unit in zip(a, b, units, strict=True)), Fraction(0))
        for a, b in itertools.product(columns, repeat=2)
    )


matrices = st.integers(1, 5).flatmap(
    lambda sums_: st.tuples(
        st.lists(
            st.lists(st.integers(-50, 50), min_size=sums_, max_size=sums_), min_size=2, max_size=9, unique_by=tuple
        ),
        st.lists(st.integers(1, 60), min_size=sums_, max_size=sums_),
    )
)


@settings(deadline=None)
@given(matrices)
def test_the_sensitivity_is_that_of_all_pairs(drawn: tuple[list[list[int]], list[int]]) -> None:
    weights, units = np.array(drawn[0], np.int64).T, drawn[1]
    true = slow_sensitivity(weights, units)
    found = joint_sensitivity(weights, units)
    assert found.exact
    assert found.value == true
    scaled, denominator, fits = sums._in_units(weights, units)
    assert fits
    assert Fraction(sums._by_pairs(scaled), denominator) == Fraction(sums._by_signs(scaled), denominator) == true
    assert Fraction(sums._bound(scaled), denominator) >= true


@settings(deadline=None)
@given(matrices, st.data())
def test_large_units_are_rounded_to_the_safe_side(
    drawn: tuple[list[list[int]], list[int]], data: st.DataObject
) -> None:
    """Units whose common multiple does not fit: the bound is never too small, and hardly too large."""
    weights = np.array(drawn[0], np.int64).T * 10**6
    units = [data.draw(st.integers(10**5, 10**8)) for _ in drawn[1]]
    true, found = slow_sensitivity(weights, units), joint_sensitivity(weights, units)
    assert true <= found.value <= true * Fraction(1001, 1000)
    assert found.value == true or not found.exact


def test_a_sum_without_a_range_adds_nothing_whatever_its_unit() -> None:
    weights, units = np.array([[0, 1], [0, 0], [0, 0]]), [4294967291, 268435399, 4294967279]
    found = joint_sensitivity(weights, units)
    assert found.value == slow_sensitivity(weights, units) == Fraction(1, 4294967291)


def test_many_different_cells_have_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    weights = rng.integers(-1000, 1000, (20, 60))
    units = [1] * 20
    true = slow_sensitivity(weights, units)
    assert joint_sensitivity(weights, units) == sums.Sensitivity(true, True)
    monkeypatch.setattr(sums, "_MAX_WORK", 100)
    found = joint_sensitivity(weights, units)
    assert not found.exact
    assert true <= found.value <= sum(int(row.max()) - int(row.min()) for row in weights)


def test_disjoint_groups_keep_their_sensitivity_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges added up over 40 groups would be 40; a cell is in one group, and replacing it changes two."""
    weights = np.repeat(np.eye(40, dtype=np.int64), 3, axis=1)
    monkeypatch.setattr(sums, "_MAX_WORK", 100)
    assert joint_sensitivity(weights, [1] * 40) == sums.Sensitivity(Fraction(2), False)


def test_one_sum_has_its_range() -> None:
    query = read_sums([[0, 140, 90, -10]], 0.5, cells=4)
    assert query.units == (150,)
    assert query.sensitivity == sums.Sensitivity(Fraction(1), True)
    assert query.rates[0] == pytest.approx(0.5 / 150)
    assert query.loss <= Fraction(query.epsilon)
    # both servers: 2 (max w - min w) / epsilon, but for terms of a unit
    assert query.errors[0] == pytest.approx(2 * 150 / 0.5, rel=1e-4)


@pytest.mark.parametrize("instances", [1, 3, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
def test_the_loss_never_exceeds_epsilon(epsilon: float, instances: int) -> None:
    rng = np.random.default_rng(instances)
    for _ in range(50):
        rows = rng.integers(-1000, 1000, (3, 6))
        query = read_sums(rows, epsilon, cells=6, units=[1, 7, 1000], instances=instances)
        assert Fraction(epsilon) * (1 - Fraction(1, 10**14)) <= query.loss <= Fraction(epsilon)


def test_a_larger_unit_moves_noise_from_one_sum_to_another() -> None:
    rows = [[0, 1, 0, 1], [0, 0, 1000, 1000]]
    even = read_sums(rows, 1.0, cells=4)
    more = read_sums(rows, 1.0, cells=4, units=[1, 3000])
    assert even.sensitivity.value == 2
    assert more.errors[0] < even.errors[0]
    assert more.errors[1] > even.errors[1]


def test_the_digest_is_of_everything() -> None:
    rows = [[0, 1, 2], [3, 1, 0]]
    queries = [
        read_sums(rows, 1.0, cells=3, units=[1, 1]),
        read_sums(rows, 1.0, cells=3, units=[1, 2]),
        read_sums(rows, math.nextafter(1.0, 2), cells=3, units=[1, 1]),
        read_sums(rows, 1.0, cells=3, units=[1, 1], instances=2),
        read_sums(rows[::-1], 1.0, cells=3, units=[1, 1]),
        read_sums([[0, 1, 2, 3, 1, 0]], 1.0, cells=6, units=[1]),
    ]
    assert len({query.digest for query in queries}) == len(queries)
    assert queries[0].digest == read_sums(np.array(rows, np.int32), 1.0, cells=3, units=[1, 1]).digest


def test_padding_has_weight_zero() -> None:
    query = read_sums([[5, 7, 9, 11]], 1.0, cells=4)
    whole = query.over_positions(np.array([0, 1, 4, 5]), 8)
    assert whole.tolist() == [[5, 7, 0, 0, 9, 11, 0, 0]]
    with pytest.raises(InvalidQuery, match="4 weights for 3 cells"):
        query.over_positions(np.arange(3), 8)


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        ([[1, 1, 1]], {}, "all weights of sum 0 are equal"),
        ([[0, 1, 2], [4, 4, 4]], {}, "all weights of sum 1 are equal"),
        ([[1, 1, 1], [2, 2, 2]], {"units": [1, 1]}, "all weights of sum 0 are equal"),
        ([[0, 1]], {}, "a sum has 3 weights, one for each cell, got 2"),
        ([[0, 1, 2], [0, 1, 2, 3]], {}, "a sum has 3 weights, one for each cell, got 4"),
        ([], {}, "1 to 4096 sums, got 0"),
        ([[0, 1, 2]] * 4097, {}, "1 to 4096 sums, got 4097"),
        ([[0, 1, MAX_WEIGHT + 1]], {}, "whole numbers from"),
        ([[0, 1, -MAX_WEIGHT - 1]], {}, "whole numbers from"),
        ([[0, 1, 2**70]], {}, "whole numbers from"),
        ([[0, 1, 0.5]], {}, "whole numbers from"),
        ([[True, False, True]], {}, "whole numbers from"),
        ([[0, 1, 2]], {"units": [0]}, "units are 1 whole numbers"),
        ([[0, 1, 2]], {"units": [1, 1]}, "units are 1 whole numbers"),
        ([[0, 1, 2]], {"units": [True]}, "units are 1 whole numbers"),
        ([[0, 1, 2]], {"epsilon": 0.0}, "epsilon must be at least 0.01"),
        ([[0, 1, 2]], {"epsilon": 20.5}, "epsilon must be at least 0.01"),
        ([[0, 1, 2]], {"epsilon": math.nan}, "epsilon must be at least 0.01"),
        ([[0, 1, 2]], {"epsilon": 0.05, "instances": 10}, "each of the 10 values"),
    ],
)
def test_what_is_refused(weights: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        read_sums(weights, **{"epsilon": 1.0, "cells": 3, **options})


def test_too_many_weights_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "MAX_ENTRIES", 5)
    with pytest.raises(InvalidQuery, match="at most 5 weights in all, got 6"):
        read_sums([[0, 1, 2], [0, 1, 2]], 1.0, cells=3)


def test_sums_that_are_too_large() -> None:
    query = read_sums([[0, MAX_WEIGHT]], 1.0, cells=2)
    query.check_total(10**8)
    with pytest.raises(InvalidQuery, match="too large"):
        query.check_total(10**9)


@pytest.mark.parametrize("rate", [5.0, 1.0, 0.01, 1e-4, 1e-9, 1e-13])
def test_distances_are_negligible(rate: float) -> None:
    assert 0 < sums.laplace_distance(rate) < 2.0**-100
