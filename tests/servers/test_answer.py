"""From counts to answers, against slow definitions: no server, no noise but what a test puts in."""

import asyncio
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from campaign.errors import InvalidQuery
from campaign.spec import Campaign
from campaign.wire import GroupsQuery
from servers.release import answer
from tests.campaign.helpers import campaign

SIX = {"kind": "linear", "from": 0, "to": 5, "step": 1}
DAYS = {"kind": "linear", "values": "date", "from": "2026-01-01", "to": "2026-01-06", "step": 1}
SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.25}


def asked(made: Campaign, stratum: str, raw: Any, n: int = 40, known: Any = None) -> answer.Question:
    """A question to a server whose published curve is `raw`, over all positions."""

    async def count_at(positions: answer.Index) -> answer.Counts:
        assert positions.min(initial=0) >= 0
        return np.asarray(raw)[positions]

    return answer.Question(made, stratum, n, count_at, known or {})


def three() -> tuple[Campaign, Any]:
    """Three strata of six thresholds; eight positions each, and a curve that nobody could mistake for another."""
    made = campaign(grid=SIX, strata=["a", "b", "c"], mechanism="paper-tree")
    return made, np.cumsum(np.random.default_rng(4).integers(-3, 9, 1 << made.bits))


def variance_between(made: Campaign, above: int, below: int) -> float:
    """Of the noise of S(above) - S(below) in a paper-tree: one variable for each ancestor that only one of them has."""

    def ancestors(t: int) -> set[tuple[int, int]]:
        return {(level, t >> level) for level in range(made.bits + 1)} if t >= 0 else set()

    r = math.exp(-made.epsilon / (made.bits + 1))
    return 2 * len(ancestors(above) ^ ancestors(below)) * 2 * r / (1 - r) ** 2


@pytest.mark.parametrize("number", [0, 1, 2])
def test_counts_of_a_stratum_start_at_its_own_zero(number: int) -> None:
    made, raw = three()
    base = raw[8 * number - 1] if number else 0
    question = asked(made, made.strata[number], raw)
    found = asyncio.run(question.counts(np.array([0, 5, -1, 2])))
    assert found.tolist() == [raw[8 * number] - base, raw[8 * number + 5] - base, 0, raw[8 * number + 2] - base]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_ecdf_says_what_was_asked_with_the_noise_of_its_points(number: int) -> None:
    made, raw = three()
    base = 8 * number
    for known in (None, answer.curve_errors(made)):
        question = asked(made, made.strata[number], raw, known=known)
        got = asyncio.run(answer.ecdf(question, ["-1", "0", "3.5", "5", "9"]))
        assert got.thresholds == [-1.0, 0.0, 3.5, 5.0, 9.0]
        zero = raw[base - 1] if number else 0
        assert got.counts == [0, *(raw[base + i] - zero for i in (0, 3, 5, 5))]
        errors = [0.0, *(math.sqrt(variance_between(made, base + i, base - 1)) for i in (0, 3, 5, 5))]
        assert got.standard_errors == pytest.approx(errors)
        assert (got.n, got.epsilon, got.mechanism, got.stratum) == (40, 1.0, "paper-tree", made.strata[number])
        assert got.digest == made.digest


def test_known_errors_are_used_and_belong_to_their_stratum() -> None:
    made, raw = three()
    known = {name: np.arange(6) + 10.0 * i for i, name in enumerate(made.strata)}
    got = asyncio.run(answer.ecdf(asked(made, "b", raw, known=known), ["-1", "2", "5"]))
    assert got.standard_errors == [0.0, 12.0, 15.0]


def test_curve_errors_of_all_strata() -> None:
    made, _ = three()
    found = answer.curve_errors(made)
    assert list(found) == ["a", "b", "c"]
    for number, errors in enumerate(found.values()):
        start = 8 * number
        expected = [math.sqrt(variance_between(made, start + i, start - 1)) for i in range(6)]
        assert errors.tolist() == pytest.approx(expected)


def test_dates_are_told_as_they_were_asked() -> None:
    made = campaign(grid=DAYS)
    got = asyncio.run(answer.ecdf(asked(made, "all", np.arange(8)), ["2026-01-03", "2025-12-31"]))
    assert (got.thresholds, got.counts) == (["2026-01-03", "2025-12-31"], [2, 0])


def test_a_curve_has_every_threshold() -> None:
    made, raw = three()
    got = answer.curve(asked(made, "a", raw), raw[:6])
    assert (got.thresholds, got.counts) == ([0, 1, 2, 3, 4, 5], raw[:6].tolist())
    assert got.standard_errors == pytest.approx([math.sqrt(variance_between(made, i, -1)) for i in range(6)])


@pytest.mark.parametrize("number", [0, 1])
def test_a_histogram_has_the_noise_of_differences(number: int) -> None:
    made, raw = three()
    start = 8 * number
    got = asyncio.run(answer.histogram(asked(made, made.strata[number], raw), ["0", "2", "3", "5"]))
    below = [-1, 0, 2, 3]
    at = [raw[start + i] for i in (0, 2, 3, 5)]
    before = [raw[start - 1] if number else 0, *at[:-1]]
    assert got.counts == [a - b for a, b in zip(at, before, strict=True)]
    errors = [math.sqrt(variance_between(made, start + a, start + b)) for a, b in zip((0, 2, 3, 5), below, strict=True)]
    assert got.standard_errors == pytest.approx(errors)
    assert got.edges == [0.0, 2.0, 3.0, 5.0]


