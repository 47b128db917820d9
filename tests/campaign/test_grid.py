"""Values find their index: ties, ends, decimals, dates, and rows that are no values."""

from datetime import date, datetime
from decimal import Context, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidValue
from fss_ecdf.campaign.grid import ExplicitGrid, LinearGrid, LogGrid
from tests.campaign.helpers import campaign, fields

Grids = LinearGrid | LogGrid | ExplicitGrid


def grid(**spec: Any) -> Grids:
    return campaign(grid=spec).variable.grid


def brute_force(g: Grids, x: float) -> int:
    return next((i for i, tau in enumerate(g.all_thresholds) if tau >= x), g.size - 1)


TENTHS = grid(kind="linear", **{"from": 0.1, "to": 0.9, "step": 0.1})


def test_thresholds_are_the_doubles_people_mean() -> None:
    assert TENTHS.all_thresholds.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    cents = grid(kind="linear", **{"from": -1.0, "to": 1.0, "step": 0.01})
    assert cents.all_thresholds.tolist() == [float(Fraction(i, 100)) for i in range(-100, 101)]


def test_a_tie_belongs_to_the_threshold() -> None:
    for i, tau in enumerate(TENTHS.all_thresholds):
        assert TENTHS.to_indices([float(tau)]).index.tolist() == [i]
        assert TENTHS.to_indices([float(np.nextafter(tau, 2))]).index.tolist() == [min(i + 1, 8)]
        assert TENTHS.to_indices([float(np.nextafter(tau, -2))]).index.tolist() == [i]


def test_values_outside_are_clipped_and_counted() -> None:
    placed = TENTHS.to_indices([-5.0, 0.05, 0.1, 0.9, 0.91, 1e300])
    assert placed.index.tolist() == [0, 0, 0, 8, 8, 8]
    assert (placed.below, placed.above) == (2, 2)


linear = st.tuples(st.integers(-10_000, 10_000), st.integers(1, 500), st.integers(1, 200), st.integers(0, 6)).map(
    lambda t: grid(
        kind="linear",
        **{"from": t[0] / 10 ** t[3], "to": float(Fraction(t[0] + t[1] * t[2], 10 ** t[3])), "step": t[1] / 10 ** t[3]},
    )
)
explicit = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40, unique=True).map(
    lambda xs: grid(kind="explicit", at=sorted(xs))
)
logarithmic = st.tuples(st.floats(1e-6, 1.0), st.floats(2.0, 1e6), st.integers(2, 60)).map(
    lambda t: grid(kind="logarithmic", **{"from": t[0], "to": t[1], "count": t[2]})
)


