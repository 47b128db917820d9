"""A party's file as it comes, as a table of texts: gzip, UTF-8, UTF-16 or Latin-1, commas, semicolons or tabs, quotes.

Parquet and Excel files are read by pandas, where it is installed. No file is a reason for a traceback.
"""

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fss_ecdf.campaign.error_text import listed, short
from fss_ecdf.campaign.errors import InvalidValue

MOST_BYTES = 1 << 31
DELIMITERS = ";\t|,"  # of two that fit as well, the one that is rarer within values
_SAMPLE = 50
_PARQUET, _ZIP, _GZIP = b"PAR1", b"PK\x03\x04", b"\x1f\x8b"


@dataclass(frozen=True)
class Table:
    """Rows of texts, blank ones left out, and the number of each as the file counts them from 1."""

    rows: list[list[str]]
    numbers: list[int]
    delimiter: str = ""  # "": there is but one column, or the file has no delimiters at all
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return max(map(len, self.rows), default=0)


def read_table(data: bytes) -> Table:
    """Whatever it is, by what it begins with, not by its name."""
    if data.startswith(_GZIP):
        data = _unpacked(data)
    if data.startswith(_PARQUET):
        return _framed(data, "read_parquet", "Parquet")
    if data.startswith(_ZIP):
        return _framed(data, "read_excel", "Excel")
    text, notes = _decoded(data)
    return _parsed(text, notes)


def _unpacked(data: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as file:
            found = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise InvalidValue("the file begins like gzip but cannot be unpacked; was it copied completely?") from None
    if len(found) > MOST_BYTES:
        raise InvalidValue(f"the file unpacks to more than {MOST_BYTES >> 30} GiB; send it in parts")
    return found


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            text, notes = data.decode("utf-16"), ("read as UTF-16",)
        else:
            text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text, notes = data.decode("latin-1"), ("read as Latin-1, for it is not UTF-8",)
    if "\0" in text:
        raise InvalidValue("this is not a text file; CSV, gzipped CSV, Parquet and Excel (.xlsx) files are read")
    return text, notes


def _parsed(text: str, notes: tuple[str, ...]) -> Table:
    delimiter = _delimiter(text)
    rows, numbers = [], []
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter or "\t", skipinitialspace=True)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                rows.append(cells)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise InvalidValue(f"line {reader.line_num} is not CSV ({error}); is a quote not closed?") from None
    return Table(rows, numbers, delimiter, notes)


def _delimiter(text: str) -> str:
    """The one that cuts the first lines into the same number of cells, more than one."""
    lines = [line for line in text[: 1 << 16].splitlines()[:_SAMPLE] if line.strip()]
    if len(lines) > 1 and len(text) > 1 << 16:
        lines.pop()  # it may be cut off
    best, chosen = 0.0, ""
    for candidate in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=candidate, skipinitialspace=True)]
        except csv.Error:
            continue
        if widths and widths[0] > 1 and (share := widths.count(widths[0]) / len(widths)) > best:
            best, chosen = share, candidate
    return chosen


def _framed(data: bytes, reader: str, kind: str) -> Table:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise InvalidValue(f"{kind} files need pandas: pip install 'fss-ecdf[frames]', or save it as CSV") from None
    more: dict[str, Any] = {"dtype": object, "keep_default_na": False} if reader == "read_excel" else {}
    try:
        frame = getattr(pd, reader)(io.BytesIO(data), **more)
    except ImportError as missing:
        raise InvalidValue(f"{kind} files need {missing.name or missing}: pip install 'fss-ecdf[frames]'") from None
    except Exception as error:  # whatever the many readers below it raise
        raise InvalidValue(f"this {kind} file cannot be read ({short(f'{type(error).__name__}: {error}')})") from None
    rows = [[str(name).strip() for name in frame.columns]]
    rows += [[_cell(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]
    return Table(rows, list(range(1, len(rows) + 1)), "cells", (f"read as {kind}",))


def _cell(value: Any) -> str:
    """As somebody would have written it into a CSV file; what pandas has for "nothing" is nothing."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == datetime.min.time() else value.isoformat()
    return str(value).strip()


def find_column(table: Table, header: list[str] | None, wanted: str) -> int:
    """By its name or, counted from 1, its number."""
    if header is not None and wanted in header:
        if header.count(wanted) > 1:
            raise InvalidValue(f"there are {header.count(wanted)} columns {wanted!r}; name one by its number")
        return header.index(wanted)
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted[:9]) <= table.width:
        return int(wanted) - 1
    has = f"the file has {listed([short(repr(name)) for name in header], ', ')}" if header else "it has no header"
    raise InvalidValue(f"there is no column {short(repr(wanted))}; {has}")
