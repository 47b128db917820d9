"""Parties' files as they come: every form that is read, every mistake that is named, and no traceback for any bytes."""

import gzip
import io
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dealer import file_formats, input_rows
from dealer.histogram import histogram
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidValue
from tests.servers.conftest import new_campaign

FLOATS = {"kind": "linear", "from": 0.0, "to": 100.0, "step": 0.1}
DAYS = {"kind": "linear", "values": "date", "from": "2026-01-01", "to": "2026-12-31"}
ONE = new_campaign(grid=FLOATS, unit="mmol/l")
TWO = new_campaign(grid=FLOATS, strata=["no", "yes"])


def read(data: bytes | str, campaign: Campaign = ONE, **options: Any) -> input_rows.InputRows:
    content = data.encode() if isinstance(data, str) else data
    return input_rows.from_file(content, input_rows.Options(**options), campaign.variable)


TEXT = "patient;Wert;event\np1;3,5;no\np2;41,25;yes\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        gzip.compress(TEXT.encode()),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode("utf-16"),
        TEXT.replace("patient", "müßig").encode("latin-1"),
        TEXT.replace("Wert", '"Wert"').replace("event", '"event"').encode(),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace(",", ".").replace(";", ",").encode(),
        TEXT.replace(";", "\t").encode(),
        TEXT.replace(";", " ; ").encode(),
        TEXT.replace("p1;3,5;", '"p;1";"3,5";').encode(),
        ("\n" + TEXT + "\n\n").encode(),
    ],
    ids=[
        "plain",
        "gz",
        "bom",
        "utf-16",
        "latin-1",
        "quoted",
        "crlf",
        "comma",
        "tab",
        "blanks",
        "quotes-in-cells",
        "blank-lines",
    ],
)
def test_one_table_in_many_forms(data: bytes) -> None:
    found = read(data, TWO, column="Wert", stratum_column="event")
    assert (found.values, found.strata) == (["3.5", "41.25"], ["no", "yes"])
    assert (
        found.to_positions(TWO).positions.tolist() == TWO.to_positions([3.5, 41.25], ["no", "yes"]).positions.tolist()
    )


@pytest.mark.parametrize("kind", ["to_parquet", "to_excel"])
def test_parquet_and_excel_by_pandas(kind: str) -> None:
    frame = pd.DataFrame({"x": [3.5, None, 41.25], "event": ["no", "yes", "yes"]})
    out = io.BytesIO()
    getattr(frame, kind)(out, index=False)
    found = read(out.getvalue(), TWO, column="x", stratum_column="event", skip_missing=True)
    assert (found.values, found.strata, found.rows) == (["3.5", "41.25"], ["no", "yes"], [2, 4])


def test_dates_in_excel() -> None:
    out = io.BytesIO()
    pd.DataFrame({"day": [datetime(2026, 3, 31), datetime(2026, 4, 1, 13, 30)]}).to_excel(out, index=False)
    campaign = new_campaign(grid=DAYS)
    assert read(out.getvalue(), campaign).to_positions(campaign).positions.tolist() == [89, 90]


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    for data, kind in ((b"PAR1 and so on", "Parquet"), (b"PK\x03\x04 and so on", "Excel")):
        with pytest.raises(InvalidValue, match=rf"{kind} files need pandas: pip install 'fss-ecdf\[frames\]'"):
            read(data)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1\n2.5\n\n3\n", ["1", "2.5", "3"]),
        ("age\n1\n2.5\n", ["1", "2.5"]),
        ('"age"\n1\n', ["1"]),
        ("age\n1,5\n2\n", ["1.5", "2"]),
        ("7", ["7"]),
        ("NA\n7", ["7"]),
    ],
)
def test_one_column_needs_no_name(text: str, values: list[str]) -> None:
    assert read(text, skip_missing=True).values == values


