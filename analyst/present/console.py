"""What `fss-analyst console` answers its page: all numbers come from `analyst.Client`, none is computed in the page."""

import argparse
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from analyst.client import Client
from analyst.options import options_of
from analyst.present.commands import open_client
from analyst.present.table import Tabular, plain
from analyst.registry import Statistic, statistics
from analyst.release import Release
from analyst.statistics.curve import Curve
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise import planning
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import Answer, Console, Download, Query, Routes

# Points of a curve that are drawn; of a longer one, this many spread over it.
MOST_DRAWN = 2000


def console(args: argparse.Namespace) -> None:
    """Serve until interrupted. The address is printed once the campaign could be read."""
    with open_client(args) as client:
        client.campaign()
        served = Console(console_page("analyst"), routes(client), args.port)
        print(f"{client.campaign().title}\n\nopen once, in a browser on this machine:\n  {served.link}", flush=True)
        print("\nthe token stays in this program; end it with Ctrl-C", flush=True)
        try:
            served.serve()
        except KeyboardInterrupt:
            return


def routes(client: Client) -> Routes:
    """Every statistic under its name, and every view under its own; then what is no statistic."""
    answers: dict[str, Callable[[Query], Answer]] = {}
    for statistic in statistics().values():
        if statistic.source != "server":  # a page that is opened must not spend epsilon
            answers[f"/api/{statistic.name}"] = partial(_table_of, client, statistic)
    for statistic in statistics().values():
        if statistic.shown.view is not None:
            answers[f"/api/{statistic.view_name}"] = partial(_view_of, client, statistic)
    answers |= {"/api/campaign": lambda _: campaign(client), "/api/plan": plan}
    answers["/api/report"] = lambda _: report(client)
    return Routes(get=answers)


def _view_of(client: Client, statistic: Statistic, query: Query) -> Answer:
    """What a view is drawn from."""
    assert statistic.shown.view is not None
    return statistic.shown.view(client.waves() if statistic.source == "waves" else client.release(), query)


def _table_of(client: Client, statistic: Statistic, query: Query) -> Answer:
    """A statistic as a table, with the parameters that the query sets."""
    given: dict[str, Any] = {}
    for parameter, option in options_of(statistic.compute):
        name = option.flag.removeprefix("--") or parameter.name
        if option.more.get("action") == "append" or "nargs" in option.more:
            given |= {parameter.name: query.texts(name)} if query.texts(name) else {}
        elif query.text(name):
            given[parameter.name] = _read(query.text(name), option.read or bool, name)
    return {"table": as_json(client.statistic(statistic, **given))}


def _read(text: str, read: Callable[[str], Any], name: str) -> Any:
    try:
        return read(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise InvalidQuery(f"{name}: {text[:40]!r} cannot be read") from None


def campaign(client: Client) -> dict[str, Any]:
    """What stands at the top of the page, and which views there are."""
    from analyst.present.report import privacy_statement

    release = client.release()
    made = release.campaign
    if made.variable.is_categorical:
        raise InvalidQuery(
            f"the console shows curves, and the variable {made.variable.name!r} has categories: use fss-analyst "
            "categories, compare-categories and report"
        )
    grid = made.variable.grid
    ends = grid.labels(np.array([0, grid.size - 1]))
    budget = client.budget()
    return {
        "title": made.title,
        "question": made.question,
        "unit": made.variable.unit,
        "value_label": made.variable.label,
        "kind": made.kind,
        "n": release.n,
        "epsilon": made.epsilon,
        "total_epsilon": made.total_epsilon,
        "digest": made.digest.hex(),
        "mechanism": made.variable.mechanism,
        "promise": privacy_statement(made, release.n),
        "strata": list(made.strata),
        "totals": {name: plain(total) for name, total in release.totals.items()},
        "grid": {"kind": grid.kind, "values": grid.values, "size": grid.size, "first": ends[0], "last": ends[1]},
        "budget": {"reserve": budget.reserve, "spent": budget.spent, "remaining": budget.remaining},
        "views": list(views(made)),
        "titles": views(made),
    }


def views(campaign: Campaign) -> dict[str, str]:
    """The views that this campaign has, with their titles."""
    shown = [statistic for statistic in statistics().values() if statistic.is_viewed(campaign)]
    return {**{statistic.view_name: statistic.title for statistic in shown}, "plan": "Planning"}


def interval_of(query: Query) -> Any:
    kind = query.text("interval", "population")
    if kind not in ("noise", "population"):
        raise InvalidQuery(f"interval is noise or population, not {kind[:40]!r}")
    return kind


def confidence_of(query: Query) -> float:
    return query.number("confidence", 0.95)


def curves_of(release: Release, query: Query) -> list[Curve]:
    """Those of the chosen strata, one by one or pooled."""
    chosen = query.texts("stratum") or list(release.campaign.strata)
    if query.text("pooled") == "1":
        return [release.curve(chosen)]
    if len(chosen) > 6:
        raise InvalidQuery("choose at most six strata, or pool them")
    return [release.curve(name) for name in chosen]


def drawn(size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.unique(np.linspace(0, size - 1, min(size, MOST_DRAWN)).astype(np.int64))


def as_json(made: Tabular, rows: np.ndarray[Any, Any] | None = None) -> dict[str, Any]:
    """A result as the page gets it: what holds for all of it, and columns."""
    columns = {name: [plain(v) for v in values] for name, values in made.columns().items()}
    if rows is not None:
        columns = {name: [values[i] for i in rows] for name, values in columns.items()}
    return {"about": {name: _plain(value) for name, value in made.metadata().items()}, "columns": columns}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else plain(value)


def json_numbers(values: Sequence[float] | np.ndarray[Any, Any]) -> list[Any]:
    return [plain(float(value)) for value in values]


def plan(query: Query) -> Answer:
    """Expected errors around the wanted n and epsilon."""
    n, epsilon = query.whole("n", 5000), query.number("epsilon", 1.0)
    grid: dict[str, Any] = {"thresholds": query.whole("thresholds", 1000), "strata": query.whole("strata", 1)}
    if n < 1 or not math.isfinite(epsilon):
        raise InvalidQuery("a plan needs at least one value and a finite epsilon")
    # Noise does not depend on n, so all errors are those of one value, divided.
    one = planning.expected_errors(n=1, epsilon=epsilon, **grid)
    sizes = [int(10 ** (k / 4)) for k in range(8, 25)]
    columns = {
        "n": sizes,
        "point_error": json_numbers([one.point / size for size in sizes]),
        "band_95": json_numbers([one.band / size for size in sizes]),
    }
    found = {
        "n": n,
        "epsilon": epsilon,
        "point": one.point / n,
        "band": one.band / n,
        "quantile_steps": one.quantile_steps / n,
    }
    return {"here": {name: plain(value) for name, value in found.items()}, "columns": columns}


def report(client: Client) -> Answer:
    from analyst.present import report as pages

    release = client.release()
    waves = None if release.campaign.waves is None else client.waves()
    page = pages.page(release, datetime.now(UTC), waves)
    return Download("report.html", "text/html; charset=utf-8", page.encode())
