"""Results in a notebook: tables as HTML, and `.plot(ax=None)` in the manner of scikit-learn's displays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from analyst.present.table import Tabular, short
from fss_ecdf.campaign.errors import InvalidQuery

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 20


@dataclass(frozen=True)
class Display:
    """What was drawn: `ax_` and `figure_`, to be changed, saved or drawn over."""

    ax_: "Axes"
    figure_: "Figure"
    _own: bool = True

    def __repr__(self) -> str:
        return f"<Display {self.ax_.get_title(loc='left')!r}>"

    def _repr_html_(self) -> str | None:
        """A picture of our own shows itself; into somebody's axes it belongs to them."""
        from analyst import plots

        return plots.as_svg(self.figure_) if self._own else None


def draw(made: Tabular, ax: "Axes | None", options: Mapping[str, Any]) -> Display:
    """The result's own picture, in a new figure or in the axes that are given."""
    figure = _plot_of(made)(made.drawn, ax=ax, **options)
    return Display(figure.axes[0] if ax is None else ax, figure, ax is None)


def draw_figure(made: Tabular, options: Mapping[str, Any]) -> "Figure":
    """The same with those of the options that this picture has."""
    plot = _plot_of(made)
    known = signature(plot).parameters
    figure: Figure = plot(made.drawn, **{name: value for name, value in options.items() if name in known})
    return figure


def _plot_of(made: Tabular) -> Callable[..., Any]:
    from analyst import plots

    if not made.picture:
        raise InvalidQuery(f"there is no plot of {type(made).__name__}; print it as a table")
    plot: Callable[..., Any] = getattr(plots, made.picture)
    return plot


def html(made: Tabular) -> str:
    """What belongs to all rows in a line above, then the rows; of a long result, rows spread over it."""
    about = {name: value for name, value in made.metadata().items() if name != "notes" and not isinstance(value, dict)}
    head = ", ".join(f"{escape(name.replace('_', ' '))} {escape(short(value))}" for name, value in about.items())
    columns = made.columns()
    rows = list(zip(*columns.values(), strict=True))
    if len(rows) > MOST_ROWS:
        rows = [rows[i] for i in np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int)]
    names = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(short(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in made.metadata().get("notes", []))
    return f"<p>{head}</p><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{notes}"