@given(st.one_of(linear, explicit, logarithmic), st.data())
def test_index_equals_brute_force(g: Grids, data: st.DataObject) -> None:
    taus = g.all_thresholds
    near = [float(f(t)) for t in taus[:: max(1, taus.size // 8)] for f in (float, _up, _down)]
    xs = near + data.draw(st.lists(st.floats(-1e10, 1e10), max_size=20))
    placed = g.to_indices(xs)
    assert placed.index.tolist() == [brute_force(g, x) for x in xs]
    assert placed.below == sum(x < taus[0] for x in xs)
    assert placed.above == sum(x > taus[-1] for x in xs)


def _up(t: float) -> float:
    return float(np.nextafter(t, np.inf))


def _down(t: float) -> float:
    return float(np.nextafter(t, -np.inf))


def test_a_grid_of_two_to_the_32() -> None:
    g = grid(kind="linear", values="integer", **{"from": 0, "to": 2**32 - 1, "step": 1})
    assert (g.size, g.bits) == (2**32, 32)
    assert g.to_indices([0, 2**31, 2**32 - 1, 2**40]).index.tolist() == [0, 2**31, 2**32 - 1, 2**32 - 1]


def test_grids_are_equal_by_their_fields() -> None:
    """Also when their thresholds have been listed, and as parts of campaigns."""
    some: list[dict[str, Any]] = [
        {"kind": "linear", "from": 1, "to": 10},
        {"kind": "logarithmic", "from": 1, "to": 10, "count": 10},
        {"kind": "explicit", "at": [1, 10]},
    ]
    for said in some:
        one, same = grid(**said), grid(**said)
        assert (one.all_thresholds == same.all_thresholds).all()
        assert one == same
        assert hash(one) == hash(same)
        assert [grid(**other) == one for other in some].count(True) == 1


def test_logarithmic_thresholds() -> None:
    g = grid(kind="logarithmic", **{"from": 0.01, "to": 100, "count": 5})
    assert g.all_thresholds.tolist() == [0.01, 0.1, 1.0, 10.0, 100.0]


def test_dates() -> None:
    g = grid(kind="linear", values="date", **{"from": "2024-02-27", "to": "2024-03-05", "step": 1})
    assert g.size == 8
    values = ["2024-02-29", date(2024, 3, 1), "2024-03-01T15:30:00", datetime(2024, 3, 5, 23, 59), "2025-01-01"]
    placed = g.to_indices(values)
    assert placed.index.tolist() == [2, 3, 3, 7, 7]
    assert placed.above == 1
    assert [g.label(i) for i in (0, 2, 3)] == ["2024-02-27", "2024-02-29", "2024-03-01"]


def test_dates_as_toml_writes_them() -> None:
    head = 'title = "t"\nquestion = "q"\nepsilon = 1\n'
    head += '[[variables]]\nname = "day"\n'
    text = head + '[variables.grid]\nkind = "explicit"\nvalues = "date"\nat = [2024-01-01, 2024-07-01]'
    assert Campaign.from_toml(text, id=bytes(32)).variable.grid.label(1) == "2024-07-01"


@pytest.mark.parametrize(
    ("values", "bad", "message"),
    [
        ("float", "abc", "row 2: 'abc' is not a finite number"),
        ("float", float("nan"), "row 2: nan is not a finite number"),
        ("float", float("-inf"), "row 2: -inf is not a finite number"),
        ("float", "nan", "row 2: 'nan' is not a finite number"),
        ("float", None, "row 2: None is not a finite number"),
        ("float", True, "row 2: True is not a finite number"),
        ("float", "", "row 2: '' is not a finite number"),
        ("integer", 3.5, "row 2: 3.5 is not a whole number"),
        ("float", "1_0", "row 2: '1_0' is not a finite number"),
        ("float", "1e999", "row 2: '1e999' is not a finite number"),
        pytest.param("float", 10**5000, "row 2: a huge number is not a finite number", id="huge"),
        ("float", np.complex128(1j), "row 2: 1j is not a finite number"),
        ("float", np.timedelta64(5, "D"), "row 2: 5 days is not a finite number"),
        ("integer", "7.5", "row 2: '7.5' is not a whole number"),
        ("date", "31.12.2024", "'31.12.2024' is not a date like 2026-03-31|row 2: '31.12.2024' is not a date"),
        ("date", 20240101, "row 2: 20240101 is not a date"),
    ],
)
def test_bad_values_name_their_row(values: str, bad: object, message: str) -> None:
    ends: dict[str, Any] = {"from": "2024-01-01", "to": "2024-12-31"} if values == "date" else {"from": 0, "to": 10}
    g = grid(kind="linear", values=values, step=1, **ends)
    good = "2024-05-05" if values == "date" else 1
    with pytest.raises(InvalidValue, match=message):
        g.to_indices([good, bad, good])
    array = np.array([1.0, np.nan])
    if values == "float":
        with pytest.raises(InvalidValue, match="row 2: nan"):
            g.to_indices(array)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "linear", "from": 0, "to": 1, "step": 0}, "step must be positive, got 0"),
        ({"kind": "linear", "from": 0, "to": 1, "step": 0.3}, "whole number of steps"),
        ({"kind": "linear", "from": 1, "to": 0, "step": 1}, "whole number of steps"),
        ({"kind": "linear", "from": 0, "to": 2**32, "step": 1}, r"at most 2\^32 thresholds, this one 4294967297"),
        ({"kind": "linear", "from": 0.0, "to": float("inf"), "step": 1.0}, "finite"),
        ({"kind": "linear", "values": "integer", "from": 0, "to": 1.5, "step": 0.5}, "whole numbers"),
        ({"kind": "linear", "values": "date", "from": 0, "to": 5}, "ISO date"),
        ({"kind": "linear", "from": "2024-01-01", "to": "2024-01-05"}, "only a grid of values"),
        ({"kind": "linear", "values": "date", "from": "2024-13-01", "to": "2025-01-01"}, "not a date"),
        ({"kind": "logarithmic", "from": 0, "to": 1, "count": 5}, "0 < from < to"),
        ({"kind": "logarithmic", "from": 1, "to": 2, "count": 1}, "count must be 2 to 4194304, got 1"),
        ({"kind": "explicit", "at": [1.0]}, "2 to 4194304 thresholds, this one 1"),
        ({"kind": "explicit", "at": [1.0, 3.0, 2.0]}, "thresholds must increase; 2.0 follows 3.0"),
        ({"kind": "explicit", "at": [1.0, float("nan")]}, "must be finite"),
        ({"kind": "explicit", "at": [1, 2**53 + 3]}, "at most 1000000000000000"),
        ({"kind": "linear", "from": 0, "to": 10**400, "step": 1}, "at most 1000000000000000"),
        ({"kind": "linear", "from": 70905987963.10957, "to": 70905987963.11092, "step": 1e-05}, "too many digits"),
        ({"kind": "linear", "from": 0.0, "to": 1e-30, "step": 1e-31}, "at most 22 decimal places"),
        ({"kind": "round", "at": [1.0, 2.0]}, "grid"),
        ({"kind": "explicit", "at": [1.0, 2.0], "colour": "red"}, "grid.colour: unknown field"),
        ({"kind": "linear", "from": 0, "to": 1}, "whole number of steps|step"),
    ][:-1],
)
def test_bad_grids_say_what_is_wrong(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidCampaign, match=message):
        Campaign.from_dict(fields(grid=spec))


