"""A party's values and strata, from a command line or a file: which cells they are, what is missing, what is wrong."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dealer.file_formats import Table, find_column, read_table
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.campaign.error_text import listed, short
from fss_ecdf.campaign.errors import InvalidValue
from fss_ecdf.campaign.missing import is_missing
from fss_ecdf.campaign.variable import Variable

SHOWN = 5
MOST_CLIPPED = 0.05
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")


@dataclass(frozen=True)
class Options:
    """How a file is to be read."""

    column: str | None = None
    stratum: str | None = None
    stratum_column: str | None = None
    skip_missing: bool = False
    decimal: str | None = None


@dataclass(frozen=True)
class InputRows:
    """Values and, where the campaign has several, their strata; each with the row that it stands in."""

    values: list[str]
    strata: list[str] | None
    rows: Sequence[int]
    notes: tuple[str, ...] = ()
    hint: str = ""

    def to_positions(self, campaign: Campaign) -> Positions:
        """As positions. An error counts all rows that are wrong, and shows the first of them as the file has them."""
        if len(campaign.strata) == 1 and self.strata is not None:
            raise InvalidValue("this campaign has no strata: leave out --stratum and --stratum-column")
        if len(campaign.strata) > 1 and self.strata is None:
            raise InvalidValue(
                "every value needs its stratum, by --stratum-column or --stratum: one of "
                + listed([short(repr(name)) for name in campaign.strata], ", ")
            )
        if not self.values:
            raise InvalidValue("there are no values in it")
        try:
            return campaign.to_positions(self.values, self.strata)
        except InvalidValue:
            raise InvalidValue(self._wrong(campaign)) from None

    def _wrong(self, campaign: Campaign) -> str:
        told = []
        for i, row in enumerate(self.rows):
            try:
                campaign.to_positions(
                    [self.values[i]], None if self.strata is None else [self.strata[i]], first_row=row
                )
            except InvalidValue as problem:
                told.append(problem.detail)
        more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
        count = f"{len(told)} of {len(self.rows)} rows cannot be used: " if len(self.rows) > 1 else ""
        return count + "; ".join(told[:SHOWN]) + more + self.hint


def from_value(value: str, stratum: str | None) -> InputRows:
    return InputRows([value], None if stratum is None else [stratum], [1])


def from_file(data: bytes, options: Options, variable: Variable) -> InputRows:
    """The wanted column of a file; the variable tells values from a header, and categories from missing ones."""
    table = read_table(data)
    if not table.rows:
        raise InvalidValue("the file is empty")
    table = _one_column(table, options)
    header = None if _begins_with_values(table, options, variable) else table.rows[0]
    body = table if header is None else replace(table, rows=table.rows[1:], numbers=table.numbers[1:])
    notes = [*table.notes]
    if header is not None and options.column is None:
        notes.append(f"row 1 is taken for a header: {short(repr(header[0]))}")
    at = _value_column(table, header, options)
    values = _column(body, at)
    strata = [options.stratum] * len(values) if options.stratum is not None else None
    if options.stratum_column is not None:
        strata = _column(body, find_column(table, header, options.stratum_column))
    found = _without_missing(InputRows(values, strata, body.numbers, tuple(notes)), options, variable)
    return found if variable.is_categorical else _decimals(found, options)


def _one_column(table: Table, options: Options) -> Table:
    """A list of numbers with decimal commas looks like two columns of numbers: somebody has to say."""
    joined = [",".join(row) for row in table.rows]
    if options.column is not None or table.delimiter != "," or not all(map(_COMMA.fullmatch, joined)):
        return table
    if options.decimal != ",":
        raise InvalidValue(
            f"{short(repr(joined[0]))} may be one number or two columns: say --decimal , if its comma is a decimal "
            "point, or name the column by its number, like --column 1"
        )
    return replace(table, rows=[[text] for text in joined], delimiter="")


def _begins_with_values(table: Table, options: Options, variable: Variable) -> bool:
    """Whether the first row holds values: no cell of a header is a number."""
    first = table.rows[0]
    if options.column is not None and options.column in first:
        return False

    def could_be(cell: str) -> bool:
        value = variable.is_value(cell) or variable.is_value(cell.replace(",", "."))
        return value or (cell != "" and is_missing(cell))

    return any(could_be(cell) for cell in first)


def _value_column(table: Table, header: list[str] | None, options: Options) -> int:
    if options.column is not None:
        return find_column(table, header, options.column)
    if table.width == 1:
        return 0
    names = "it has no header" if header is None else "they are " + listed([short(repr(n)) for n in header], ", ")
    raise InvalidValue(f"the file has {table.width} columns ({names}): name that of the values with --column")


def _column(table: Table, at: int) -> list[str]:
    return [row[at] if at < len(row) else "" for row in table.rows]


def _without_missing(found: InputRows, options: Options, variable: Variable) -> InputRows:
    """Rows whose stratum is missing, or whose value is where missing ones are not counted, by what stands there."""

    def missing(i: int) -> str | None:
        if found.strata is not None and is_missing(found.strata[i]):
            return found.strata[i] or "empty"
        value = found.values[i]
        absent = not variable.missing and is_missing(value) and not variable.is_value(value)
        return (value or "empty") if absent else None

    which = [missing(i) for i in range(len(found.values))]
    counts = Counter(word for word in which if word is not None)
    if not counts:
        return found
    words = listed([f"{count} {word}" for word, count in counts.most_common()], ", ")
    if not options.skip_missing:
        return replace(found, hint=f". {counts.total()} are missing ({words}): --skip-missing leaves them out")
    keep = [i for i, word in enumerate(which) if word is None]
    return InputRows(
        [found.values[i] for i in keep],
        None if found.strata is None else [found.strata[i] for i in keep],
        [found.rows[i] for i in keep],
        (*found.notes, f"{counts.total()} rows without a value are left out ({words})"),
    )


def _decimals(found: InputRows, options: Options) -> InputRows:
    """Decimal commas as points. Where a comma may stand for thousands, somebody has to say."""
    commas = [value for value in found.values if _COMMA.fullmatch(value) or _GROUPED.fullmatch(value)]
    if not commas or options.decimal == ".":
        return found
    if options.decimal is None and all(map(_GROUPED.fullmatch, commas)):
        raise InvalidValue(
            f"{short(repr(commas[0]))} may be a decimal number or one in thousands, and so may all others with a "
            "comma: say --decimal , or write them without thousands' commas"
        )
    values = [value.replace(",", ".") if _COMMA.fullmatch(value) else value for value in found.values]
    return replace(found, values=values, notes=(*found.notes, "a comma is taken for a decimal point"))


def check_clipping(campaign: Campaign, placed: Positions, allowed: bool) -> None:
    """Values off the grid are moved to its ends; many of them mean that it is another column, or another unit."""
    n = placed.positions.size
    if allowed or placed.clipped <= MOST_CLIPPED * n:
        return
    grid = campaign.variable.grid
    unit = f" {campaign.variable.unit}" if campaign.variable.unit else ""
    ends = f"{grid.label(0)} to {grid.label(grid.size - 1)}{unit}"
    if placed.clipped == n:
        what = f"all {n} values lie" if n > 1 else "the value lies"
        raise InvalidValue(
            f"{what} off the grid, which goes from {ends}: is this the right column? To send the ends of the grid in "
            "their place, say --allow-clipping"
        )
    raise InvalidValue(
        f"{placed.below} values below and {placed.above} above the grid from {ends} are {placed.clipped / n:.0%} of "
        f"all {n}. Is the unit the same? To send the ends of the grid in their place, say --allow-clipping"
    )
