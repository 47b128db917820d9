"""The registry of statistics: one entry says what a statistic needs, its parameters, how it is computed and shown.

Every `Statistic` in a module of `analyst/entries/` is registered. The command line, both clients, the console, the
report, the campaign preview and the reference are made of these entries. Entries load what they compute with when they
are called, because the command line's help reads all of them.
"""

import inspect
import pkgutil
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial, update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from analyst import entries
from analyst.needs import CATEGORIES, NUMBERS, WHOLE_CURVES, Need
from fss_ecdf.campaign.errors import InvalidQuery

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analyst.client import Client
    from analyst.present.section import Section, StratumPart
    from analyst.present.table import Tabular
    from analyst.release import Release
    from fss_ecdf.campaign.campaign import Campaign
    from fss_ecdf.pages.local_server import Query


@dataclass(frozen=True)
class Shown:
    """How a statistic is shown besides its table and its plot; what is None is made of these two."""

    draw: "Callable[[Client, Any, Mapping[str, Any]], Figure] | None" = None
    remarks: "Callable[[Client, Any, Mapping[str, Any]], Iterator[str]] | None" = None  # below the table
    section: "Callable[[Any], Section | None] | None" = None  # of the report
    stratum_section: "Callable[[Release, StratumPart], Section] | None" = None  # the same of each stratum
    view: "Callable[[Any, Query], dict[str, Any]] | None" = None  # of the console
    view_name: str = ""
    view_names_strata: bool = False  # it lets the analyst name what the campaign leaves open
    in_report: bool = True
    in_console: bool = True


@dataclass(frozen=True)
class Statistic:
    """One statistic. `compute` takes what it is computed from, then its parameters; its docstring is the help.

    `source`: a release, all waves of a campaign, or queries to a server (`compute` is then a plan that may `spends`
    epsilon of the reserve). `by_points`: how it is found where the grid is too large for whole curves.
    """

    compute: Callable[..., Any]
    title: str
    order: int
    needs: tuple[Need, ...] = ()
    report_needs: tuple[Need, ...] = ()
    source: Literal["release", "waves", "server"] = "release"
    by_points: Callable[..., Generator[Any, Any, Any]] | None = None
    spends: bool = False
    shown: Shown = Shown()

    @property
    def method(self) -> str:
        return self.compute.__name__

    @property
    def name(self) -> str:
        """Of the command."""
        return self.method.replace("_", "-")

    @property
    def help(self) -> str:
        """The first line of the docstring."""
        line = (inspect.getdoc(self.compute) or self.title).partition("\n")[0].rstrip(".")
        return line[0].lower() + line[1:]

    @property
    def view_name(self) -> str:
        return self.shown.view_name or self.name

    @property
    def parameters(self) -> list[str]:
        return [*inspect.signature(self.compute).parameters][1:]

    @property
    def own_needs(self) -> tuple[Need, ...]:
        """What it declares; and numbers, if it is not of categories."""
        return self.needs if CATEGORIES in self.needs else (NUMBERS, *self.needs)

    @property
    def all_needs(self) -> tuple[Need, ...]:
        return self.own_needs if self.by_points or self.source == "server" else (*self.own_needs, WHOLE_CURVES)

    def missing(self, campaign: "Campaign") -> str:
        """Why a campaign does not support it, and what to change; nothing if it does."""
        return next(filter(None, (need.missing(campaign) for need in self.all_needs)), "")

    def naming(self, campaign: "Campaign") -> str:
        """What the analyst must name, where the campaign leaves a choice."""
        return next(filter(None, (need.naming(campaign) for need in self.needs)), "")

    def is_reported(self, campaign: "Campaign") -> bool:
        """Whether a report on this campaign has it, with the defaults of its parameters."""
        missing = self.missing(campaign) or any(need.missing(campaign) for need in self.report_needs)
        return self.shown.in_report and self.source != "server" and not missing and not self.naming(campaign)

    def is_viewed(self, campaign: "Campaign") -> bool:
        """Whether the console has a view of it for this campaign."""
        is_open = self.naming(campaign) and not self.shown.view_names_strata
        return self.shown.in_console and self.source != "server" and not self.missing(campaign) and not is_open

    def check(self, campaign: "Campaign") -> None:
        """Refuse what a campaign does not support; how large a curve may be is for the server to say."""
        for need in self.own_needs:
            if missing := need.missing(campaign):
                raise InvalidQuery(f"{self.name}: {missing}")

    def __call__(self, source: Any, *args: Any, **options: Any) -> Any:
        self.check(source.campaign)
        return self.compute(source, *args, **options)

    def arguments(self, *args: Any, **options: Any) -> dict[str, Any]:
        """What each parameter is set to by a call, defaults included."""
        bound = inspect.signature(self.compute).bind(None, *args, **options)
        bound.apply_defaults()
        return {name: bound.arguments[name] for name in self.parameters}

    def bind(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """`ask` with this statistic's parameters and documentation, as a method of a client or a release."""
        method = update_wrapper(partial(ask, self), self.compute)
        signature = inspect.signature(self.compute)
        method.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
        return method

    def picture(self, client: "Client", result: "Tabular", options: Mapping[str, Any]) -> "Figure":
        """The plot of a result; `options` are its parameters, and the interval to draw."""
        if self.shown.draw is not None:
            return self.shown.draw(client, result, options)
        from analyst.present.notebook import draw_figure

        return draw_figure(result, options)

    def section(self, source: Any) -> "Section | None":
        """Of the report: the statistic's own, or its table and its plot; nothing if only strata have one."""
        if self.shown.section is not None:
            return self.shown.section(source)
        if self.shown.stratum_section is not None:
            return None
        from analyst.present.notebook import draw_figure
        from analyst.present.section import Section

        result = self(source)
        figures = {self.name: (self.title, draw_figure(result, {}))} if result.picture else {}
        return Section(self.title, [], figures, {self.name: result}, result.metadata().get("notes", []))


@cache
def statistics() -> Mapping[str, Statistic]:
    """All statistics by the names of their methods, in the order in which they are shown."""
    modules = [import_module(f"{entries.__name__}.{module.name}") for module in pkgutil.iter_modules(entries.__path__)]
    every = {value.method: value for module in modules for value in vars(module).values() if type(value) is Statistic}
    return dict(sorted(every.items(), key=lambda item: item[1].order))


def find(method: str) -> Statistic:
    """The statistic of this method, for `__getattr__` of what has statistics as methods.

    Raises AttributeError if there is none.
    """
    if method.startswith("_") or method not in statistics():
        raise AttributeError(f"there is no statistic {method!r}; there are {', '.join(statistics())}")
    return statistics()[method]
