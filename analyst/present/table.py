"""What every result has in common: columns of numbers, and a few words about them; as text, CSV, JSON or a frame."""

import csv
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fss_ecdf.campaign.text import spreadsheet_cell

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from analyst.present.notebook import Display

Columns = Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]


class Tabular(ABC):
    """A result: `columns` of the same length, and `metadata` for what belongs to all rows."""

    picture: ClassVar[str] = ""  # the function of `analyst.plots` that draws it

    def __init_subclass__(cls, picture: str = "") -> None:
        cls.picture = picture or cls.picture

    @abstractmethod
    def columns(self) -> Columns:
        """Names to values, in the order in which people read them."""

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """What holds for the whole result, in JSON's types."""

    def plot(self, ax: "Axes | None" = None, **options: Any) -> "Display":
        """Its picture, in a new figure or in these axes. Needs matplotlib."""
        from analyst.present.notebook import draw

        return draw(self, ax, options)

    @property
    def drawn(self) -> "Tabular":
        """What its picture shows, where that is another result."""
        return self

    @property
    def warnings(self) -> list[str]:
        """What must be seen whatever the format: printed to the error stream."""
        return []

    def _repr_html_(self) -> str:
        from analyst.present.notebook import html

        return html(self)

    def to_frame(self) -> "pd.DataFrame":
        """The columns as a pandas frame, `metadata` in its attrs. Needs pandas (pip install pandas)."""
        import pandas as pd

        frame = pd.DataFrame({name: list(values) for name, values in self.columns().items()})
        frame.attrs.update(self.metadata())
        return frame

    def to_dict(self) -> dict[str, Any]:
        about = {name: plain(value) for name, value in self.metadata().items()}
        return {**about, **{name: [plain(v) for v in values] for name, values in self.columns().items()}}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        columns = self.columns()
        writer.writerow(map(spreadsheet_cell, columns))
        for row in zip(*columns.values(), strict=True):
            writer.writerow([_csv(plain(cell)) for cell in row])
        return out.getvalue()

    def to_text(self, most: int = 50) -> str:
        """The columns lined up; of a long result, rows spread over it."""
        columns = self.columns()
        rows = list(zip(*columns.values(), strict=True))
        if len(rows) > most:
            rows = [rows[i] for i in np.linspace(0, len(rows) - 1, most).astype(int)]
        cells = [list(columns), *([short(cell) for cell in row] for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in cells)


def _csv(value: Any) -> Any:
    return "" if value is None else spreadsheet_cell(value) if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """A cell in JSON's types; what is not a number is null."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def short(value: Any) -> str:
    """A cell as people read it."""
    value = plain(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {short(part)}" for name, part in value.items())
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def p_words(p: float | None) -> str:
    """A p-value as journals write it."""
    if p is None or not math.isfinite(p):
        return "p not known"
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def as_labels(thresholds: Sequence[object]) -> list[Any]:
    """What was asked for, in JSON's types."""
    return [plain(x) if isinstance(x, int | float | str | np.generic) else str(x) for x in thresholds]
