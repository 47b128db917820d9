"""Curves, quantiles, histograms and means: exact without noise, defined at the edges, in every form."""

import csv
import io
import json
from datetime import date
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyst.statistics.curve import smoothed
from analyst.statistics.quantile import inverse
from fss_ecdf.campaign.errors import InvalidQuery
from tests.analyst.helpers import one_stratum, publish, two_strata
from tests.campaign.helpers import campaign

DATES = {"kind": "linear", "values": "date", "from": "2026-01-01", "to": "2026-12-31", "step": 7}


def test_without_noise_everything_is_exact() -> None:
    release, values = one_stratum(2000)
    curve = release.curve(smoothing="isotonic")
    at = [0.05, 0.333, 0.5, 1.0]
    assert curve.at(at).counts.tolist() == [(values <= t).sum() for t in at]
    assert curve.at(at).fractions == pytest.approx([np.mean(values <= t) for t in at])
    assert curve.at([-1.0]).counts.tolist() == [0.0]
    assert release.mean()["mean"].value == pytest.approx(values.mean())
    edges = [0.1, 0.5, 1.0]
    bins = [(values <= 0.1).sum(), ((values > 0.1) & (values <= 0.5)).sum(), (values > 0.5).sum()]
    assert release.histogram(edges, smoothing="isotonic").counts.tolist() == bins
    assert release.histogram(7).counts.sum() == pytest.approx(2000)
    levels = [0.0, 0.1, 0.5, 0.9, 1.0]
    expected = np.quantile(values, levels, method="inverted_cdf")
    assert release.quantile(levels).thresholds[1:] == expected[1:].tolist()
    assert release.quantile([0.0]).index == [0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-5, 20), min_size=1, max_size=40), st.integers(-3, 22))
def test_the_inverse_is_a_crossing(counts: list[int], target: int) -> None:
    """At the index found the count reaches the target and before it does not, on any curve."""
    curve = np.array(counts, float)
    index = inverse(curve, target)
    assert curve[index] >= target or index == curve.size - 1
    assert index == 0 or curve[index - 1] < target
    if (np.diff(curve) >= 0).all():
        reached = np.flatnonzero(curve >= target)
        assert index == (reached[0] if reached.size else curve.size - 1)


@pytest.mark.parametrize("smoothing", ["none", "isotonic", "l1", "l2"])
@pytest.mark.parametrize("mechanism", ["slice-tree", "paper-tree"])
@pytest.mark.parametrize("strata", [["all"], ["no", "yes"]])
def test_quantiles_raw_and_smoothed_are_near_the_truth(smoothing: str, mechanism: str, strata: list[str]) -> None:
    """Within the interval, widened to 6 standard errors: false alarm below 1e-8."""
    spec = campaign(strata=strata, mechanism=mechanism, epsilon=2.0)
    values = np.round(np.random.default_rng(1).beta(2, 4, 5000), 2)
    names = None if len(strata) == 1 else ["yes"] * 5000
    curve = publish(spec, values, names, noise_seed=3).curve(strata[-1], smoothing=smoothing)  # type: ignore[arg-type]
    quantiles = curve.quantile([0.25, 0.5, 0.75], confidence=1 - 2e-9)
    right = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf").tolist()
    for low, middle, truth, high in zip(quantiles.lower, quantiles.thresholds, right, quantiles.upper, strict=True):
        assert low <= truth <= high
        assert low <= middle <= high
        assert abs(middle - truth) < 0.1


@pytest.mark.parametrize("smoothing", ["isotonic", "l1", "l2"])
def test_smoothed_curves_are_proper(smoothing: str) -> None:
    for release in (one_stratum(300, noise_seed=2)[0], two_strata(300, noise_seed=2)[0]):
        curve = release.curve(smoothing=smoothing)  # type: ignore[arg-type]
        assert (np.diff(curve.counts) >= 0).all()
        assert curve.counts.min() >= 0
        assert curve.counts.max() <= 300
        assert curve.counts[-1] == pytest.approx(sum(release.totals.values()))


def test_a_level_is_not_missed_by_rounding() -> None:
    values = np.array([0.1] * 7 + [0.9] * 93)
    assert publish(campaign(), values, None).quantile([0.07]).thresholds == [0.1]


def test_results_cannot_be_changed_by_accident() -> None:
    curve = one_stratum(100)[0].curve()
    with pytest.raises(ValueError, match="read-only"):
        curve.counts[:] = 0


def test_numbers_of_other_kinds() -> None:
    release, _ = one_stratum(100)
    assert release.histogram(np.int64(5)).counts.size == 5
    spec = campaign(grid=DATES)
    days = publish(spec, np.array(["2026-02-01"] * 10), None)
    assert json.loads(days.curve().at([date(2026, 3, 1)]).to_json())["threshold"] == ["2026-03-01"]


def test_dates() -> None:
    spec = campaign(grid=DATES)
    days = np.array(["2026-02-01", "2026-06-10", "2026-06-11", "2027-05-05"])
    release = publish(spec, days, None)
    assert release.quantile([0.25, 0.5]).thresholds == ["2026-02-05", "2026-06-11"]
    assert release.curve().at(["2026-06-30"]).counts.tolist() == [3.0]
    assert release.histogram(["2026-03-05", "2026-12-31"]).counts.tolist() == [1.0, 3.0]


def test_every_form_says_the_same() -> None:
    release, _ = one_stratum(2000, noise_seed=1)
    for table in (release.curve(), release.quantile(), release.histogram(), release.mean(), release.curve().at([0.5])):
        document, frame = json.loads(table.to_json()), table.to_frame()
        rows = list(csv.DictReader(io.StringIO(table.to_csv())))
        assert len(rows) == len(frame)
        for name in set(table.columns()) - {"statistic"}:
            assert [float(row[name] or "nan") for row in rows] == pytest.approx(
                [np.nan if v is None else v for v in document[name]], nan_ok=True
            )
            assert frame[name].astype(float).tolist() == pytest.approx(
                [np.nan if v is None else v for v in document[name]], nan_ok=True
            )
        assert document["epsilon"] == frame.attrs["epsilon"] == 1.0
        lines = table.to_text().splitlines()
        assert len({len(line) for line in lines}) == 1
        assert 2 <= len(lines) <= 51


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.quantile([1.5]), "between 0 and 1"),
        (lambda c: c.quantile([0.5], 1.0), "between 0 and 1"),
        (lambda c: c.histogram([0.5, 0.5]), "must increase"),
        (lambda c: c.histogram([]), "must increase"),
        (lambda c: c.histogram(0), "at least 1 bin"),
        (lambda c: smoothed(c.campaign, c.raw, 5, cast(Any, "cubic")), "smoothing is one of"),
    ],
)
def test_bad_questions(ask: object, message: str) -> None:
    curve = one_stratum(100)[0].curve()
    with pytest.raises(InvalidQuery, match=message):
        ask(curve)  # type: ignore[operator]
