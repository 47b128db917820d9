"""Reading values and strata from a command line, a CSV file or standard input."""

import csv
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

from campaign.errors import InvalidValue
from campaign.spec import Campaign, Placed


@dataclass(frozen=True)
class Records:
    """Values and, where the campaign has several, their strata; `first_row` is the line number of the first."""

    values: list[str]
    strata: list[str] | None
    first_row: int = 1

    def place(self, campaign: Campaign) -> Placed:
        """As positions. Errors name the row as the file numbers it."""
        if len(campaign.strata) == 1:
            return campaign.place(self.values, None, first_row=self.first_row)
        return campaign.place(self.values, self.strata, first_row=self.first_row)


def from_value(value: str, stratum: str | None) -> Records:
    return Records([value], None if stratum is None else [stratum])


def from_csv(file: TextIO, column: str | None, stratum_column: str | None) -> Records:
    """One column of a CSV file with a header; without a column name, lines of one value each and no header."""
    if column is None:
        return Records([line.strip() for line in file if line.strip()], None)
    header = file.readline()
    reader = csv.DictReader(chain([header], file), delimiter=max(",;\t", key=header.count))
    names = reader.fieldnames or []
    for wanted in (column, stratum_column):
        if wanted is not None and wanted not in names:
            raise InvalidValue(f"there is no column {wanted!r}; the file has {', '.join(map(repr, names))}")
    values, strata = [], []
    for row in reader:
        values.append((row[column] or "").strip())
        if stratum_column is not None:
            strata.append((row[stratum_column] or "").strip())
    # The header is row 1, as spreadsheets show it.
    return Records(values, strata if stratum_column is not None else None, first_row=2)