def test_numbers_that_may_be_two_columns() -> None:
    with pytest.raises(InvalidValue, match=r"'1,5' may be one number or two columns: say --decimal , if .* --column 1"):
        read("1,5\n2,25\n")
    assert read("1,5\n2,25\n", decimal=",").values == ["1.5", "2.25"]
    assert read("1,5\n2,25\n", column="2").values == ["5", "25"]


def test_a_header_that_was_recognised_is_told() -> None:
    assert read("age\n1\n").notes == ("row 1 is taken for a header: 'age'",)
    assert read("1\n").notes == ()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("a,b\n1,2\n", {}, r"has 2 columns \(they are 'a', 'b'\): name that of the values with --column"),
        ("1,2,3\n4,5,6\n", {}, r"has 3 columns \(it has no header\)"),
        ("a,b\n1,2\n", {"column": "c"}, "there is no column 'c'; the file has 'a', 'b'"),
        ("a,a\n1,2\n", {"column": "a"}, "there are 2 columns 'a'; name one by its number"),
        ("a,b\n1,2\n", {"column": "3"}, "there is no column '3'"),
        ("x\n", {}, "there are no values in it"),
        ("x\n1,234\n5,678\n", {"column": "x"}, "say --decimal , or write them without thousands' commas"),
        ('x\n"1\n', {"column": "x"}, None),
        ("\0\1\2", {}, "this is not a text file"),
    ],
)
def test_mistakes_are_named(text: str, options: dict[str, Any], message: str | None) -> None:
    if message is None:
        read(text, **options)
        return
    with pytest.raises(InvalidValue, match=message):
        read(text, **options).to_positions(ONE)


def test_a_column_by_its_number_and_thousands_by_word() -> None:
    assert read("1;2,5\n3;4,5\n", column="2").values == ["2.5", "4.5"]
    assert read("x;y\n1,234;a\n", column="x", decimal=",").values == ["1.234"]
    with pytest.raises(InvalidValue, match="'1,234' is not a finite number"):
        read("x;y\n1,234;a\n", column="x", decimal=".").to_positions(ONE)
    with pytest.raises(InvalidValue, match="cannot be unpacked"):
        read(gzip.compress(b"x" * 100)[:-9])


def test_all_bad_rows_are_counted_and_five_are_shown() -> None:
    lines = ["x", "1", "many", "2", *("NA", "", "-", "1.2.3", "inf", "few", "3"), '""']
    with pytest.raises(InvalidValue) as caught:
        read("\n".join(f"{line};z" for line in lines), column="x").to_positions(ONE)
    told = caught.value.detail
    assert told.startswith("8 of 11 rows cannot be used: row 3: 'many' is not a finite number; row 5: 'NA'")
    assert told.count("row ") == 5
    assert "; and 3 more. 4 are missing (2 empty, 1 NA, 1 -): --skip-missing leaves them out" in told


def test_missing_ones_are_left_out_and_counted() -> None:
    text = "x;e\n1;no\nNA;yes\n2;\n;no\nn/a;no\n3;yes\n"
    found = read(text, TWO, column="x", stratum_column="e", skip_missing=True)
    assert (found.values, found.strata, found.rows) == (["1", "3"], ["no", "yes"], [2, 7])
    assert found.notes == ("4 rows without a value are left out (2 empty, 1 NA, 1 n/a)",)


def test_strata_where_there_are_none_and_none_where_there_are() -> None:
    for found in (input_rows.from_value("3", "yes"), read("x,e\n1,no\n", column="x", stratum_column="e")):
        with pytest.raises(InvalidValue, match="this campaign has no strata: leave out --stratum"):
            found.to_positions(ONE)
    with pytest.raises(InvalidValue, match=r"every value needs its stratum.*'no', 'yes'"):
        read("1\n").to_positions(TWO)
    assert read("1\n2\n", TWO, stratum="yes").to_positions(TWO).positions.tolist() == [1024 + 10, 1024 + 20]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([5.0] * 95 + [101.0] * 5, None),
        ([5.0] * 94 + [101.0] * 5 + [-1.0], r"1 values below and 5 above .* 0 to 100 mmol/l are 6% of all 100"),
        ([-3.0, 1e6], "all 2 values lie off the grid, which goes from 0 to 100 mmol/l: is this the right column?"),
        ([1e6], "the value lies off the grid.*is this the right column"),
    ],
)
def test_clipping_is_refused_unless_allowed(values: list[float], message: str | None) -> None:
    placed = ONE.to_positions(values)
    input_rows.check_clipping(ONE, placed, True)
    if message is None:
        input_rows.check_clipping(ONE, placed, False)
        return
    with pytest.raises(InvalidValue, match=message):
        input_rows.check_clipping(ONE, placed, False)