@pytest.mark.parametrize("edges", [["3", "2"], ["2", "2"], ["2", "2.5"], ["1", "3", "3"]])
def test_edges_of_a_histogram_increase(edges: list[str]) -> None:
    made, raw = three()
    with pytest.raises(InvalidQuery, match="must increase by at least one step of the grid"):
        asyncio.run(answer.histogram(asked(made, "a", raw), edges))


def slow_quantile(counts: list[int], errors: list[float], target: float) -> tuple[int, int, int]:
    """Estimate, lower and upper end, as the docstring defines them."""
    size, z = len(counts), NormalDist().inv_cdf(0.975)

    def first(reached: list[bool]) -> int:
        return next((i for i, yes in enumerate(reached) if yes), size - 1)

    def after_last(missed: list[bool]) -> int:
        return max((i + 1 for i, yes in enumerate(missed) if yes), default=0)

    middle = (first([c >= target for c in counts]) + after_last([c < target for c in counts])) // 2
    low = first([c + z * e >= target for c, e in zip(counts, errors, strict=True)])
    high = after_last([c - z * e < target for c, e in zip(counts, errors, strict=True)])
    return min(middle, size - 1), min(low, size - 1), min(high, size - 1)


LEVELS = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("strata", [["all"], ["x", "y"]])
def test_quantiles_are_those_of_the_definition(seed: int, strata: list[str]) -> None:
    """On curves that fall, stay flat, begin above the target or never reach it; errors from none to huge."""
    rng, size = np.random.default_rng(seed), 12
    made = campaign(grid={**SIX, "to": size - 1}, strata=strata)
    counts = np.cumsum(rng.integers(-2, 7, size)) + int(rng.integers(-20, 21))
    errors = rng.uniform(0, 6, size) * (seed % 4 != 0)
    question = asked(made, strata[0], None, n=40, known={strata[0]: errors})
    got = answer.quantiles(question, counts, LEVELS)
    total = 40 if len(strata) == 1 else max(int(counts[-1]), 0)
    expected = [slow_quantile(counts.tolist(), errors.tolist(), level * total) for level in LEVELS]
    assert list(zip(got.thresholds, got.lower, got.upper, strict=True)) == expected
    assert (got.levels, got.confidence) == (LEVELS, 0.95)


def test_a_wider_confidence_is_a_wider_interval() -> None:
    made = campaign(grid={**SIX, "to": 99})
    counts, errors = np.arange(100), np.full(100, 10.0)
    question = asked(made, "all", None, n=100, known={"all": errors})
    for confidence in (0.5, 0.95, 0.999):
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * 10
        got = answer.quantiles(question, counts, [0.5], confidence)
        assert (got.lower, got.upper) == ([math.ceil(50 - reach)], [math.ceil(50 + reach)])
        assert got.confidence == confidence


def test_a_stratum_whose_noisy_total_is_negative_counts_as_empty() -> None:
    made = campaign(grid=SIX, strata=["x", "y"])
    question = asked(made, "x", None, known={"x": np.zeros(6)})
    got = answer.quantiles(question, np.array([-3, -1, 2, -2, 0, -5]), [0.5])
    # The target is 0, not half of -5: index 2 reaches it first, and the last that does not is the last of all.
    assert (got.thresholds, got.lower, got.upper) == ([4], [2], [5])


def scores(**changes: Any) -> Campaign:
    return campaign(**{"grid": SCORES, "strata": ["no", "yes"], "reserve": 2.0, **changes})


@pytest.mark.parametrize(
    ("made", "ends", "epsilon", "message"),
    [
        (campaign(grid=SCORES), [0.5, 1.0], 1.0, "two strata .* has 1"),
        (scores(strata=["a", "b", "c"]), [0.5, 1.0], 1.0, "two strata .* has 3"),
        (scores(max_instances=50), [0.5, 1.0], 0.49, "at least 0.01 for each of the 50"),
        (scores(), [0.5, 0.5], 1.0, "must increase"),
        (scores(), [0.5, 0.25], 1.0, "must increase"),
        (scores(), [0.5, 0.6], 1.0, "must increase"),
        (scores(), [-0.5, 0.5], 1.0, "must increase"),
        (scores(grid={**SCORES, "from": -0.25}), [0.5, 1.0], 1.0, "between 0 and 1"),
        (scores(grid={**SCORES, "to": 1.25}), [0.5, 1.0], 1.0, "between 0 and 1"),
    ],
)
def test_groups_that_make_no_sense(made: Campaign, ends: list[float], epsilon: float, message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        answer.groups(made, GroupsQuery(upper_ends=ends, epsilon=epsilon))


def test_groups_and_what_the_ledger_calls_them() -> None:
    def made(ends: list[float], epsilon: float = 1.0) -> answer.Groups:
        return answer.groups(scores(max_instances=50), GroupsQuery(upper_ends=ends, epsilon=epsilon))

    one = made([0.0, 0.5, 1.0], 0.5)  # the least epsilon that is allowed, and a first group of one threshold
    assert (one.starts.tolist(), one.ends.tolist()) == ([-1, 0, 2], [0, 2, 4])
    assert one.purpose.startswith("groups ")
    assert len(one.purpose) == len("groups ") + 32
    assert one.purpose == made([0.1, 0.6, 1.5], 0.5).purpose  # the same groups of the same grid
    others = [made([0.0, 0.5, 0.75], 0.5), made([0.0, 0.5, 1.0], 0.75), made([0.5, 1.0], 0.5)]
    assert len({one.purpose, *(other.purpose for other in others)}) == 4
