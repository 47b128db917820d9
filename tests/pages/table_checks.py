"""Files and numbers as people write them: the page reads the same cells and positions as the command line."""

from dealer.file_formats import read_table
from dealer.input_rows import Options, from_file
from tests.campaign.helpers import campaign
from tests.pages.checks import as_text
from tests.pages.probing import Probe

TABLES = [
    b"score,outcome\n0.5,yes\n0.25,no\n",
    b"\xef\xbb\xbfscore;outcome\r\n0.5;yes\r\n\r\n;no\r\n;\r\n",
    b'a\t"b\t""c"\tx\n1\t"two\nlines"\t\n"5"6\t7\t8\n',
    b'"x, y",z\n"1,5",2\n3\n',
    b"only\n1\n2",
    b"a | b | c\n1 | 2,5 | no\n2 |  | yes\n",
    "wert;gruppe\n0,5;nö\n".encode("latin-1"),
    "a,b\n1,2\n".encode("utf-16"),
    b"a,x;b\n1,5;2\n2,5;3\n",
    b'first, "second, third"\n1, "2"\n',
]
COLUMNS = [
    b"x,score,outcome\n1,0.5,yes\n2,,no\n3,NA,no\n4,0.25,no\n",
    b"0.5;yes\n0.25;no\n0.75;yes\n",
    b"wert;gruppe\n0,5;yes\n0,25;no\n-;yes\n",
]


def tables(probe: Probe) -> None:
    """The same cells, lines, missing values, headers and decimal commas as the command line reads."""
    for data in TABLES:
        read = read_table(data)
        found = probe.table(data.hex())
        assert (found["rows"], found["numbers"], found["delimiter"]) == (read.rows, read.numbers, read.delimiter), data
    made = campaign(strata=["no", "yes"])
    for data in COLUMNS:
        column = read_table(data).width - 1
        options = Options(column=str(column), stratum_column=str(column + 1), skip_missing=True)
        records = from_file(data, options, made.variable)
        found = probe.column(as_text(made), data.hex(), column - 1, column)
        assert found["positions"] == records.to_positions(made).positions.tolist(), data
        assert found["header"] == (b";" not in data or b"wert" in data)
    rows = [["0.5", "yes"], [" 7 ", " no "], ["-1", "yes"], ["0.255", "no"], ["1", "no"], ["0", "no"]]
    placed = made.to_positions([v for v, _ in rows], [s.strip() for _, s in rows])
    found = probe.place(as_text(made), rows)
    assert found["positions"] == placed.positions.tolist()
    assert (found["below"], found["above"]) == (placed.below, placed.above)
    assert [(off["row"], off["value"]) for off in found["off"]] == [(3, " 7 "), (4, "-1")]


TYPED = [
    ("7.5", "en", "7.5"),
    ("7,5", "en", "7.5"),
    ("7,5 %", "de", "7.5"),
    ("\u22127,5", "fr", "-7.5"),
    ("\u20137.5%", "en", "-7.5"),
    ("1.234,5", "de", "1234.5"),
    ("1,234.5", "en", "1234.5"),
    ("1\u202f234,5", "fr", "1234.5"),
    ("1,234,567", "en", "1234567"),
    ("1.234", "en", "1.234"),
    ("1,234", "de", "1.234"),
    ("0,123", "en", "0.123"),
    ("7.5 % ", "en", "7.5"),
    ("12 apples", "en", "12apples"),
    ("1,2,3", "en", "1,2,3"),
]


def typed_numbers(probe: Probe) -> None:
    for text, language, literal in TYPED:
        assert probe.numberText(text, language, "%") == literal, text
    for text, language in (("1,234", "en"), ("1.234", "de"), ("-12.345 %", "fr")):
        assert probe.refusal("numberText", text, language, "%") == "ambiguousNumber"