def test_the_histogram_is_of_what_would_be_sent() -> None:
    drawn = histogram(TWO, TWO.to_positions([0.0, 1.0, 1.0, 99.9, 1e9], ["no", "no", "no", "yes", "yes"]))
    first, second = drawn.split("\n\n")
    assert first.startswith("no: 3 values\n")
    assert [int(line.split()[-1]) for line in first.splitlines()[2:]] == [3, *[0] * 19]
    assert [int(line.split()[-1]) for line in second.splitlines()[2:]] == [*[0] * 19, 2]
    named = new_campaign(grid=FLOATS, unit="mmol/l", name="glucose")
    assert "glucose (mmol/l)" in histogram(named, named.to_positions([1.0]))
    tiny = new_campaign(grid={"kind": "explicit", "at": [1.0, 2.0]})
    assert len(histogram(tiny, tiny.to_positions([1.0])).splitlines()) == 3


PIECES = st.sampled_from(
    ["1", "2,5", "3.7", "NA", "", ";", ",", "\t", "|", '"', "\n", "\r\n", "\r", "x", "é", "\ufeff", "-", "1e999", "\0"]
)
OPTIONS = st.fixed_dictionaries(
    {
        "column": st.sampled_from([None, "x", "1", "2", "999"]),
        "stratum": st.sampled_from([None, "no"]),
        "skip_missing": st.booleans(),
        "decimal": st.sampled_from([None, ",", "."]),
    }
)


def try_to_read(data: bytes, options: dict[str, Any], campaign: Campaign) -> None:
    told = ""
    try:
        read(data, campaign, **options).to_positions(campaign)
    except InvalidValue as problem:
        told = problem.detail
    assert "\n" not in told
    assert len(told) < 2000


@given(st.lists(PIECES, max_size=30).map("".join), OPTIONS, st.sampled_from(["utf-8", "latin-1", "utf-16"]))
@settings(max_examples=400, deadline=None)
def test_no_text_makes_it_stumble(text: str, options: dict[str, Any], encoding: str) -> None:
    try_to_read(text.encode(encoding, errors="replace"), options, TWO if options["stratum"] else ONE)


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"\xff\xfe", b"x\n"]))
@settings(max_examples=300, deadline=None)
def test_no_bytes_make_it_stumble(data: bytes, head: bytes) -> None:
    try_to_read(head + data, {}, ONE)


def test_damaged_files_of_every_kind_are_one_line(tmp_path: Path) -> None:
    """Every file with one byte changed or its end cut off, at many places; seeded."""
    frame, rng = pd.DataFrame({"x": [3.5, 41.25]}), np.random.default_rng(5)
    made = [gzip.compress(TEXT.encode()), TEXT.encode()]
    for kind in ("to_parquet", "to_excel"):
        out = io.BytesIO()
        getattr(frame, kind)(out, index=False)
        made.append(out.getvalue())
    for data in made:
        for at in rng.integers(0, len(data), 40):
            changed = bytearray(data)
            changed[at] ^= int(rng.integers(1, 256))
            try_to_read(bytes(changed), {"column": "x"}, ONE)
            try_to_read(data[:at], {"column": "x"}, ONE)


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_formats, "MOST_BYTES", 1000)
    with pytest.raises(InvalidValue, match="unpacks to more than"):
        read(gzip.compress(b"1\n" * 1000))