def test_thresholds_do_not_depend_on_the_callers_decimal_context() -> None:
    with localcontext(Context(prec=3)):
        g = grid(kind="linear", **{"from": 0.1234, "to": 0.1239, "step": 0.0001})
        assert g.all_thresholds.tolist() == [0.1234, 0.1235, 0.1236, 0.1237, 0.1238, 0.1239]


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "linear", "values": "integer", "from": 10**14, "to": 10**14 + 10, "step": 1},
        {"kind": "logarithmic", "from": 138447, "to": 10**15, "count": 37},
        {"kind": "explicit", "values": "integer", "at": [-0.0, 5, 10**15]},
    ],
)
def test_whole_numbers_survive_a_round_trip(spec: dict[str, Any]) -> None:
    first = campaign(grid=spec)
    again = Campaign.from_json(first.to_json())
    assert again.variable.grid.all_thresholds.tobytes() == first.variable.grid.all_thresholds.tobytes()
    assert again.digest == first.digest


def test_one_grid_has_one_digest() -> None:
    spellings: list[dict[str, float]] = [
        {"from": 0, "to": 1, "step": 1},
        {"from": 0.0, "to": 1.0, "step": 1.0},
        {"from": -0.0, "to": 1},
    ]
    assert len({campaign(grid={"kind": "linear", **s}).digest for s in spellings}) == 1


def test_a_date_grid_takes_no_bare_numbers() -> None:
    g = grid(kind="linear", values="date", **{"from": "2024-02-27", "to": "2024-03-05", "step": 1})
    with pytest.raises(InvalidValue, match="row 1: 19800 is not a date"):
        g.to_indices(np.array([19800]))


def test_any_threshold_reads_the_step_function() -> None:
    assert TENTHS.index_at([0.05, 0.1, 0.15, 0.9, 7.0]).tolist() == [-1, 0, 0, 8, 8]
