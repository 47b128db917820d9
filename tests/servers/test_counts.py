"""From counts to answers, against slow definitions: no server, no noise but what a test puts in."""

import asyncio
import math
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import EcdfResponse, read
from fss_ecdf.campaign.score_groups import score_group_sums
from servers.release import query_results
from tests.campaign.helpers import campaign

SIX = {"kind": "linear", "from": 0, "to": 5, "step": 1}
DAYS = {"kind": "linear", "values": "date", "from": "2026-01-01", "to": "2026-01-06", "step": 1}
SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.25}


def asked(spec: Campaign, stratum: str, raw: Any, n: int = 40, known: Any = None) -> query_results.Query:
    """A question to a server whose published curve is `raw`, over all positions."""

    async def count_at(positions: query_results.Index) -> query_results.Counts:
        assert positions.min(initial=0) >= 0
        return np.asarray(raw)[positions]

    return query_results.Query(spec, stratum, n, count_at, known or {})


def three() -> tuple[Campaign, Any]:
    """Three strata of six thresholds; eight positions each, and a curve that nobody could mistake for another."""
    spec = campaign(grid=SIX, strata=["a", "b", "c"], mechanism="paper-tree")
    return spec, np.cumsum(np.random.default_rng(4).integers(-3, 9, 1 << spec.bits))


def variance_between(spec: Campaign, above: int, below: int) -> float:
    """Of the noise of S(above) - S(below) in a paper-tree: one variable for each ancestor that only one of them has."""

    def ancestors(t: int) -> set[tuple[int, int]]:
        return {(level, t >> level) for level in range(spec.bits + 1)} if t >= 0 else set()

    r = math.exp(-spec.epsilon / (spec.bits + 1))
    return 2 * len(ancestors(above) ^ ancestors(below)) * 2 * r / (1 - r) ** 2


@pytest.mark.parametrize("number", [0, 1, 2])
def test_counts_of_a_stratum_start_at_its_own_zero(number: int) -> None:
    spec, raw = three()
    base = raw[8 * number - 1] if number else 0
    question = asked(spec, spec.strata[number], raw)
    counts = asyncio.run(question.counts(np.array([0, 5, -1, 2])))
    assert counts.tolist() == [raw[8 * number] - base, raw[8 * number + 5] - base, 0, raw[8 * number + 2] - base]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_ecdf_says_what_was_asked_with_the_noise_of_its_points(number: int) -> None:
    spec, raw = three()
    base = 8 * number
    for known in (None, query_results.curve_errors(spec)):
        question = asked(spec, spec.strata[number], raw, known=known)
        got = asyncio.run(query_results.ecdf(question, ["-1", "0", "3.5", "5", "9"]))
        assert got.thresholds == [-1.0, 0.0, 3.5, 5.0, 9.0]
        zero = raw[base - 1] if number else 0
        assert got.counts == [0, *(raw[base + i] - zero for i in (0, 3, 5, 5))]
        errors = [0.0, *(math.sqrt(variance_between(spec, base + i, base - 1)) for i in (0, 3, 5, 5))]
        assert got.standard_errors == pytest.approx(errors)
        assert (got.n, got.epsilon, got.mechanism, got.stratum) == (40, 1.0, "paper-tree", spec.strata[number])
        assert got.digest == spec.digest


def test_known_errors_are_used_and_belong_to_their_stratum() -> None:
    spec, raw = three()
    known = {name: np.arange(6) + 10.0 * i for i, name in enumerate(spec.strata)}
    got = asyncio.run(query_results.ecdf(asked(spec, "b", raw, known=known), ["-1", "2", "5"]))
    assert got.standard_errors == [0.0, 12.0, 15.0]


def test_curve_errors_of_all_strata() -> None:
    spec, _ = three()
    by_stratum = query_results.curve_errors(spec)
    assert list(by_stratum) == ["a", "b", "c"]
    for number, errors in enumerate(by_stratum.values()):
        start = 8 * number
        expected = [math.sqrt(variance_between(spec, start + i, start - 1)) for i in range(6)]
        assert errors.tolist() == pytest.approx(expected)


def test_dates_are_told_as_they_were_asked() -> None:
    spec = campaign(grid=DAYS)
    got = asyncio.run(query_results.ecdf(asked(spec, "all", np.arange(8)), ["2026-01-03", "2025-12-31"]))
    assert (got.thresholds, got.counts) == (["2026-01-03", "2025-12-31"], [2, 0])


@pytest.mark.parametrize("step", [1, 4, 6, 4096])
def test_a_curve_has_every_threshold(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_results, "STEP", step)
    spec, raw = three()
    got = read(EcdfResponse, query_results.curve_json(asked(spec, "a", raw), raw[:6]))
    assert (got.thresholds, got.counts) == ([0, 1, 2, 3, 4, 5], raw[:6].tolist())
    rows = [line.split(",") for line in query_results.curve_csv(asked(spec, "a", raw), raw[:6]).decode().splitlines()]
    assert [int(count) for _, count, _ in rows[1:]] == raw[:6].tolist()
    assert [float(t) for t, _, _ in rows[1:]] == [0, 1, 2, 3, 4, 5]
    assert got.standard_errors == pytest.approx([math.sqrt(variance_between(spec, i, -1)) for i in range(6)])


def scores(**changes: Any) -> Campaign:
    return campaign(**{"grid": SCORES, "strata": ["no", "yes"], "reserve": 2.0, **changes})


@pytest.mark.parametrize(
    ("spec", "ends", "message"),
    [
        (campaign(grid=SCORES), [0.5, 1.0], "two strata .* has 1"),
        (scores(strata=["a", "b", "c"]), [0.5, 1.0], "two strata .* has 3"),
        (scores(), [0.5, 0.5], "must increase"),
        (scores(), [0.5, 0.25], "must increase"),
        (scores(), [0.5, 0.6], "must increase"),
        (scores(), [-0.5, 0.5], "must increase"),
        (scores(grid={**SCORES, "from": -0.25}), [0.5, 1.0], "between 0 and 1"),
        (scores(grid={**SCORES, "to": 1.25}), [0.5, 1.0], "between 0 and 1"),
    ],
)
def test_groups_that_make_no_sense(spec: Campaign, ends: list[float], message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        score_group_sums(spec, ends)


def test_groups_are_half_open_and_the_same_on_the_same_grid() -> None:
    one = score_group_sums(scores(), [0.0, 0.5, 1.0])  # a first group of one threshold
    assert one.weights[:3, :5].tolist() == [[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]]
    assert one.weights.tolist() == score_group_sums(scores(), [0.1, 0.6, 1.5]).weights.tolist()
